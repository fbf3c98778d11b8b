"""Operations, bytes, and how they grow."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import each, on

_WEIGHTS_BYTES = ("weights_16_bit.count", "weights_8_bit.count", "weights_4_bit.count")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_GROWING_FLOPS = [f"{key}_flops.count" for key in ("projections", "pairwise", "prefill", "decode")]
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")

GROUP = (
    Misconception(
        "cache-forgets-factor",
        28,
        on(
            "costs",
            # Scaled from the right number, in which a sliding window counts no token that it drops.
            Prediction(each("right*H/G", *_CACHE)),
            Prediction(each("right/2", *_CACHE)),
            Prediction(each("right*H/G/2", *_CACHE)),
            Prediction(each("right/L", *_CACHE)),
        ),
    ),
    Misconception(
        "flops-are-macs",
        29,
        {
            **on("costs", Prediction(each("right/2", *_FLOPS))),
            **on("growth", Prediction(each("right/2", *_GROWING_FLOPS))),
        },
    ),
    Misconception(
        "bits-for-bytes",
        56,
        on(
            "costs",
            Prediction(each("8*right", *_WEIGHTS_BYTES, *_CACHE)),
            Prediction(each("8*right", *_WEIGHTS_BYTES)),
        ),
    ),
    # The sheet counts one layer's operations, and the bytes of the whole model.
    Misconception(
        "all-layers-for-one",
        57,
        on(
            "costs",
            Prediction(each("L*right", *_FLOPS)),
            Prediction(each("L*right", "scores_flops.count", "context_flops.count")),
        ),
    ),
    # "Attention is quadratic" taken to hold for all of it.
    Misconception(
        "everything-quadratic",
        92,
        on("growth", Prediction(each("4", "projections_doubled.count", "kv_cache_doubled.count"))),
    ),
    Misconception(
        "everything-linear",
        93,
        on("growth", Prediction(each("2", "pairwise_doubled.count", "score_entries_doubled.count"))),
    ),
    Misconception(
        "decoding-costs-a-prefill",
        94,
        on(
            "growth",
            Prediction({"decode_flops.count": "prefill_of_next"}),
            Prediction({"decode_flops.count": "prefill_flops"}),
        ),
    ),
)
