"""What goes into a head or a model: tokens, their vectors, and how many."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import (
    HEADS_AND_LAYER,
    HEADS_AND_SOFTMAX,
    KEY_SIDE,
    SPLIT_HEADS,
    each,
    has_context_length,
    on,
)
from app.models.architecture import Architecture


def _looks_tokens_up(architecture: Architecture) -> bool:
    return architecture.fixed_tokens is None


def _sees(architecture: Architecture) -> bool:
    return architecture.input == "image"


_INPUT_COLUMNS = ("input.columns", "encoded.columns")

GROUP = (
    Misconception("input-sliced", 3, on(HEADS_AND_LAYER, each("d_h", *_INPUT_COLUMNS))),
    Misconception("input-repeated", 4, on(HEADS_AND_LAYER, each("H*d", *_INPUT_COLUMNS))),
    Misconception(
        "context-for-tokens",
        20,
        on(
            f"{HEADS_AND_SOFTMAX} whole-model costs {SPLIT_HEADS} experts rotary-pairs cache-tensor text-to-loss",
            Prediction(substitutions={"N": "C", "M": "C"}),
        )
        # In a decode step a cache padded to the context length is taken to be full with the new token in it.
        | on("decode-step", each("C", *KEY_SIDE), Prediction(substitutions={"N": "C"})),
        has_context_length,
    ),
    Misconception(
        "embedding-table-as-input",
        21,
        on(HEADS_AND_LAYER, {"input.rows": "V"})
        | on("whole-model", {"embedded.rows": "V"})
        | on("text-to-loss", {"embedded.dim1": "V"}),
        _looks_tokens_up,
    ),
    Misconception(
        "class-token-forgotten",
        191,
        on("text-to-loss", each("n_side*n_side", "image_tokens.dim1", "final.dim1")),
        _sees,
    ),
    # An image is said to be worth 16 × 16 words: the size of a patch is taken for the number of patches.
    Misconception(
        "patch-size-for-patches",
        192,
        on(
            "text-to-loss",
            each("p", "patches.dim2", "patches.dim3")
            | each("p*p", "flat_patches.dim2", "patch_tokens.dim1")
            | each("p*p + 1", "image_tokens.dim1", "final.dim1"),
            each("p", "patches.dim2", "patches.dim3"),
        ),
        _sees,
    ),
)
