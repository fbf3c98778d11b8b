"""Mixtures of experts."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import each, on
from app.models.architecture import Architecture

_EXPERT_ROWS = [f"{row}.rows" for row in ("expert_input", "expert_hidden", "expert_output")]
_CHOOSING_SHAPES = ("chosen.columns", *_EXPERT_ROWS)

# As the name says: 8 times 7 billion.
_NOMINAL = (
    {"total.count": "E*billions_of_one_expert", "used.count": "k*billions_of_one_expert"},
    {"total.count": "E*billions_of_one_expert"},
)


def _has_experts(architecture: Architecture) -> bool:
    return architecture.all_sizes.get("k", 0) > 0


GROUP = (
    # The experts are taken for an ensemble, whose members all answer; seen in maxtext#678 and Mono-InternVL#2.
    Misconception(
        "all-experts-active",
        74,
        on(
            "experts",
            Prediction(substitutions={"k": "E"}),
            Prediction(each("right", *_CHOOSING_SHAPES), {"k": "E"}),
            each("N", *_EXPERT_ROWS),
        )
        | on("parameter-count", {"used.count": "total"})
        | on("model-costs", Prediction(substitutions={"active": "params", "k": "E"})),
        _has_experts,
    ),
    # "8x7B" is read as eight models of 7 billion parameters, 56 billion in total; seen in vllm#1991.
    Misconception(
        "whole-model-per-expert",
        75,
        on(
            "experts",
            {"total.count": "right + (E - 1)*rest", "used.count": "right + (k - 1)*rest"},
            {"total.count": "right + (E - 1)*rest"},
            *_NOMINAL,
        )
        | on(
            "parameter-count",
            {"total.count": "E*model_of_one_expert", "used.count": "k*model_of_one_expert"},
            {"total.count": "E*model_of_one_expert"},
            *_NOMINAL,
        ),
        _has_experts,
    ),
    # The Switch Transformer (arXiv:2101.03961) sends each token to one expert; most later models to several.
    Misconception(
        "one-expert-per-token",
        76,
        on(
            "experts",
            Prediction(each("ceil(N/E)", *_EXPERT_ROWS), {"k": "1"}),
            Prediction(each("right", *_CHOOSING_SHAPES), {"k": "1"}),
            each("ceil(N/E)", *_EXPERT_ROWS),
        )
        | on("parameter-count", Prediction(substitutions={"k": "1"})),
        lambda architecture: architecture.all_sizes.get("k", 1) > 1,
    ),
    # "This question goes to the expert for history": one choice for a whole text.
    Misconception(
        "one-choice-for-all-tokens",
        78,
        on(
            "experts",
            each("1", "router_logits.rows", "chosen.rows") | each("N", *_EXPERT_ROWS),
            each("1", "router_logits.rows", "chosen.rows"),
        ),
    ),
)
