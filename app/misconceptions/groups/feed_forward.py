"""The feed-forward block and its inner dimension."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import counted, each, on

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
    # Four times the width, as in the Transformer of 2017, BERT and GPT-2, although this config states another.
    Misconception(
        "feed-forward-four-d",
        37,
        on("layer-parameters whole-model parameter-count costs", Prediction(substitutions={"d_ff": "4*d"}))
        | on("feed-forward-width", {"width.count": "4*d", "gated_parameters.count": "12*d*d"}),
        lambda architecture: architecture.d_ff != 4 * architecture.d and not architecture.has_experts,
    ),
    # Two thirds of d, instead of 8/3 of d: LLaMA's code takes two thirds of a hidden_dim that is already 4 · d.
    Misconception(
        "two-thirds-of-d", 97, on("feed-forward-width", each("floor(2*d/3)", "two_thirds.count", "gated_width.count"))
    ),
    # Both blocks are given this model's inner dimension.
    Misconception(
        "one-width-for-both-blocks",
        99,
        on("feed-forward-width", {"ungated_parameters.count": "2*d*d_ff"}, {"gated_width.count": "4*d"}),
    ),
)
