"""The tables: every tensor of every topic, its symbolic shape, and the equation that makes it.

This is the only place where a shape is known; worksheets, answer keys, drawings and the checks around the real
forward pass are read off it. Shapes are written rows first, tokens as rows, and without a batch dimension.

>>> SINGLE_HEAD["scores"].shape_text
'N × N'
>>> SINGLE_HEAD["scores"].equation.text
'queries · keysᵀ'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .dims import Dim

Axis = Literal["rows", "columns"]
AXES: tuple[Axis, Axis] = ("rows", "columns")
Role = Literal["input", "query", "key", "value", "score", "output"]


@dataclass(frozen=True, order=True)
class Place:
    """One side of one matrix, such as the rows of the queries: what a box on a sheet asks for."""

    tensor: str
    axis: Axis

    def __str__(self) -> str:
        return f"{self.tensor}.{self.axis}"


@dataclass(frozen=True)
class Equation:
    """How a tensor is made from others, as an einsum whose letters are the axes: 'n d, d h -> n h'."""

    operands: tuple[str, ...]
    einsum: str
    text: str

    def places(self, result: str) -> dict[str, list[Place]]:
        """Every place of the equation under the letter that stands for it; places under one letter must agree."""
        inputs, output = self.einsum.split("->")
        found: dict[str, list[Place]] = {}
        for tensor, letters in zip((*self.operands, result), (*inputs.split(","), output), strict=True):
            for letter, axis in zip(letters.split(), AXES, strict=True):
                found.setdefault(letter, []).append(Place(tensor, axis))
        return found


@dataclass(frozen=True)
class Tensor:
    """One matrix of a topic: its key in files and API, its letter, its rows and columns, and what makes it.

    A parameter belongs to the model and is learned; everything else is computed from the input.
    """

    key: str
    letter: str
    rows: Dim
    columns: Dim
    role: Role
    equation: Equation | None = None
    parameter: bool = False

    @property
    def shape(self) -> tuple[Dim, Dim]:
        return (self.rows, self.columns)

    @property
    def shape_text(self) -> str:
        return f"{self.rows} × {self.columns}"

    def side(self, axis: Axis) -> Dim:
        return self.rows if axis == "rows" else self.columns


@dataclass(frozen=True)
class Topic:
    """A set of tensors that belong together, in the order in which they are computed."""

    key: str
    tensors: tuple[Tensor, ...]

    @cached_property
    def by_key(self) -> Mapping[str, Tensor]:
        return {tensor.key: tensor for tensor in self.tensors}

    def __getitem__(self, key: str) -> Tensor:
        return self.by_key[key]

    @property
    def activations(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if not tensor.parameter)

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Every tensor's shape in whole numbers, e.g. {'scores': (100, 100)}."""
        return {t.key: (t.rows.size(sizes), t.columns.size(sizes)) for t in self.tensors}


def _tensor(key: str, letter: str, shape: str, role: Role, *made_by: str, parameter: bool = False) -> Tensor:
    rows, columns = (Dim.parse(side) for side in shape.split(","))
    equation = Equation(tuple(made_by[0].split()), made_by[1], made_by[2]) if made_by else None
    return Tensor(key, letter, rows, columns, role, equation, parameter)


# One head: Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), section 3.2. W_O here is this head's own
# d_v rows of the layer's output projection, so that the heads' outputs add up to the layer's.
SINGLE_HEAD = Topic(
    "single-head",
    (
        _tensor("input", "X", "N, d", "input"),
        _tensor("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        _tensor("W_K", "W_K", "d, d_h", "key", parameter=True),
        _tensor("W_V", "W_V", "d, d_v", "value", parameter=True),
        _tensor("queries", "Q", "N, d_h", "query", "input W_Q", "n d, d h -> n h", "input · W_Q"),
        _tensor("keys", "K", "N, d_h", "key", "input W_K", "n d, d h -> n h", "input · W_K"),
        _tensor("values", "V", "N, d_v", "value", "input W_V", "n d, d v -> n v", "input · W_V"),
        _tensor("scores", "S", "N, N", "score", "queries keys", "n h, m h -> n m", "queries · keysᵀ"),
        _tensor("weights", "A", "N, N", "score", "scores", "n m -> n m", "softmax of the masked, scaled scores"),
        _tensor("context", "C", "N, d_v", "value", "weights values", "n m, m v -> n v", "weights · values"),
        _tensor("W_O", "W_O", "d_v, d", "output", parameter=True),
        _tensor("output", "O", "N, d", "output", "context W_O", "n v, v d -> n d", "context · W_O"),
    ),
)

# A whole layer, with its heads side by side: H query heads read G key/value heads (Ainslie et al., arXiv:2305.13245).
# Scores and weights are those of one head: h*e is H heads side by side of e numbers each, g*e the same for G.
ATTENTION_LAYER = Topic(
    "attention-layer",
    (
        _tensor("input", "X", "N, d", "input"),
        _tensor("W_Q", "W_Q", "d, H*d_h", "query", parameter=True),
        _tensor("W_K", "W_K", "d, G*d_h", "key", parameter=True),
        _tensor("W_V", "W_V", "d, G*d_v", "value", parameter=True),
        _tensor("queries", "Q", "N, H*d_h", "query", "input W_Q", "n d, d q -> n q", "input · W_Q"),
        _tensor("keys", "K", "N, G*d_h", "key", "input W_K", "n d, d k -> n k", "input · W_K"),
        _tensor("values", "V", "N, G*d_v", "value", "input W_V", "n d, d v -> n v", "input · W_V"),
        _tensor("scores", "S", "N, N", "score", "queries keys", "n h*e, m g*e -> n m", "queries · keysᵀ, head by head"),
        _tensor("weights", "A", "N, N", "score", "scores", "n m -> n m", "softmax of the masked, scaled scores"),
        _tensor(
            "context",
            "C",
            "N, H*d_v",
            "value",
            "weights values",
            "n m, m g*e -> n h*e",
            "weights · values, all heads side by side",
        ),
        _tensor("W_O", "W_O", "H*d_v, d", "output", parameter=True),
        _tensor("output", "O", "N, d", "output", "context W_O", "n c, c d -> n d", "context · W_O"),
    ),
)

TOPICS: Mapping[str, Topic] = {topic.key: topic for topic in (SINGLE_HEAD, ATTENTION_LAYER)}
