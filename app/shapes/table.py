"""Tables of tensors: a tensor with its symbolic shape and operation, a count, a question, and the table itself.

>>> from app.shapes.operation import Matmul
>>> queries = tensor("queries", "Q", "N, d_h", "query", Matmul("input W_Q", "n d, d h -> n h"))
>>> [str(length) for length in queries.shape], queries.made_by.operands
(['N', 'd_h'], ('input', 'W_Q'))
>>> side_fields(2), side_fields(3)
(('rows', 'columns'), ('dim0', 'dim1', 'dim2'))
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

from app.algebra.expression import ONE, Expression, Formula, Rounding
from app.shapes.operation import ONE_SIDE, Concat, Operation, axes_in
from app.shapes.patterns import Meaning, read_pattern

BlankField = Literal[
    "rows", "columns", "dim0", "dim1", "dim2", "dim3", "count", "choice",
    "part1", "part2", "part3", "part4", "part5", "part6",
]  # fmt: skip
MATRIX_FIELDS: tuple[BlankField, BlankField] = ("rows", "columns")
# The sides of a tensor that isn't a matrix, in PyTorch's order.
DIMENSIONS: tuple[BlankField, ...] = ("dim0", "dim1", "dim2", "dim3")
# The boxes of a row that are marked together.
PARTS: tuple[BlankField, ...] = ("part1", "part2", "part3", "part4", "part5", "part6")
OTHER_PATTERN = 0  # a typed pattern that means none of the expected ones
CountUnit = Literal["parameters", "operations", "bytes", "entries", "index"]
PartKind = Literal["size", "dimension", "word"]
Offer = Literal["texts", "lines", "reasons"]  # what to choose from: lines of the sheet's program, reasons, other texts
Filling = Expression | int | str  # a size, a number or a word
Role = Literal["input", "query", "key", "value", "score", "hidden", "output"]


def side_fields(sides: int) -> tuple[BlankField, ...]:
    """The names of a tensor's sides: rows and columns of a matrix; otherwise dim0, dim1 and so on, as in
    tensor.shape.
    """
    return MATRIX_FIELDS if sides == len(MATRIX_FIELDS) else DIMENSIONS[:sides]


class Blank(NamedTuple):
    """One side of a tensor to fill in, or a count. As text it is 'queries.rows' or 'split_queries.dim1'."""

    tensor: str
    field: BlankField

    def __str__(self) -> str:
        return f"{self.tensor}.{self.field}"

    @property
    def is_count(self) -> bool:
        """Whether it is a count rather than a side, a choice or a part."""
        return self.field == "count"

    @property
    def transposed(self) -> Blank:
        """The same blank of the transposed matrix; a blank that isn't a matrix's side is returned as it is."""
        if self.field not in MATRIX_FIELDS:
            return self
        return Blank(self.tensor, "columns" if self.field == "rows" else "rows")


@dataclass(frozen=True)
class Tensor:
    """One tensor of a table: its key in files and API, its letter, its symbolic shape, and the operation that makes it.

    Most are matrices, whose shape is (rows, columns).
    """

    key: str
    letter: str
    shape: tuple[Expression, ...]
    role: Role
    made_by: Operation | None = None
    parameter: bool = False
    counted: bool = True
    hint: str = ""
    stored_as: str = ""

    @property
    def rows(self) -> Expression:
        """The rows of a matrix; the second-to-last side of a larger tensor."""
        return self.shape[-2]

    @property
    def columns(self) -> Expression:
        """The columns of a matrix; the last side of a larger tensor."""
        return self.shape[-1]

    @cached_property
    def sides(self) -> tuple[Blank, ...]:
        """Its sides as blanks, asked or not: queries.rows and queries.columns."""
        return tuple(Blank(self.key, field) for field in side_fields(len(self.shape)))

    @property
    def fields(self) -> tuple[BlankField, ...]:
        """The fields that a sheet may ask: the sides, and the count of a counted parameter."""
        fields = side_fields(len(self.shape))
        return (*fields, "count") if self.parameter and self.counted else fields

    @cached_property
    def equal_sides(self) -> Mapping[str, tuple[Blank, ...]]:
        """Sides of the operands and the result that share an axis, and so a length.

        Example: of queries made by 'n d, d h -> n h', n has input.rows, queries.rows; d has input.columns, W_Q.rows; h
        has W_Q.columns, queries.columns.
        """
        if self.made_by is None:
            return {}
        groups = dict[str, tuple[Blank, ...]]()
        sides = (*self.made_by.operand_sides, self.made_by.sides)
        for key, tensor_sides in zip((*self.made_by.operands, self.key), sides, strict=True):
            for side, field in zip(tensor_sides, side_fields(len(tensor_sides)), strict=True):
                if side != ONE_SIDE:
                    groups[side] = (*groups.get(side, ()), Blank(key, field))
        return groups

    @cached_property
    def merged_sides(self) -> Mapping[Blank, tuple[Blank, ...]]:
        """Merged sides, such as (h e), each with the sides h and e that it is the product of.

        Example: of split_queries made by 'n (h e) -> n h e', queries.columns: split_queries.dim1, split_queries.dim2.
        Of several sides with one name, merged or not, only the first is used, operands before the result, so each
        merged side has one entry. A side is left out unless each of its axes is also a side alone, unlike the heads in
        'n (h e), m (g e) -> n m'.
        """
        sides = self.equal_sides
        return {
            sides[side][0]: tuple(sides[axis][0] for axis in axes_in(side))
            for side in sides
            if "(" in side and sides.keys() >= set(axes_in(side))
        }

    def expression(self, field: BlankField) -> Expression:
        """One side, or the product of all sides as the count, in symbols."""
        if field == "count":
            return prod(self.shape, start=ONE)
        return self.shape[side_fields(len(self.shape)).index(field)]

    def size(self, field: BlankField, sizes: Mapping[str, int]) -> int:
        """One side, or the count, as a whole number."""
        return self.expression(field).size(sizes)


PARTS_SUM = Expression.parse("parts")


@dataclass(frozen=True)
class FromParts:
    """How a count is computed from other counts of its table, the `parts`.

    A part may also be a matrix, which counts as its number of parameters.

    Example: FromParts(L*parts, ("attention", "feed_forward", "norms")) for the parameters of all layers.
    """

    formula: Expression
    parts: tuple[str, ...]
    rounded: Rounding = "never"

    def number(self, sizes: Mapping[str, int], parts: Mapping[str, int]) -> int | None:
        """The formula's value for these parts; None if it isn't whole and isn't rounded."""
        return Formula(self.formula, self.rounded).number({**sizes, **parts, "parts": sum(parts.values())})


