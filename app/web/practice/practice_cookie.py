"""The record of practice, which travels in a cookie of the browser, and the panel that it puts around a sheet.

The rules that read the record are in app/practice.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, replace

from fastapi import Request, Response

from app.practice.record import (
    MAX_COUNT,
    PracticeRecord,
    first_readable_answers,
    read_record,
    sheet_result,
    write_record,
)
from app.practice.scheduler import (
    SHEETS_TO_SOLID,
    GroupState,
    NextSheet,
    PracticeLevel,
    current_level,
    group_states,
    next_sheet,
    practice_levels,
    record_result,
)
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.store import Store, Visitor
from app.web.practice.sheet_request import sheet_key
from app.web.shared.cookies import PRACTICE_COOKIE, set_private_cookie

MAX_ATTEMPTS_READ = 50  # of one sheet
MAX_COOKIE = 3600  # characters; browsers store cookies of up to 4096


@dataclass(frozen=True)
class LevelChoice:
    """One level in the list to choose from."""

    key: str
    name: str
    chosen: bool


@dataclass(frozen=True)
class MisconceptionGroupView:
    """The name of a misconception group, and its state by the record: new, growing, solid or again."""

    name: str
    state: GroupState
    state_text: str


@dataclass(frozen=True)
class PracticePanel:
    """What stands around a sheet of practice: levels, the way to the next, why this sheet comes, and the groups."""

    levels: tuple[LevelChoice, ...]
    why: str  # empty where there is nothing to say, or the sheet is not the one that the record asks for
    perfect: int  # sheets in a row, this one included once it is all right
    needed: int  # of them to the next level; 0 on the highest
    reached: str  # the level that this sheet leads up to, empty where it does not
    groups: tuple[MisconceptionGroupView, ...]
    sheets_to_solid: int = SHEETS_TO_SOLID
    course: str = ""  # whose teachers see how far the student is; empty for practice of one's own


def read_record_cookie(request: Request) -> PracticeRecord:
    """The record in this browser's cookie; a new one where there is none or it cannot be read."""
    text = request.cookies.get(PRACTICE_COOKIE, "")
    try:
        return read_record(base64.urlsafe_b64decode(text[:MAX_COOKIE].encode("ascii")).decode())
    except ValueError:  # no ASCII, no base64, or a RecordError
        return new_record()


def new_record() -> PracticeRecord:
    """An empty record with a random seed, so that browsers get different sheets."""
    return PracticeRecord(secrets.randbelow(MAX_COUNT))


def set_record_cookie(request: Request, response: Response, record: PracticeRecord) -> None:
    """Put the record into the browser's cookie, without its oldest results where it has grown too long for one."""
    while len(text := _encode(record)) > MAX_COOKIE:
        record = replace(record, results=record.results[max(1, len(record.results) // 10) :])
    set_private_cookie(request, response, PRACTICE_COOKIE, text)


def _encode(record: PracticeRecord) -> str:
    return base64.urlsafe_b64encode(write_record(record).encode()).decode("ascii")


def practice_panel(
    library: Library, record: PracticeRecord, after: PracticeRecord, variant: Variant | None
) -> PracticePanel:
    """The panel around this sheet: every level, how far it is to the next, and the state of every group.

    `after` is the record with the result of this sheet, or the record itself while it has none to count. The panel says
    why this sheet comes only if it is the one that the record asks for.
    """
    wording, say = library.wording, library.wording.say
    levels, current, reached = practice_levels(library), current_level(library, record), current_level(library, after)
    needed = current.right_sheets_to_step_up
    groups = (
        MisconceptionGroupView(say("misconception-groups", group), state, say("misconception-group-states", state))
        for group, state in group_states(library, after).items()
    )
    coming = next_sheet(library, record)
    return PracticePanel(
        levels=tuple(LevelChoice(each.key, level_name(wording, each), each == current) for each in levels),
        why=_why_this_sheet(wording, coming) if coming.variant == variant else "",
        perfect=min(after.streak, needed) if reached == current else needed,
        needed=0 if current == levels[-1] else needed,
        reached="" if reached == current else level_name(wording, reached),
        groups=tuple(groups),
    )


def record_with_sheet(
    library: Library, store: Store, visitor: Visitor | None, record: PracticeRecord, variant: Variant
) -> PracticeRecord:
    """The record with the result of the first readable answer to each blank, out of the last 50 attempts on the sheet.

    For a sheet that is in the record already, and so comes again, the last attempt counts alone. Without any readable
    answer, the record after skipping the sheet.
    """
    attempts = store.latest_attempts(visitor, sheet_key(variant), MAX_ATTEMPTS_READ) if visitor else []
    if any(result.code == variant.code for result in record.results):
        attempts = attempts[:1]  # newest first
    result = sheet_result(variant, first_readable_answers(variant, (attempt.answers for attempt in reversed(attempts))))
    return record_result(library, record, result) if result else record.after_skipping()


def level_name(wording: Wording, level: PracticeLevel) -> str:
    """The name of a level: that of its topic, and that it asks for letters where it does."""
    name = wording.say("topics", level.topic)
    if level.about_latent_attention:
        return wording.say("practice", "latent", level=name)
    return wording.say("practice", "in-letters", level=name) if level.in_letters else name


def _why_this_sheet(wording: Wording, coming: NextSheet) -> str:
    """The sentence of wording [practice] on the reason, misconception groups and level for which this sheet comes.

    Empty for a reason that has no sentence there.
    """
    if coming.reason not in wording.sections["practice"]:
        return ""
    groups = ", ".join(wording.say("misconception-groups", group) for group in coming.groups)
    return wording.say("practice", coming.reason, groups=groups, level=level_name(wording, coming.level))
