"""What a learner's practice has come to so far: one small frozen value that travels as a line of JSON.

It may come from anywhere, a browser above all, so reading it believes nothing: what has the wrong form is refused, and
what names no sheet or misconception is left out when the record is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.grading.grade import grade
from app.misconceptions.catalogue import MISCONCEPTIONS, Expectation
from app.misconceptions.ideas import IDEAS, idea_of
from app.sheets.codes import read_code
from app.sheets.worksheet import Typed, Variant

MAX_RESULTS = 120  # results; older ones are forgotten
MAX_RECORD_CHARACTERS = 12_000  # characters of a record in JSON
MAX_COUNT = 10**9

_MISCONCEPTIONS = frozenset(misconception.key for misconception in MISCONCEPTIONS)


class RecordError(ValueError):
    """A record that cannot be used; one sentence that says so."""


@dataclass(frozen=True)
class SheetResult:
    """One sheet by its code, as it was first answered: all right, or which misconceptions were held, which ideas are
    open.

    An idea is open where its boxes are neither right nor explained by one of its misconceptions.
    """

    code: str
    right: bool
    held: tuple[str, ...] = ()
    unexplained_ideas: tuple[str, ...] = ()


@dataclass(frozen=True)
class PracticeRecord:
    """Where the seeds start, how many sheets were drawn, the level and the right sheets in a row on it, the results."""

    start: int
    drawn: int = 0
    level: str = ""
    streak: int = 0
    results: tuple[SheetResult, ...] = ()

    @property
    def next_draw(self) -> int:
        """The count with one more sheet; it begins anew where numbers end."""
        return (self.drawn + 1) % MAX_COUNT

    def after_skipping(self) -> PracticeRecord:
        """The same for a sheet that was left without a try: another one is drawn, and nothing else changes."""
        return replace(self, drawn=self.next_draw)

    def at_level(self, level: str) -> PracticeRecord:
        """The same on a level that the learner chose."""
        return replace(self, drawn=self.next_draw, level=level, streak=0)


def first_readable_answers(variant: Variant, tries: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """For every box what was written there first that could be read; the tries in the order in which they were made."""
    first = dict[str, str]()
    for answers in tries:
        for box in map(str, variant.blanks):
            if box not in first and isinstance(variant.read(answers.get(box, "")), Typed):
                first[box] = answers[box]
    return first


def sheet_result(variant: Variant, answers: Mapping[str, str]) -> SheetResult | None:
    """What these answers say about the learner; None where nothing in them could be read."""
    report = grade(variant, answers)
    if not report.tried:
        return None
    if report.right == report.out_of:
        return SheetResult(variant.code, True)
    found = report.diagnosis
    held = (found.key, *found.also) if found else ()
    right = {variant.in_table_orientation(blank) for blank, mark in report.marks.items() if mark.kind == "right"}
    values = {variant.in_table_orientation(blank): mark.read_as for blank, mark in report.marks.items()}
    doubtful = {
        idea_of(expectation.misconception)
        for expectation in variant.with_tokens_as_rows.expectations
        if not _avoided(expectation, values, right)
    }
    known = {idea_of(misconception) for misconception in held}
    return SheetResult(variant.code, False, held, tuple(idea for idea in IDEAS if idea in doubtful - known))


def _avoided(expectation: Expectation, values: Mapping[Any, int | None], right: set[Any]) -> bool:
    """Whether no box is as the misconception has it, and at least half of those it would change are right."""
    as_believed = any(values.get(blank) == size for blank, size in expectation.changed.items())
    return not as_believed and 2 * sum(blank in right for blank in expectation.changed) >= len(expectation.changed)


def write_record(record: PracticeRecord) -> str:
    """The record as JSON: a right sheet is its code alone."""
    results = [r.code if r.right else [r.code, list(r.held), list(r.unexplained_ideas)] for r in record.results]
    return json.dumps([record.start, record.drawn, record.level, record.streak, results], separators=(",", ":"))


def read_record(text: str) -> PracticeRecord:
    """A record from its JSON; raises RecordError for what is none."""
    if len(text) > MAX_RECORD_CHARACTERS:
        raise RecordError("This record of practice is too long.")
    try:
        start, drawn, level, streak, results = json.loads(text)
        counts = [_count(number) for number in (start, drawn, streak)]
        read = tuple(_result(entry) for entry in _list(results)[-MAX_RESULTS:])
        return PracticeRecord(counts[0], counts[1], _text(level), counts[2], read)
    except (ValueError, TypeError, RecursionError):
        raise RecordError("This is no record of practice: begin a new one.") from None


def _result(entry: object) -> SheetResult:
    if isinstance(entry, str):
        return SheetResult(_code(entry), True)
    code, held, still_open = _list(entry)
    misconceptions = [text for text in map(_text, _list(held)) if text in _MISCONCEPTIONS]
    ideas = [text for text in map(_text, _list(still_open)) if text in IDEAS]
    return SheetResult(_code(code), False, tuple(dict.fromkeys(misconceptions)), tuple(dict.fromkeys(ideas)))


def _code(entry: object) -> str:
    text = _text(entry)
    if read_code(text) is None:
        raise ValueError
    return text


def _text(entry: object) -> str:
    if not isinstance(entry, str) or len(entry) > 60:
        raise TypeError
    return entry


def _list(entry: object) -> list[Any]:
    if not isinstance(entry, list):
        raise TypeError
    return entry


def _count(entry: object) -> int:
    if type(entry) is not int or not 0 <= entry <= MAX_COUNT:
        raise TypeError
    return entry