@dataclass(frozen=True)
class Count:
    """A number that a sheet asks for and that isn't a tensor's side: `unit` says of what.

    `formula` is its sum for people, with factors kept together: '{L} · ({attention} + {feed_forward} + {norms})'.
    """

    key: str
    total: Expression
    formula: str
    made_from: FromParts | None = None
    letter: str = ""
    unit: CountUnit = "parameters"
    rounds: bool = False
    rounded: Rounding = "never"
    hint: str = ""
    dims: int = 0

    @property
    def fields(self) -> tuple[BlankField, ...]:
        return ("count",)

    def expression(self, _field: BlankField) -> Expression:
        return self.total

    def size(self, _field: BlankField, sizes: Mapping[str, int]) -> int:
        """The total as a whole number, rounded as `rounded` says."""
        return self.total.size(sizes, self.rounded)


@dataclass(frozen=True)
class OneOf:
    """A multiple-choice question: `right` is the right one of the numbers in `options`."""

    key: str
    options: tuple[int, ...]
    right: int
    letter: str = ""
    texts: tuple[str, ...] = ()
    call: str = ""
    offers: Offer = "texts"

    @property
    def fields(self) -> tuple[BlankField, ...]:
        return ("choice",)

    def expression(self, _field: BlankField) -> Expression:
        return Expression.number(self.right)

    def size(self, _field: BlankField, _sizes: Mapping[str, int]) -> int:
        return self.right


@dataclass(frozen=True)
class WrittenPattern(OneOf):
    """A question answered by writing the pattern of a call, in place of the "…" in `call`."""

    @cached_property
    def meanings(self) -> Mapping[Meaning, int]:
        """The meaning of each pattern, with the pattern's number."""
        return {self._meaning(text): number for text, number in zip(self.texts, self.options, strict=True)}

    def number_of(self, typed: str) -> int:
        """The number of the pattern that computes the same as the typed one, or OTHER_PATTERN.

        Raises CannotReadError for text that isn't a pattern of this call.
        """
        return self.meanings.get(self._meaning(typed), OTHER_PATTERN)

    def _meaning(self, text: str) -> Meaning:
        operands = self.texts[0].partition("->")[0].split(",")
        ranks = [len(re.findall(r"\(.*?\)|\w+", operand)) for operand in operands]
        return read_pattern(text, ranks, takes_groups=len(operands) == 1)


