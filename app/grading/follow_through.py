"""Follow-through: answers that are wrong by the key and right given the student's own earlier answers.

A mistake made once then costs one box, and what was worked out from it correctly earns a share of a mark. Three ways
of following are known: a length carried along an equation, rows · columns, and a total of parts.

>>> [str(formula) for formula, _parts in (TOTALS["all_layers"], TOTALS["weights_8_bit"])]
['L*parts', '1/2*parts']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from app.algebra.expression import Expression
from app.shapes.consistency import Values
from app.shapes.table import MATRIX_FIELDS, Blank, TensorTable
from app.sheets.worksheet import Variant

_SUM = Expression.parse("parts")
_HALF = _SUM * Fraction(1, 2)
# By the key of a count that is made from other counts: a formula over the sum of its parts (and the sheet's symbols),
# and the keys of the parts. A number format with half the bits takes half the bytes. FLOPs have no parts: each is a
# product of its own.
TOTALS: Mapping[str, tuple[Expression, tuple[str, ...]]] = {
    "all_layers": (Expression.parse("L*parts"), ("attention", "feed_forward", "norms")),
    "total": (_SUM, ("embedding", "all_layers", "final_norm", "output_head")),
    "weights_8_bit": (_HALF, ("weights_16_bit",)),
    "weights_4_bit": (_HALF, ("weights_8_bit",)),
    "cache_8_bit": (_HALF, ("cache_16_bit",)),
}


def follow_through(variant: Variant, values: Values) -> set[Blank]:
    """The blanks that are wrong by the key and right given the student's own earlier answers.

    `variant` has its tokens as rows, and so do `values`, the numbers typed. Empty and unreadable boxes are not in
    them, and nothing follows from these.

    Nothing follows unless some box is right with another number. Otherwise whoever wrote one number into every box
    would get marks for all of them.

    Example: queries 90 × 128 and keys 90 × 128 where N is 100: scores of 90 × 90 follow, in both fields.
    """
    wrong = {blank: value for blank, value in values.items() if value != variant.key[blank]}
    right_numbers = {value for blank, value in values.items() if blank not in wrong}
    follows = {
        *_carried_along(variant.upstream_blanks, values, wrong),
        *_rows_times_columns(values, wrong),
        *_totals_of_parts(variant, values, wrong),
    }
    return {blank for blank in follows if right_numbers - {wrong[blank]}}


def _carried_along(upstream: Mapping[Blank, frozenset[Blank]], values: Values, wrong: Values) -> Iterator[Blank]:
    """Wrong sides that repeat the wrong number of a side they are computed from, or of a sibling's first mistake.

    Siblings are computed from the same right side. They count because repairing an answer must not cost marks: with
    queries and keys of 90 rows after an input of 90, both follow; with the input put right, the queries are the first
    mistake and the keys still repeat it rather than making it again.
    """
    first_mistakes = list[Blank]()  # wrong, and following from nothing
    for blank, sources in upstream.items():  # in the order of computation
        if (value := wrong.get(blank)) is None:
            continue
        right_sources = {source for source in sources if source in values and source not in wrong}
        siblings = (mistake for mistake in first_mistakes if upstream[mistake] & right_sources)
        if any(wrong.get(other) == value for other in (*sources, *siblings)):
            yield blank
        else:
            first_mistakes.append(blank)


def _rows_times_columns(values: Values, wrong: Values) -> Iterator[Blank]:
    """Wrong counts of a matrix that are the product of its rows and columns as typed; both must be there."""
    for blank in wrong:
        sides = [Blank(blank.tensor, field) for field in MATRIX_FIELDS]
        typed = [values[side] for side in sides if side in values]
        if blank.field == "count" and len(typed) == 2 and values[blank] == typed[0] * typed[1]:
            yield blank


def _totals_of_parts(variant: Variant, values: Values, wrong: Values) -> Iterator[Blank]:
    """Wrong totals that are the sum of their parts as typed."""
    asked = frozenset(variant.worksheet.rows)
    for blank, value in wrong.items():
        if value == _total_as_typed(variant.table, variant.sizes, asked, values, blank):
            yield blank


def _total_as_typed(
    table: TensorTable, sizes: Mapping[str, int], asked: frozenset[str], values: Values, blank: Blank
) -> int | None:
    """What a total comes to with its parts as typed; None if the blank is no total, or one of its parts is empty."""
    if blank.field != "count" or blank.tensor not in TOTALS:
        return None
    formula, keys = TOTALS[blank.tensor]
    parts = [_part_as_typed(table, sizes, asked, values, key) for key in keys if key in table.asked]
    known = [part for part in parts if part is not None]
    return formula.size({**sizes, "parts": sum(known)}) if known and len(known) == len(parts) else None


def _part_as_typed(
    table: TensorTable, sizes: Mapping[str, int], asked: frozenset[str], values: Values, key: str
) -> int | None:
    """A part of a total as typed, None if its box is empty.

    A part that this sheet does not ask for is the total of its own parts as typed, or else its true number.
    """
    blank = Blank(key, "count")
    if key in asked:
        return values.get(blank)
    if key in TOTALS:
        return _total_as_typed(table, sizes, asked, values, blank)
    return table.asked[key].dim("count").size(sizes)
