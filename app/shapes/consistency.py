"""Shapes checked against each other along the operations, never against the answer key.

>>> from app.topics.single_head import SINGLE_HEAD
>>> typed = {Blank("queries", "columns"): 128, Blank("keys", "columns"): 4096}
>>> [(clash.at, str(clash.left), str(clash.right)) for clash in mismatches(SINGLE_HEAD, typed)]
[('scores', 'queries.columns', 'keys.columns')]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from app.shapes.table import Blank, Tensor, TensorTable

Values = Mapping[Blank, int]


@dataclass(frozen=True)
class DimensionMismatch:
    """Two sides that an operation requires to be equal, and are not.

    `at` is the tensor that cannot be made. With `added`, it is the output, which cannot be added to the input. With
    `parts`, the left side should be the product of the parts, the last of which is the right side. With `broadcast`,
    the two sides are of two operands that are broadcast, and neither is 1. `message` is the sentence for students; a
    table alone has no words for it.
    """

    at: str
    left: Blank
    right: Blank
    added: bool = False
    parts: tuple[Blank, ...] = ()
    broadcast: bool = False
    message: str = ""


def mismatches(table: TensorTable, values: Values) -> list[DimensionMismatch]:
    """Every pair of sides that an operation makes equal but whose values differ, in the order of computation.

    In each group of equal sides, the first side with a value is `left`, and each side that differs from it is a
    `right`; sides without a value are skipped. After the groups of a tensor come its merged sides that aren't the
    product of their parts, each with its last part as `right`, if it and all parts have values. A tensor whose
    operation broadcasts is checked by `_broadcast_mismatches` instead. Last come the sides of the input that differ
    from those of the output that is added to it, with the input's as `left`, if both have values.
    """
    clashes = list[DimensionMismatch]()
    for result, groups in table.equal_sides.items():
        if (operation := table[result].made_by) and operation.broadcasts:
            clashes += _broadcast_mismatches([table[key] for key in operation.operands], table[result], values)
            continue
        for blanks in groups:
            known = [(blank, values[blank]) for blank in blanks if blank in values]
            clashes += [DimensionMismatch(result, known[0][0], b) for b, length in known if length != known[0][1]]
        for merged, parts in table.merged_sides.get(result, {}).items():
            if values.keys() >= {merged, *parts} and values[merged] != prod(values[part] for part in parts):
                clashes.append(DimensionMismatch(result, merged, parts[-1], parts=parts))
    for before, after in residual_pairs(table):
        if before in values and after in values and values[before] != values[after]:
            clashes.append(DimensionMismatch(after.tensor, before, after, added=True))
    return clashes


def _broadcast_mismatches(operands: list[Tensor], result: Tensor, values: Values) -> Iterator[DimensionMismatch]:
    """Yield the sides that can't be broadcast together, place by place from the left; places are aligned at the right.

    At a place the sides of the operands come first, in their order, then the result's. The first with a value is
    `left`, and each that differs from it is a `right`. Sides without a value, and operands' sides of 1, are skipped.
    `broadcast` is False if `right` is the result's side.
    """
    for at in range(len(result.sides), 0, -1):
        meeting = [each.sides[-at] for each in (*operands, result) if len(each.sides) >= at]
        known = [b for b in meeting if b in values and (values[b] != 1 or b.tensor == result.key)]
        for blank in known[1:]:
            if values[blank] != values[known[0]]:
                yield DimensionMismatch(result.key, known[0], blank, broadcast=blank.tensor != result.key)


def residual_pairs(table: TensorTable) -> list[tuple[Blank, Blank]]:
    """The sides of the input, each with that of the output; [] for a table that lacks one of the two.

    The residual connection adds what leaves a head or a layer to what came in. The sum is no tensor of the table, and
    no length is inferred from it: it says what the output must fit, not what its size comes from.
    """
    if not {"input", "output"} <= table.equal_sides.keys():
        return []
    return list(zip(table["input"].sides, table["output"].sides, strict=True))


def typed_source_of(table: TensorTable, values: Values, asked: frozenset[str]) -> dict[Blank, Blank]:
    """Map every side that is typed, or made equal to a typed one, to the typed side in `values` that it comes from.

    A side in `values` maps to itself. A further side is mapped only if its tensor is not in `asked`, to the source of
    the first side in its group of equal sides that has one, or, if the operation broadcasts, of the last, which is the
    result's, since an operand may have 1 there. Operations are followed once, in the order of computation, and the
    first that gives a source wins. All other sides are left out. Example: with queries.columns typed, W_Q.columns maps
    to queries.columns.
    """
    source_of = {blank: blank for blank in values}
    for result, groups in table.equal_sides.items():
        operation = table[result].made_by
        first = -1 if operation and operation.broadcasts else 0
        for blanks in groups:
            known = [source_of[blank] for blank in blanks if blank in source_of]
            for blank in blanks:
                if known and blank.tensor not in asked:
                    source_of.setdefault(blank, known[first])
    return source_of


def upstream_blanks(table: TensorTable, asked: frozenset[str]) -> dict[Blank, frozenset[Blank]]:
    """Map each side that an operation makes to the asked sides it gets its length from, in the order of computation.

    These are the sides of the operation's operands in the same group of equal sides; a side of a tensor that isn't
    asked is replaced by those that it comes from: if the context isn't asked, the output's rows come from the rows of
    the weights. The set is empty for a side that comes from nothing asked.
    """
    upstream: dict[Blank, frozenset[Blank]] = {}
    for key, groups in table.equal_sides.items():
        for blanks in groups:
            inputs = set[Blank]()
            for blank in blanks:
                if blank.tensor != key:
                    inputs |= {blank} if blank.tensor in asked else upstream.get(blank, frozenset())
            upstream.update(dict.fromkeys((blank for blank in blanks if blank.tensor == key), frozenset(inputs)))
    return upstream
