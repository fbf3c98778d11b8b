"""Parameters of a head, a layer and a model."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import (
    ANGLE_COLUMNS,
    ANGLE_ROWS,
    LAYER_FLOPS,
    WHOLE,
    counted,
    each,
    has_context_length,
    on,
)
from app.models.architecture import Architecture
from app.topics.stored_weights import fused_order


def _has_rope_and_no_table(architecture: Architecture) -> bool:
    return architecture.rotary is not None and not architecture.has_position_table


def _has_kv_heads_after_all_queries(architecture: Architecture) -> bool:
    return architecture.G > 1 and fused_order(architecture) == "by-matrix"


_STARTS = [f"{key}_start.count" for key in "qkvo"]
_BLOCK = "H*d_h/G - d_h - d_v"  # a key/value head with its queries

GROUP = (
    Misconception(
        "heads-change-parameters",
        26,
        # With its totals, a model's attention would be that of heads-multiply-width.
        on("layer-parameters", each("H*right", "W_Q.count", "W_K.count", "W_V.count", "W_O.count"))
        | on("parameter-count", {"attention.count": "H*right"}),
        lambda architecture: architecture.d == architecture.H * architecture.d_h,
    ),
    Misconception(
        "positions-are-parameters",
        27,
        on("parameter-count", each("right + C*d", "embedding.count", *WHOLE))
        | on("rotary-pairs", each("C", *ANGLE_ROWS) | each("d", *ANGLE_COLUMNS)),
        # Such a table would have a row for each token of the context length.
        lambda architecture: _has_rope_and_no_table(architecture) and has_context_length(architecture),
    ),
    Misconception(
        "tied-embedding-twice",
        30,
        on("parameter-count", each("right + V*d", *WHOLE)),
        lambda architecture: architecture.tied_embeddings,
    ),
    # The LM head is taken to be tied, as in GPT-2, although it is a separate matrix.
    Misconception(
        "separate-head-forgotten",
        31,
        on("parameter-count", {"output_head.count": "0"} | each("right - lm_head", *WHOLE)),
        lambda architecture: not architecture.tied_embeddings,
    ),
    # The shape of the activation (a row per token) is written for the weights that make it; or, seen in
    # ai.stackexchange.com/q/40592, the heads of all 2048 tokens are flattened for W_O, which gives LLaMA 7B 205 billion
    # parameters.
    Misconception(
        "tokens-in-weights",
        33,
        on(
            "layer-parameters",
            each("N", "W_Q.rows", "W_K.rows", "W_V.rows")
            | {"W_Q.count": "N*H*d_h", "W_K.count": "N*G*d_h", "W_V.count": "N*G*d_v"},
            {"W_O.rows": "C*H*d_v", "W_O.count": "C*H*d_v*d"},
        )
        | on("parameter-count", counted("attention", "(C - 1)*H*d_v*d"))
        | on(
            "head-parameters",
            each("N", "W_Q.rows", "W_K.rows", "W_V.rows")
            | {"W_Q.count": "N*d_h", "W_K.count": "N*d_h", "W_V.count": "N*d_v"},
        ),
        has_context_length,
    ),
    # "The head works in d_h" is taken to hold on both sides of its projection; seen in the same question.
    Misconception(
        "square-head-projection",
        34,
        on(
            "layer-parameters",
            each("d_h", "W_Q.rows", "W_K.rows", "W_Q.columns", "W_K.columns", "W_V.rows")
            | {"W_V.columns": "d_v", "W_V.count": "d_h*d_v"}
            | each("d_h*d_h", "W_Q.count", "W_K.count"),
            each("d_h", "W_Q.rows", "W_K.rows", "W_V.rows")
            | {"W_Q.count": "H*d_h*d_h", "W_K.count": "G*d_h*d_h", "W_V.count": "G*d_h*d_v"},
        )
        | on(
            "head-parameters",
            each("d_h", "W_Q.rows", "W_K.rows", "W_V.rows")
            | {"W_Q.count": "d_h*d_h", "W_K.count": "d_h*d_h", "W_V.count": "d_h*d_v"},
        )
        | on(
            "parameter-count",
            counted("attention", "(d_h - d)*(H*d_h + G*d_h + G*d_v)"),
            # That question's formula: for each head, four matrices of head_dim × head_dim.
            {"attention.count": "right + (d_h - d)*(H*d_h + G*d_h + G*d_v) + (d_v - d)*H*d_v"}
            | each("right + L*(d_h - d)*(H*d_h + G*d_h + G*d_v) + L*(d_v - d)*H*d_v", "all_layers.count", *WHOLE),
        ),
        lambda architecture: not architecture.has_latent_attention,
    ),
    # "Attention has Q, K and V": three matrices are counted.
    Misconception(
        "output-projection-forgotten", 35, on("parameter-count", counted("attention", "-(H*d_v + output_biases)*d"))
    ),
    # Seen in ai.stackexchange.com/q/40592, where all layers of LLaMA 7B have 6,476,005,376 parameters.
    Misconception(
        "norms-forgotten",
        199,
        on(
            "parameter-count",
            each("right - norms_in_layers", "all_layers.count", *WHOLE),
            {"all_layers.count": "right - norms_in_layers"} | each("right - norms_in_layers - norm_at_end", *WHOLE),
            each("right - norm_at_end", *WHOLE),
            # One norm instead of two in each layer.
            {"norms.count": "right/2"} | each("right - norms_in_layers/2", "all_layers.count", *WHOLE),
        ),
    ),
    # Sheets on parameters count all layers, sheets on costs one layer's operations.
    Misconception(
        "layers-miscounted",
        200,
        on("parameter-count", {"all_layers.count": "right/L", "total.count": "right - all_layers + all_layers/L"})
        | on("costs", each("L*right", *LAYER_FLOPS), each("L*right", "scores_flops.count", "context_flops.count")),
    ),
    # "Low rank" is taken to mean that the update itself is narrow.
    Misconception(
        "rank-instead-of-width",
        90,
        on(
            "lora",
            each("r", "lora_B.columns", "query_update.columns") | {"lora_B.count": "r*r", "trained.count": "r*d + r*r"},
        ),
    ),
    Misconception(
        "frozen-counted-as-trained", 91, on("lora", {"trained.count": "right + d*H*d_h"}, {"trained.count": "d*H*d_h"})
    ),
    # Head j is taken for the jth, or the first row for row 1.
    Misconception(
        "slices-counted-from-one",
        132,
        on(
            "stored-weights",
            each("right - d_h", *_STARTS[:2]) | each("right - d_v", *_STARTS[2:]),
            each(f"right - {_BLOCK}", *_STARTS[:3]) | {"o_start.count": "right - d_v"},
            each("right + 1", *_STARTS),
        ),
    ),
    Misconception(
        "fused-read-head-by-head",
        134,
        on(
            "stored-weights",
            {
                "q_start.count": "j*d_h + j*G/H*d_h + j*G/H*d_v",
                "k_start.count": "j*d_h + j*G/H*d_h + j*G/H*d_v + H*d_h/G",
                "v_start.count": "j*d_h + j*G/H*d_h + j*G/H*d_v + H*d_h/G + d_h",
            },
        ),
        _has_kv_heads_after_all_queries,
    ),
)
