"""What one person's practice has come to so far: a small frozen value that travels as one line of JSON.

The line comes back from a browser, so nothing in it is trusted: a wrong form is refused, and a code or key that is not
known (any more) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from app.grading.grade import grade
from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, MISCONCEPTIONS, group_of
from app.misconceptions.predictions import Expectation, expectations
from app.shapes.table import Blank
from app.sheets.codes import read_code
from app.sheets.reading import Answer
from app.sheets.variant import Variant
from app.translation import gettext as _

MAX_RESULTS = 120  # in a record; older ones are forgotten
MAX_RECORD_CHARACTERS = 12_000  # of its JSON
MAX_COUNT = 10**9  # of anything in it
MAX_KEY_CHARACTERS = 60
MAX_LEVELS = 60  # passed


class RecordError(ValueError):
    """A practice record that cannot be used; one sentence that says so."""


@dataclass(frozen=True)
class SheetResult:
    """How one sheet, named by its code, was answered at first."""

    code: str
    right: bool
    held: tuple[str, ...] = ()
    unexplained_groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class PracticeRecord:
    """All that decides which sheet comes next."""

    start: int
    drawn: int = 0
    level: str = ""
    testing: bool = False
    in_letters: bool = False
    results: tuple[SheetResult, ...] = ()
    passed: tuple[str, ...] = ()

    @property
    def next_draw(self) -> int:
        """`drawn` plus one; from MAX_COUNT - 1 it goes back to 0."""
        return (self.drawn + 1) % MAX_COUNT

    def after_skipping(self) -> PracticeRecord:
        """The record after a sheet that was left unanswered: another sheet is drawn, and nothing else changes."""
        return replace(self, drawn=self.next_draw)

    def at_level(self, level: str, *, testing: bool = False, in_letters: bool | None = None) -> PracticeRecord:
        """The record at the level with this key: another sheet is drawn, one to test out with if `testing`."""
        letters = self.in_letters if in_letters is None else in_letters
        return replace(self, drawn=self.next_draw, level=level, testing=testing, in_letters=letters)


def first_readable_answers(variant: Variant, attempts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """For each box the first text that could be read, as it was typed; `attempts` come oldest first."""
    first = dict[str, str]()
    for answers in attempts:
        for box, blank in variant.blanks_by_name.items():
            if box not in first and isinstance(variant.read(blank, answers.get(box, "")), Answer):
                first[box] = answers[box]
    return first


def sheet_result(variant: Variant, answers: Mapping[str, str]) -> SheetResult | None:
    """What these answers show: the sheet right, or the diagnosed misconceptions and the groups left in doubt."""
    report = grade(variant, answers)
    if not report.has_readable_answer:
        return None
    if report.complete:
        return SheetResult(variant.code, True)
    diagnosed = (report.diagnosis.key, *report.diagnosis.also) if report.diagnosis else ()
    held = tuple(key for key in diagnosed if key in _MISCONCEPTION_KEYS)  # and no author's
    values = {blank: mark.read_as for blank, mark in report.marks.items()}
    right = {blank for blank, mark in report.marks.items() if mark.kind == "right"}
    tested = dict[str, list[Expectation]]()
    for expectation in expectations(variant.problem):
        if expectation.misconception in _MISCONCEPTION_KEYS:
            tested.setdefault(expectation.misconception, []).append(expectation)
    doubtful = {group_of(key) for key, ways in tested.items() if not _is_avoided(ways, values, right)}
    explained = {group_of(misconception) for misconception in held}
    return SheetResult(
        variant.code, False, held, tuple(group for group in MISCONCEPTION_GROUPS if group in doubtful - explained)
    )


def _is_avoided(ways: Sequence[Expectation], values: Mapping[Blank, int | None], right: Collection[Blank]) -> bool:
    as_predicted = any(values.get(blank) == number for way in ways for blank, number in way.wrong_answers.items())
    changed = {blank for way in ways for blank in way.wrong_answers}
    return not as_predicted and 2 * len(changed.intersection(right)) >= len(changed)


def write_record(record: PracticeRecord) -> str:
    """The record as one line of JSON: start, drawn, level, testing, in symbols, results and passed levels.

    Example: [7,2,"bidirectional-head",false,false,["KHT-LC",["BCD-FG",["input-sliced"],[]]],["single-head"]]
    """
    results = [
        result.code if result.right else [result.code, list(result.held), list(result.unexplained_groups)]
        for result in record.results
    ]
    fields = [record.start, record.drawn, record.level, record.testing, record.in_letters, results, record.passed]
    return json.dumps(fields, separators=(",", ":"))


def write_within(record: PracticeRecord, most: int, write: Callable[[PracticeRecord], str] = write_record) -> str:
    """The record written by `write`, without as many of its oldest results as it takes to have at most `most`
    characters.
    """
    while len(text := write(record)) > most and record.results:
        record = replace(record, results=record.results[max(1, len(record.results) // 10) :])
    return text


def _check_code(text: str) -> str:
    if read_code(text) is None:
        raise ValueError
    return text


_Number = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
_Key = Annotated[str, Field(max_length=MAX_KEY_CHARACTERS)]
_Code = Annotated[_Key, AfterValidator(_check_code)]
_Results = list[_Code | tuple[_Code, list[_Key], list[_Key]]]
_Levels = Annotated[list[_Key], Field(max_length=MAX_LEVELS)]
_Flag = Annotated[bool, Field(strict=True)]
_RECORD_JSON: TypeAdapter[tuple[int, int, str, bool, bool, _Results, list[str]]] = TypeAdapter(
    tuple[_Number, _Number, _Key, _Flag, _Flag, _Results, _Levels]
)
_MISCONCEPTION_KEYS = frozenset(misconception.key for misconception in MISCONCEPTIONS)


def read_record(text: str) -> PracticeRecord:
    """The record that `write_record` wrote; raises RecordError for more than MAX_RECORD_CHARACTERS, or another form."""
    if len(text) > MAX_RECORD_CHARACTERS:
        raise RecordError(_("This record of practice is too long."))
    try:
        start, drawn, level, testing, in_letters, entries, passed = _RECORD_JSON.validate_json(text)
    except ValidationError:
        raise RecordError(_("This isn’t a practice record: begin a new one.")) from None
    results = tuple(map(_read_result, entries[-MAX_RESULTS:]))
    return PracticeRecord(start, drawn, level, testing, in_letters, results, tuple(dict.fromkeys(passed)))


def _read_result(entry: str | tuple[str, list[str], list[str]]) -> SheetResult:
    if isinstance(entry, str):
        return SheetResult(entry, True)
    code, held, groups = entry
    known_held = dict.fromkeys(key for key in held if key in _MISCONCEPTION_KEYS)
    known_groups = dict.fromkeys(group for group in groups if group in MISCONCEPTION_GROUPS)
    return SheetResult(code, False, tuple(known_held), tuple(known_groups))
