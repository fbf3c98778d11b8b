"""Marking with a diagnosis: target 200 µs a right sheet, 1 ms any other, 10,000 sheets in 10 s on one core.

Times are CPU times, so that other programs on the machine are not counted.
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
from app.sheets.variant import Variant
from simulation.misconception_students import FilledSheet
from simulation.simulated_sheets import SimulatedSheet

SHEETS, STUDENTS = 10_000, 500  # so each student hands in twenty sheets
Answers = dict[str, str]


def report() -> Iterator[str]:
    """Microseconds for typical sheets of LLaMA 7B, then a class on all worksheets: marked once, then all again."""
    library = load_library(PROJECT / "worksheets")
    yield from _one_sheet(library.variant("llama-7b"))
    submissions = list(_class(library))
    first = sorted(_grading_seconds(replace(variant), answers) for variant, answers in submissions)  # nothing cached
    for name, share in (("median", 0.5), ("95 in 100 below", 0.95), ("99 in 100 below", 0.99)):
        yield f"a sheet not marked before, of any worksheet, {name}: {first[int(share * len(first))] * 1e6:.0f} µs"
    again = sum(_grading_seconds(variant, answers) for variant, answers in submissions)
    yield f"{len(submissions):,} sheets of {STUDENTS} students marked again: {again:.1f} s"


def _one_sheet(variant: Variant) -> Iterator[str]:
    right = {box: variant.typed(variant.blanks_by_name[box], number) for box, number in variant.key.items()}
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
    chance = random.Random("a class")  # noqa: S311 - simulated students
    worksheets = [key for key, sheet in library.worksheets.items() if sheet.answers == "numbers"]
    kinds = (_right, _one_misconception, _two_misconceptions, _guess)
    sheets = dict[str, SimulatedSheet]()
    for number in range(SHEETS):
        variant = library.seeded(worksheets[number % len(worksheets)], number % STUDENTS)
        sheet = sheets.setdefault(variant.code + variant.worksheet.key, SimulatedSheet(variant))
        boxes = kinds[number // len(worksheets) % len(kinds)](sheet, chance)
        yield variant, {box: str(number) for box, number in boxes.items()}


def _right(sheet: SimulatedSheet, _chance: random.Random) -> FilledSheet:
    return sheet.right


def _one_misconception(sheet: SimulatedSheet, chance: random.Random) -> FilledSheet:
    return chance.choice(sheet.distinguishable)[1]


def _two_misconceptions(sheet: SimulatedSheet, chance: random.Random) -> FilledSheet:
    return chance.choice(sheet.pairs)[1] if sheet.pairs else _one_misconception(sheet, chance)


def _guess(sheet: SimulatedSheet, chance: random.Random) -> FilledSheet:
    return {box: chance.choice(sheet.mentioned_numbers) for box in sheet.right}


def _grading_seconds(variant: Variant, answers: Answers) -> float:
    start = time.process_time()
    grade(variant, answers)
    return time.process_time() - start
