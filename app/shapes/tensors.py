"""The tables: every tensor of every topic, its symbolic shape, and the equation that makes it.

This is the only blank where a shape is known; worksheets, answer keys, drawings and the checks around the real
forward pass are read off it. Shapes are written rows first, tokens as rows, and without a batch dimension.

>>> [str(side) for side in SINGLE_HEAD["scores"].shape]
['N', 'N']
>>> SINGLE_HEAD["scores"].equation.text
'queries · keysᵀ'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from app.algebra.dims import Dim

Axis = Literal["rows", "columns", "count"]
AXES: tuple[Axis, Axis] = ("rows", "columns")
COUNTED: tuple[Axis, ...] = (*AXES, "count")
Role = Literal["input", "query", "key", "value", "score", "hidden", "output"]


class Blank(NamedTuple):
    """One side of one matrix, such as the rows of the queries, or how many numbers it holds: what a box asks for."""

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

    def blanks(self, result: str) -> dict[str, list[Blank]]:
        """Every place of the equation under the letter that stands for it; blanks under one letter must agree."""
        inputs, output = self.einsum.split("->")
        found: dict[str, list[Blank]] = {}
        for tensor, letters in zip((*self.operands, result), (*inputs.split(","), output), strict=True):
            for letter, axis in zip(letters.split(), AXES, strict=True):
                found.setdefault(letter, []).append(Blank(tensor, axis))
        return found


@dataclass(frozen=True)
class Tensor:
    """One matrix of a topic: its key in files and API, its letter, its rows and columns, and what makes it.

    A parameter belongs to the model and is learned; everything else is computed from the input. `axes` are what a
    sheet asks of it: rows and columns, of a parameter the count as well.
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
    def axes(self) -> tuple[Axis, ...]:
        return COUNTED if self.parameter else AXES

    def side(self, axis: Axis) -> Dim:
        return self.rows * self.columns if axis == "count" else self.rows if axis == "rows" else self.columns


@dataclass(frozen=True)
class Amount:
    """A number that is no matrix: parameters, operations or bytes, as a sum of products of symbols.

    `text` is the same sum as people write it, factors kept together: 'L · (attention + feed-forward + norms)'.
    """

    key: str
    total: Dim
    text: str
    letter: str = ""

    @property
    def axes(self) -> tuple[Axis, ...]:
        return ("count",)

    def side(self, axis: Axis) -> Dim:
        return self.total


@dataclass(frozen=True)
class Topic:
    """A set of tensors that belong together, in the order in which they are computed, and amounts counted from them."""

    key: str
    tensors: tuple[Tensor, ...] = ()
    amounts: tuple[Amount, ...] = ()

    @cached_property
    def by_key(self) -> Mapping[str, Tensor]:
        return {tensor.key: tensor for tensor in self.tensors}

    @cached_property
    def meeting(self) -> Mapping[str, tuple[list[Blank], ...]]:
        """By activation, in the order of computation: the sides that its equation makes equal, letter by letter."""
        made = {tensor.key: tensor.equation for tensor in self.activations}
        return {key: tuple(equation.blanks(key).values()) if equation else () for key, equation in made.items()}

    @cached_property
    def asked(self) -> Mapping[str, Tensor | Amount]:
        """What a sheet may ask for: the activations, or the parameters where there is nothing else; and the amounts."""
        tensors = self.activations or self.tensors
        return {**{tensor.key: tensor for tensor in tensors}, **{amount.key: amount for amount in self.amounts}}

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

# The matrices of one layer, each in the x·W orientation: attention as above, then the feed-forward block with a gate
# (Shazeer, arXiv:2002.05202) or without one (arXiv:1706.03762, section 3.3). Norms and biases are no matrices.
_ATTENTION_PARAMETERS = tuple(tensor for tensor in ATTENTION_LAYER.tensors if tensor.parameter)
_UP_AND_DOWN = (
    _tensor("W_up", "W_up", "d, d_ff", "hidden", parameter=True),
    _tensor("W_down", "W_down", "d_ff, d", "hidden", parameter=True),
)
LAYER_PARAMETERS = Topic(
    "layer-parameters",
    (*_ATTENTION_PARAMETERS, _tensor("W_gate", "W_gate", "d, d_ff", "hidden", parameter=True), *_UP_AND_DOWN),
)
PLAIN_LAYER_PARAMETERS = Topic("plain-layer-parameters", (*_ATTENTION_PARAMETERS, *_UP_AND_DOWN))

