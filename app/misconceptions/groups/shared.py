"""Key/value heads that query heads share."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import (
    HEADS,
    QKV_COLUMNS,
    REPEATED,
    SPLIT_HEADS,
    counted,
    each,
    in_dimensions,
    on,
    with_or_without_context,
)
from app.models.architecture import Architecture
from app.topics.stored_weights import fused_order


def _has_grouped_queries(architecture: Architecture) -> bool:
    return architecture.G != architecture.H


def _is_of_grouped_queries(architecture: Architecture) -> bool:
    return architecture.kv_heads != architecture.H


_KV_COLUMNS = QKV_COLUMNS[1:]
_FEWER_SCORES = {**each("G, right, right", *REPEATED, "scores", "weights", "context")}
_HEADS_OF_NEW = [f"{row}.dim1" for row in (*REPEATED, "scores", "weights", "context")]  # with a cache

GROUP = (
    Misconception(
        "one-kv-per-query-head",
        15,
        on(
            f"attention-layer layer-parameters head-parameters parameter-count costs {SPLIT_HEADS} rotary-pairs growth"
            " stored-weights model-costs cache-tensor",
            Prediction(substitutions={"G": "H"}),
        )
        | on("index-notation", {**each("H*d_h", "keys.dim2"), "keys_by_head.dim1": "H", "grouped_pattern.choice": "5"}),
        _has_grouped_queries,
    ),
    Misconception(
        "wider-kv-heads",
        16,
        on(HEADS, *with_or_without_context(each("d/kv_heads", *_KV_COLUMNS)))
        | on("attention-layer", each("d/kv_heads", *_KV_COLUMNS))
        | on(
            "head-parameters",
            each("d/kv_heads", "W_K.columns", "W_V.columns") | each("d*d/kv_heads", "W_K.count", "W_V.count"),
        ),
        _is_of_grouped_queries,
    ),
    Misconception(
        "all-kv-heads-in-one",
        17,
        on(HEADS, *with_or_without_context({"keys.columns": "kv_heads*d_h", "values.columns": "kv_heads*d_v"})),
        _is_of_grouped_queries,
    ),
    Misconception(
        "shrunken-output-projection",
        18,
        on("attention-layer", {"context.columns": "G*d_v"})
        | in_dimensions({"joined_context": "right, G*d_v"})
        | on("layer-parameters", {"W_O.rows": "G*d_v", "W_O.count": "G*d_v*d"})
        | on("head-parameters", {"layer_W_O.rows": "G*d_v", "layer_W_O.count": "G*d_v*d"})
        | on("parameter-count", counted("attention", "(G - H)*d*d_v"))
        | on("costs", {"output_flops.count": "2*N*G*d_v*d"}),
        _has_grouped_queries,
    ),
    Misconception(
        "repeat-forgotten",
        70,
        in_dimensions(
            _FEWER_SCORES,
            {**_FEWER_SCORES, "context_by_token": "right, G, right", "joined_context": "right, G*d_v"},
            each("G, right, right", *REPEATED),
            each("G, right, right", "scores", "weights"),
            each("G, right*H/G, right", *REPEATED),  # along the tokens instead of the heads
        )
        | on(
            "cache-tensor",
            each("G", *_HEADS_OF_NEW),
            each("G", "scores.dim1", "weights.dim1"),
            each("G", *(f"{row}.dim1" for row in REPEATED)) | each("right*H/G", *(f"{row}.dim2" for row in REPEATED)),
        ),
        _has_grouped_queries,
    ),
    # Query head j is taken to read key/value head j mod G, as with repeat instead of repeat_interleave; seen in
    # onnx/onnx#7274.
    Misconception(
        "kv-heads-in-turn",
        137,
        on(
            "stored-weights",
            {
                "kv_head.count": "kv_head_in_turn",
                "k_start.count": "right + kv_head_in_turn*d_h - j*G/H*d_h",
                "v_start.count": "right + kv_head_in_turn*d_v - j*G/H*d_v",
            },
        ),
        lambda architecture: 1 < architecture.G < architecture.H and fused_order(architecture) != "by-head",
    ),
)
