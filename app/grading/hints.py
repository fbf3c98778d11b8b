"""Writes hints: each level says a little more, and none ever says a right number of the sheet.

Level 1 asks a question that points to the idea. Level 2 says how the matrices belong together. Level 3 says which boxes
to look at again, and what these have to fit. If a misconception explains the sheet, levels 1 and 2 are about it; else
all levels are about the first mismatch or the first box that is not right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Literal

from app.grading.grade import MarkKind, Report, nudge
from app.shapes.consistency import ADDED_BACK, added_back
from app.shapes.table import MATRIX_FIELDS, Blank, Count, Equation, Tensor
from app.sheets.formulas import write_formula
from app.sheets.variant import Variant

HintLevel = Literal[1, 2, 3]
HINT_LEVELS: tuple[HintLevel, ...] = (1, 2, 3)
MAX_NAMED_ROWS = 4  # in one hint; further ones are "the boxes that go with them"


@dataclass(frozen=True)
class Hint:
    """A hint's message (one or two sentences), its level, and the boxes it points to, which pages highlight."""

    level: HintLevel
    message: str
    boxes: tuple[Blank, ...] = ()

    def as_json(self) -> dict[str, object]:
        """As the API gives it; boxes by their names, such as 'queries.rows'."""
        return {"level": self.level, "message": self.message, "boxes": [str(blank) for blank in self.boxes]}


def write_hint(variant: Variant, report: Report, level: HintLevel) -> Hint | None:
    """The hint of a level on a marked sheet; None if nothing readable was answered, or no box is left to put right.

    It is about the diagnosed misconception; without one, about the first box left to put right: a wrong one, else an
    unreadable one, else an empty one. Follow-throughs are not left to put right.
    """
    unsolved = [blank for kind in ("wrong", "unreadable", "empty") for blank in _marked(report, kind)]
    if not report.has_readable_answer or not unsolved:
        return None
    writer = HintWriter(variant, report)
    if report.diagnosis:
        return writer.misconception_hint(report.diagnosis.key, report.diagnosis.explains, level)
    return writer.box_hint(unsolved[0], tuple(_marked(report, "wrong")) or (unsolved[0],), level)


def next_hint_level(report: Report | None, given: Hint | None) -> HintLevel | None:
    """The level after the last given hint's, None after level 3; 2 if no hint was given so far.

    None also without a report, on a complete sheet, and without any readable answer. It begins at 2 because the marks
    of a check already show what level 1 would say.
    """
    if report is None or report.complete or not report.has_readable_answer:
        return None
    return next((level for level in HINT_LEVELS if level > (given.level if given else 1)), None)


def _marked(report: Report, kind: MarkKind) -> list[Blank]:
    """The boxes with a mark of this kind, in the order of the sheet."""
    return [blank for blank, mark in report.marks.items() if mark.kind == kind]


