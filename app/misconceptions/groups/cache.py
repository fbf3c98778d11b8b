"""One more token with a KV cache, and what a cache holds."""

from __future__ import annotations

from app.misconceptions.misconception import Misconception
from app.misconceptions.row_parts import KEY_SIDE, QUERY_SIDE, each, on
from app.shapes.table import MATRIX_FIELDS

_PRODUCTS = [f"{row}.{field}" for row in ("scores", "weights") for field in MATRIX_FIELDS]

GROUP = (
    Misconception(
        "decode-step-square",
        25,
        on("decode-step", each("N", *_PRODUCTS), each("1", *_PRODUCTS), each("N + 1", *_PRODUCTS)),
    ),
    # Off by one: the new token's key and value are left out.
    Misconception("new-key-left-out", 49, on("decode-step", each("right - 1", *KEY_SIDE))),
    # The cache is forgotten: every token is processed again.
    Misconception(
        "all-queries-recomputed",
        50,
        on("decode-step", each("N + 1", "input.rows", *QUERY_SIDE), each("N + 1", *QUERY_SIDE)),
    ),
    Misconception(
        "window-forgotten",
        106,
        on("decode-step", each("N + 1", *KEY_SIDE)),
        lambda architecture: architecture.window is not None,
    ),
    Misconception(
        "new-token-beside-window",
        107,
        on("decode-step", each("window_and_new", *KEY_SIDE)),
        lambda architecture: architecture.window is not None,
    ),
    Misconception("only-the-new-key", 51, on("decode-step", each("1", *KEY_SIDE))),
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
