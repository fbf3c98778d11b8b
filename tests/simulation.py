"""Simulated classes: sheets filled in by students who hold one belief, or two, or slip, or guess, and what is said.

Students are made by the formulas of tests/students.py alone; what the app says of their sheets is counted here, for the
tests with some seeds and for `python -m benchmarks.diagnosis` with a thousand.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from app.attention.library import Library
from app.attention.misconceptions import Diagnosis, cannot_tell_apart, diagnose
from app.attention.worksheet import Variant
from tests.students import Boxes, right, students, with_slip

# Beliefs about how a matrix lies: who holds another one too turns what that one made.
TURNS = {"columns-are-tokens": "", "keys-already-transposed": "keys."}
TURNS_PARAMETERS = {"stored-layout": ""}
GUESSES = PAIRS = 10


@dataclass
class Share:
    """How many of the sheets tried were kept to what is aimed at."""

    kept: int = 0
    tried: int = 0

    def add(self, kept: bool) -> None:
        self.kept += kept
        self.tried += 1

    def __add__(self, other: Share) -> Share:
        return Share(self.kept + other.kept, self.tried + other.tried)

    @property
    def percent(self) -> float:
        return 100 * self.kept / max(1, self.tried)


@dataclass
class Figures:
    """The five shares: one belief named; named beside a slip; two both named; right sheets and guesses left alone."""

    alone: Share = field(default_factory=Share)
    slipped: Share = field(default_factory=Share)
    paired: Share = field(default_factory=Share)
    right: Share = field(default_factory=Share)
    guessed: Share = field(default_factory=Share)
    missed: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Figures) -> Figures:
        names = ("alone", "slipped", "paired", "right", "guessed")
        shares = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Figures(**shares, missed=self.missed + other.missed)


@dataclass(frozen=True)
class Simulated:
    """One sheet and everyone who fills it in."""

    variant: Variant

    @cached_property
    def true(self) -> Boxes:
        return right(self.variant)

    @cached_property
    def believers(self) -> list[tuple[str, Boxes]]:
        """Each belief that the sheet can tell from any other and from the truth, with the sheet it fills in."""
        hidden = {key for pair in cannot_tell_apart(self.variant) for key in pair}
        return [(key, boxes) for key, boxes in students(self.variant) if key not in hidden]

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers in the words of the sheet, which a student who guesses writes down."""
        words = f"{self.variant.description} {self.variant.footnote or ''}".replace(",", "")
        return [int(number) for number in re.findall(r"\b[1-9]\d*\b", words)]

    @cached_property
    def pairs(self) -> list[tuple[frozenset[str], Boxes]]:
        """Every fair sheet of a student who holds two beliefs, with the two; see `together`.

        Fair is a sheet on which both show: each of the two makes it differ from what the other alone would write, in
        more than one slip of a digit. A sheet that one belief alone, or another two, fill in alike is left out, for
        nobody can tell who wrote it.
        """
        made = [
            (frozenset((one, other)), boxes)
            for (one, first), (other, second) in combinations(self.believers, 2)
            if one != other
            for boxes in self.together((one, first), (other, second))
        ]
        writers: dict[tuple[int, ...], set[frozenset[str]]] = {}
        for keys, boxes in [*((frozenset((key,)), boxes) for key, boxes in students(self.variant)), *made]:
            writers.setdefault(tuple(boxes.values()), set()).add(keys)
        return [(keys, boxes) for keys, boxes in made if writers[tuple(boxes.values())] == {keys}]

    def together(self, one: tuple[str, Boxes], other: tuple[str, Boxes]) -> Iterator[Boxes]:
        """What a student who holds two beliefs may write, where both show.

        Each box as the belief has it that touches it. A belief about how matrices lie turns what the other made. Of
        other boxes that both touch, either has the last word; amounts may also be worked out with both, errors of a
        sum added and factors of a product multiplied.
        """
        turns = TURNS_PARAMETERS if self.variant.worksheet.topic == "layer-parameters" else TURNS
        for (key, boxes), (_, others) in ((one, other), (other, one)):
            if key in turns:
                made = turned(others, turns[key])
                if made not in (boxes, others):
                    yield made
                return
        first, second = ({box for box, n in boxes.items() if n != self.true[box]} for _, boxes in (one, other))
        if not (first - second and second - first):
            return
        shared = first & second
        mixed = [{box: boxes[box] for box in shared} for _, boxes in (one, other)]
        yield from without_repetition(
            {**self.true, **{b: one[1][b] for b in first}, **{b: other[1][b] for b in second}, **worked}
            for worked in (*mixed, {box: self._worked(box, one[1][box], other[1][box]) for box in shared})
        )

    def _worked(self, box: str, first: int, second: int) -> int:
        true = self.true[box]
        if first == second or not box.endswith(".count"):
            return second
        if self.variant.worksheet.topic == "parameter-count":
            return first + second - true
        return max(1, first * second // true)

    def diagnosed(self, boxes: Boxes) -> Diagnosis | None:
        return diagnose(self.variant, {place: boxes[str(place)] for place in self.variant.blanks})

    def named(self, boxes: Boxes) -> set[str]:
        found = self.diagnosed(boxes)
        return {found.key, *found.also} if found else set()

    @cached_property
    def alone(self) -> Figures:
        """What is said of each believer; no chance has a part in it."""
        figures = Figures()
        for key, boxes in self.believers:
            figures.alone.add(self.named(boxes) == {key})
            if self.named(boxes) != {key}:
                figures.missed[f"alone {key} > {sorted(self.named(boxes))}"] += 1
        figures.right.add(not self.named(self.true))
        return figures

    def chosen(self, chance: random.Random) -> Figures:
        """What is said where chance slips, guesses and picks ten pairs of beliefs."""
        figures = Figures()
        for key, boxes in self.believers:
            if left := [box for box in boxes if boxes[box] == self.true[box]]:
                found = self.diagnosed(with_slip(boxes, chance.choice(left), chance))
                figures.slipped.add(found is not None and found.key == key)
                if found is None or found.key != key:
                    figures.missed[f"slipped {key} > {found and (found.key, found.also)}"] += 1
        for keys, boxes in chance.sample(self.pairs, min(PAIRS, len(self.pairs))):
            named = self.named(boxes)
            figures.paired.add(named == keys)
            if named != keys:
                figures.missed[f"paired {'+'.join(sorted(keys))} > {'+'.join(sorted(named))}"] += 1
        for box in self.true:
            figures.right.add(not self.named(with_slip(self.true, box, chance)))
        for _ in range(GUESSES):
            named = self.named({box: chance.choice(self.numbers) for box in self.true})
            figures.guessed.add(not named)
        return figures


def without_repetition(sheets: Iterator[Boxes]) -> list[Boxes]:
    kept = list[Boxes]()
    for boxes in sheets:
        if boxes not in kept:
            kept.append(boxes)
    return kept


def turned(boxes: Boxes, start: str) -> Boxes:
    """Rows and columns changed round, of every matrix whose boxes start so."""
    other = {box: box.replace(".rows", ".columns") if ".rows" in box else box.replace(".columns", ".rows")
             for box in boxes if box.startswith(start)}  # fmt: skip
    return {box: boxes[other.get(box, box)] for box in boxes}


def simulated(library: Library, worksheet: str, seeds: range) -> Figures:
    """A class of one worksheet, each student with a seed and a sheet of their own."""
    sheets, total = dict[str, Simulated](), Figures()
    for seed in seeds:
        variant = library.seeded(worksheet, seed).standing
        sheet = sheets.setdefault(variant.code, Simulated(variant))
        total += sheet.alone
        total += sheet.chosen(random.Random(f"{worksheet} {seed}"))  # noqa: S311 - a simulated student
    return total
