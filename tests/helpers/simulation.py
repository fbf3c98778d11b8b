"""Simulated classes: sheets filled in by students who hold one misconception, or two, or slip, or guess, and what is
said.

Students are made by the formulas of tests/students.py alone. What the app says of their sheets is counted here, for
the tests with some seeds and for `python -m benchmarks.diagnosis` with a thousand.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

from app.misconceptions.catalogue import Diagnosis, cannot_tell_apart, diagnose
from app.sheets.library import Library
from app.sheets.worksheet import Variant
from tests.helpers.students import Boxes, right, students, with_slip

Believer = tuple[str, Boxes]  # a misconception, and the sheet as it fills it in

# Shares of sheets: told apart by their own word; named, alone or beside a slip; both named; left without a diagnosis.
TOLD, ALONE, SLIPPED, BOTH, RIGHT, GUESSED = SHARES = (
    "misconceptions that the sheet tells apart",
    "one misconception is named",
    "one misconception beside a slip is named",
    "two misconceptions are both named",
    "a right sheet, or one slip, is left alone",
    "guesses are left alone",
)
# Misconceptions about how matrices lie, by topic: who holds another one too turns what that one made. "" is every
# matrix.
TURNS = {"layer-parameters": {"stored-layout": ""}}
TURNS_ACTIVATIONS = {"columns-are-tokens": "", "keys-already-transposed": "keys."}
GUESSES = PAIRS = 10  # a seed


class Figures(Counter[tuple[str, bool]]):
    """How many sheets were tried for each share, and how many of them came out as they should."""

    def add(self, share: str, kept: bool) -> None:
        self[share, kept] += 1

    def tried(self, share: str) -> int:
        return self[share, True] + self[share, False]

    def share(self, share: str) -> float:
        """From 0 to 1; 1 where nothing was tried."""
        return self[share, True] / self.tried(share) if self.tried(share) else 1.0


@dataclass(frozen=True)
class Simulated:
    """One sheet and everyone who fills it in."""

    variant: Variant

    @cached_property
    def true(self) -> Boxes:
        return right(self.variant)

    @cached_property
    def believers(self) -> list[Believer]:
        """Everyone with a misconception that the sheet, by its own word, can tell from any other and from the truth."""
        hidden = {key for pair in cannot_tell_apart(self.variant) for key in pair}
        return [(key, boxes) for key, boxes in students(self.variant) if key not in hidden]

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers in the words of the sheet, which a student who guesses writes down."""
        words = f"{self.variant.description} {self.variant.footnote or ''}".replace(",", "")
        return [int(number) for number in re.findall(r"\b[1-9]\d*\b", words)]

    @cached_property
    def pairs(self) -> list[tuple[frozenset[str], Boxes]]:
        """Every fair sheet of a student who holds two misconceptions, with the two.

        Fair is a sheet on which both show (see `_together`), and which no misconception alone and no other two fill in
        alike:
        of such a sheet nobody can tell who wrote it. Both misconceptions are told apart when held alone.
        """
        made = [
            (frozenset((one[0], other[0])), boxes)
            for one, other in combinations(self.believers, 2)
            if one[0] != other[0]
            for boxes in self._together(one, other)
        ]
        writers: dict[tuple[int, ...], set[frozenset[str]]] = {}
        for keys, boxes in [*((frozenset((key,)), boxes) for key, boxes in students(self.variant)), *made]:
            writers.setdefault(tuple(boxes.values()), set()).add(keys)
        return [(keys, boxes) for keys, boxes in made if writers[tuple(boxes.values())] == {keys}]

    def _together(self, one: Believer, other: Believer) -> list[Boxes]:
        """What a student who holds two misconceptions may write, where both show.

        A misconception about how matrices lie turns what the other made; both show where the result is what neither
        writes alone. Any other two show where each changes a box that the other leaves right, and these they write as
        when held alone. A box that both change is as one or the other has it, or an amount worked out with both: the
        errors of a sum added up, the factors of a product multiplied.
        """
        turns = TURNS.get(self.variant.worksheet.topic, TURNS_ACTIVATIONS)
        for (key, boxes), (_, others) in permutations((one, other)):
            if key in turns:
                both = turned(others, turns[key])
                return [both] if both not in (boxes, others) else []
        first, second = ({box: n for box, n in boxes.items() if n != self.true[box]} for _, boxes in (one, other))
        if first.keys() <= second.keys() or second.keys() <= first.keys():
            return []
        worked = {box: self._worked(box, first[box], second[box]) for box in first.keys() & second.keys()}
        sheets = [{**self.true, **first, **second, **last} for last in (first, second, worked)]
        return [boxes for at, boxes in enumerate(sheets) if boxes not in sheets[:at]]

    def _worked(self, box: str, first: int, second: int) -> int:
        if first == second or not box.endswith(".count"):
            return second
        if self.variant.worksheet.topic == "parameter-count":
            return first + second - self.true[box]
        return max(1, first * second // self.true[box])

    def diagnosed(self, boxes: Boxes) -> Diagnosis | None:
        return diagnose(self.variant, {blank: boxes[str(blank)] for blank in self.variant.blanks})

    def named(self, boxes: Boxes) -> set[str]:
        found = self.diagnosed(boxes)
        return {found.key, *found.also} if found else set()

    @cached_property
    def certain(self) -> Figures:
        """What is said of a right sheet and of each misconception held alone; no chance has a part in it."""
        figures = Figures()
        told = [key for key, _ in self.believers]
        for key, _ in students(self.variant):
            figures.add(TOLD, key in told)
        for key, boxes in self.believers:
            figures.add(ALONE, self.named(boxes) == {key})
        figures.add(RIGHT, not self.named(self.true))
        return figures

    def by_chance(self, chance: random.Random) -> Figures:
        """What is said beside a slip, of a slip alone in each box, of guesses, and of some sheets with two
        misconceptions.
        """
        figures = Figures()
        for key, boxes in self.believers:
            for box in sampled(chance, [box for box in boxes if boxes[box] == self.true[box]], 1):
                found = self.diagnosed(with_slip(boxes, box, chance))
                figures.add(SLIPPED, found is not None and found.key == key)
        for keys, boxes in sampled(chance, self.pairs, PAIRS):
            figures.add(BOTH, self.named(boxes) == keys)
        for box in self.true:
            figures.add(RIGHT, not self.named(with_slip(self.true, box, chance)))
        for _ in range(GUESSES):
            figures.add(GUESSED, not self.named({box: chance.choice(self.numbers) for box in self.true}))
        return figures


def sampled(chance: random.Random, among: list[Any], most: int) -> list[Any]:
    return chance.sample(among, min(most, len(among)))


def turned(boxes: Boxes, start: str) -> Boxes:
    """Rows and columns changed round, of every matrix whose boxes start so."""
    other = {"rows": "columns", "columns": "rows"}
    sides = {box: box.split(".") for box in boxes if box.startswith(start) and not box.endswith(".count")}
    return {box: boxes[f"{sides[box][0]}.{other[sides[box][1]]}"] if box in sides else n for box, n in boxes.items()}


def simulated(library: Library, worksheet: str, seeds: range) -> Figures:
    """A class with one worksheet: for each seed its sheet, and everyone who fills it in."""
    sheets, figures = dict[str, Simulated](), Figures()
    for seed in seeds:
        variant = library.seeded(worksheet, seed).standing
        sheet = sheets.setdefault(variant.code, Simulated(variant))
        figures.update(sheet.certain)
        figures.update(sheet.by_chance(random.Random(f"{worksheet} {seed}")))  # noqa: S311 - a simulated student
    return figures
