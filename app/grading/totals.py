"""Amounts made from other amounts of the same sheet: totals that follow from their parts as typed.

>>> [str(formula) for formula, _parts in (MADE_FROM["all_layers"], MADE_FROM["weights_8_bit"])]
['L*parts', '1/2*parts']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from app.algebra.expression import Expression
from app.shapes.consistency import Values
from app.shapes.table import Blank, TensorTable

_SUM = Expression.parse("parts")
_HALF = _SUM * Fraction(1, 2)
# By amount: a formula over the sum of its parts and the sheet's own symbols, and the parts. One made from numbers of
# half as many bits takes half the bytes. An operation count is made from no other: each is a product of its own.
MADE_FROM: Mapping[str, tuple[Expression, tuple[str, ...]]] = {
    "all_layers": (Expression.parse("L*parts"), ("attention", "feed_forward", "norms")),
    "total": (_SUM, ("embedding", "all_layers", "final_norm", "output_head")),
    "weights_8_bit": (_HALF, ("weights_16_bit",)),
    "weights_4_bit": (_HALF, ("weights_8_bit",)),
    "cache_8_bit": (_HALF, ("cache_16_bit",)),
}


def made_from_typed(
    topic: TensorTable, sizes: Mapping[str, int], asked: Iterable[str], values: Values, blank: Blank
) -> int | None:
    """What an amount comes to with its parts as typed; None where it has none, or where one of them was left empty.

    A part that this sheet does not ask for is made from its own parts, or else taken as it is.
    """
    if blank.field != "count" or blank.tensor not in MADE_FROM:
        return None
    formula, keys = MADE_FROM[blank.tensor]
    parts = [_part(topic, sizes, frozenset(asked), values, key) for key in keys if key in topic.asked]
    known = [part for part in parts if part is not None]
    return formula.size({**sizes, "parts": sum(known)}) if known and len(known) == len(parts) else None


def _part(topic: TensorTable, sizes: Mapping[str, int], asked: frozenset[str], values: Values, key: str) -> int | None:
    blank = Blank(key, "count")
    if key in asked:
        return values.get(blank)
    if key in MADE_FROM:
        return made_from_typed(topic, sizes, asked, values, blank)
    return topic.asked[key].dim("count").size(sizes)