# The same head without a mask, as in an encoder: every token may look at every other. The values change, no shape does.
BIDIRECTIONAL_HEAD = Topic(
    "bidirectional-head",
    tuple(
        replace(tensor, equation=Equation(("scores",), "n m -> n m", "softmax of the scaled scores"))
        if tensor.key == "weights"
        else tensor
        for tensor in SINGLE_HEAD.tensors
    ),
)

# One head while a text is being written: one new token after N whose keys and values are kept (Pope et al.,
# arXiv:2211.05102). The new row joins the N cached ones, so there are N + 1 to look at.
DECODE_STEP = Topic(
    "decode-step",
    (
        _tensor("input", "x", "1, d", "input"),
        _tensor("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        _tensor("W_K", "W_K", "d, d_h", "key", parameter=True),
        _tensor("W_V", "W_V", "d, d_v", "value", parameter=True),
        _tensor("queries", "q", "1, d_h", "query", "input W_Q", "o d, d h -> o h", "input · W_Q"),
        _tensor("new_key", "k", "1, d_h", "key", "input W_K", "o d, d h -> o h", "input · W_K"),
        _tensor("new_value", "v", "1, d_v", "value", "input W_V", "o d, d v -> o v", "input · W_V"),
        _tensor("cached_keys", "K'", "N, d_h", "key"),
        _tensor("cached_values", "V'", "N, d_v", "value"),
        _tensor(
            "keys", "K", "N + 1, d_h", "key", "cached_keys new_key", "n h, o h -> m h", "cached keys, then the new one"
        ),
        _tensor(
            "values",
            "V",
            "N + 1, d_v",
            "value",
            "cached_values new_value",
            "n v, o v -> m v",
            "cached values, then the new one",
        ),
        _tensor("scores", "s", "1, N + 1", "score", "queries keys", "o h, m h -> o m", "queries · keysᵀ"),
        _tensor("weights", "a", "1, N + 1", "score", "scores", "o m -> o m", "softmax of the scaled scores"),
        _tensor("context", "c", "1, d_v", "value", "weights values", "o m, m v -> o v", "weights · values"),
        _tensor("W_O", "W_O", "d_v, d", "output", parameter=True),
        _tensor("output", "o", "1, d", "output", "context W_O", "o v, v d -> o d", "context · W_O"),
    ),
)

# The same step in a layer with a sliding window of W keys, the new one included (Beltagy et al., arXiv:2004.05150),
# once the window is full: what is older has been dropped.
WINDOWED_DECODE_STEP = Topic(
    "windowed-decode-step",
    (
        _tensor("input", "x", "1, d", "input"),
        _tensor("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        _tensor("queries", "q", "1, d_h", "query", "input W_Q", "o d, d h -> o h", "input · W_Q"),
        _tensor("keys", "K", "W, d_h", "key"),
        _tensor("values", "V", "W, d_v", "value"),
        _tensor("scores", "s", "1, W", "score", "queries keys", "o h, w h -> o w", "queries · keysᵀ"),
        _tensor("weights", "a", "1, W", "score", "scores", "o w -> o w", "softmax of the scaled scores"),
        _tensor("context", "c", "1, d_v", "value", "weights values", "o w, w v -> o v", "weights · values"),
        _tensor("W_O", "W_O", "d_v, d", "output", parameter=True),
        _tensor("output", "o", "1, d", "output", "context W_O", "o v, v d -> o d", "context · W_O"),
    ),
)

# One head of a decoder that reads an encoder: M tokens ask, N tokens answer (arXiv:1706.03762, section 3.2.3).
CROSS_ATTENTION = Topic(
    "cross-attention",
    (
        _tensor("input", "X", "M, d", "input"),
        _tensor("encoded", "E", "N, d", "input"),
        _tensor("W_Q", "W_Q", "d, d_h", "query", parameter=True),
        _tensor("W_K", "W_K", "d, d_h", "key", parameter=True),
        _tensor("W_V", "W_V", "d, d_v", "value", parameter=True),
        _tensor("queries", "Q", "M, d_h", "query", "input W_Q", "m d, d h -> m h", "input · W_Q"),
        _tensor("keys", "K", "N, d_h", "key", "encoded W_K", "n d, d h -> n h", "encoded · W_K"),
        _tensor("values", "V", "N, d_v", "value", "encoded W_V", "n d, d v -> n v", "encoded · W_V"),
        _tensor("scores", "S", "M, N", "score", "queries keys", "m h, n h -> m n", "queries · keysᵀ"),
        _tensor("weights", "A", "M, N", "score", "scores", "m n -> m n", "softmax of the scaled scores"),
        _tensor("context", "C", "M, d_v", "value", "weights values", "m n, n v -> m v", "weights · values"),
        _tensor("W_O", "W_O", "d_v, d", "output", parameter=True),
        _tensor("output", "O", "M, d", "output", "context W_O", "m v, v d -> m d", "context · W_O"),
    ),
)


# Latent attention (DeepSeek-AI, arXiv:2405.04434): the cache holds r_kv + d_rope numbers a token, for all heads
# together, and keys (d_h = d_nope + d_rope wide) and values are made from them. u, k and c are H heads side by side.
def _latent_attention(key: str, *queries: Tensor) -> Topic:
    return Topic(
        key,
        (
            _tensor("input", "X", "N, d", "input"),
            _tensor("W_DKV", "W_DKV", "d, r_kv", "key", parameter=True),
            _tensor("W_KR", "W_KR", "d, d_rope", "key", parameter=True),
            _tensor("W_UK", "W_UK", "r_kv, H*d_nope", "key", parameter=True),
            _tensor("W_UV", "W_UV", "r_kv, H*d_v", "value", parameter=True),
            *queries,
            _tensor("latent", "C_KV", "N, r_kv", "key", "input W_DKV", "n d, d r -> n r", "input · W_DKV"),
            _tensor("rotary_key", "K_R", "N, d_rope", "key", "input W_KR", "n d, d p -> n p", "input · W_KR, turned"),
            _tensor(
                "cache",
                "cache",
                "N, r_kv + d_rope",
                "key",
                "latent rotary_key",
                "n r, n p -> n a",
                "latent and rotary key",
            ),
            _tensor("plain_keys", "K_C", "N, H*d_nope", "key", "latent W_UK", "n r, r u -> n u", "latent · W_UK"),
            _tensor(
                "keys",
                "K",
                "N, H*d_h",
                "key",
                "plain_keys rotary_key",
                "n u, n p -> n k",
                "every head's plain key, and the one rotary key after each",
            ),
            _tensor("values", "V", "N, H*d_v", "value", "latent W_UV", "n r, r c -> n c", "latent · W_UV"),
            ATTENTION_LAYER["scores"],
            ATTENTION_LAYER["weights"],
            _tensor(
                "context",
                "C",
                "N, H*d_v",
                "value",
                "weights values",
                "n m, m c -> n c",
                "weights · values, side by side",
            ),
            ATTENTION_LAYER["W_O"],
            ATTENTION_LAYER["output"],
        ),
    )


LATENT_ATTENTION = _latent_attention(
    "latent-attention",
    _tensor("W_DQ", "W_DQ", "d, r_q", "query", parameter=True),
    _tensor("W_UQ", "W_UQ", "r_q, H*d_h", "query", parameter=True),
    _tensor("latent_queries", "C_Q", "N, r_q", "query", "input W_DQ", "n d, d q -> n q", "input · W_DQ"),
    _tensor("queries", "Q", "N, H*d_h", "query", "latent_queries W_UQ", "n q, q k -> n k", "latent queries · W_UQ"),
)
# The same without a latent for the queries, as in DeepSeek V2 Lite.
DIRECT_LATENT_ATTENTION = _latent_attention(
    "direct-latent-attention",
    _tensor("W_Q", "W_Q", "d, H*d_h", "query", parameter=True),
    _tensor("queries", "Q", "N, H*d_h", "query", "input W_Q", "n d, d k -> n k", "input · W_Q"),
)


def _whole_model(key: str, *feed_forward: Tensor) -> Topic:
    """From tokens to logits; the tables between embedding and logits are those of one layer, and there are L."""
    return Topic(
        key,
        (
            _tensor("tokens", "t", "N, 1", "input"),
            _tensor("embedding", "E", "V, d", "input", parameter=True),
            _tensor(
                "embedded", "X", "N, d", "input", "tokens embedding", "n i, v d -> n d", "the rows of the embedding"
            ),
            _tensor("normed", "X'", "N, d", "input", "embedded", "n d -> n d", "norm of the embedded tokens"),
            _tensor("attended", "O", "N, d", "output", "normed", "n d -> n d", "attention of all heads, as one layer"),
            _tensor("residual", "R", "N, d", "input", "embedded attended", "n d, n d -> n d", "embedded + attended"),
            _tensor("normed_residual", "R'", "N, d", "input", "residual", "n d -> n d", "norm of the residual"),
            *feed_forward,
            _tensor(
                "layer_output",
                "Y",
                "N, d",
                "output",
                "residual fed_forward",
                "n d, n d -> n d",
                "residual + fed forward",
            ),
            _tensor("final", "Y'", "N, d", "output", "layer_output", "n d -> n d", "norm after the last layer"),
            _tensor("output_head", "W_out", "d, V", "output", parameter=True),
            _tensor("logits", "Z", "N, V", "output", "final output_head", "n d, d v -> n v", "final · output head"),
            _tensor("last_logits", "z", "1, V", "output", "logits", "n v -> o v", "the last row of the logits"),
        ),
    )


# A whole model with a gated feed-forward block (Shazeer, arXiv:2002.05202), as in LLaMA.
WHOLE_MODEL = _whole_model(
    "whole-model",
    _tensor("W_gate", "W_gate", "d, d_ff", "hidden", parameter=True),
    _tensor("W_up", "W_up", "d, d_ff", "hidden", parameter=True),
    _tensor("W_down", "W_down", "d_ff, d", "hidden", parameter=True),
    _tensor("gate", "G", "N, d_ff", "hidden", "normed_residual W_gate", "n d, d f -> n f", "normed residual · W_gate"),
    _tensor("up", "U", "N, d_ff", "hidden", "normed_residual W_up", "n d, d f -> n f", "normed residual · W_up"),
    _tensor("hidden", "B", "N, d_ff", "hidden", "gate up", "n f, n f -> n f", "activation of the gate, times up"),
    _tensor("fed_forward", "F", "N, d", "output", "hidden W_down", "n f, f d -> n d", "hidden · W_down"),
)
# The same with two matrices and no gate (arXiv:1706.03762, section 3.3), as in GPT-2.
PLAIN_WHOLE_MODEL = _whole_model(
    "plain-whole-model",
    _tensor("W_up", "W_up", "d, d_ff", "hidden", parameter=True),
    _tensor("W_down", "W_down", "d_ff, d", "hidden", parameter=True),
    _tensor("up", "U", "N, d_ff", "hidden", "normed_residual W_up", "n d, d f -> n f", "normed residual · W_up"),
    _tensor("hidden", "B", "N, d_ff", "hidden", "up", "n f -> n f", "activation of up"),
    _tensor("fed_forward", "F", "N, d", "output", "hidden W_down", "n f, f d -> n d", "hidden · W_down"),
)
# Rotary positions (Su et al., arXiv:2104.09864) turn d_rot of a query's and a key's numbers, two by two: one angle for
# each token and pair. d_rot = 2·pairs.
ROTARY_PAIRS = Topic(
    "rotary-pairs",
    (
        _tensor("queries", "Q", "N, d_h", "query"),
        _tensor("keys", "K", "N, d_h", "key"),
        _tensor("angles", "θ", "N, pairs", "hidden"),
        _tensor("cosines", "cos", "N, pairs", "hidden", "angles", "n p -> n p", "cosine of the angles"),
        _tensor("sines", "sin", "N, pairs", "hidden", "angles", "n p -> n p", "sine of the angles"),
        _tensor("turned_queries", "Q'", "N, d_h", "query", "queries angles", "n h, n p -> n h", "queries, turned"),
        _tensor("turned_keys", "K'", "N, d_h", "key", "keys angles", "n h, n p -> n h", "keys, turned"),
    ),
)

TOPICS: Mapping[str, Topic] = {
    topic.key: topic
    for topic in (
        SINGLE_HEAD,
        ATTENTION_LAYER,
        BIDIRECTIONAL_HEAD,
        DECODE_STEP,
        WINDOWED_DECODE_STEP,
        CROSS_ATTENTION,
        LATENT_ATTENTION,
        DIRECT_LATENT_ATTENTION,
        WHOLE_MODEL,
        PLAIN_WHOLE_MODEL,
        ROTARY_PAIRS,
    )
}
