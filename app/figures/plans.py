"""Which figures a sheet has: for each table, the products, sums and rows of matrices that are drawn, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.shapes.table import TensorTable
from app.shapes.tables import ATTENTION_LAYER, PLAIN_WHOLE_MODEL, WHOLE_MODEL

FigureLayout = Literal["product", "head-scores", "head-context", "stack", "row", "flow", "decks"]


@dataclass(frozen=True)
class FigurePlan:
    """Which matrices stand in one figure, and how.

    product: `left` beside its results, each result below its right operand; a result made from one matrix, such as
    A = softmax(S), has nothing above it. head-scores, head-context: the product of one head, taken out of matrices that
    hold all heads. stack: matrices below each other, which are added or multiplied entry by entry. row: matrices beside
    each other. flow: `left` and what is made of it in one lane, and `second_left`, if there is one, with what is made
    of it in a lane of other tokens below, see flow.py. decks: `left` and its results side by side, each a deck of
    cards, see decks/deck_figure.py. Between the matrices of a stack or a row are the signs of the operation that makes
    the last one.
    """

    key: str
    left: str
    results: tuple[str, ...]
    layout: FigureLayout = "product"
    second_left: str = ""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The left operand and the results."""
        return (self.left, *self.results)

    @property
    def draws_products(self) -> bool:
        """Whether its results stand beside what they are multiplied from, and not just beside each other."""
        return self.layout not in ("stack", "row")


_PRODUCT_OF_SCORES = FigurePlan("product", "queries", ("scores",))
_HEAD = (FigurePlan("flow", "input", ("values", "keys", "queries", "scores", "weights", "context", "output"), "flow"),)
_ONE_OF_THE_HEADS = (
    FigurePlan("head-scores", "queries", ("scores", "weights"), "head-scores"),
    FigurePlan("head-context", "weights", ("context",), "head-context"),
    FigurePlan("layer-output", "context", ("output",)),
)
_LATENT = (
    FigurePlan("latent", "input", ("latent", "rotary_key")),
    FigurePlan("latent-cache", "latent", ("rotary_key", "cache"), "row"),
    FigurePlan("latent-keys-values", "latent", ("plain_keys", "values")),
    *_ONE_OF_THE_HEADS,
)
_AFTER_FEED_FORWARD = (
    FigurePlan("down", "hidden", ("fed_forward",)),
    FigurePlan("second-residual", "residual", ("fed_forward", "layer_output"), "stack"),
    FigurePlan("logits", "final", ("logits",)),
    FigurePlan("last-logits", "logits", ("last_logits",), "stack"),
)
_FIRST_RESIDUAL = FigurePlan("first-residual", "embedded", ("attended", "residual"), "stack")
_QKV_MATRICES = FigurePlan("matrices-in", "input", ("queries", "keys", "values"))
_OUTPUT_MATRIX = FigurePlan("matrix-out", "context", ("output",))
_DOWN_MATRIX = FigurePlan("matrix-down", "hidden", ("fed_forward",))
_ROUTER = FigurePlan("router", "input", ("router_logits",))

_DECKS = (
    FigurePlan("deck-projection", "input", ("queries",), "decks"),
    FigurePlan("deck-queries", "queries", ("split_queries", "queries_by_head"), "decks"),
    FigurePlan("deck-keys", "keys", ("split_keys", "keys_by_head"), "decks"),
    FigurePlan("deck-values", "values", ("split_values", "values_by_head"), "decks"),
    FigurePlan("deck-scores", "queries_by_head", ("scores", "weights"), "decks"),
    FigurePlan("deck-context", "weights", ("context",), "decks"),
    FigurePlan("deck-merged", "context", ("context_by_token", "joined_context"), "decks"),
    FigurePlan("deck-output", "joined_context", ("output",), "decks"),
)
_REPEATED = {"deck-keys": "repeated_keys", "deck-values": "repeated_values"}
_GROUPED_DECKS = tuple(
    replace(plan, results=(*plan.results, _REPEATED[plan.key])) if plan.key in _REPEATED else plan for plan in _DECKS
)

