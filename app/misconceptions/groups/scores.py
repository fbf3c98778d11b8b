"""Scores and weights: their sides, their scale, and what a softmax makes of them."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import (
    HEADS_AND_LAYER,
    HEADS_AND_SOFTMAX,
    KEY_SIDE,
    QUERY_SIDE,
    each,
    in_dimensions,
    on,
)
from app.shapes.table import MATRIX_FIELDS, BlankField


def _on_products(size: str, *ways: tuple[BlankField, ...]) -> dict[str, tuple[Prediction, ...]]:
    alone = [each(size, *(f"{row}.{field}" for row in ("scores", "weights") for field in way)) for way in ways]
    masked = [each(size, *(f"mask.{field}" for field in way)) for way in ways]
    with_mask = [{**sides, **mask} for sides, mask in zip(alone, masked, strict=True)]
    return on(HEADS_AND_LAYER, *alone) | on("scale-mask-softmax", *alone, *with_mask)


def _in_first_steps(size: str, fields: tuple[BlankField, ...]) -> dict[str, tuple[Prediction, ...]]:
    rows = (("scores", "weights", "all_scores"), ("scores",), ("weights",), ("all_scores",))
    ways = [each(size, *(f"{row}.{field}" for row in some for field in fields)) for some in rows]
    one_score = each(size, *(f"token_score.{field}" for field in fields))
    return on("first-steps", *ways, one_score)


_CROSS_KEYS = ("cross_keys.dim2", "cross_values.dim2", "cross_scores.dim3")
_SOFTMAX_DIMS = ("softmax_dim.count", "softmax_dim_batched.count")

GROUP = (
    Misconception(
        "transposed-product",
        5,
        _on_products("d_h", MATRIX_FIELDS)
        | _in_first_steps("d_h", MATRIX_FIELDS)
        | in_dimensions(each("right, d_h, d_h", "scores", "weights")),
    ),
    Misconception(
        "model-wide-scores",
        6,
        _on_products("d", MATRIX_FIELDS)
        | _in_first_steps("d", MATRIX_FIELDS)
        | in_dimensions(each("right, d, d", "scores", "weights")),
    ),
    Misconception(
        "elementwise-product",
        7,
        _on_products("d_h", ("columns",))
        | _in_first_steps("d_h", ("columns",))
        | in_dimensions(each("right, right, d_h", "scores", "weights")),
    ),
    Misconception("all-heads-stacked", 22, _on_products("H*right", ("rows",), ("columns",))),
    Misconception(
        "softmax-collapses",
        23,
        on(HEADS_AND_SOFTMAX, {"weights.columns": "1"}) | in_dimensions({"weights": "right, right, 1"}),
    ),
    Misconception("scale-by-model-width", 24, on("scale-mask-softmax first-steps", {"under_root.count": "d"})),
    # In a decode step one of the two sides is 1, in cross-attention the two texts differ: KQᵀ shows where N×N hides it.
    Misconception(
        "scores-transposed", 46, on("decode-step cross-attention", Prediction(transposed=("scores", "weights")))
    ),
    # The two swapped, or one of them for both, as in self-attention.
    Misconception(
        "texts-mixed-up",
        47,
        on(
            "cross-attention",
            each("N", *QUERY_SIDE) | each("M", *KEY_SIDE),
            each("N", *QUERY_SIDE[:-1]) | each("M", *KEY_SIDE),
            Prediction(substitutions={"N": "M", "M": "N"}),
            each("M", *KEY_SIDE),
            each("N", *QUERY_SIDE),
        )
        | on("cache-tensor", each("N", *_CROSS_KEYS), each("N + m", *_CROSS_KEYS)),
    ),
    Misconception("softmax-over-all", 65, on("scale-mask-softmax", {"weights_sum.count": "1"})),
    # The columns of the weights sum to one instead of the rows; the shape is the same.
    Misconception("softmax-over-queries", 142, on("same-shapes", each("right - 1", *_SOFTMAX_DIMS))),
)
