"""Writes hints: each level says a little more, and none gives a right number away.

Level 1 asks a question that points to the idea, or gives the author's hint for the row. Level 2 says how the matrix or
count is computed, or which sentence of the description states its size. Level 3 names boxes to check again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Literal

from app.algebra.expression import Expression
from app.grading.grade import MarkKind, Report
from app.shapes.consistency import residual_pairs
from app.shapes.operation import Operation
from app.shapes.table import MATRIX_FIELDS, Blank, Count, Joint, OneOf
from app.sheets import prose
from app.sheets.code_text import code_hint
from app.sheets.prose import write_formula
from app.sheets.reasons import row_reason
from app.sheets.variant import Variant

HintLevel = Literal[1, 2, 3]
HINT_LEVELS: tuple[HintLevel, ...] = (1, 2, 3)
_NAME = re.compile(r"\{([\w-]+)\}")
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


def write_hint(sheet: Variant, report: Report, level: HintLevel) -> Hint | None:
    """The hint of a level for a marked sheet, about its diagnosed misconception or a wrong box."""
    unsolved = _left_to_put_right(report)
    if not report.has_readable_answer or not unsolved:
        return None
    if level == 1 and (author_hint := _author_hint(sheet, report)):
        return author_hint
    if not sheet.has_topic:
        return None
    wrong = tuple(_marked(report, "wrong")) or (unsolved[0],)
    if report.diagnosis is None or (sheet.problem.case and level == 3):
        return box_hint(sheet, report, unsolved[0], wrong, level)
    # Boxes worked out from wrong ones become right once those are; boxes that repeat a mistake don't.
    explained, marks = report.diagnosis.explains, report.marks
    boxes = tuple(blank for blank in explained if marks[blank].kind == "wrong" or marks[blank].repeats) or explained
    if level == 3:
        return boxes_to_check(sheet, report, boxes)
    message = prose.misconception(sheet, report.diagnosis.key, "nudge" if level == 1 else "hint")
    return Hint(level, message) if message else box_hint(sheet, report, boxes[0], boxes, level)


def next_hint_level(sheet: Variant, report: Report | None, given: Hint | None) -> HintLevel | None:
    """The level after the last given hint's, or None after level 3."""
    if report is None or report.complete or not report.has_readable_answer:
        return None
    if not sheet.has_topic:
        return 1 if given is None and _author_hint(sheet, report) else None
    before = given.level if given else 0 if _author_hint(sheet, report) else 1
    return next((level for level in HINT_LEVELS if level > before), None)


def _author_hint(sheet: Variant, report: Report) -> Hint | None:
    unsolved = _left_to_put_right(report)
    explained = [blank for blank in unsolved if report.diagnosis and blank in report.diagnosis.explains]
    about = (explained or unsolved)[:1]
    row_hints = sheet.worksheet.row_hints
    return next((Hint(1, row_hints[blank.tensor], (blank,)) for blank in about if blank.tensor in row_hints), None)


def _left_to_put_right(report: Report) -> list[Blank]:
    return [blank for kind in ("wrong", "unreadable", "empty") for blank in _marked(report, kind)]


def _marked(report: Report, kind: MarkKind) -> list[Blank]:
    return [blank for blank, mark in report.marks.items() if mark.kind == kind]


def box_hint(sheet: Variant, report: Report, blank: Blank, wrong: tuple[Blank, ...], level: HintLevel) -> Hint:
    """A hint without a diagnosis: the nudge of `blank`, how it is made, or the `wrong` boxes, by level."""
    if level == 3 and not _is_about_code(sheet, blank):
        return boxes_to_check(sheet, report, wrong)
    box = _box(sheet, blank)
    if level == 1:
        return Hint(1, _say(sheet, "nudge", box=box, nudge=prose.nudge(sheet, blank)), (blank,))
    relation = code_hint(sheet, blank, 3) if level == 3 else relation_sentence(sheet, blank)
    return Hint(level, _say(sheet, "related", box=box, relation=relation), (blank,))


# Level 2: how to get the number in a box, without any digits


def relation_sentence(sheet: Variant, blank: Blank) -> str:
    """How to get the number in a box, without giving any digits."""
    if _is_about_code(sheet, blank):
        return code_hint(sheet, blank, 2)
    entry, sizes = sheet.table.sized(blank.tensor), _stated_sizes(sheet, blank)
    if isinstance(entry, Count):
        return _relation_of_count(sheet, blank, entry, sizes)
    if entry.hint and blank.field == "columns":
        return _relation(sheet, entry.hint, blank)
    if blank.is_count:
        return _relation(sheet, "numbers", blank)
    if entry.stored_as:
        return _relation(sheet, "stored-parameter", blank)
    if entry.made_by:
        made = _made(sheet, blank, entry.made_by)
        is_stated = sizes and not sheet.problem.upstream_blanks.get(blank)
        return f"{made} {_relation(sheet, 'stated', blank, sizes=sizes)}" if is_stated else made
    if entry.parameter:
        return _relation(sheet, "parameter", blank)
    one = "given-repeated" if sheet.table.has_more_sides else "given-one"
    return _relation(sheet, "given" if sizes else one, blank, sizes=sizes)


