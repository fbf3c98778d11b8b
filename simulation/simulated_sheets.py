"""Sheets filled in by simulated students, with one misconception, two, a slip or guesses, and the app's diagnoses.

One misconception's answers are the catalogue's own prediction (`misconception_students`). Whether it is named beside
slips, guesses and a second one is counted here, for tests with a few seeds and `python -m benchmarks.diagnosis` with a
thousand.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import TypeVar

from app.grading.causes import worked_out
from app.misconceptions.diagnosis import Diagnosis, diagnose
from app.misconceptions.predictions import cannot_tell_apart
from app.misconceptions.slips import is_single_slip
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.variant import Variant
from simulation.misconception_students import (
    FilledSheet,
    misconception_sheets,
    right_sheet,
    typed_boxes,
    with_slip,
)

MisconceptionSheet = tuple[str, FilledSheet]  # the misconception's key, and the sheet as its holder fills it in
T = TypeVar("T")

# The sentences that are counted: for how many sheets each is true.
TOLD, ALONE, SLIPPED, BOTH, RIGHT, GUESSED = SHARES = (
    "misconceptions that the sheet tells apart",
    "one misconception is named",
    "one misconception beside a slip is named",
    "two misconceptions are both named",
    "a right sheet, or one slip, is left alone",
    "guesses are left alone",
)
# Misconceptions about the orientation of matrices: their holders also transpose what another misconception predicts. By
# key, the prefixes of the matrices' names ("" means all), on sheets of layer parameters and on all others.
TRANSPOSES_PARAMETERS: dict[str, tuple[str, ...]] = {"stored-layout": ("",)}
TRANSPOSES_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "columns-are-tokens": ("",),
    "keys-already-transposed": ("keys.",),
    "mixed-orientations": ("queries.", "keys.", "values."),
    "scores-transposed": ("scores.", "weights."),
}
PAIRS_PER_SEED = GUESSES_PER_SEED = 10


class Tally(Counter[tuple[str, bool]]):
    """For each of SHARES: how many sheets were tried, and for how many the sentence is true."""

    def add(self, share: str, holds: bool) -> None:
        """Count one sheet."""
        self[share, holds] += 1

    def tried(self, share: str) -> int:
        return self[share, True] + self[share, False]

    def share(self, share: str) -> float:
        """The fraction of the sheets, from 0 to 1, for which the sentence is true; 1 if none was tried."""
        return self[share, True] / self.tried(share) if self.tried(share) else 1.0


@dataclass(frozen=True)
class SimulatedSheet:
    """One sheet and everyone who fills it in."""

    variant: Variant

    @cached_property
    def right(self) -> FilledSheet:
        """The sheet as a student without misconceptions fills it in."""
        return right_sheet(self.variant)

    @cached_property
    def distinguishable(self) -> list[MisconceptionSheet]:
        """A sheet for each way of holding a misconception that this sheet can tell from others, by the catalogue."""
        pairs = cannot_tell_apart(self.variant.problem)
        hidden = {key for key, other in pairs if other is None}
        sheets = misconception_sheets(self.variant)
        alike = {key: {b if key == a else a for a, b in pairs if key in (a, b)} for key, _sheet in sheets}
        return [
            (key, sheet)
            for key, sheet in sheets
            if key not in hidden
            and not self._looks_like_a_slip(sheet)
            and not any(other in alike[key] and sheet == other_sheet for other, other_sheet in sheets)
        ]

    def _looks_like_a_slip(self, sheet: FilledSheet) -> bool:
        key = self.variant.problem.answers
        return is_single_slip(key, {blank: n for blank, n in self._values(sheet).items() if n != key[blank]})

    def _values(self, sheet: FilledSheet) -> dict[Blank, int]:
        return {blank: sheet[str(blank)] for blank in self.variant.blanks}

    @cached_property
    def mentioned_numbers(self) -> list[int]:
        """The numbers in the sheet's words, from which a guessing student picks."""
        words = f"{prose.description(self.variant)} {prose.footnote(self.variant) or ''}".replace(",", "")
        return [int(number) for number in re.findall(r"\b[1-9]\d*\b", words)]

    @cached_property
    def pairs(self) -> list[tuple[frozenset[str], FilledSheet]]:
        """Every fair sheet of a student with two misconceptions, with their keys."""
        combined = [
            (frozenset((first[0], second[0])), sheet)
            for first, second in combinations(self.distinguishable, 2)
            if first[0] != second[0]
            for sheet in self._combine(first, second)
            if not any(self._follows(alone, sheet) for _, alone in (first, second))
        ]
        alone = [(frozenset((key,)), sheet) for key, sheet in misconception_sheets(self.variant)]
        writers: dict[tuple[int, ...], set[frozenset[str]]] = {}
        for keys, sheet in [*alone, *combined]:
            writers.setdefault(tuple(sheet.values()), set()).add(keys)
        return [(keys, sheet) for keys, sheet in combined if writers[tuple(sheet.values())] == {keys}]

    def _follows(self, alone: FilledSheet, sheet: FilledSheet) -> bool:
        changed = {blank for blank, n in alone.items() if n != self.right[blank]}
        return changed <= {str(blank) for blank in self._following(sheet)}

    def _following(self, sheet: FilledSheet) -> frozenset[Blank]:
        return worked_out(self.variant.problem, self._values(sheet))

    def _combine(self, first: MisconceptionSheet, second: MisconceptionSheet) -> list[FilledSheet]:
        in_parameters = self.variant.worksheet.topic in ("layer-parameters", "head-parameters")
        transposes = TRANSPOSES_PARAMETERS if in_parameters else TRANSPOSES_ACTIVATIONS
        for (key, sheet), (_, other_sheet) in permutations((first, second)):
            if key in transposes:
                both = transposed(other_sheet, transposes[key])
                wrong = self._wrong_tensors(both)
                both_show = all(both != alone and wrong & self._wrong_tensors(alone) for alone in (sheet, other_sheet))
                return [both] if both_show else []
        changed, also_changed = (
            {blank: n for blank, n in sheet.items() if n != self.right[blank]} for _, sheet in (first, second)
        )
        if changed.keys() <= also_changed.keys() or also_changed.keys() <= changed.keys():
            return []
        in_both = changed.keys() & also_changed.keys()
        worked_out = {blank: self._worked_out(blank, changed[blank], also_changed[blank]) for blank in in_both}
        sheets = [{**self.right, **changed, **also_changed, **last} for last in (changed, also_changed, worked_out)]
        return [sheet for at, sheet in enumerate(sheets) if sheet not in sheets[:at]]

    def _wrong_tensors(self, sheet: FilledSheet) -> set[str]:
        return {blank.partition(".")[0] for blank, n in sheet.items() if n != self.right[blank]}

    def _worked_out(self, blank: str, first: int, second: int) -> int:
        if first == second or not blank.endswith(".count"):
            return second
        if self.variant.worksheet.topic == "parameter-count":
            return first + second - self.right[blank]
        multiplied, left = divmod(first * second, self.right[blank])
        return second if left else multiplied

    def diagnose(self, sheet: FilledSheet) -> Diagnosis | None:
        """The app's diagnosis of the sheet filled in like this."""
        return diagnose(self.variant.problem, self._values(sheet), self._following(sheet))

    def diagnosed_keys(self, sheet: FilledSheet) -> set[str]:
        """The keys of all misconceptions that the app names for the sheet filled in like this."""
        diagnosis = self.diagnose(sheet)
        return {diagnosis.key, *diagnosis.also} if diagnosis else set()

    @cached_property
    def certain_tally(self) -> Tally:
        """Diagnoses without chance: of the right sheet, and of each single misconception."""
        tally = Tally()
        distinguishable = [key for key, _ in self.distinguishable]
        for key, _ in misconception_sheets(self.variant):
            tally.add(TOLD, key in distinguishable)
        for key, sheet in self.distinguishable:
            tally.add(ALONE, self.diagnosed_keys(sheet) == {key})
        tally.add(RIGHT, not self.diagnosed_keys(self.right))
        return tally

    def random_tally(self, chance: random.Random) -> Tally:
        """Diagnoses of sheets drawn at random."""
        tally, typed = Tally(), typed_boxes(self.variant)
        for key, sheet in self.distinguishable:
            for blank in sample_up_to(chance, [blank for blank in typed if sheet[blank] == self.right[blank]], 1):
                diagnosis = self.diagnose(with_slip(sheet, blank, chance))
                tally.add(SLIPPED, diagnosis is not None and diagnosis.key == key)
        for keys, sheet in sample_up_to(chance, self.pairs, PAIRS_PER_SEED):
            tally.add(BOTH, self.diagnosed_keys(sheet) == keys)
        for blank in typed:
            slipped = with_slip(self.right, blank, chance)
            if min(slipped[blank], self.right[blank]) > 9:  # one digit for another isn't a slip
                tally.add(RIGHT, not self.diagnosed_keys(slipped))
        for _ in range(GUESSES_PER_SEED):
            guess = {blank: chance.choice(self.mentioned_numbers) for blank in self.right}
            tally.add(GUESSED, not self.diagnosed_keys(guess))
        return tally


