"""The classes of a table of tensors: a tensor with its symbolic shape and equation, a count, and the table itself.

>>> queries = tensor("queries", "Q", "N, d_h", "query", made_from="input W_Q", labels="n d, d h -> n h")
>>> [str(length) for length in queries.shape], queries.equation.operands
(['N', 'd_h'], ('input', 'W_Q'))
>>> side_fields(2), side_fields(3)
(('rows', 'columns'), ('dim0', 'dim1', 'dim2'))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

from app.algebra.expression import Expression, Formula, Rounding

BlankField = Literal["rows", "columns", "dim0", "dim1", "dim2", "dim3", "count"]
MATRIX_FIELDS: tuple[BlankField, BlankField] = ("rows", "columns")
# The sides of a tensor that is no matrix, in the order in which PyTorch prints tensor.shape.
DIMENSIONS: tuple[BlankField, ...] = ("dim0", "dim1", "dim2", "dim3")
CountUnit = Literal["parameters", "operations", "bytes", "entries"]
Role = Literal["input", "query", "key", "value", "score", "hidden", "output"]


def side_fields(sides: int) -> tuple[BlankField, ...]:
    """The names of a tensor's sides: rows and columns of a matrix, else dim0, dim1 and so on, as in tensor.shape."""
    return MATRIX_FIELDS if sides == len(MATRIX_FIELDS) else DIMENSIONS[:sides]


class Blank(NamedTuple):
    """One box to fill in: one side of a tensor, or a count. As text it is 'queries.rows' or 'split_queries.dim1'."""

    tensor: str
    field: BlankField

    def __str__(self) -> str:
        """The name in files and API: 'queries.rows'."""
        return f"{self.tensor}.{self.field}"

    @property
    def transposed(self) -> Blank:
        """The rows for the columns of the same matrix, the columns for the rows; any other blank stays as it is."""
        if self.field not in MATRIX_FIELDS:
            return self
        return Blank(self.tensor, "columns" if self.field == "rows" else "rows")


@dataclass(frozen=True)
class Equation:
    """How a tensor is made from its operands.

    `axis_labels` label the sides of each operand and of the result, 'n d, d h -> n h' for a product; sides with one
    label have one length. They are not always an einsum: 'n r, n p -> n a' puts two matrices side by side. A label such
    as h*e stands for two axes merged into one: 'n h*e -> n h e' is a view that splits the heads apart.
    `formula` is for people, with every tensor, size and phrase in braces, '{input} · {W_Q}': `app.sheets.formulas`
    writes it in a sheet's letters. Where the second operand is added to the first, `adds` says what it is: the mask, or
    what a residual connection adds.
    """

    operands: tuple[str, ...]
    axis_labels: str
    formula: str
    adds: Literal["", "mask", "residual"] = ""

    def __post_init__(self) -> None:
        """Raise ValueError unless there are labels for each operand and the result."""
        operands, arrow, result = self.axis_labels.partition("->")
        if not arrow or "->" in result or operands.count(",") + 1 != len(self.operands) or not self.operands:
            raise ValueError(f"“{self.axis_labels}” doesn't label {', '.join(self.operands)} and what they make.")

    @property
    def operand_labels(self) -> list[list[str]]:
        """The labels of each operand's sides: [['n', 'd'], ['d', 'h']] for 'n d, d h -> n h'."""
        return [labels.split() for labels in self.axis_labels.split("->")[0].split(",")]

    @property
    def result_labels(self) -> list[str]:
        """The labels of the result's sides: ['n', 'h'] for 'n d, d h -> n h'."""
        return self.axis_labels.split("->")[1].split()

    def blanks(self, result: str) -> dict[str, list[Blank]]:
        """The sides of the operands, then of the result, grouped by label: one group has one length.

        Example: the queries' 'n d, d h -> n h' gives n: input.rows, queries.rows; d: input.columns, W_Q.rows;
        h: W_Q.columns, queries.columns.
        """
        groups: dict[str, list[Blank]] = {}
        for tensor, labels in zip((*self.operands, result), (*self.operand_labels, self.result_labels), strict=True):
            for label, field in zip(labels, side_fields(len(labels)), strict=True):
                groups.setdefault(label, []).append(Blank(tensor, field))
        return groups

    def merged_sides(self, result: str) -> dict[Blank, tuple[Blank, ...]]:
        """The sides that are others merged into one, as h*e is h and e, each with these.

        Example: 'n h*e -> n h e' gives queries.columns: split_queries.dim1, split_queries.dim2. Heads that stay side by
        side, as in 'n h*e, m g*e -> n m', have no sides of their own.
        """
        sides = self.blanks(result)
        parts = {label: [sides[part][0] for part in label.split("*") if part in sides] for label in sides}
        return {
            sides[label][0]: tuple(found)
            for label, found in parts.items()
            if "*" in label and len(found) == label.count("*") + 1
        }