def _relation_of_count(sheet: Variant, blank: Blank, count: Count, sizes: str) -> str:
    if not count.total.symbols:
        return _relation(sheet, "counted-from-zero" if count.unit == "index" else "constant", blank)
    names = set(_NAME.findall(count.formula))
    if names & {"scales", "biases"} and names <= _LEARNED:
        return _relation(sheet, "learned-numbers", blank)
    formula = write_formula(sheet, blank.tensor)
    factors = "factors-in-letters" if sheet.worksheet.in_letters else "factors"
    # A formula with a number in it ("2 · N · d") would give too much away.
    helps = _helps(sheet, count) and not re.search(r"\d", formula)
    return _relation(sheet, "amount" if helps else factors, blank, sum=formula, sizes=sizes)


def _helps(sheet: Variant, count: Count) -> bool:
    names = _NAME.findall(count.formula)
    sizes = [name for name in names if name in sheet.sizes]
    in_letters = sheet.worksheet.in_letters
    tells = len(sizes) == len(names) and (len(names) == 1 or in_letters)
    has_answer = in_letters and str(count.total) in sizes
    return not tells and not has_answer and not set(names) <= _MATRICES


def _made(sheet: Variant, blank: Blank, operation: Operation) -> str:
    letter, formula = sheet.letters[blank.tensor], write_formula(sheet, blank.tensor)
    if formula == letter:  # kᵀ
        return _relation(sheet, "transposed", blank, matrix=letter, first=sheet.letters[operation.operands[0]])
    in_batches = operation.relation == "product" and sheet.table.has_more_sides
    formula = f"{letter} = {formula}"
    # How many places are sliced off and, in letters, how often heads are repeated would answer other boxes.
    formula = re.sub(r"\[[-:, \d]+\]", "[…]", formula)
    if sheet.worksheet.in_letters:
        formula = re.sub(r"\w+ // \w+", "…", formula)
    return _relation(sheet, "batched-product" if in_batches else operation.relation, blank, equation=formula)


def _stated_sizes(sheet: Variant, blank: Blank) -> str:
    symbols = {stated for symbol in sheet.expression(blank).symbols for stated in _stated_for(sheet, symbol)}
    named = sheet.wording.forms(sheet.worksheet.topic, "stated_sizes")
    in_words = (prose.size_in_words(sheet, symbol) for symbol in named if symbol in symbols)
    return _and(sheet, list(dict.fromkeys(in_words)))


def _stated_for(sheet: Variant, symbol: str) -> tuple[str, ...]:
    stated = {name for fact in prose.stated_facts(sheet) for name in fact.symbols}
    if symbol == "d_v" and sheet.sizes["d_v"] == sheet.sizes["d_h"]:
        symbol = "d_h"  # the description uses d_h for a single head dimension
    is_hidden = symbol in ("d_h", "d_v") and symbol not in stated and {"d", "H"} <= stated
    return ("d", "H") if is_hidden else (symbol,)


# Level 3: which boxes to look at again, and what to do first


def boxes_to_check(sheet: Variant, report: Report, blanks: tuple[Blank, ...]) -> Hint:
    """Level 3: the boxes to look at again, and the box that the first one must equal or its next step."""
    first = blanks[0]
    if _is_about_code(sheet, first):
        return box_hint(sheet, report, first, blanks, 3)
    right = next((other for other in _equal_blanks(sheet, report, first) if report.marks[other].kind == "right"), None)
    if right is None:
        step = _next_step(sheet, report, first)
    else:
        step = _say(sheet, "equal", side=_side(sheet, "side", first), other=_side(sheet, "side-within", right))
    return Hint(3, _say(sheet, "look", boxes=_boxes(sheet, blanks), relation=step), blanks)


def _equal_blanks(sheet: Variant, report: Report, blank: Blank) -> Iterator[Blank]:
    """The other boxes that must have the same length, some perhaps twice."""
    if not sheet.table.equal_sides.get(blank.tensor):
        return
    groups = [group for groups in sheet.table.equal_sides.values() for group in groups]
    candidates = [
        *sorted(sheet.problem.upstream_blanks.get(blank, ()), key=sheet.problem.blanks.index),
        *(other for group in (*groups, *residual_pairs(sheet.table)) if blank in group for other in group),
    ]
    yield from (other for other in candidates if other in report.marks and other != blank)


