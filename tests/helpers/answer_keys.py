"""Answer keys worked out by hand, and the typed answers that tests make from them."""

from __future__ import annotations

from collections.abc import Mapping

# Worked out from the published configs. LLaMA 7B: d = 4096, 4096/32 = 128 per head, N = 100. Qwen2.5 0.5B: d = 896,
# 896/14 = 64 per head, N = 50; in the honest layer 14·64 = 896 queries and 2·64 = 128 keys and values per token.
KEYS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "llama-7b": {
        "input": (100, 4096),
        "queries": (100, 128),
        "keys": (100, 128),
        "values": (100, 128),
        "scores": (100, 100),
        "weights": (100, 100),
        "output": (100, 4096),
    },
    "qwen2.5-0.5b": {
        "input": (50, 896),
        "queries": (50, 64),
        "keys": (50, 64),
        "values": (50, 64),
        "scores": (50, 50),
        "weights": (50, 50),
        "output": (50, 896),
    },
}


def boxes(sheet: str) -> dict[str, int]:
    """A sheet's hand-made key, box by box."""
    shapes = KEYS[sheet].items()
    return {
        f"{row}.{axis}": size for row, shape in shapes for axis, size in zip(("rows", "columns"), shape, strict=True)
    }


LLAMA = boxes("llama-7b")
KEY = {box: str(size) for box, size in LLAMA.items()}  # the same as a student types it
WIDE = {**KEY, **{f"{row}.columns": "4096" for row in ("queries", "keys", "values")}}  # head-as-wide-as-model
