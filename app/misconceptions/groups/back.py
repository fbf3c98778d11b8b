"""The way back to the embedding dimension, and on to logits."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import HEADS, each, in_dimensions, on

GROUP = (
    Misconception(
        "no-output-projection",
        12,
        {
            **on(HEADS, {"output.columns": "d_v"}),
            **on("attention-layer", {"output.columns": "H*d_v"}),
            **in_dimensions({"output": "right, H*d_v"}),
        },
    ),
    Misconception(
        "whole-output-projection",
        13,
        on("head-parameters", {"W_O.rows": "H*d_v", "W_O.count": "H*d_v*d"}),
        lambda architecture: architecture.H > 1,
    ),
    # The output of a head taken for the model's prediction, of the next token or of one for each token.
    Misconception(
        "head-output-as-logits",
        104,
        on(HEADS, {"output.rows": "1", "output.columns": "V"}, {"output.columns": "V"}),
        lambda architecture: architecture.causal,
    ),
    # Torch.cat in place of +.
    Misconception(
        "residual-concatenated",
        105,
        on("whole-model", each("2*d", "residual.columns", "layer_output.columns"), {"residual.columns": "2*d"}),
    ),
    # The last vectors are taken for the prediction itself.
    Misconception("logits-as-wide-as-model", 40, on("whole-model", each("d", "logits.columns", "last_logits.columns"))),
    # W_O is written like the other three, from d to d_v.
    Misconception(
        "output-like-the-others",
        87,
        on("head-parameters", Prediction(transposed=("W_O",)), Prediction(transposed=("W_O", "layer_W_O"))),
    ),
)
