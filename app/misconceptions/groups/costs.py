"""Operations, bytes, and how they grow."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import WHOLE_CACHE, each, on

_WEIGHTS_BYTES = ("weights_16_bit.count", "weights_8_bit.count", "weights_4_bit.count")
_FLOPS = [f"{key}_flops.count" for key in ("queries", "keys", "values", "scores", "context", "output", "feed_forward")]
_GROWING_FLOPS = [f"{key}_flops.count" for key in ("projections", "pairwise", "prefill", "decode")]
_CACHE = ("cache_16_bit.count", "cache_8_bit.count")

GROUP = (
    Misconception(
        "cache-forgets-factor",
        28,
        {
            **on(
                "costs",
                # Scaled from the right number, in which a sliding window counts no token that it drops.
                each("right*H/G", *_CACHE),
                each("right/2", *_CACHE),
                each("right*H/G/2", *_CACHE),
                each("right/L", *_CACHE),
            ),
            **on("cache-tensor", each("right/2", *WHOLE_CACHE), each("right/L", *WHOLE_CACHE)),
        },
    ),
    Misconception(
        "flops-are-macs",
        29,
        {**on("costs", each("right/2", *_FLOPS)), **on("growth", each("right/2", *_GROWING_FLOPS))},
    ),
    Misconception(
        "bits-for-bytes",
        56,
        {
            **on("costs", each("8*right", *_WEIGHTS_BYTES, *_CACHE), each("8*right", *_WEIGHTS_BYTES)),
            **on("cache-tensor", {"cache_bytes.count": "8*right"}),
        },
    ),
    # The sheet counts one layer's operations, and the bytes of the whole model.
    Misconception(
        "all-layers-for-one",
        57,
        on("costs", each("L*right", *_FLOPS), each("L*right", "scores_flops.count", "context_flops.count")),
    ),
    # "Attention is quadratic" taken to hold for all of it.
    Misconception(
        "everything-quadratic", 92, on("growth", each("4", "projections_doubled.count", "kv_cache_doubled.count"))
    ),
    Misconception(
        "everything-linear", 93, on("growth", each("2", "pairwise_doubled.count", "score_entries_doubled.count"))
    ),
    Misconception(
        "decoding-costs-a-prefill",
        94,
        on("growth", {"decode_flops.count": "prefill_of_next"}, {"decode_flops.count": "prefill_flops"}),
    ),
)