# By the key of the table that the topic means for a model. A table that is not here has nothing to draw.
FIGURE_PLANS: Mapping[str, tuple[FigurePlan, ...]] = {
    "single-head": _HEAD,
    "bidirectional-head": _HEAD,
    "masked-softmax": (_PRODUCT_OF_SCORES, FigurePlan("masking", "scores", ("mask", "weights"), "row")),
    "unmasked-softmax": (_PRODUCT_OF_SCORES, FigurePlan("softmax", "scores", ("weights",), "row")),
    "attention-layer": (
        FigurePlan("layer-queries", "input", ("queries",)),
        FigurePlan("layer-keys-values", "input", ("keys", "values")),
        *_ONE_OF_THE_HEADS,
    ),
    "direct-latent-attention": (FigurePlan("layer-queries", "input", ("queries",)), *_LATENT),
    "latent-attention": (
        FigurePlan("latent-queries", "input", ("latent_queries",)),
        FigurePlan("layer-queries", "latent_queries", ("queries",)),
        *_LATENT,
    ),
    "decode-step": (
        FigurePlan(
            "new-token",
            "input",
            ("new_value", "new_key", "queries", "scores", "weights", "context", "output"),
            "flow",
        ),
    ),
    "windowed-decode-step": (
        FigurePlan("new-token", "input", ("queries", "scores", "weights", "context", "output"), "flow"),
    ),
    "cross-attention": (
        FigurePlan(
            "two-texts",
            "input",
            ("queries", "scores", "weights", "context", "output", "values", "keys"),
            "flow",
            second_left="encoded",
        ),
    ),
    "head-parameters": (
        FigurePlan("query-key", "W_Q", ("W_QK",)),
        FigurePlan("value-output", "W_V", ("W_VO",)),
    ),
    "layer-parameters": (
        _QKV_MATRICES,
        _OUTPUT_MATRIX,
        FigurePlan("matrices-up", "normed_residual", ("gate", "up")),
        _DOWN_MATRIX,
    ),
    "plain-layer-parameters": (
        _QKV_MATRICES,
        _OUTPUT_MATRIX,
        FigurePlan("matrices-up", "normed_residual", ("up",)),
        _DOWN_MATRIX,
    ),
    "whole-model": (
        _FIRST_RESIDUAL,
        FigurePlan("feed-forward", "normed_residual", ("gate", "up")),
        FigurePlan("gated", "gate", ("up", "hidden"), "stack"),
        *_AFTER_FEED_FORWARD,
    ),
    "plain-whole-model": (
        _FIRST_RESIDUAL,
        FigurePlan("feed-forward", "normed_residual", ("up",)),
        *_AFTER_FEED_FORWARD,
    ),
    "experts": (
        _ROUTER,
        FigurePlan("expert-up", "expert_input", ("expert_hidden",)),
        FigurePlan("expert-down", "expert_hidden", ("expert_output",)),
    ),
    "experts-uneven": (_ROUTER,),
    "heads-as-dimension": _DECKS,
    "grouped-heads": _GROUPED_DECKS,
    "batched-heads": _DECKS,
    "batched-grouped-heads": _GROUPED_DECKS,
    "rotary-pairs": (
        FigurePlan("rotated-queries", "queries", ("angles", "rotated_queries"), "row"),
        FigurePlan("rotated-keys", "keys", ("angles", "rotated_keys"), "row"),
    ),
}


def _with_activations(key: str, model: TensorTable) -> TensorTable:
    """A layer's matrices with the activations that they are multiplied by, in small letters: those of one token."""
    feed_forward = ("normed_residual", "W_gate", "W_up", "W_down", "gate", "up", "hidden", "fed_forward")
    tensors = (*ATTENTION_LAYER.tensors, *(t for t in model.tensors if t.key in feed_forward))
    return model.with_only((t if t.parameter else replace(t, letter=t.letter.lower()) for t in tensors), key)


# A sheet that asks for matrices of a layer is drawn as x·W, one token x at a time.
MULTIPLIED_MATRICES: Mapping[str, TensorTable] = {
    "layer-parameters": _with_activations("layer-parameters", WHOLE_MODEL),
    "plain-layer-parameters": _with_activations("plain-layer-parameters", PLAIN_WHOLE_MODEL),
}
