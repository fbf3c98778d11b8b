"""What one person has practised: a small frozen value, stored as one line of JSON.

A misconception waits on a card, and comes back after as many finished sheets as WAITS says, each time that a sheet
which could have shown it was filled in without it. After the last repetition, the card is dropped.

The line comes back from a browser, so nothing in it is trusted: a wrong form is refused, and unknown keys are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from app.grading.grade import Report
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import PROBLEMS_REMEMBERED, cannot_tell_apart, expectations
from app.practice.lessons import LESSONS
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError, library_key, whole_key
from app.topics.problem import Problem
from app.topics.registry import TOPICS
from app.translation import gettext as _

WAITS = (0, 2, 4)  # finished sheets until a card is due again: after a mistake, and after it was right once and twice
MAX_CARDS, MAX_DONE = 12, 80  # in one record, which must fit into a cookie
MAX_COUNT = 10**9
MAX_KEY_CHARACTERS = 80
MAX_RECORD_CHARACTERS = 12_000  # as JSON

_KNOWN = frozenset(misconception.key for misconception in MISCONCEPTIONS)


class RecordError(ValueError):
    """A practice record that can't be used."""


@dataclass(frozen=True)
class Card:
    """A misconception waiting to be repeated, and the code of the sheet on which it last showed."""

    misconception: str
    code: str
    times_right: int = 0
    due: int = 0  # shown after this many finished sheets


@dataclass(frozen=True)
class PracticeRecord:
    """The worksheets that were all right, oldest first, what is to be repeated, and how many sheets were finished."""

    done: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    finished: int = 0

    @property
    def due(self) -> tuple[Card, ...]:
        """The cards to repeat now, the longest waiting first."""
        return tuple(sorted((card for card in self.cards if card.due <= self.finished), key=lambda card: card.due))

    def after_check(self, variant: Variant, report: Report, *, first_time_right: bool) -> PracticeRecord:
        """The record after a sheet was checked; `first_time_right` if it is all right and wasn't at an earlier
        check.
        """
        cards = {card.misconception: card for card in self.cards}
        if not TOPICS[variant.worksheet.topic].in_steps:  # which teach, and expect mistakes
            for misconception in _mixed_up(report):
                cards.pop(misconception, None)
                cards[misconception] = Card(misconception, variant.code, due=self.finished)
        finished, done = self.finished, self.done
        if first_time_right:
            finished += 1
            for card in self.due:
                if card.code != variant.code and card.misconception in distinguishable_misconceptions(variant):
                    del cards[card.misconception]
                    if card.times_right + 1 < len(WAITS):
                        due = finished + WAITS[card.times_right + 1]
                        cards[card.misconception] = replace(card, times_right=card.times_right + 1, due=due)
            done = _with_done(done, variant.worksheet.key)
        return PracticeRecord(done, tuple(cards.values())[-MAX_CARDS:], finished)


def _mixed_up(report: Report) -> Iterable[str]:
    diagnosed = (report.diagnosis.key, *report.diagnosis.also) if report.diagnosis else ()
    return (key for key in diagnosed if key in _KNOWN)  # and no author's


def _with_done(done: tuple[str, ...], worksheet: str) -> tuple[str, ...]:
    if whole_key(worksheet) != worksheet:
        return done
    key = library_key(worksheet)
    return (*(each for each in done if each != key), key)[-MAX_DONE:]


def distinguishable_misconceptions(variant: Variant) -> frozenset[str]:
    """The misconceptions that show on this sheet and differ there from all others and from the right answer."""
    return _distinguishable(variant.problem)


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _distinguishable(problem: Problem) -> frozenset[str]:
    hidden = {key for confusion in cannot_tell_apart(problem) for key in confusion}
    return frozenset(entry.misconception for entry in expectations(problem)) - hidden


# As JSON


def write_record(record: PracticeRecord) -> str:
    """The record as one line of JSON; `read_record` reads it back.

    >>> write_record(PracticeRecord(("llama-7b",), (Card("softmax-collapses", "KTR-FB-CD", 1, 3),), 2))
    '[["llama-7b"],[["softmax-collapses","KTR-FB-CD",1,3]],2]'
    """
    cards = [[card.misconception, card.code, card.times_right, card.due] for card in record.cards]
    return json.dumps([record.done, cards, record.finished], separators=(",", ":"))


_Number = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
_Key = Annotated[str, Field(max_length=MAX_KEY_CHARACTERS)]
_RECORD: TypeAdapter[tuple[list[str], list[tuple[str, str, int, int]], int]] = TypeAdapter(
    tuple[
        Annotated[list[_Key], Field(max_length=MAX_DONE)],
        Annotated[list[tuple[_Key, _Key, _Number, _Number]], Field(max_length=MAX_CARDS)],
        _Number,
    ]
)
# The form from when practice had levels: four values that are no longer needed, results, and the levels passed. A
# result is the code of a sheet that was right at first, or the code with the misconceptions and groups that showed on
# it.
_RECORD_OF_LEVELS: TypeAdapter[
    tuple[int, int, str, bool, bool, list[str | tuple[str, list[str], list[str]]], list[str]]
] = TypeAdapter(tuple[_Number, _Number, _Key, bool, bool, list[_Key | tuple[_Key, list[_Key], list[_Key]]], list[_Key]])


def read_record(library: Library, text: str) -> PracticeRecord:
    """The record that `write_record` wrote, or one from when practice had levels; otherwise raises RecordError."""
    if len(text) > MAX_RECORD_CHARACTERS:
        raise RecordError(_("This record of practice is too long."))
    try:
        done, cards, finished = _RECORD.validate_json(text)
    except ValidationError:
        return _read_levels(library, text)
    known = {card[0]: Card(*card) for card in cards if card[0] in _KNOWN and card[2] < len(WAITS)}
    return PracticeRecord(tuple(dict.fromkeys(done)), tuple(known.values()), finished)


def _read_levels(library: Library, text: str) -> PracticeRecord:
    try:
        *_rest, results, passed = _RECORD_OF_LEVELS.validate_json(text)
    except ValidationError:
        raise RecordError(_("This isn’t a practice record: begin a new one.")) from None
    # A level was the topic of its sheets: the first sheet on it counts as done.
    row = {library.worksheets[key].topic: key for lesson in reversed(LESSONS) for key in reversed(lesson.sheets)}
    done, held = tuple(row[level] for level in passed if level in row), dict[str, tuple[str, str]]()
    for result in results:
        code, mixed_up = (result, []) if isinstance(result, str) else result[:2]
        try:
            worksheet = library.variant_from_code(code).worksheet
        except WorksheetError:
            continue
        if isinstance(result, str):
            done = _with_done(done, worksheet.key)
            held = {key: each for key, each in held.items() if each[0] != worksheet.topic}
        held |= {key: (worksheet.topic, code) for key in mixed_up if key in _KNOWN}
    cards = tuple(Card(key, code) for key, (_topic, code) in held.items())
    return PracticeRecord(done, cards[-MAX_CARDS:], len(results))