def written_pattern(key: str, call: str, *patterns: str) -> WrittenPattern:
    """A WrittenPattern for a call: "einsum({queries}, {keys})". The first pattern is right."""
    return WrittenPattern(key, tuple(range(1, len(patterns) + 1)), 1, texts=patterns, call=f'{call[:-1]}, "…")')


@dataclass(frozen=True)
class JointPart:
    """One box of a Joint: what is filled in, a right answer, and the words to choose from, if it is a word."""

    kind: PartKind
    right: Expression
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joint:
    """Boxes that are marked together: all are right or all are wrong.

    `reveals` is a row whose answer they show, so that they open only after a check.
    """

    key: str
    parts: tuple[JointPart, ...]
    between: tuple[str, ...]
    works: Callable[[tuple[Filling, ...]], bool] | None = dataclasses.field(default=None, compare=False)
    points: int = 1
    letter: str = ""
    reveals: str = ""

    @property
    def is_code(self) -> bool:
        """Whether the boxes are blanks in a line of code."""
        return any(self.between)

    @property
    def fields(self) -> tuple[BlankField, ...]:
        return PARTS[: len(self.parts)]

    def part(self, field: BlankField) -> JointPart:
        return self.parts[PARTS.index(field)]

    def expression(self, field: BlankField) -> Expression:
        """A right answer to one box, in symbols if it is a size."""
        return self.part(field).right

    def size(self, field: BlankField, sizes: Mapping[str, int]) -> int:
        """A right answer to one box as a number; a word is given by its place, from 1."""
        return int(self.part(field).right.value(sizes))


Asked = Tensor | Count | OneOf | Joint


def symbol_fields(asked: Asked) -> tuple[BlankField, ...]:
    """The fields answered with an expression on a sheet in symbols."""
    if isinstance(asked, OneOf):
        return ()
    if isinstance(asked, Joint):
        return tuple(field for field in asked.fields if asked.part(field).kind == "size")
    return asked.fields


