"""The way back to the embedding dimension, and on to logits."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import HEADS, each, in_dimensions, on
from app.models.architecture import Architecture


def reads_no_image(architecture: Architecture) -> bool:
    """Whether the input isn't an image: a model of images makes one prediction per image."""
    return architecture.input != "image"


GROUP = (
    Misconception(
        "no-output-projection",
        12,
        on(HEADS, {"output.columns": "d_v"})
        | on("attention-layer", {"output.columns": "H*d_v"})
        | in_dimensions({"output": "right, H*d_v"}),
    ),
    Misconception(
        "whole-output-projection",
        13,
        on("head-parameters", {"W_O.rows": "H*d_v", "W_O.count": "H*d_v*d"}),
        lambda architecture: architecture.H > 1,
    ),
    # The last vectors are taken for the prediction itself.
    Misconception(
        "logits-as-wide-as-model",
        40,
        on("whole-model", each("d", "logits.columns", "last_logits.columns"))
        | on("text-to-loss", each("d", "logits.dim2", "shifted_logits.dim2", "flat_logits.columns")),
        reads_no_image,
    ),
    # Prediction and target of a position are taken to be the same token: nothing is dropped.
    Misconception(
        "targets-not-shifted",
        161,
        on(
            "text-to-loss",
            each("N", "shifted_logits.dim1", "targets.columns") | each("B*N", "flat_logits.rows", "flat_targets.dim0"),
            each("N", "targets.columns") | each("B*N", "flat_targets.dim0"),
        ),
        lambda architecture: not architecture.encoder_decoder and reads_no_image(architecture),
    ),
    # As in generation, where only the last position is needed.
    Misconception(
        "loss-of-last-position",
        163,
        on(
            "text-to-loss",
            each("1", "logits.dim1", "shifted_logits.dim1", "targets.columns")
            | each("B", "flat_logits.rows", "flat_targets.dim0"),
            each("1", "logits.dim1"),
        ),
        reads_no_image,
    ),
    # Each text is flattened separately, .view(B, -1).
    Misconception(
        "vocabulary-flattened",
        164,
        on(
            "text-to-loss",
            {"flat_logits.rows": "B", "flat_logits.columns": "N*V - V"},
            {"flat_logits.rows": "B", "flat_logits.columns": "N*V"},
        ),
        reads_no_image,
    ),
    Misconception(
        "targets-one-hot",
        165,
        on("text-to-loss", {"targets.columns": "V", "flat_targets.dim0": "V*right"}, {"flat_targets.dim0": "V*right"}),
        reads_no_image,
    ),
)
