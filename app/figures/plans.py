"""Which figures a sheet has: for each table, the products that are drawn, and which matrices stand in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FigurePlan:
    """Which matrices stand in one figure: a left operand, and results to its right, each below its right operand.

    Example: Q, S and A stand in the figure "scores"; Kᵀ stands above S, and nothing above A = softmax(S).
    """

    key: str
    left: str
    results: tuple[str, ...]


_SCORES = FigurePlan("scores", "queries", ("scores", "weights"))
_OUTPUT = FigurePlan("output", "weights", ("context", "output"))
_HEAD = (FigurePlan("projections", "input", ("queries", "keys", "values")), _SCORES, _OUTPUT)
_QUERIES = FigurePlan("projections", "input", ("queries",))
_LOGITS = (FigurePlan("down", "hidden", ("fed_forward",)), FigurePlan("logits", "final", ("logits",)))
# By the key of a table. A table without products of matrices, such as a parameter count, has no figures.
FIGURE_PLANS: Mapping[str, tuple[FigurePlan, ...]] = {
    "single-head": _HEAD,
    "bidirectional-head": _HEAD,
    "attention-layer": _HEAD,
    "decode-step": (FigurePlan("projections", "input", ("queries", "new_key", "new_value")), _SCORES, _OUTPUT),
    "windowed-decode-step": (_QUERIES, _SCORES, _OUTPUT),
    "cross-attention": (_QUERIES, FigurePlan("encoder", "encoded", ("keys", "values")), _SCORES, _OUTPUT),
    "whole-model": (FigurePlan("feed-forward", "normed_residual", ("gate", "up")), *_LOGITS),
    "plain-whole-model": (FigurePlan("feed-forward", "normed_residual", ("up",)), *_LOGITS),
}
# Tables whose weights are drawn with the causal mask, if the model has one.
MASKED_TABLES = frozenset({"single-head", "attention-layer"})