def sample_up_to(chance: random.Random, items: list[T], most: int) -> list[T]:
    """So many different items in random order, or all of them if there are fewer."""
    return chance.sample(items, min(most, len(items)))


def transposed(sheet: FilledSheet, prefixes: tuple[str, ...]) -> FilledSheet:
    """The sheet with rows and columns exchanged in every matrix whose blanks begin with one of the prefixes.

    Example: transposed({"keys.rows": 100, "keys.columns": 128}, ("",)) == {"keys.rows": 128, "keys.columns": 100}
    """
    other = {"rows": "columns", "columns": "rows"}
    fields = {blank: blank.split(".") for blank in sheet if blank.startswith(prefixes) and not blank.endswith(".count")}
    return {
        blank: sheet[f"{fields[blank][0]}.{other[fields[blank][1]]}"] if blank in fields else n
        for blank, n in sheet.items()
    }


def simulate_class(library: Library, worksheet: str, seeds: range) -> Tally:
    """The diagnoses of a whole class on one worksheet: each seed's variant, filled in by everyone."""
    sheets, tally = dict[str, SimulatedSheet](), Tally()
    for seed in seeds:
        variant = library.seeded(worksheet, seed)
        sheet = sheets.setdefault(variant.code, SimulatedSheet(variant))
        tally.update(sheet.certain_tally)
        tally.update(sheet.random_tally(random.Random(f"{worksheet} {seed}")))  # noqa: S311 - a simulated student
    return tally
