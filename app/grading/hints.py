"""Writes hints: each level says a little more, and none gives a right number away.

Level 1 asks a question that points to the idea, or gives the author's hint for the row. Level 2 says how the matrix or
count is computed, or which sentence of the description states its size. Level 3 names boxes to check again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby
from typing import Literal

from app.algebra.expression import Expression
from app.grading.grade import MarkKind, Report
from app.shapes.consistency import residual_pairs
from app.shapes.operation import Operation
from app.shapes.table import MATRIX_FIELDS, Blank, Count, Joint, OneOf, Tensor
from app.sheets import prose
from app.sheets.code_text import code_hint
from app.sheets.prose import write_formula
from app.sheets.reasons import row_reason
from app.sheets.variant import Variant

HintLevel = Literal[1, 2, 3]
HINT_LEVELS: tuple[HintLevel, ...] = (1, 2, 3)
_MATRICES = {"matrix", "matrices", "tables"}  # a count's formula that names only these says nothing
# these say nothing either, but the description lists what there is
_LEARNED = {"matrix", "matrices", "scales", "biases"}
MAX_NAMED_ROWS = 4  # the rows that a hint names; it calls others "the boxes that go with them"


@dataclass(frozen=True)
class Hint:
    """A hint: one or two sentences, its level, and the blanks whose boxes are highlighted."""

    level: HintLevel
    message: str
    blanks: tuple[Blank, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The hint as the API gives it, with box names such as 'queries.rows'."""
        return {"level": self.level, "message": self.message, "boxes": list(map(str, self.blanks))}


def write_hint(variant: Variant, report: Report, level: HintLevel) -> Hint | None:
    """The hint of a level for a marked sheet, about its diagnosed misconception or a wrong box."""
    unsolved = _left_to_put_right(report)
    if not report.has_readable_answer or not unsolved:
        return None
    if level == 1 and (author_hint := _author_hint(variant, report)):
        return author_hint
    if not variant.has_topic:
        return None
    writer = HintWriter(variant, report)
    if report.diagnosis and not (variant.problem.case and level == 3):
        return writer.misconception_hint(report.diagnosis.key, report.diagnosis.explains, level)
    return writer.box_hint(unsolved[0], tuple(_marked(report, "wrong")) or (unsolved[0],), level)


def next_hint_level(variant: Variant, report: Report | None, given: Hint | None) -> HintLevel | None:
    """The level after the last given hint's, or None after level 3."""
    if report is None or report.complete or not report.has_readable_answer:
        return None
    if not variant.has_topic:
        return 1 if given is None and _author_hint(variant, report) else None
    before = given.level if given else 0 if _author_hint(variant, report) else 1
    return next((level for level in HINT_LEVELS if level > before), None)


def _author_hint(variant: Variant, report: Report) -> Hint | None:
    unsolved = _left_to_put_right(report)
    explained = [blank for blank in unsolved if report.diagnosis and blank in report.diagnosis.explains]
    about = (explained or unsolved)[:1]
    row_hints = variant.worksheet.row_hints
    return next((Hint(1, row_hints[blank.tensor], (blank,)) for blank in about if blank.tensor in row_hints), None)


def _left_to_put_right(report: Report) -> list[Blank]:
    return [blank for kind in ("wrong", "unreadable", "empty") for blank in _marked(report, kind)]


def _marked(report: Report, kind: MarkKind) -> list[Blank]:
    return [blank for blank, mark in report.marks.items() if mark.kind == kind]