@dataclass(frozen=True)
class HintWriter:
    """Puts the sentences of the hints on one marked sheet together, out of the wording's parts."""

    variant: Variant
    report: Report

    def misconception_hint(self, misconception: str, explains: tuple[Blank, ...], level: HintLevel) -> Hint:
        """The misconception's nudge at level 1, its hint at level 2; at level 3 which boxes to look at again.

        These are the wrong ones among the boxes it explains, or all it explains if none of them is wrong.
        """
        if level < 3:
            return Hint(level, self.variant.text.misconception(misconception, "nudge" if level == 1 else "hint"))
        # Boxes that follow from the mistake are right again once the wrong ones are.
        wrong = tuple(blank for blank in explains if self.report.marks[blank].kind == "wrong")
        return self.boxes_to_check(wrong or explains)

    def box_hint(self, blank: Blank, wrong: tuple[Blank, ...], level: HintLevel) -> Hint:
        """The hint without a diagnosis: the nudge of `blank` at level 1, `relation_hint` at 2, boxes to check at 3.

        `wrong` are the boxes to check.
        """
        if level == 1:
            message = self._say("nudge", box=self._box(blank), nudge=nudge(self.variant, blank))
            return Hint(1, message, (blank,))
        return self.relation_hint(blank) if level == 2 else self.boxes_to_check(wrong)

    def relation_hint(self, blank: Blank) -> Hint:
        """Level 2: which two lengths have to be equal at the report's first mismatch, and why; it points to both boxes.

        Without a mismatch: how the matrix or count of `blank` is made, pointing to `blank`.
        """
        mismatch = self.report.first_mismatch
        if mismatch is None:
            message = self._say("related", box=self._box(blank), relation=self.relation_sentence(blank))
            return Hint(2, message, (blank,))
        is_sum = (mismatch.left.tensor, mismatch.right.tensor) == ADDED_BACK
        relation = (
            self._relation("added", mismatch.at) if is_sum else self.relation_sentence(Blank(mismatch.at, "rows"))
        )
        left, right = self._side("side", mismatch.left), self._side("side-within", mismatch.right)
        message = self._say("apart", left=left, right=right, relation=relation)
        return Hint(2, message, (mismatch.left, mismatch.right))

    def boxes_to_check(self, blanks: tuple[Blank, ...]) -> Hint:
        """Level 3: which boxes to look at again, and what the first of them has to fit.

        It has to fit a box of equal length that is not among them, preferably one that is right; if there is none,
        the hint says how it is made.
        """
        first = blanks[0]
        others = [other for other in self.equal_blanks(first) if other not in blanks]
        others.sort(key=lambda other: self.report.marks[other].kind != "right")  # stable: right ones first
        relation = self.relation_sentence(first)
        if others:
            other = self._side("side-within", others[0])
            relation = self._say("equal", side=self._side("side", first), other=other)
        return Hint(3, self._say("look", boxes=self._boxes(blanks), relation=relation), blanks)

    def equal_blanks(self, blank: Blank) -> Iterator[Blank]:
        """The other boxes of this sheet that the equations make as long as this one; some may come twice.

        First those it is computed from, then those it meets in one equation, then what it is added to.
        """
        variant = self.variant
        to_table, key = variant.in_table_orientation, variant.problem.key
        own = to_table(blank)
        groups = [group for groups in variant.table.equal_sides.values() for group in groups]
        candidates = [
            *sorted(variant.problem.upstream_blanks.get(own, ()), key=list(key).index),
            *(other for group in (*groups, *added_back(variant.table)) if own in group for other in group),
        ]
        return (to_table(other) for other in candidates if other in key and other != own)

    def relation_sentence(self, blank: Blank) -> str:
        """How the matrix or count of a box is made, without any number.

        A count has its formula in words, or, if a number stands in that, the advice to write a product of sizes. A
        matrix without an equation is said to be an input or a parameter. Any other has its equation in this sheet's
        letters.
        """
        key = blank.tensor
        entry = self.variant.table.asked.get(key) or self.variant.table[key]
        if isinstance(entry, Count):
            # A formula with a number in it ("2 · N · d") would tell part of the answer.
            has_number = re.search(r"\d", entry.formula) is not None
            return self._relation("factors" if has_number else "amount", key, sum=write_formula(self.variant, key))
        if entry.equation is None:
            return self._relation(_relation_of_given(entry, blank), key)
        formula = f"{self.variant.letters[key]} = {write_formula(self.variant, key)}"
        return self._relation(_relation_of_equation(entry.equation), key, equation=formula)

    def _say(self, key: str, **words: str) -> str:
        """A sentence of the wording's section "hints"."""
        return self.variant.wording.say("hints", key, **words)

    def _relation(self, relation: str, key: str, **words: str) -> str:
        """A sentence of the wording's section "relations" about the row with this key."""
        return self.variant.wording.say("relations", relation, row=self._row(key), **words)

    def _box(self, blank: Blank) -> str:
        """A box by its row and field, “Queries” (columns); a count by its row alone."""
        axis = self.variant.wording.say("axes", blank.field)
        return self._say("whole" if blank.field == "count" else "one", row=self._row(blank.tensor), axis=axis)

    def _side(self, form: str, blank: Blank) -> str:
        """A side as a phrase, the columns of “Queries”; `form` is "side" at the start of a sentence."""
        return self._say(form, axis=self.variant.wording.say("axes", blank.field), row=self._row(blank.tensor))

    def _row(self, key: str) -> str:
        """The name that sheets of this topic give a matrix, whether this sheet asks for it or not."""
        return str(self.variant.wording.sections["rows"][self.variant.worksheet.topic][key]["name"])

    def _boxes(self, blanks: Iterable[Blank]) -> str:
        """Boxes in a list, row by row: “Queries” (columns), “Keys” (rows and columns) and “Values” (columns).

        Of more than MAX_NAMED_ROWS rows, only so many are named, with "and the boxes that go with them" behind.
        """
        rows = [list(group) for _, group in groupby(blanks, key=lambda blank: blank.tensor)]
        names = [self._box(row[0]) if len(row) == 1 else self._several_of_a_row(row) for row in rows]
        if len(names) > MAX_NAMED_ROWS:
            return self._say("more", before=self._join(names[:MAX_NAMED_ROWS]))
        *most, last = names
        return self._say("and", before=self._join(most), after=last) if most else last

    def _several_of_a_row(self, blanks: list[Blank]) -> str:
        """Two or more boxes of one row: “Keys” (rows and columns), or with its count the whole row, “W_Q”."""
        key = "both" if {blank.field for blank in blanks} == set(MATRIX_FIELDS) else "whole"
        return self._say(key, row=self._row(blanks[0].tensor))

    def _join(self, names: list[str]) -> str:
        """The names with the wording's comma between them; at least one."""
        return reduce(lambda before, after: self._say("comma", before=before, after=after), names)


def _relation_of_given(tensor: Tensor, blank: Blank) -> str:
    """The key of the relation for a matrix that no equation makes: the input, a parameter, or a parameter's count."""
    if not tensor.parameter:
        return "source"
    return "numbers" if blank.field == "count" else "parameter"


def _relation_of_equation(equation: Equation) -> str:
    """The key of the relation for an equation: "entrywise" (all shapes equal), "product", or "made" for any other."""
    if all(labels == equation.result_labels for labels in equation.operand_labels):
        return "entrywise"
    return "product" if "·" in equation.formula and len(equation.operands) == 2 else "made"
