"""One more token with a KV cache, and what a cache holds."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception, Prediction
from app.misconceptions.row_parts import KEY_SIDE, QUERY_SIDE, REPEATED, WHOLE_CACHE, each, on
from app.shapes.table import MATRIX_FIELDS

_PRODUCTS = [f"{row}.{field}" for row in ("scores", "weights") for field in MATRIX_FIELDS]
# Several new tokens at once: the sides of their queries, and of the keys that these meet.
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
    # Off by one: the new token's key and value are left out.
    Misconception(
        "new-key-left-out",
        49,
        on("decode-step", each("right - 1", *KEY_SIDE)) | on("cache-tensor", each("right - m", *_KEYS_OF_NEW)),
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
    Misconception(
        "new-token-beside-window",
        107,
        on("decode-step", each("window_and_new", *KEY_SIDE)),
        lambda architecture: architecture.window is not None,
    ),
    Misconception(
        "only-the-new-key",
        51,
        on("decode-step", each("1", *KEY_SIDE)) | on("cache-tensor", each("m", *_KEYS_OF_NEW)),
    ),
    Misconception("cache-of-one-text", 166, on("cache-tensor", each("right/B", *WHOLE_CACHE))),
    # "Keep what was computed": queries, or scores, next to keys and values.
    Misconception(
        "more-than-keys-and-values-cached",
        167,
        on(
            "cache-tensor",
            each("right + right*H/G/2", *WHOLE_CACHE),
            {"cached_numbers.count": "right + L*B*H*N*N", "cache_bytes.count": "right + 2*L*B*H*N*N"},
        ),
    ),
    # The encoder's keys are taken to be those of the text that the decoder writes.
    Misconception(
        "cross-attention-to-own-text",
        168,
        on(
            "cache-tensor",
            each("N", "cross_keys.dim2", "cross_values.dim2", "cross_scores.dim3"),
            each("N + m", "cross_keys.dim2", "cross_values.dim2", "cross_scores.dim3"),
        ),
        lambda architecture: architecture.encoder_decoder,
    ),
    Misconception(
        "cache-without-cross-attention",
        169,
        on(
            "cache-tensor",
            {"cached_numbers.count": "L*B*G*N*(d_h + d_v)", "cache_bytes.count": "2*L*B*G*N*(d_h + d_v)"},
        ),
        lambda architecture: architecture.encoder_decoder,
    ),
    # The cache of multi-head attention expected from latent attention, which exists to avoid it (arXiv:2405.04434).
    Misconception(
        "latent-cache-of-full-keys",
        52,
        on("attention-layer", {"cache.columns": "H*d_h + H*d_v"}),
        lambda architecture: architecture.has_latent_attention,
    ),
    Misconception(
        "cache-without-rotary-key",
        53,
        on("attention-layer", {"cache.columns": "r_kv"}),
        lambda architecture: architecture.has_latent_attention,
    ),
)