@dataclass(frozen=True)
class HintWriter:
    """Puts together the hints on one marked sheet from the wording's parts."""

    variant: Variant
    report: Report

    def misconception_hint(self, misconception: str, explains: tuple[Blank, ...], level: HintLevel) -> Hint:
        """The misconception's nudge at level 1, its hint at level 2, and the boxes to look at again at level 3."""
        # Boxes worked out from wrong ones become right once those are; boxes that repeat a mistake don't.
        marks = self.report.marks
        boxes = tuple(blank for blank in explains if marks[blank].kind == "wrong" or marks[blank].repeats) or explains
        if level == 3:
            return self.boxes_to_check(boxes)
        message = prose.misconception(self.variant, misconception, "nudge" if level == 1 else "hint")
        return Hint(level, message) if message else self.box_hint(boxes[0], boxes, level)

    def box_hint(self, blank: Blank, wrong: tuple[Blank, ...], level: HintLevel) -> Hint:
        """A hint without a diagnosis: the nudge of `blank`, how it is made, or the `wrong` boxes, by level."""
        if level > 1 and self._is_about_code(blank):
            return Hint(
                level,
                self._say("related", box=self._box(blank), relation=code_hint(self.variant, blank, level)),
                (blank,),
            )
        if level == 1:
            return Hint(1, self._say("nudge", box=self._box(blank), nudge=prose.nudge(self.variant, blank)), (blank,))
        if level == 2:
            relation = self.relation_sentence(blank)
            return Hint(2, self._say("related", box=self._box(blank), relation=relation), (blank,))
        return self.boxes_to_check(wrong)

    def boxes_to_check(self, blanks: tuple[Blank, ...]) -> Hint:
        """Level 3: the boxes to look at again, a small example for the first one, and the box that it must equal."""
        first = blanks[0]
        if self._is_about_code(first):
            return self.box_hint(first, blanks, 3)
        right = next((other for other in self.equal_blanks(first) if self.report.marks[other].kind == "right"), None)
        if right is None:
            step = self._next_step(first)
        else:
            step = self._say("equal", side=self._side("side", first), other=self._side("side-within", right))
        return Hint(3, self._say("look", boxes=self._boxes(blanks), relation=step), blanks)

    def equal_blanks(self, blank: Blank) -> Iterator[Blank]:
        """Yield the other boxes that must have the same length, some perhaps twice."""
        variant = self.variant
        if not variant.table.equal_sides.get(blank.tensor):
            return
        groups = [group for groups in variant.table.equal_sides.values() for group in groups]
        candidates = [
            *sorted(variant.problem.upstream_blanks.get(blank, ()), key=variant.problem.blanks.index),
            *(other for group in (*groups, *residual_pairs(variant.table)) if blank in group for other in group),
        ]
        yield from (other for other in candidates if other in self.report.marks and other != blank)

    def relation_sentence(self, blank: Blank) -> str:
        """A sentence on how to get the number in a box, without giving any digits."""
        if self._is_about_code(blank):
            return code_hint(self.variant, blank, 2)
        entry = self.variant.table.sized(blank.tensor)
        sizes = self._sizes(blank)
        if isinstance(entry, Tensor) and entry.hint and blank.field == "columns":
            return self._relation(entry.hint, blank)
        if isinstance(entry, Count):
            if not self.variant.expression(blank).symbols:
                return self._relation("counted-from-zero" if entry.unit == "index" else "constant", blank)
            names = set(re.findall(r"\{([\w-]+)\}", entry.formula))
            if names & {"scales", "biases"} and names <= _LEARNED:
                return self._relation("learned-numbers", blank)
            formula = write_formula(self.variant, blank.tensor)
            factors = "factors-in-letters" if self.variant.worksheet.answers == "letters" else "factors"
            # A formula with a number in it ("2 · N · d") would give too much away.
            helps = self._helps(entry) and not re.search(r"\d", formula)
            return self._relation("amount" if helps else factors, blank, sum=formula, sizes=sizes)
        if blank.field == "count":
            return self._relation("numbers", blank)
        if entry.stored_as:
            return self._relation("stored-parameter", blank)
        if entry.made_by is None:
            if not entry.parameter:
                one = "given-repeated" if self.variant.table.has_more_sides else "given-one"
                return self._relation("given" if sizes else one, blank, sizes=sizes)
            return self._relation("parameter", blank)
        made = self._made(blank, entry.made_by)
        stated = not self.variant.problem.upstream_blanks.get(blank)
        return f"{made} {self._relation('stated', blank, sizes=sizes)}" if stated and sizes else made

    def _next_step(self, blank: Blank) -> str:
        entry = self.variant.table.sized(blank.tensor)
        if isinstance(entry, Count):
            return self._relation(self._form(entry, self.variant.symbols.canonical(entry.total)), blank)
        if blank.field == "count":
            marks = [self.report.marks.get(Blank(blank.tensor, field)) for field in MATRIX_FIELDS]
            is_right = all(mark and mark.kind == "right" for mark in marks)
            return self._relation("sides-right" if is_right else "sides-first", blank)
        if entry.parameter:
            return self._relation("stated", blank, sizes=self._sizes(blank))
        named = self.variant.topic_wording.rows
        while entry.made_by and entry.made_by.keeps_shape and entry.made_by.operands[0] in named:
            blank = Blank(entry.made_by.operands[0], blank.field)  # level 2 already said “the same shape”
            entry = self.variant.table[blank.tensor]
        return self._relation("why", blank, why=row_reason(self.variant, blank.tensor).text.partition(": ")[2])

    def _form(self, count: Count, total: Expression) -> str:
        if count.hint:
            return count.hint
        if not total.symbols or "N" in total.symbols:
            is_linear = len(total.symbols) > 1 and all(term.symbols.count("N") == 1 for term in total.terms)
            return "one-token-first" if is_linear else "three-tokens-first"
        if str(total) in total.symbols:
            return "as-one-size"
        if any(term.factor < 0 for term in total.terms):
            return "as-difference"
        return "as-product" if len(total.terms) == 1 else "as-sum"

    def _helps(self, count: Count) -> bool:
        names = re.findall(r"\{([\w-]+)\}", count.formula)
        sizes = [name for name in names if name in self.variant.sizes]
        in_letters = self.variant.worksheet.answers == "letters"
        tells = len(sizes) == len(names) and (len(names) == 1 or in_letters)
        has_answer = in_letters and str(count.total) in sizes
        return not tells and not has_answer and not set(names) <= _MATRICES

    def _made(self, blank: Blank, operation: Operation) -> str:
        letter, formula = self.variant.letters[blank.tensor], write_formula(self.variant, blank.tensor)
        if formula == letter:  # kᵀ
            first = self.variant.letters[operation.operands[0]]
            return self._relation("transposed", blank, matrix=letter, first=first)
        in_batches = operation.relation == "product" and self.variant.table.has_more_sides
        formula = f"{letter} = {formula}"
        # How many places are sliced off and, in letters, how often heads are repeated would answer other boxes.
        formula = re.sub(r"\[[-:, \d]+\]", "[…]", formula)
        if self.variant.worksheet.answers == "letters":
            formula = re.sub(r"\w+ // \w+", "…", formula)
        return self._relation("batched-product" if in_batches else operation.relation, blank, equation=formula)

    def _sizes(self, blank: Blank) -> str:
        symbols = {stated for symbol in self.variant.expression(blank).symbols for stated in self._stated_for(symbol)}
        named = self.variant.wording.forms(self.variant.worksheet.topic, "stated_sizes")
        return self._and(
            list(dict.fromkeys(prose.size_in_words(self.variant, symbol) for symbol in named if symbol in symbols))
        )

    def _stated_for(self, symbol: str) -> tuple[str, ...]:
        stated = {name for fact in prose.stated_facts(self.variant) for name in fact.symbols}
        if symbol == "d_v" and self.variant.sizes["d_v"] == self.variant.sizes["d_h"]:
            symbol = "d_h"  # the description uses d_h for a single head dimension
        is_hidden = symbol in ("d_h", "d_v") and symbol not in stated and {"d", "H"} <= stated
        return ("d", "H") if is_hidden else (symbol,)

    def _is_about_code(self, blank: Blank) -> bool:
        asked = self.variant.table.askable[blank.tensor]
        return self.variant.problem.case is not None or isinstance(asked, OneOf | Joint)

    def _say(self, key: str, **words: object) -> str:
        return self.variant.wording.say("hints", key, **words)

    def _relation(self, relation: str, blank: Blank, **words: str) -> str:
        length = self._length(blank)
        return self.variant.wording.say("relations", relation, row=self._row(blank.tensor), length=length, **words)

    def _box(self, blank: Blank) -> str:
        form = "whole" if self._is_whole(blank) else "one"
        return self._say(form, row=self._row(blank.tensor), axis=self.variant.axis(blank))

    def _is_whole(self, blank: Blank) -> bool:
        return blank.field == "count" or isinstance(self.variant.table.askable[blank.tensor], OneOf | Joint)

    def _side(self, form: str, blank: Blank) -> str:
        return self._say(form, length=self._length(blank), row=self._row(blank.tensor))

    def _length(self, blank: Blank) -> str:
        return self.variant.wording.axes[self.variant.column_of(blank)].size

    def _row(self, key: str) -> str:
        return self.variant.row_name(key)

    def _boxes(self, blanks: Iterable[Blank]) -> str:
        rows = [list(group) for _, group in groupby(blanks, key=lambda blank: blank.tensor)]
        sides = {tuple(map(self.variant.axis, row)) for row in rows}
        if 1 < len(rows) <= MAX_NAMED_ROWS and len(sides) == 1 and not any(map(self._is_whole, chain(*rows))):
            in_all = self._and([self._say("whole", row=self._row(row[0].tensor)) for row in rows])
            return self._say("each", rows=in_all, axis=self._and(list(sides.pop())))
        names = [self._box(row[0]) if len(row) == 1 else self._several_of_a_row(row) for row in rows]
        if len(names) > MAX_NAMED_ROWS:
            return self._say("more", before=self._join(names[:MAX_NAMED_ROWS]))
        return self._and(names)

    def _several_of_a_row(self, blanks: list[Blank]) -> str:
        row = self._row(blanks[0].tensor)
        if any(blank.field == "count" for blank in blanks):
            return self._say("whole", row=row)
        return self._say("one", row=row, axis=self._and(list(map(self.variant.axis, blanks))))

    def _and(self, names: list[str]) -> str:
        *most, last = names or [""]
        return self._say("and", before=self._join(most), after=last) if most else last

    def _join(self, names: list[str]) -> str:
        return reduce(lambda before, after: self._say("comma", before=before, after=after), names)
