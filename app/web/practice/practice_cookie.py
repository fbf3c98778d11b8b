"""Where a browser's record of practice is kept, and what stands around a sheet of practice.

The rule that reads the record is the core's; only this module knows that it travels in a cookie.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, replace

from fastapi import Request, Response

from app.practice.record import MAX_COUNT, PracticeRecord, read_record, write_record
from app.practice.scheduler import (
    SHEETS_TO_SOLID,
    IdeaState,
    NextSheet,
    PracticeLevel,
    current_level,
    idea_states,
    next_sheet,
    practice_levels,
)
from app.sheets.worksheet import Variant
from app.web.shared.cookies import PRACTICE_COOKIE, set_private_cookie
from app.web.shared.services import Services

MAX_COOKIE = 3600  # characters; browsers keep cookies of 4096


@dataclass(frozen=True)
class LevelChoice:
    """One level to choose, by the name that people read."""

    key: str
    name: str
    chosen: bool


@dataclass(frozen=True)
class IdeaView:
    """An idea by its name, how it stands, and the word for that."""

    name: str
    state: IdeaState
    told: str


@dataclass(frozen=True)
class Practice:
    """What stands around a sheet of practice: the levels, why this sheet comes, and how each idea stands."""

    levels: tuple[LevelChoice, ...]
    why: str
    ideas: tuple[IdeaView, ...]
    sheets_to_solid: int = SHEETS_TO_SOLID


def kept_record(request: Request) -> PracticeRecord:
    """The record in this browser; a new one where there is none, or none that can be read."""
    text = request.cookies.get(PRACTICE_COOKIE, "")
    try:
        return read_record(base64.urlsafe_b64decode(text[:MAX_COOKIE].encode("ascii")).decode())
    except ValueError:  # of the letters, or a RecordError
        return new_record()


def new_record() -> PracticeRecord:
    """An empty record with a start of its own, so that no two browsers practise alike."""
    return PracticeRecord(secrets.randbelow(MAX_COUNT))


def keep_record(request: Request, response: Response, record: PracticeRecord) -> None:
    """Put the record into the browser, without its oldest results where it has grown too long for that."""
    while len(text := _as_cookie(record)) > MAX_COOKIE:
        record = replace(record, results=record.results[max(1, len(record.results) // 10) :])
    set_private_cookie(request, response, PRACTICE_COOKIE, text)


def _as_cookie(record: PracticeRecord) -> str:
    return base64.urlsafe_b64encode(write_record(record).encode()).decode("ascii")


def practice_around(request: Request, services: Services, variant: Variant | None) -> Practice:
    """What stands around this sheet for the record of this browser."""
    record, library = kept_record(request), services.library
    coming, own = next_sheet(library, record), current_level(library, record)
    levels = tuple(LevelChoice(level.key, _name(services, level), level == own) for level in practice_levels(library))
    say = library.wording.say
    states = idea_states(library, record).items()
    ideas = tuple(IdeaView(say("ideas", idea), state, say("idea-states", state)) for idea, state in states)
    return Practice(levels, _why(services, coming) if coming.variant == variant else "", ideas)


def _name(services: Services, level: PracticeLevel) -> str:
    say = services.library.wording.say
    name = say("topics", level.topic)
    return say("practice", "in-letters", level=name) if level.in_letters else name


def _why(services: Services, coming: NextSheet) -> str:
    """Why this sheet comes, where there is something to say."""
    wording = services.library.wording
    if coming.reason not in wording.sections["practice"]:
        return ""
    ideas = ", ".join(wording.say("ideas", idea) for idea in coming.ideas)
    return wording.say("practice", coming.reason, ideas=ideas, level=_name(services, coming.level))
