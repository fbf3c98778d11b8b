"""Marking with a diagnosis: target 200 µs a right sheet, 1 ms any other, 10,000 sheets in 10 s on one core.

All times are those of the processor, so that neighbours on the machine are not counted.
"""

from __future__ import annotations

import random
import time
import timeit
from collections.abc import Iterator
from dataclasses import replace

from app.grading.grade import grade
from app.settings import PROJECT
from app.sheets.library import Library, load_library
from app.sheets.worksheet import Variant
from simulation.misconception_students import FilledSheet
from simulation.simulated_sheets import SimulatedSheet

SHEETS, STUDENTS = 10_000, 500  # each student hands in twenty sheets
Answers = dict[str, str]


def report() -> Iterator[str]:
    """Microseconds for sheets of one worksheet, then a class of five hundred on all of them, first and second time."""
    library = load_library(PROJECT / "worksheets")
    yield from _one_sheet(library.variant("llama-7b"))
    handed_in = list(_class(library))
    first = sorted(_seconds(_new(variant), answers) for variant, answers in handed_in)
    for name, at in (("median", 0.5), ("95 in 100 below", 0.95), ("99 in 100 below", 0.99)):
        yield f"a sheet not marked before, of any worksheet, {name}: {first[int(at * len(first))] * 1e6:.0f} µs"
    again = sum(_seconds(variant, answers) for variant, answers in handed_in)
    yield f"{len(handed_in):,} sheets of {STUDENTS} students marked again: {again:.1f} s"


def _one_sheet(variant: Variant) -> Iterator[str]:
    """Medians for a right sheet, a sheet of products, an unreadable one, and three with mistakes."""
    right = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
    sheets = {
        "right numbers": right,
        "products with spaces": {blank: f"1 * {text} / 1" for blank, text in right.items()},
        "unreadable": dict.fromkeys(right, "9**9**9"),
        "one length wrong throughout": {**right, **{blank: "128" for blank, text in right.items() if text == "100"}},
        "one misconception": {**right, **dict.fromkeys(["queries.columns", "keys.columns", "values.columns"], "4096")},
        "two misconceptions": {**right, "input.columns": "128", "values.columns": "4096"},
    }
    for name, answers in sheets.items():
        times = sorted(
            timeit.repeat(lambda a=answers: grade(variant, a), timer=time.process_time, number=100, repeat=21)  # type: ignore[misc]
        )
        yield f"{name}: {times[10] / 100 * 1e6:.0f} µs"


def _class(library: Library) -> Iterator[tuple[Variant, Answers]]:
    """Students with a seed each, on every worksheet in numbers: right, with one misconception, with two, or
    guessing.
    """
    chance = random.Random("a class")  # noqa: S311 - simulated students
    worksheets = [key for key, sheet in library.worksheets.items() if sheet.answers == "numbers"]
    kinds = (_right, _one_misconception, _two_misconceptions, _guess)
    known = dict[str, SimulatedSheet]()
    for at in range(SHEETS):
        variant = library.seeded(worksheets[at % len(worksheets)], at % STUDENTS)
        sheet = known.setdefault(
            variant.with_tokens_as_rows.code + variant.worksheet.key, SimulatedSheet(variant.with_tokens_as_rows)
        )
        boxes = kinds[at // len(worksheets) % len(kinds)](sheet, chance)
        yield variant, {str(blank): str(boxes[str(variant.in_table_orientation(blank))]) for blank in variant.blanks}


def _right(sheet: SimulatedSheet, _chance: random.Random) -> FilledSheet:
    return sheet.right


def _one_misconception(sheet: SimulatedSheet, chance: random.Random) -> FilledSheet:
    return chance.choice(sheet.distinguishable)[1]


def _two_misconceptions(sheet: SimulatedSheet, chance: random.Random) -> FilledSheet:
    return chance.choice(sheet.pairs)[1] if sheet.pairs else _one_misconception(sheet, chance)


def _guess(sheet: SimulatedSheet, chance: random.Random) -> FilledSheet:
    return {box: chance.choice(sheet.mentioned_numbers) for box in sheet.right}


def _new(variant: Variant) -> Variant:
    """The same sheet, with nothing worked out yet."""
    return replace(variant)


def _seconds(variant: Variant, answers: Answers) -> float:
    start = time.process_time()
    grade(variant, answers)
    return time.process_time() - start
