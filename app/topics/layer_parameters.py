"""The matrices of one layer."""

from __future__ import annotations

from dataclasses import replace

from app.shapes.table import TensorTable
from app.topics.attention_layer import ATTENTION_LAYER, LAYER_ATTENTION
from app.topics.requirements import PLAIN_LAYERS
from app.topics.topic import FigurePlan, Topic
from app.topics.whole_model import PLAIN_WHOLE_MODEL, UP_AND_DOWN, W_GATE, WHOLE_MODEL

# The matrices of one layer, each in the x·W orientation: attention, then the feed-forward block with a gate (Shazeer,
# arXiv:2002.05202) or without one (arXiv:1706.03762, section 3.3). Norms and biases aren't matrices.
LAYER_PARAMETERS = TensorTable("layer-parameters", (*LAYER_ATTENTION, W_GATE, *UP_AND_DOWN))
PLAIN_LAYER_PARAMETERS = TensorTable("plain-layer-parameters", (*LAYER_ATTENTION, *UP_AND_DOWN))


def _figures(*up: str) -> tuple[FigurePlan, ...]:
    return (
        FigurePlan("matrices-in", "input", ("queries", "keys", "values")),
        FigurePlan("matrix-out", "context", ("output",)),
        FigurePlan("matrices-up", "normed_residual", up),
        FigurePlan("matrix-down", "hidden", ("fed_forward",)),
    )


def _with_activations(key: str, model: TensorTable) -> TensorTable:
    feed_forward = ("normed_residual", "W_gate", "W_up", "W_down", "gate", "up", "hidden", "fed_forward")
    tensors = (*ATTENTION_LAYER.tensors, *(t for t in model.tensors if t.key in feed_forward))
    return model.with_only((t if t.parameter else replace(t, letter=t.letter.lower()) for t in tensors), key)


TOPIC = Topic(
    "layer-parameters",
    "parameters",
    lambda architecture, _tokens: LAYER_PARAMETERS if architecture.gated else PLAIN_LAYER_PARAMETERS,
    PLAIN_LAYERS,
    tables=(LAYER_PARAMETERS, PLAIN_LAYER_PARAMETERS),
    figures={LAYER_PARAMETERS.key: _figures("gate", "up"), PLAIN_LAYER_PARAMETERS.key: _figures("up")},
    # A sheet about a layer's matrices is drawn as x·W, one token x at a time.
    drawn_with={
        LAYER_PARAMETERS.key: _with_activations(LAYER_PARAMETERS.key, WHOLE_MODEL),
        PLAIN_LAYER_PARAMETERS.key: _with_activations(PLAIN_LAYER_PARAMETERS.key, PLAIN_WHOLE_MODEL),
    },
)
