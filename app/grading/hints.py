"""What a hint says: a little more with every level, and never a number of the sheet.

HintLevel 1 is a question that points; level 2 says how things hang together; level 3 which boxes to look at, and what
these have to fit. Where a misconception explains the sheet the hint is about that misconception, else about the first
link that does not fit and the first box that is not right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Literal

from app.grading.grade import Report, nudge
from app.misconceptions.catalogue import sentence
from app.shapes.consistency import ADDED_BACK, added_back
from app.shapes.table import MATRIX_FIELDS, Blank, Count, Equation, Tensor
from app.sheets.worksheet import Variant

HintLevel = Literal[1, 2, 3]
HINT_LEVELS: tuple[HintLevel, ...] = (1, 2, 3)
NAMED = 4  # rows that a hint names; further ones are told as a whole


@dataclass(frozen=True)
class Hint:
    """One sentence or two, how far they go, and the boxes that they point to."""

    level: HintLevel
    message: str
    boxes: tuple[Blank, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {"level": self.level, "message": self.message, "boxes": [str(blank) for blank in self.boxes]}


def write_hint(variant: Variant, report: Report, level: HintLevel) -> Hint | None:
    """The hint of a level for a marked sheet; None where all is right, or nothing was tried."""
    waiting = [blank for kind in ("wrong", "unreadable", "empty") for blank in _marked(report, kind)]
    if not report.tried or not waiting:
        return None
    words = _Words(variant, report)
    if report.diagnosis:
        return words.of_misconception(report.diagnosis.key, report.diagnosis.explains, level)
    return words.of_box(waiting[0], tuple(_marked(report, "wrong")) or (waiting[0],), level)


def _marked(report: Report, kind: str) -> list[Blank]:
    return [blank for blank, mark in report.marks.items() if mark.kind == kind]


@dataclass(frozen=True)
class _Words:
    """Puts the sentences of one marked sheet together."""

    variant: Variant
    report: Report

    def say(self, key: str, **words: str) -> str:
        return self.variant.wording.say("hints", key, **words)

    def of_misconception(self, misconception: str, explains: tuple[Blank, ...], level: HintLevel) -> Hint:
        if level < 3:
            return Hint(level, sentence(self.variant, misconception, "nudge" if level == 1 else "hint"))
        wrong = tuple(blank for blank in explains if self.report.marks[blank].kind == "wrong")
        return self.look(wrong or explains)  # what follows from a mistake is right again with it

    def of_box(self, blank: Blank, wrong: tuple[Blank, ...], level: HintLevel) -> Hint:
        if level == 1:
            return Hint(1, self.say("nudge", box=self.box(blank), nudge=nudge(self.variant, blank)), (blank,))
        return self.how(blank) if level == 2 else self.look(wrong)

    def how(self, blank: Blank) -> Hint:
        """How the first two sides that do not fit hang together; where all fit, how the box comes about."""
        apart = self.report.first_mismatch
        if apart is None:
            return Hint(2, self.say("related", box=self.box(blank), relation=self.relation(blank)), (blank,))
        added = (apart.left.tensor, apart.right.tensor) == ADDED_BACK
        relation = self.told("added", apart.at) if added else self.relation(Blank(apart.at, "rows"))
        sides = {"left": self.side("side", apart.left), "right": self.side("side-within", apart.right)}
        return Hint(2, self.say("apart", **sides, relation=relation), (apart.left, apart.right))

    def look(self, blanks: tuple[Blank, ...]) -> Hint:
        """Which boxes to look at again, and what the first of them has to fit."""
        others = [other for other in self.equal_to(blanks[0]) if other not in blanks]
        others.sort(key=lambda other: self.report.marks[other].kind != "right")
        relation = self.relation(blanks[0])
        if others:
            other = self.side("side-within", others[0])
            relation = self.say("equal", side=self.side("side", blanks[0]), other=other)
        return Hint(3, self.say("look", boxes=self.boxes(blanks), relation=relation), blanks)

    def equal_to(self, blank: Blank) -> Iterator[Blank]:
        """The boxes of this sheet that the equations make as long as this one, nearest first."""
        variant, upright = self.variant, self.variant.in_table_orientation(blank)
        met = [group for groups in variant.table.equal_sides.values() for group in groups]
        near = [
            *sorted(variant.upstream_blanks.get(upright, ()), key=list(variant.with_tokens_as_rows.key).index),
            *(other for group in (*met, *added_back(variant.table)) if upright in group for other in group),
        ]
        boxes = (variant.in_table_orientation(other) for other in near if other in variant.with_tokens_as_rows.key)
        return (other for other in boxes if other != blank)

    def relation(self, blank: Blank) -> str:
        """How the matrix or the amount of a box comes about."""
        key = blank.tensor
        made = self.variant.table.asked.get(key) or self.variant.table[key]
        if isinstance(made, Count):
            return self.told("factors" if re.search(r"\d", made.formula) else "amount", key, sum=made.formula)
        if made.equation is None:
            return self.told(_given(made, blank), key)
        if self.variant.worksheet.tokens_are == "columns":
            return self.told("turned", key)
        return self.told(_kind(made.equation), key, equation=self.equation(made.equation.formula))

    def told(self, relation: str, key: str, **words: str) -> str:
        return self.variant.wording.say("relations", relation, row=self.row(key), **words)

    def equation(self, text: str) -> str:
        """The equation with the matrices of the model in this sheet's letters."""
        letters = self.variant.letters
        return re.sub(r"W_\w+", lambda found: letters.get(found.group(), found.group()), text)

    def box(self, blank: Blank) -> str:
        axis = self.variant.wording.say("axes", blank.field)
        return self.say("whole" if blank.field == "count" else "one", row=self.row(blank.tensor), axis=axis)

    def side(self, form: str, blank: Blank) -> str:
        return self.say(form, axis=self.variant.wording.say("axes", blank.field), row=self.row(blank.tensor))

    def row(self, key: str) -> str:
        """What the sheets of this topic call a matrix, whether this one asks for it or not."""
        return str(self.variant.wording.sections["rows"][self.variant.worksheet.topic][key]["name"])

    def boxes(self, blanks: Iterable[Blank]) -> str:
        """The boxes by the names of their rows: “Queries” (columns), “Keys” (columns) and “Values” (columns)."""
        grouped = [list(group) for _, group in groupby(blanks, key=lambda blank: blank.tensor)]
        named = [self.box(g[0]) if len(g) == 1 else self.several(g) for g in grouped]
        if len(named) > NAMED:
            return self.say("more", before=self.listed(named[:NAMED]))
        *most, last = named
        return self.say("and", before=self.listed(most), after=last) if most else last

    def several(self, blanks: list[Blank]) -> str:
        """Several boxes of one row: its two sides, or with its count the whole row."""
        key = "both" if {blank.field for blank in blanks} == set(MATRIX_FIELDS) else "whole"
        return self.say(key, row=self.row(blanks[0].tensor))

    def listed(self, named: list[str]) -> str:
        return reduce(lambda before, after: self.say("comma", before=before, after=after), named)


def _given(tensor: Tensor, blank: Blank) -> str:
    """The relation of what no equation makes."""
    if not tensor.parameter:
        return "source"
    return "numbers" if blank.field == "count" else "parameter"


def _kind(equation: Equation) -> str:
    """The relation of what an equation makes: a product, something of the same shape, or something else."""
    if all(labels == equation.result_labels for labels in equation.operand_labels):
        return "entrywise"
    return "product" if "·" in equation.formula and len(equation.operands) == 2 else "made"


def next_hint_level(report: Report | None, given: Hint | None) -> HintLevel | None:
    """How far the next hint goes; a check says what the first level would, so a press begins with the second."""
    if report is None or report.complete or not report.tried:
        return None
    return next((level for level in HINT_LEVELS if level > (given.level if given else 1)), None)
