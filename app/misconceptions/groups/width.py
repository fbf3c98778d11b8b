"""How wide matrices of a head and a layer are."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import (
    ANGLE_COLUMNS,
    FIRST_QUERIES,
    HEADS,
    HEADS_AND_LAYER,
    KV_BY_HEAD,
    QKV_COLUMNS,
    REPEATED,
    SPLIT_HEADS,
    SPLIT_KV,
    each,
    in_dimensions,
    in_first_steps,
    on,
    with_or_without_context,
)
from app.models.architecture import Architecture


def _is_no_even_share(architecture: Architecture) -> bool:
    return architecture.H * architecture.d_h != architecture.d and not architecture.has_latent_attention


def _has_layer_unlike_model(architecture: Architecture) -> bool:
    return architecture.H * architecture.d_h != architecture.d or architecture.G != architecture.H


_AS_WIDE_AS_MODEL = {"d_h": "d", "d_v": "d"}
_ONE_HEAD = {"H": "1", "G": "1"}
_EVEN_SHARES = {"d_h": "d/H", "d_v": "d/H"}
_SQUARE_PARTS = each("d", "W_Q.columns", "W_K.columns", "W_V.columns", "W_O.rows") | each(
    "d*d", "W_Q.count", "W_K.count", "W_V.count", "W_O.count"
)
_LAYER_IN_HEAD = {"queries.columns": "H*d_h", "keys.columns": "G*d_h", "values.columns": "G*d_v"}
_LAYER_IN_QKV = {
    "W_Q.columns": "H*d_h",
    "W_K.columns": "G*d_h",
    "W_V.columns": "G*d_v",
    "W_Q.count": "d*H*d_h",
    "W_K.count": "d*G*d_h",
    "W_V.count": "d*G*d_v",
}
_LAYER_IN_W_O = {"W_O.rows": "H*d_v", "W_O.count": "H*d_v*d"}

GROUP = (
    Misconception(
        "head-as-wide-as-model",
        1,
        on(HEADS, *with_or_without_context(each("d", *QKV_COLUMNS)))
        | in_first_steps("d", *FIRST_QUERIES)
        | in_dimensions(
            each("right, right, d", "split_queries", "queries_by_head", *SPLIT_KV, *KV_BY_HEAD, *REPEATED)
            | each("right, right, d", "context", "context_by_token")
        )
        # The ranks would follow from the columns; by themselves they say nothing about the head.
        | on(
            "head-parameters",
            Prediction(each("right", "rank_W_QK.count", "rank_W_VO.count"), _AS_WIDE_AS_MODEL),
            _SQUARE_PARTS,
        ),
    ),
    Misconception(
        "heads-multiply-width",
        2,
        on(HEADS, *with_or_without_context(each("H*d", *QKV_COLUMNS)))
        | on(
            "attention-layer",
            Prediction(substitutions=_AS_WIDE_AS_MODEL),
            Prediction({"context.columns": "right"}, _AS_WIDE_AS_MODEL),
        )
        | on(
            "layer-parameters",
            Prediction(substitutions=_AS_WIDE_AS_MODEL),
            Prediction(each("right", "W_O.rows", "W_O.count"), _AS_WIDE_AS_MODEL),
        )
        | on(f"lora parameter-count costs {SPLIT_HEADS}", Prediction(substitutions=_AS_WIDE_AS_MODEL)),
    ),
    Misconception("full-width-values", 14, on(HEADS, *with_or_without_context({"values.columns": "d"}))),
    Misconception(
        "width-always-divided",
        19,
        on(
            f"{HEADS_AND_LAYER} layer-parameters head-parameters parameter-count costs {SPLIT_HEADS} stored-weights "
            "cache-tensor",
            Prediction(substitutions=_EVEN_SHARES),
        ),
        _is_no_even_share,
    ),
    # Code repeats the angles so that cos and sin are as wide as the head; there is one angle per two dimensions. Seen
    # in nanochat#299.
    Misconception(
        "angle-per-dimension",
        39,
        on("whole-model", {"angles.columns": "d_rot"})
        | on("rotary-pairs", each("d_rot", *ANGLE_COLUMNS) | {"layer_angles.count": "N*d_rot"}),
        lambda architecture: architecture.rotary is not None,
    ),
    Misconception(
        "one-head-for-layer",
        42,
        on(
            f"attention-layer layer-parameters head-parameters lora parameter-count {SPLIT_HEADS}",
            Prediction(substitutions=_ONE_HEAD),
        )
        | on(
            "costs",
            Prediction(substitutions=_ONE_HEAD),
            {"scores_flops.count": "2*N*N*d_h", "context_flops.count": "2*N*N*d_v"},
        ),
        lambda architecture: not architecture.has_latent_attention,
    ),
    Misconception(
        "layer-for-one-head",
        43,
        on(HEADS, _LAYER_IN_HEAD, _LAYER_IN_HEAD | {"context.columns": "H*d_v"})
        | on("head-parameters", _LAYER_IN_QKV, _LAYER_IN_QKV | _LAYER_IN_W_O),
        _has_layer_unlike_model,
    ),
)
