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
    """Two sides that an operation requires to be equal, and are not. `at` is the tensor that cannot be made."""

    at: str
    left: Blank
    right: Blank
    added: bool = False
    parts: tuple[Blank, ...] = ()
    broadcast: bool = False
    message: str = ""


def mismatches(table: TensorTable, values: Values) -> list[DimensionMismatch]:
    """Every pair of sides that an operation makes equal but whose values differ, in the order of computation."""
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
    for at in range(len(result.sides), 0, -1):
        meeting = [each.sides[-at] for each in (*operands, result) if len(each.sides) >= at]
        known = [b for b in meeting if b in values and (values[b] != 1 or b.tensor == result.key)]
        for blank in known[1:]:
            if values[blank] != values[known[0]]:
                yield DimensionMismatch(result.key, known[0], blank, broadcast=blank.tensor != result.key)


def residual_pairs(table: TensorTable) -> list[tuple[Blank, Blank]]:
    """The sides of the input, each with that of the output; [] for a table that lacks one of the two."""
    if not {"input", "output"} <= table.equal_sides.keys():
        return []
    return list(zip(table["input"].sides, table["output"].sides, strict=True))


def typed_source_of(table: TensorTable, values: Values, asked: frozenset[str]) -> dict[Blank, Blank]:
    """Map every side that is typed, or made equal to a typed one, to the typed side in `values` that it comes from."""
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
    """Map each side that an operation makes to the asked sides it gets its length from, in the order of computation."""
    upstream: dict[Blank, frozenset[Blank]] = {}
    for key, groups in table.equal_sides.items():
        for blanks in groups:
            inputs = set[Blank]()
            for blank in blanks:
                if blank.tensor != key:
                    inputs |= {blank} if blank.tensor in asked else upstream.get(blank, frozenset())
            upstream.update(dict.fromkeys((blank for blank in blanks if blank.tensor == key), frozenset(inputs)))
    return upstream