@dataclass(frozen=True)
class Tensor:
    """One tensor of a table: its key in files and API, its letter, its symbolic shape, and the equation that makes it.

    Most are matrices, whose shape is (rows, columns). A parameter belongs to the model and is learned; everything else
    is computed from the input. A sheet asks for the count of numbers of a parameter only if it is `counted`.
    """

    key: str
    letter: str
    shape: tuple[Expression, ...]
    role: Role
    equation: Equation | None = None
    parameter: bool = False
    counted: bool = True

    @property
    def rows(self) -> Expression:
        """The rows of a matrix; of a tensor with more sides, the last but one."""
        return self.shape[-2]

    @property
    def columns(self) -> Expression:
        """The columns of a matrix; of a tensor with more sides, the last one."""
        return self.shape[-1]

    @cached_property
    def sides(self) -> tuple[Blank, ...]:
        """Its sides as blanks, whether they are asked or not: queries.rows and queries.columns."""
        return tuple(Blank(self.key, field) for field in side_fields(len(self.shape)))

    @property
    def fields(self) -> tuple[BlankField, ...]:
        """What a sheet asks of this tensor: its sides, and of a parameter that is counted its count as well."""
        fields = side_fields(len(self.shape))
        return (*fields, "count") if self.parameter and self.counted else fields

    def expression(self, field: BlankField) -> Expression:
        """One side, or the product of all sides as the count, in symbols."""
        if field == "count":
            return prod(self.shape, start=Expression.number(1))
        return self.shape[side_fields(len(self.shape)).index(field)]

    def size(self, field: BlankField, sizes: Mapping[str, int]) -> int:
        """One side, or the count, as a whole number."""
        return self.expression(field).size(sizes)


PARTS_SUM = Expression.parse("parts")


@dataclass(frozen=True)
class FromParts:
    """How a count is worked out from other counts of its table: a formula in `parts`, the sum of those counts.

    Where it isn't worked out from their sum, the formula has the keys of the counts in place of `parts`. It may be
    `rounded` up or down to a whole number.

    Example: FromParts(L*parts, ("attention", "feed_forward", "norms")) for the parameters of all layers.
    """

    formula: Expression
    parts: tuple[str, ...]
    rounded: Rounding = "never"

    def number(self, sizes: Mapping[str, int], parts: Mapping[str, int]) -> int | None:
        """What the formula comes to with these numbers for the parts; None if that isn't whole, and isn't rounded."""
        return Formula(self.formula, self.rounded).number({**sizes, **parts, "parts": sum(parts.values())})


@dataclass(frozen=True)
class Count:
    """A number that a sheet asks for and that is no tensor: `unit` of something, as a sum of products.

    `formula` is the same sum for people, with factors kept together: '{L} · ({attention} + {feed_forward} + {norms})'.
    `made_from` names the counts that this one is worked out from; None if it is worked out from sizes alone. What is
    rounded on the way in this model `rounds`: symbols cannot say it. A total that isn't whole is `rounded`.
    """

    key: str
    total: Expression
    formula: str
    made_from: FromParts | None = None
    letter: str = ""
    unit: CountUnit = "parameters"
    rounds: bool = False
    rounded: Rounding = "never"

    @property
    def fields(self) -> tuple[BlankField, ...]:
        """What a sheet asks of it: the count alone."""
        return ("count",)

    def expression(self, _field: BlankField) -> Expression:
        """The total in symbols; a count has no other field."""
        return self.total

    def size(self, _field: BlankField, sizes: Mapping[str, int]) -> int:
        """The number that is right."""
        return self.total.size(sizes, self.rounded)