def _next_step(sheet: Variant, report: Report, blank: Blank) -> str:
    entry = sheet.table.sized(blank.tensor)
    if isinstance(entry, Count):
        return _relation(sheet, _form(entry, sheet.symbols.canonical(entry.total)), blank)
    if blank.is_count:
        marks = [report.marks.get(Blank(blank.tensor, field)) for field in MATRIX_FIELDS]
        is_right = all(mark and mark.kind == "right" for mark in marks)
        return _relation(sheet, "sides-right" if is_right else "sides-first", blank)
    if entry.parameter:
        return _relation(sheet, "stated", blank, sizes=_stated_sizes(sheet, blank))
    named = sheet.topic_wording.rows
    while entry.made_by and entry.made_by.keeps_shape and entry.made_by.operands[0] in named:
        blank = Blank(entry.made_by.operands[0], blank.field)  # level 2 already said “the same shape”
        entry = sheet.table[blank.tensor]
    return _relation(sheet, "why", blank, why=row_reason(sheet, blank.tensor).text.partition(": ")[2])


def _form(count: Count, total: Expression) -> str:
    if count.hint:
        return count.hint
    if total.symbols <= {"N", "i"} or (count.unit == "index" and "N" in total.symbols):
        return "three-tokens-first"
    if all(term.symbols.count("N") == 1 for term in total.terms):
        return "one-token-first"
    if str(total) in total.symbols:
        return "as-one-size"
    if any(term.factor < 0 for term in total.terms):
        return "as-difference"
    return "as-product" if len(total.terms) == 1 else "as-sum"


# Words for boxes, rows and lists


def _is_about_code(sheet: Variant, blank: Blank) -> bool:
    return sheet.problem.case is not None or isinstance(sheet.table.askable[blank.tensor], OneOf | Joint)


def _say(sheet: Variant, key: str, **words: object) -> str:
    return sheet.wording.say("hints", key, **words)


def _relation(sheet: Variant, relation: str, blank: Blank, **words: str) -> str:
    row, length = sheet.row_name(blank.tensor), _length(sheet, blank)
    return sheet.wording.say("relations", relation, row=row, length=length, **words)


def _length(sheet: Variant, blank: Blank) -> str:
    return sheet.wording.axes[sheet.column_of(blank)].size


def _side(sheet: Variant, form: str, blank: Blank) -> str:
    return _say(sheet, form, length=_length(sheet, blank), row=sheet.row_name(blank.tensor))


def _box(sheet: Variant, blank: Blank) -> str:
    form = "whole" if _is_whole(sheet, blank) else "one"
    return _say(sheet, form, row=sheet.row_name(blank.tensor), axis=sheet.axis(blank))


def _is_whole(sheet: Variant, blank: Blank) -> bool:
    return blank.is_count or isinstance(sheet.table.askable[blank.tensor], OneOf | Joint)


def _boxes(sheet: Variant, blanks: tuple[Blank, ...]) -> str:
    rows = [list(group) for _, group in groupby(blanks, key=lambda blank: blank.tensor)]
    sides = {tuple(map(sheet.axis, row)) for row in rows}
    if 1 < len(rows) <= MAX_NAMED_ROWS and len(sides) == 1 and not any(_is_whole(sheet, blank) for blank in blanks):
        in_all = _and(sheet, [_say(sheet, "whole", row=sheet.row_name(row[0].tensor)) for row in rows])
        return _say(sheet, "each", rows=in_all, axis=_and(sheet, list(sides.pop())))
    names = [_box(sheet, row[0]) if len(row) == 1 else _several_of_a_row(sheet, row) for row in rows]
    if len(names) > MAX_NAMED_ROWS:
        return _say(sheet, "more", before=_join(sheet, names[:MAX_NAMED_ROWS]))
    return _and(sheet, names)


def _several_of_a_row(sheet: Variant, blanks: list[Blank]) -> str:
    row = sheet.row_name(blanks[0].tensor)
    if any(blank.is_count for blank in blanks):
        return _say(sheet, "whole", row=row)
    return _say(sheet, "one", row=row, axis=_and(sheet, list(map(sheet.axis, blanks))))


def _and(sheet: Variant, names: list[str]) -> str:
    *most, last = names or [""]
    return _say(sheet, "and", before=_join(sheet, most), after=last) if most else last


def _join(sheet: Variant, names: list[str]) -> str:
    return reduce(lambda before, after: _say(sheet, "comma", before=before, after=after), names)
