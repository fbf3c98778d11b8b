"""Which side of a matrix is its tokens, and which tokens have a row."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import (
    HEADS,
    HEADS_AND_LAYER,
    QKV,
    QKV_COLUMNS,
    QKV_ROWS,
    QUERY_SIDE,
    each,
    in_dimensions,
    in_first_steps,
    on,
)

ALL_TOKENS_AT_ONCE = " ".join(topic for topic in HEADS_AND_LAYER.split() if topic != "decode-step")
FEW_AND_ALL = (*QUERY_SIDE, "all_queries.rows", "all_scores.rows")
_PARAMETERS = (each("d", *QKV_ROWS), each("other_side", *QKV_ROWS) | each("d", *QKV_COLUMNS))

GROUP = (
    Misconception(
        "keys-already-transposed",
        8,
        on(HEADS_AND_LAYER, Prediction(transposed=("keys",)))
        # k.transpose(-2, -1) of the product, done when the heads are split.
        | in_dimensions(
            {"keys_by_head": "right, d_h, N", "repeated_keys": "right, d_h, N"},
            {"keys_by_head": "right, d_h, N"},
            {"repeated_keys": "right, d_h, N"},
        ),
    ),
    Misconception(
        "columns-are-tokens",
        9,
        on(f"{HEADS_AND_LAYER} whole-model rotary-pairs", Prediction(transposed=("*",), compared=2)),
    ),
    # Parameters as in the product x·W, or as frameworks store them.
    Misconception(
        "weights-for-activations",
        10,
        on(HEADS, *_PARAMETERS, each("d", *QKV_ROWS) | {"output.rows": "d_v"})
        | on("attention-layer", *_PARAMETERS, each("d", *QKV_ROWS) | {"output.rows": "H*d_v"}),
    ),
    Misconception(
        "stored-layout",
        11,
        on("layer-parameters head-parameters", Prediction(transposed=("*",)))
        | on("lora", Prediction(transposed=("W_Q", "lora_A", "lora_B")))
        | on("experts", Prediction(transposed=("W_router", "W_gate", "W_up", "W_down"))),
    ),
    # "The model predicts the next token" is heard as: only the last position is computed.
    Misconception(
        "only-last-token-asks",
        44,
        on(ALL_TOKENS_AT_ONCE, each("1", *QUERY_SIDE))
        | in_first_steps("1", *FEW_AND_ALL)
        | on("whole-model", {"logits.rows": "1"}, each("1", "final.rows", "logits.rows")),
    ),
    Misconception("projections-transposed", 45, on(HEADS_AND_LAYER, Prediction(transposed=QKV, compared=3))),
    Misconception(
        "one-matrix-transposed",
        101,
        on(
            HEADS_AND_LAYER,
            *(Prediction(transposed=(key,), compared=3) for key in ("input", "queries", "values", "output")),
        ),
    ),
)