@dataclass(frozen=True)
class TensorTable:
    """Tensors in the order in which they are computed, and counts; `key` names the table in files and wording.

    With `asks_parameters`, a sheet may ask for parameters beside activations.
    """

    key: str
    tensors: tuple[Tensor, ...] = ()
    counts: tuple[Count, ...] = ()
    asks_parameters: bool = False

    @cached_property
    def by_key(self) -> Mapping[str, Tensor]:
        """Every tensor, parameters included, under its key."""
        return {tensor.key: tensor for tensor in self.tensors}

    @cached_property
    def equal_sides(self) -> Mapping[str, tuple[list[Blank], ...]]:
        """For each activation, in the order of computation, the groups of sides its equation forces to one length.

        An activation that no equation makes, such as the input, has no group. Products of parameters are among them.
        """
        made_by = {t.key: t.equation for t in self.tensors if not t.parameter or t.equation}
        return {key: tuple(equation.blanks(key).values()) if equation else () for key, equation in made_by.items()}

    @cached_property
    def asked(self) -> Mapping[str, Tensor | Count]:
        """What a sheet may ask for, by key: the activations, or the parameters of a table without activations; counts.

        Example: a head's table asks for input, queries … output and not for W_Q; a layer's parameters ask for W_Q. A
        table that `asks_parameters` asks for all of its tensors.
        """
        tensors = self.tensors if self.asks_parameters else self.activations or self.tensors
        return {**{tensor.key: tensor for tensor in tensors}, **{count.key: count for count in self.counts}}

    @cached_property
    def merged_sides(self) -> Mapping[str, Mapping[Blank, tuple[Blank, ...]]]:
        """For each activation, in the order of computation, the sides that its equation makes of others, or others of.

        An activation whose equation neither merges nor splits a side is left out.
        """
        made_by = {tensor.key: tensor.equation for tensor in self.activations}
        merged = {key: equation.merged_sides(key) for key, equation in made_by.items() if equation}
        return {key: sides for key, sides in merged.items() if sides}

    def __getitem__(self, key: str) -> Tensor:
        """The tensor of that key; raises KeyError, for a count as well."""
        return self.by_key[key]

    @property
    def activations(self) -> tuple[Tensor, ...]:
        """The tensors that are computed or given, in order: all but the parameters."""
        return tuple(tensor for tensor in self.tensors if not tensor.parameter)

    @property
    def has_more_sides(self) -> bool:
        """Whether some tensor of it is no matrix, but has three sides or four."""
        return any(len(tensor.shape) > len(MATRIX_FIELDS) for tensor in self.tensors)

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape as whole numbers, e.g. {'scores': (100, 100)} with N = 100."""
        return {tensor.key: tuple(length.size(sizes) for length in tensor.shape) for tensor in self.tensors}


def tensor(
    key: str,
    letter: str,
    shape: str,
    role: Role,
    *,
    made_from: str = "",
    labels: str = "",
    formula: str = "",
    adds: Literal["", "mask", "residual"] = "",
    parameter: bool = False,
    counted: bool = True,
) -> Tensor:
    """A Tensor written as text: shape 'N, d_h' or 'H, N, d_h', operands 'input W_Q', labels 'n d, d h -> n h'.

    Without `made_from` no equation makes it: it is given, or a parameter.
    """
    sides = tuple(Expression.parse(length) for length in shape.split(","))
    equation = Equation(tuple(made_from.split()), labels, formula, adds) if made_from else None
    return Tensor(key, letter, sides, role, equation, parameter, counted)


matrix = tensor  # the same, as a table of matrices reads
