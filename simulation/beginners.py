"""Beginners who practise: each begins with some misconceptions, slips now and then, and learns from what is named."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.misconceptions.catalogue import MISCONCEPTIONS
from app.practice.record import PracticeRecord, SheetResult, sheet_result
from app.practice.scheduler import NextSheet, Practice, next_sheet
from app.sheets.library import Library
from app.sheets.variant import Variant
from simulation.misconception_students import FilledSheet, misconception_sheets, right_sheet, with_slip

MISCONCEPTIONS_HELD = 3  # by a beginner, out of all that show on some sheet
SLIPS = 0.1  # of all sheets have one box with a wrong digit
LESSONS = 0.7  # of misconceptions are dropped when they are first named, the others when they are named again


@dataclass(frozen=True)
class PracticeStep:
    """One sheet of a round of practice, what it came to, and the record after it."""

    coming: NextSheet
    result: SheetResult
    record: PracticeRecord

    @property
    def boxes(self) -> int:
        """How many boxes the sheet asks for."""
        return len(self.coming.variant.blanks)


def typed_texts(variant: Variant, sizes: Mapping[str, int]) -> dict[str, str]:
    """The texts of these sizes, and of patterns by their numbers; on a sheet in letters those that come to a size."""
    if variant.worksheet.answers != "letters":
        return {box: variant.typed(variant.blanks_by_name[box], size) for box, size in sizes.items()}
    truth = right_sheet(variant)
    written = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
    by_size = {truth[box]: letters for box, letters in written.items()}

    def wrong_text(box: str, size: int) -> str:
        if box.endswith(".choice"):
            return variant.typed(variant.blanks_by_name[box], size)
        if box.endswith(".count"):
            return f"{size}/{truth[box]}*({written[box]})"
        return by_size.get(size, f"{size}/{variant.sizes['d']}*{variant.notation.symbol('d')}")

    return {box: written[box] if size == truth[box] else wrong_text(box, size) for box, size in sizes.items()}


def writable_sheets(variant: Variant) -> list[tuple[str, FilledSheet]]:
    """The sheet filled in by each misconception that shows on it."""
    sheets = misconception_sheets(variant)
    if variant.worksheet.answers != "letters":
        return list(sheets)
    results = [(sheet_result(variant, typed_texts(variant, sheet)), key, sheet) for key, sheet in sheets]
    return [(key, sheet) for result, key, sheet in results if result and key in result.held]


@dataclass
class Beginner:
    """A student whose misconceptions, slips and lessons follow from a seed alone; a `careful` one makes no mistake."""

    seed: int
    careful: bool = False
    chance: random.Random = field(init=False)
    holds: set[str] = field(init=False)
    told: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - so that it can be repeated
        shown = [misconception.key for misconception in MISCONCEPTIONS if misconception.predictions]
        self.holds = set() if self.careful else set(self.chance.sample(shown, MISCONCEPTIONS_HELD))

    def fill(self, variant: Variant) -> dict[str, str]:
        """The sheet filled in by the first misconception held that shows on it, else right; slips now and then."""
        wrong = [sheet for misconception, sheet in writable_sheets(variant) if misconception in self.holds]
        sheet = wrong[0] if wrong else right_sheet(variant)
        if not self.careful and self.chance.random() < SLIPS:
            sheet = with_slip(sheet, self.chance.choice(list(sheet)), self.chance)
        return typed_texts(variant, sheet)

    def learn(self, result: SheetResult) -> None:
        """Drop a misconception that was named: mostly at once, else the second time."""
        self.holds -= {key for key in result.held if key in self.told or self.chance.random() < LESSONS}
        self.told.update(result.held)

    def practise(self, library: Library, sheets: int) -> Iterator[PracticeStep]:
        """So many sheets in a row, as they are dealt once the first steps are done."""
        record = PracticeRecord(self.seed, passed=("first-steps",))
        for _ in range(sheets):
            coming = next_sheet(library, record)
            result = sheet_result(coming.variant, self.fill(coming.variant))
            assert result is not None
            self.learn(result)
            record = Practice(library, record).after(result)
            yield PracticeStep(coming, result, record)
