"""A whole model, from tokens to logits."""

from __future__ import annotations

from dataclasses import replace

from app.models.architecture import Architecture
from app.shapes.operation import Apply, Gate, LastRow, Lookup, Matmul, Residual
from app.shapes.table import Tensor, TensorTable, learned, tensor
from app.topics.requirements import (
    KNOWN_COMPUTATION,
    LAYERS_OF_ONE_SHAPE,
    NEXT_TOKEN,
    NO_EXPERTS,
    NORMS_BEFORE_BLOCKS,
    PLAIN_SUMS,
)
from app.topics.rotary_pairs import ROTARY_PAIRS, rotates_pairs
from app.topics.topic import FigurePlan, Topic

# The matrices of a feed-forward block; only a gated one has W_gate.
W_GATE = learned("W_gate", "d, d_ff", "hidden")
UP_AND_DOWN = (learned("W_up", "d, d_ff", "hidden"), learned("W_down", "d_ff, d", "hidden"))


def _whole_model(key: str, *feed_forward: Tensor) -> TensorTable:
    return TensorTable(
        key,
        (
            tensor("tokens", "t", "N, 1", "input"),
            learned("embedding", "V, d", "input", letter="E"),
            tensor("embedded", "X", "N, d", "input", Lookup("tokens embedding", "n i, v d -> n d")),
            tensor("normed", "X'", "N, d", "input", Apply("embedded", "n d -> n d", "{norm}")),
            tensor("attended", "O", "N, d", "output", Apply("normed", "n d -> n d", "{attention}")),
            tensor("residual", "R", "N, d", "input", Residual("embedded attended", "n d, n d -> n d")),
            tensor("normed_residual", "R'", "N, d", "input", Apply("residual", "n d -> n d", "{norm}")),
            *feed_forward,
            tensor("layer_output", "Y", "N, d", "output", Residual("residual fed_forward", "n d, n d -> n d")),
            tensor("final", "Y'", "N, d", "output", Apply("layer_output", "n d -> n d", "{norm}")),
            learned("output_head", "d, V", "output", letter="W_out"),
            tensor("logits", "Z", "N, V", "output", Matmul("final output_head", "n d, d v -> n v")),
            tensor("last_logits", "z", "1, V", "output", LastRow("logits", "n v -> o v")),
        ),
    )


_UP = tensor("up", "U", "N, d_ff", "hidden", Matmul("normed_residual W_up", "n d, d f -> n f"))
_DOWN = tensor("fed_forward", "F", "N, d", "output", Matmul("hidden W_down", "n f, f d -> n d"))

# A whole model with a gated feed-forward block (Shazeer, arXiv:2002.05202), as in LLaMA.
WHOLE_MODEL = _whole_model(
    "whole-model",
    W_GATE,
    *UP_AND_DOWN,
    tensor("gate", "G", "N, d_ff", "hidden", Matmul("normed_residual W_gate", "n d, d f -> n f")),
    _UP,
    tensor("hidden", "B", "N, d_ff", "hidden", Gate("gate up", "n f, n f -> n f")),
    _DOWN,
)

# The same with two matrices and no gate (arXiv:1706.03762, section 3.3), as in GPT-2.
PLAIN_WHOLE_MODEL = _whole_model(
    "plain-whole-model",
    *UP_AND_DOWN,
    _UP,
    tensor("hidden", "B", "N, d_ff", "hidden", Apply("up", "n f -> n f", "{activation}")),
    _DOWN,
)

_AFTER_FEED_FORWARD = (
    FigurePlan("down", "hidden", ("fed_forward",)),
    FigurePlan("second-residual", "residual", ("layer_output",)),
    FigurePlan("logits", "final", ("logits",)),
    FigurePlan("last-logits", "logits", ("last_logits",)),
)

_FIRST_RESIDUAL = FigurePlan("first-residual", "embedded", ("residual",))


def whole_model_table(architecture: Architecture) -> TensorTable:
    """The table from tokens to logits, with a gate in the feed-forward block if the model has one."""
    return WHOLE_MODEL if architecture.gated else PLAIN_WHOLE_MODEL


def _whole_model_with_angles(architecture: Architecture, tokens: int) -> TensorTable:
    table = whole_model_table(architecture)
    if not rotates_pairs(architecture, tokens):
        return table
    return replace(table, tensors=(*table.tensors, ROTARY_PAIRS["angles"]))


TOPIC = Topic(
    "whole-model",
    "model",
    _whole_model_with_angles,
    (KNOWN_COMPUTATION, NEXT_TOKEN, NO_EXPERTS, LAYERS_OF_ONE_SHAPE, NORMS_BEFORE_BLOCKS, PLAIN_SUMS),
    tables=(WHOLE_MODEL, PLAIN_WHOLE_MODEL, ROTARY_PAIRS),
    figures={
        WHOLE_MODEL.key: (
            _FIRST_RESIDUAL,
            FigurePlan("feed-forward", "normed_residual", ("gate", "up")),
            FigurePlan("gated", "gate", ("hidden",)),
            *_AFTER_FEED_FORWARD,
        ),
        PLAIN_WHOLE_MODEL.key: (
            _FIRST_RESIDUAL,
            FigurePlan("feed-forward", "normed_residual", ("up",)),
            *_AFTER_FEED_FORWARD,
        ),
    },
)
