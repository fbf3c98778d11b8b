"""One more token with a KV cache, and what a cache holds."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import KEY_SIDE, QUERY_SIDE, REPEATED, WHOLE_CACHE, each, on
from app.shapes.table import MATRIX_FIELDS

_PRODUCTS = [f"{row}.{field}" for row in ("scores", "weights") for field in MATRIX_FIELDS]
# Several new tokens at once: the sides of their queries, and of the keys that they meet.
_QUERIES_OF_NEW = [
    f"{row}.dim2" for row in ("queries", "scores", "weights", "context", "cross_queries", "cross_scores")
]
_KEYS_OF_NEW = [
    *(f"{row}.dim2" for row in ("keys", "values", *REPEATED)),
    *(f"{row}.dim3" for row in ("scores", "weights")),
]

GROUP = (
    Misconception(
        "decode-step-square",
        25,
        on("decode-step", each("N", *_PRODUCTS), each("1", *_PRODUCTS), each("N + 1", *_PRODUCTS)),
    ),
    # Only the cached keys and values, or only the new ones.
    Misconception(
        "keys-left-out",
        49,
        on("decode-step", each("right - 1", *KEY_SIDE), each("1", *KEY_SIDE))
        | on("cache-tensor", each("right - m", *_KEYS_OF_NEW), each("m", *_KEYS_OF_NEW)),
    ),
    # The cache is forgotten: every token is processed again.
    Misconception(
        "all-queries-recomputed",
        50,
        on("decode-step", each("N + 1", "input.rows", *QUERY_SIDE), each("N + 1", *QUERY_SIDE))
        | on("cache-tensor", each("N + m", *_QUERIES_OF_NEW)),
    ),
    Misconception(
        "window-forgotten",
        106,
        on("decode-step", each("N + 1", *KEY_SIDE))
        | on(
            "cache-tensor", Prediction(each("N + m", *_KEYS_OF_NEW), {"W": "N"}), Prediction(substitutions={"W": "N"})
        ),
        lambda architecture: architecture.window is not None,
    ),
    # "Keep what was computed": queries or scores are cached with keys and values.
    Misconception(
        "more-than-keys-and-values-cached",
        167,
        on(
            "cache-tensor",
            each("right + right*H/G/2", *WHOLE_CACHE),
            {"cached_numbers.count": "right + L*B*H*N*N", "cache_bytes.count": "right + 2*L*B*H*N*N"},
        ),
    ),
    # The cache of multi-head attention expected from latent attention, which exists to avoid it (arXiv:2405.04434).
    Misconception(
        "latent-cache-of-full-keys",
        52,
        on("attention-layer", {"cache.columns": "H*d_h + H*d_v"}),
        lambda architecture: architecture.has_latent_attention,
    ),
)
