"""The feed-forward block and its inner dimension."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import counted, each, on
from app.models.architecture import Architecture


def _is_rounded_up(architecture: Architecture) -> bool:
    rule = architecture.width_rule
    return rule is not None and rule.before_rounding(architecture.d) < architecture.d_ff


GROUP = (
    # The block of 2017 has two matrices, and textbooks show that one.
    Misconception(
        "gate-forgotten",
        36,
        on("parameter-count", counted("feed_forward", "-d*d_ff"))
        | on("feed-forward-width", {"gated_parameters.count": "2*d*d_ff"})
        | on("costs", {"feed_forward_flops.count": "4*N*d*d_ff"}),
        lambda architecture: architecture.gated and not architecture.has_experts,
    ),
    # Four times the width, as in the Transformer of 2017, BERT and GPT-2, where this config states another.
    Misconception(
        "feed-forward-four-d",
        37,
        on("layer-parameters whole-model parameter-count costs", Prediction(substitutions={"d_ff": "4*d"}))
        | on("feed-forward-width", {"width.count": "4*d", "gated_parameters.count": "12*d*d"}),
        lambda architecture: architecture.d_ff != 4 * architecture.d and not architecture.has_experts,
    ),
    # Gate and up are stored in one matrix by several frameworks (gate_up_proj), whose result is split and multiplied.
    Misconception(
        "gate-and-up-concatenated",
        38,
        on("whole-model", {"hidden.columns": "2*d_ff"}),
        lambda architecture: architecture.gated,
    ),
    # "A multiple of 256" is taken to be the one below.
    Misconception(
        "rounded-down-to-multiple",
        95,
        on("feed-forward-width", {"multiples.count": "floor(g/m)", "width.count": "right - m"}),
        _is_rounded_up,
    ),
    Misconception("not-rounded-to-multiple", 96, on("feed-forward-width", {"width.count": "g"}), _is_rounded_up),
    # Two thirds of d, where 8/3 of d are meant.
    Misconception(
        "two-thirds-of-d", 97, on("feed-forward-width", each("floor(2*d/3)", "two_thirds.count", "gated_width.count"))
    ),
    # Gate and up are taken for the two halves of what was one matrix.
    Misconception(
        "gate-is-half-of-up", 98, on("feed-forward-width", each("2*d", "two_thirds.count", "gated_width.count"))
    ),
    # Both blocks are given the inner dimension of this model.
    Misconception(
        "one-width-for-both-blocks",
        99,
        on("feed-forward-width", {"ungated_parameters.count": "2*d*d_ff"}, {"gated_width.count": "4*d"}),
    ),
    Misconception(
        "one-matrix-for-block",
        100,
        on("feed-forward-width", {"block_parameters.count": "4*d*d"}),
        lambda architecture: not architecture.gated,
    ),
)
