"""The record of practice, which travels in a cookie of the browser, and the panel that it puts around a sheet.

The rules that read the record are in app/practice.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, replace

from fastapi import Request, Response

from app.practice.record import MAX_COUNT, PracticeRecord, read_record, write_record
from app.practice.scheduler import (
    SHEETS_TO_SOLID,
    GroupState,
    NextSheet,
    PracticeLevel,
    current_level,
    group_states,
    next_sheet,
    practice_levels,
)
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.web.shared.cookies import PRACTICE_COOKIE, set_private_cookie

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
    """What stands around a sheet of practice: levels, why this sheet comes, and every misconception group's state."""

    levels: tuple[LevelChoice, ...]
    why: str  # empty where there is nothing to say, or the sheet is not the one that the record asks for
    groups: tuple[MisconceptionGroupView, ...]
    sheets_to_solid: int = SHEETS_TO_SOLID


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


def practice_panel(request: Request, library: Library, variant: Variant | None) -> PracticePanel:
    """The panel around this sheet, from the record in this browser: every level, and the state of every group.

    It says why this sheet comes only if it is the one that the record asks for.
    """
    record, say = read_record_cookie(request), library.wording.say
    coming, current = next_sheet(library, record), current_level(library, record)
    levels = (
        LevelChoice(each.key, _level_name(library.wording, each), each == current) for each in practice_levels(library)
    )
    states = group_states(library, record).items()
    groups = (
        MisconceptionGroupView(say("misconception-groups", group), state, say("misconception-group-states", state))
        for group, state in states
    )
    why = _why_this_sheet(library.wording, coming, record) if coming.variant == variant else ""
    return PracticePanel(tuple(levels), why, tuple(groups))


def _level_name(wording: Wording, level: PracticeLevel) -> str:
    """The name of a level: that of its topic, and that it asks for letters where it does."""
    name = wording.say("topics", level.topic)
    if level.about_latent_attention:
        return wording.say("practice", "latent", level=name)
    return wording.say("practice", "in-letters", level=name) if level.in_letters else name


def _why_this_sheet(wording: Wording, coming: NextSheet, record: PracticeRecord) -> str:
    """The sentence of wording [practice] on the reason, misconception groups and level for which this sheet comes.

    For one more of a level it is said after a right sheet. Empty for a reason that has no sentence there.
    """
    if coming.reason == "more" and record.streak and coming.level.right_sheets_to_step_up > record.streak:
        return wording.say("practice", "one-more", done=record.streak, needed=coming.level.right_sheets_to_step_up)
    if coming.reason not in wording.sections["practice"]:
        return ""
    groups = ", ".join(wording.say("misconception-groups", group) for group in coming.groups)
    return wording.say("practice", coming.reason, groups=groups, level=_level_name(wording, coming.level))