@dataclass(frozen=True)
class TensorTable:
    """Tensors in the order of computation, counts, and questions; `key` names the table in files and wording.

    With `asks_parameters`, a sheet may ask for parameters as well as activations.
    """

    key: str
    tensors: tuple[Tensor, ...] = ()
    counts: tuple[Count, ...] = ()
    asks_parameters: bool = False
    alike: tuple[str, str] | None = None
    questions: tuple[OneOf | Joint, ...] = ()

    def __post_init__(self) -> None:
        before = {tensor.key: tensor for tensor in self.tensors if tensor.parameter and not tensor.made_by}
        alike = {self.alike[0]: Expression.symbol(self.alike[1])} if self.alike else {}
        for tensor in self.tensors:
            _check_operation(f"{self.key}, {tensor.key}", tensor, before, alike)
            before[tensor.key] = tensor
        if len(self.by_key) < len(self.tensors):
            raise ValueError(f"{self.key}: two tensors have one key")

    @cached_property
    def by_key(self) -> Mapping[str, Tensor]:
        """Every tensor by key, parameters included."""
        return {tensor.key: tensor for tensor in self.tensors}

    @cached_property
    def equal_sides(self) -> Mapping[str, tuple[tuple[Blank, ...], ...]]:
        """For each activation, in order, the groups of sides that its operation forces to one length."""
        computed = (tensor for tensor in self.tensors if not tensor.parameter or tensor.made_by)
        return {tensor.key: tuple(tensor.equal_sides.values()) for tensor in computed}

    @cached_property
    def askable(self) -> Mapping[str, Asked]:
        """What a sheet may ask for, by key: activations (or parameters if there are none), counts, then questions.

        Example: a head's table asks for input, queries … output and not for W_Q; a table of a layer's parameters for
        W_Q. A table that `asks_parameters` asks for all of its tensors.
        """
        tensors = self.tensors if self.asks_parameters else self.activations or self.tensors
        return {entry.key: entry for entry in (*tensors, *self.counts, *self.questions)}

    @cached_property
    def merged_sides(self) -> Mapping[str, Mapping[Blank, tuple[Blank, ...]]]:
        """For each activation that merges or splits sides, in order, the merged sides with their parts."""
        return {tensor.key: tensor.merged_sides for tensor in self.activations if tensor.merged_sides}

    @cached_property
    def joined_sides(self) -> Mapping[Blank, tuple[Blank, Blank]]:
        """Each side that a concatenation makes longer, with the two sides that it is the sum of."""
        return {
            side: (first, second)
            for tensor in self.activations
            if isinstance(tensor.made_by, Concat)
            for side, first, second in zip(
                tensor.sides, *(self[key].sides for key in tensor.made_by.operands), strict=True
            )
            if self._expression(side) == self._expression(first) + self._expression(second)
        }

    def _expression(self, blank: Blank) -> Expression:
        return self[blank.tensor].expression(blank.field)

    def sized(self, key: str) -> Tensor | Count:
        """The tensor or count with that key; raises KeyError for a question and for unknown keys."""
        asked = self.askable[key]
        if isinstance(asked, OneOf | Joint):
            raise KeyError(key)
        return asked

    def __getitem__(self, key: str) -> Tensor:
        return self.by_key[key]

    @property
    def activations(self) -> tuple[Tensor, ...]:
        """The tensors that are computed or given, in order: all but the parameters."""
        return tuple(tensor for tensor in self.tensors if not tensor.parameter)

    @property
    def has_more_sides(self) -> bool:
        """Whether any tensor has more than two sides."""
        return any(len(tensor.shape) > len(MATRIX_FIELDS) for tensor in self.tensors)

    def formula(self, key: str) -> str:
        """How a tensor is made: as mathematics, or as a line of PyTorch if any tensor has more than two sides."""
        operation = self[key].made_by
        if operation is None:
            return ""
        return operation.code() if self.has_more_sides else operation.formula()

    def with_only(self, tensors: Iterable[Tensor], key: str = "") -> TensorTable:
        """A table of only these tensors, in this order, under `key` if it is given."""
        chosen = tuple(tensors)
        keys = {tensor.key for tensor in chosen}
        is_given = {t.key for t in chosen if t.made_by and not keys >= set(t.made_by.operands)}
        return TensorTable(key or self.key, tuple(replace(t, made_by=None) if t.key in is_given else t for t in chosen))

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape as whole numbers: {'scores': (100, 100)} with N = 100."""
        return {tensor.key: tuple(length.size(sizes) for length in tensor.shape) for tensor in self.tensors}


def _check_operation(name: str, result: Tensor, before: Mapping[str, Tensor], alike: Mapping[str, Expression]) -> None:
    operation = result.made_by
    if operation is None:
        return
    if missing := [key for key in operation.operands if key not in before]:
        raise ValueError(f"{name}: there is no {missing[0]} before it")
    shapes = [before[key].shape for key in operation.operands] + [result.shape]
    lengths = {ONE_SIDE: ONE}
    for sides, shape in zip((*operation.operand_sides, operation.sides), shapes, strict=True):
        if len(sides) != len(shape):
            raise ValueError(f"{name}: '{operation.pattern}' has {len(sides)} sides for one of {len(shape)}")
        for side, length in zip(sides, (length.substitute(alike) for length in shape), strict=True):
            if lengths.setdefault(side, length) != length:
                raise ValueError(f"{name}: {side} is {lengths[side]}, then {length}, in '{operation.pattern}'")
    for side in (side for side in lengths if "(" in side):
        length, parts = lengths[side], [lengths[axis] for axis in axes_in(side) if axis in lengths]
        if len(parts) == len(axes_in(side)) and prod(parts, start=ONE) != length:
            product = prod(parts, start=ONE)
            raise ValueError(f"{name}: {side} is {length}, but its parts make {product}, in '{operation.pattern}'")


def tensor(
    key: str,
    letter: str,
    shape: str,
    role: Role,
    made_by: Operation | None = None,
    *,
    parameter: bool = False,
    counted: bool = True,
    hint: str = "",
) -> Tensor:
    """A Tensor with its shape written as text: 'N, d_h', or 'H, N, d_h'."""
    sides = tuple(Expression.parse(length) for length in shape.split(","))
    return Tensor(key, letter, sides, role, made_by, parameter, counted, hint)


def learned(key: str, shape: str, role: Role, *, counted: bool = True, letter: str = "") -> Tensor:
    """A parameter, whose letter is its key unless another is given."""
    return tensor(key, letter or key, shape, role, parameter=True, counted=counted)
