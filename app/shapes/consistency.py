"""Shapes checked against each other along the equations, never against the answer key.

>>> from .table import SINGLE_HEAD
>>> typed = {Blank("queries", "columns"): 128, Blank("keys", "columns"): 4096}
>>> [(gap.result, gap.first[1], gap.second[1]) for gap in mismatches(SINGLE_HEAD, typed)]
[('scores', 128, 4096)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.shapes.table import MATRIX_FIELDS, Blank, TensorTable

Values = Mapping[Blank, int]
# What leaves a head or a layer is added to what came in. The sum is no tensor of their tables, so it is checked here,
# and nothing is made from it: it says what the output must fit, not where its size comes from.
ADDED_BACK = ("input", "output")


@dataclass(frozen=True)
class DimensionMismatch:
    """Two sides that one equation makes equal, and that are not: `result` names the tensor whose equation it is.

    Where they are `added`, it is the result itself that cannot be added to the other matrix.
    """

    result: str
    first: tuple[Blank, int]
    second: tuple[Blank, int]
    added: bool = False


def mismatches(topic: TensorTable, values: Values) -> list[DimensionMismatch]:
    """Every pair of sides that should meet and does not, in the order in which the tensors are computed."""
    found = []
    for key, meeting in topic.equal_sides.items():
        for blanks in meeting:
            known = [(blank, values[blank]) for blank in blanks if blank in values]
            found += [DimensionMismatch(key, known[0], other) for other in known[1:] if other[1] != known[0][1]]
    return [*found, *_not_added(topic, values)]


def added_back(topic: TensorTable) -> list[tuple[Blank, Blank]]:
    """The sides that must be equal so that the output can be added to the input: rows with rows, columns with columns.

    Nothing in a table that has no input or no output.
    """
    before, after = ADDED_BACK
    if not {before, after} <= topic.equal_sides.keys():
        return []
    return [(Blank(before, axis), Blank(after, axis)) for axis in MATRIX_FIELDS]


def _not_added(topic: TensorTable, values: Values) -> Iterator[DimensionMismatch]:
    for before, after in added_back(topic):
        if before in values and after in values and values[before] != values[after]:
            yield DimensionMismatch(after.tensor, (before, values[before]), (after, values[after]), added=True)


def infer_unasked_lengths(topic: TensorTable, values: Values, asked: frozenset[str]) -> dict[Blank, int]:
    """The sides of matrices that were not asked, as the given ones need them to be: parameters, and rows left out.

    To get from an input of 100 × 4096 to queries of 100 × 128, W_Q must be 4096 × 128.
    """
    return {
        blank: values[origin] for blank, origin in typed_source_of(topic, values, asked).items() if blank not in values
    }


def typed_source_of(topic: TensorTable, values: Values, asked: frozenset[str]) -> dict[Blank, Blank]:
    """For each given side itself, and for each implied one the given side that it has its number from."""
    found = {blank: blank for blank in values}
    for meeting in topic.equal_sides.values():
        for blanks in meeting:
            given = [found[blank] for blank in blanks if blank in found]
            for blank in blanks:
                if given and blank.tensor not in asked:
                    found.setdefault(blank, given[0])
    return found


def upstream_blanks(topic: TensorTable, asked: frozenset[str]) -> dict[Blank, frozenset[Blank]]:
    """For each side that an equation makes, in the order of computation: the sides of asked tensors it is made from.

    What was not asked is looked through: without a row for the context, the output has the rows of the weights.
    """
    found: dict[Blank, frozenset[Blank]] = {}
    for key, meeting in topic.equal_sides.items():
        for blanks in meeting:
            through = set[Blank]()
            for blank in blanks:
                if blank.tensor != key:
                    through |= {blank} if blank.tensor in asked else found.get(blank, frozenset())
            found.update(dict.fromkeys((blank for blank in blanks if blank.tensor == key), frozenset(through)))
    return found
