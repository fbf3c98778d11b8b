"""Compare typed shapes with each other along the operations, never with the answer key.

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
    """Two sides that an operation requires to be equal but that differ; `at` is the tensor that can't be computed."""

    at: str
    left: Blank
    right: Blank
    added: bool = False
    parts: tuple[Blank, ...] = ()
    broadcast: bool = False
    message: str = ""


def mismatches(table: TensorTable, values: Values) -> list[DimensionMismatch]:
    """Every pair of sides that must be equal but whose values differ, in the order of computation."""
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
    """Pairs of the input's and the output's sides; [] for a table that lacks one of the two."""
    if not {"input", "output"} <= table.equal_sides.keys():
        return []
    return list(zip(table["input"].sides, table["output"].sides, strict=True))


def typed_source_of(table: TensorTable, values: Values, asked: frozenset[str]) -> dict[Blank, Blank]:
    """For every typed side and every side equal to one, the typed side it gets its length from."""
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
    """For each computed side, the asked sides that its length comes from, in the order of computation."""
    upstream: dict[Blank, frozenset[Blank]] = {}
    for key, groups in table.equal_sides.items():
        for blanks in groups:
            inputs = set[Blank]()
            for blank in blanks:
                if blank.tensor != key:
                    inputs |= {blank} if blank.tensor in asked else upstream.get(blank, frozenset())
            upstream.update(dict.fromkeys((blank for blank in blanks if blank.tensor == key), frozenset(inputs)))
    return upstream
