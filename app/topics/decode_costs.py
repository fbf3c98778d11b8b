"""The cost of one more token with and without a KV cache: FLOPs of one layer's attention.

As in `costs.py`, matrix products are counted over all heads, and a multiplication and an addition are two operations.
Without a cache, the attention of all tokens so far is recomputed for every new one.

>>> str(step_flops(DECODE_STEP)).partition(" + ")[0]
'2*G*d*d_h'
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from app.algebra.expression import ZERO, Expression
from app.shapes.table import TensorTable
from app.topics.costs import HEADS_COMPUTING, product_flops
from app.topics.decode_step import DECODE_STEP, WINDOWED_DECODE_STEP
from app.topics.single_head import SINGLE_HEAD

# The number of heads in which a layer computes each product of one more token: q and what follows in H query heads, its
# key and value in G key/value heads.
HEADS_OF_STEP = {"queries": "H", "new_key": "G", "new_value": "G", "scores": "H", "context": "H", "output": "H"}


def step_flops(table: TensorTable) -> Expression:
    """The operations of one more token after N cached ones, over all heads, from a decode step's table."""
    tables = {key: table if key in table.by_key else DECODE_STEP for key in HEADS_OF_STEP}
    products = (Expression.parse(heads) * product_flops(tables[key], key) for key, heads in HEADS_OF_STEP.items())
    return sum(products, ZERO)


def recomputed_flops() -> Expression:
    """The operations of one more token after N others without a cache: all N + 1 are recomputed."""
    products = (Expression.parse(heads) * product_flops(SINGLE_HEAD, key) for key, heads in HEADS_COMPUTING.items())
    return sum(products, ZERO).substitute({"N": Expression.parse("N + 1")})


def flops_with_cache(sizes: Mapping[str, int], tokens: int, window: int | None) -> int:
    """The operations of writing `tokens` tokens one by one with a cache, the first included."""
    growing = min(tokens, window or tokens)
    full = step_flops(WINDOWED_DECODE_STEP).size({**sizes, "W": window}) if window else 0
    return _summed(step_flops(DECODE_STEP), sizes, growing) + (tokens - growing) * full


def flops_without_cache(sizes: Mapping[str, int], tokens: int) -> int:
    """The operations of writing `tokens` tokens one by one, recomputing all earlier ones each time."""
    return _summed(recomputed_flops(), sizes, tokens)


def _summed(flops: Expression, sizes: Mapping[str, int], tokens: int) -> int:
    first, second, third = (flops.size({**sizes, "N": count}) for count in range(3))
    differences = (first, second - first, third - 2 * second + first)
    return sum(math.comb(tokens, order + 1) * each for order, each in enumerate(differences))
