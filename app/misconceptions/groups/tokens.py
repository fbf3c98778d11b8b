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
from app.shapes.table import MATRIX_FIELDS

ALL_TOKENS_AT_ONCE = " ".join(topic for topic in HEADS_AND_LAYER.split() if topic != "decode-step")
FEW_AND_ALL = (*QUERY_SIDE, "all_queries.rows", "all_scores.rows")
_PARAMETERS = (each("d", *QKV_ROWS), each("other_side", *QKV_ROWS) | each("d", *QKV_COLUMNS))
_STORED = ("stored_W_Q", "stored_W_K", "stored_W_V", "stored_W_QKV", "stored_W_O")
_OTHER_SHAPE = each("other_side", *(f"{key}.{field}" for key in _STORED for field in MATRIX_FIELDS))
_OTHER_DIMENSION = each("1 - right", "q_dim.count", "o_dim.count")

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
        lambda architecture: not architecture.has_latent_attention,
    ),
    # Seen in tiny-llm#41 and peft#315.
    Misconception(
        "stored-layout",
        11,
        on("layer-parameters", Prediction(transposed=("*",)))
        | on(
            "head-parameters",
            Prediction(transposed=("*",)),
            # W_O is written like the other three, from d to d_v.
            Prediction(transposed=("W_O",)),
            Prediction(transposed=("W_O", "layer_W_O")),
        )
        | on("lora", Prediction(transposed=("W_Q", "lora_A", "lora_B")))
        | on("experts", Prediction(transposed=("W_router", "W_gate", "W_up", "W_down")))
        | on("stored-weights", _OTHER_SHAPE | _OTHER_DIMENSION, _OTHER_SHAPE, _OTHER_DIMENSION),
    ),
    # "The model predicts the next token" is taken to mean that only the last position is computed.
    Misconception(
        "only-last-token-asks",
        44,
        on(ALL_TOKENS_AT_ONCE, each("1", *QUERY_SIDE))
        | in_first_steps("1", *FEW_AND_ALL)
        | on("whole-model", {"logits.rows": "1"}, each("1", "final.rows", "logits.rows")),
    ),
    # In first steps kᵀ has its own row, and most steps have one matrix.
    Misconception(
        "mixed-orientations",
        45,
        on(
            " ".join(topic for topic in HEADS_AND_LAYER.split() if topic != "first-steps"),
            Prediction(transposed=QKV, compared=3),
            *(Prediction(transposed=(key,), compared=3) for key in ("input", "queries", "values", "output")),
        ),
    ),
)
