"""What a decode step costs with a KV cache and without: by hand for LLaMA 7B, and token by token."""

from __future__ import annotations

import pytest

from app.topics.decode_costs import flops_with_cache, flops_without_cache, recomputed_flops, step_flops
from app.topics.decode_step import DECODE_STEP, WINDOWED_DECODE_STEP

LLAMA_7B = {"d": 4096, "d_h": 128, "d_v": 128, "H": 32, "G": 32}
SMALL = {"d": 12, "d_h": 3, "d_v": 5, "H": 4, "G": 2}


def test_a_hundred_cached_tokens_of_llama_7b_by_hand() -> None:
    sizes = {**LLAMA_7B, "N": 100}
    with_cache = 4 * 2 * 4096 * 4096 + 2 * 2 * 101 * 4096
    assert step_flops(DECODE_STEP).size(sizes) == with_cache == 135_872_512
    assert recomputed_flops().size(sizes) == 101 * with_cache  # every one of 101 rows costs what the new one does


def by_hand(sizes: dict[str, int], rows: int, keys: int) -> int:
    """The operations of so many rows that are each compared with so many keys, product by product."""
    d, d_h, d_v, heads, groups = (sizes[symbol] for symbol in ("d", "d_h", "d_v", "H", "G"))
    projections = heads * d * d_h + groups * d * (d_h + d_v) + heads * d_v * d
    return 2 * rows * (projections + heads * keys * (d_h + d_v))


@pytest.mark.parametrize("window", [None, 1, 4, 9, 40])
def test_all_tokens_so_far_cost_what_each_one_does(window: int | None) -> None:
    for tokens in (1, 2, 9, 30):
        cached = sum(by_hand(SMALL, 1, min(count, window or count)) for count in range(1, tokens + 1))
        anew = sum(by_hand(SMALL, count, count) for count in range(1, tokens + 1))
        assert flops_with_cache(SMALL, tokens, window) == cached
        assert flops_without_cache(SMALL, tokens) == anew
    assert step_flops(WINDOWED_DECODE_STEP).size({**SMALL, "W": 4}) == by_hand(SMALL, 1, 4)
