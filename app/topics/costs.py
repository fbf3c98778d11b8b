"""The costs of a layer and a model, floating-point operations and bytes, from the same operations as the shapes.

A multiplication and an addition count as two operations (FLOPs), as in Kaplan et al. (arXiv:2001.08361, section 2.1).

>>> from app.topics.single_head import SINGLE_HEAD
>>> str(product_flops(SINGLE_HEAD, "scores"))
'2*N*N*d_h'
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_count import parameter_counts
from app.shapes.operation import Matmul
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable
from app.topics.layer_parameters import LAYER_PARAMETERS
from app.topics.requirements import CACHE_OF_KNOWN_LENGTH, PLAIN_LAYERS, SCORES_OF_QUERIES_AND_KEYS
from app.topics.single_head import SINGLE_HEAD
from app.topics.topic import CountFigure, Topic

# The number of heads in which a layer computes each product: queries and what follows from them in H query heads, keys
# and values in G key/value heads.
HEADS_COMPUTING = {"queries": "H", "keys": "G", "values": "G", "scores": "H", "context": "H", "output": "H"}
OPERATIONS = (*(f"{key}_flops" for key in HEADS_COMPUTING), "feed_forward_flops")
BYTES = ("weights_16_bit", "weights_8_bit", "weights_4_bit", "cache_16_bit", "cache_8_bit")
BYTES_PER_NUMBER = {"16": Fraction(2), "8": Fraction(1), "4": Fraction(1, 2)}  # by bits per number
# The numbers that one layer caches per token: a key of d_h and a value of d_v in each key/value head.
CACHED_OF_TOKEN = Expression.parse("G*d_h + G*d_v")


def product_flops(table: TensorTable, key: str) -> Expression:
    """The operations of the matrix product that makes a tensor: 2 · its three lengths.

    Example: a head's scores, 'n h, m h -> n m', cost 2·N·N·d_h. Raises KeyError for a tensor that is made in any other
    way: given ones, sums, lookups, concatenations, products head by head such as a layer's scores, and tensors with
    more than two sides.
    """
    result = table[key]
    if not isinstance(result.made_by, Matmul) or result.made_by.is_by_head or len(result.shape) > 2:
        raise KeyError(f"{key} is not made by a product of two matrices")
    first = {axis: sides[0] for axis, sides in result.equal_sides.items()}
    return result.made_by.flops({axis: table[side.tensor].expression(side.field) for axis, side in first.items()})


@cache
def layer_costs(gated: bool) -> tuple[Count, ...]:
    """FLOPs of one layer for N tokens: each attention product, then the whole feed-forward block."""
    in_all_heads = list[Count]()
    for key, heads in HEADS_COMPUTING.items():
        flops = product_flops(SINGLE_HEAD, key)
        (term,) = flops.terms
        lengths = " · ".join(f"{{{symbol}}}" for symbol in term.symbols)
        formula = f"{term.factor} · {lengths}, {{for-each-of}} {{{heads}}} {{heads}}"
        in_all_heads.append(Count(f"{key}_flops", Expression.symbol(heads) * flops, formula, unit="operations"))
    matrices = [t for t in LAYER_PARAMETERS.tensors if t.role == "hidden" and (gated or t.key != "W_gate")]
    products = [Expression.parse("2*N") * matrix.expression("count") for matrix in matrices]
    formula = f"2 · {{N}} · {{d}} · {{d_ff}}, {{for-each-of}} {len(matrices)} {{matrices}}"
    feed_forward = Count("feed_forward_flops", sum(products, ZERO), formula, unit="operations")
    return (*in_all_heads, feed_forward)


def cached_numbers(architecture: Architecture, tokens: int) -> Expression:
    """How many numbers the KV cache holds after N = `tokens` tokens (Pope et al., arXiv:2211.05102)."""
    runs = architecture.stacks[0].runs
    layers = sum(run.count for run in runs)
    full = sum(run.count for run in runs if run.window and tokens > run.window)
    if full in (0, layers):
        return Expression.parse("L*W" if full else "L*N") * CACHED_OF_TOKEN
    cached_tokens = Expression.parse("W") * full + Expression.parse("N") * (layers - full)
    return cached_tokens * CACHED_OF_TOKEN


def memory_costs(cached: Expression | None) -> tuple[Count, ...]:
    """Counts of bytes: all parameters at 16, 8 and 4 bits per number, then the KV cache at 16 and 8 bits."""
    weights = [
        _memory_count("weights", bits, Expression.parse("params"), f"{_bytes(size)} · {{parameters}}")
        for bits, size in BYTES_PER_NUMBER.items()
    ]
    if cached is None:
        return tuple(weights)
    cached_tokens = " + ".join(_cached_tokens(cached))
    cached_tokens = f"({cached_tokens})" if " + " in cached_tokens else cached_tokens
    cache = [
        _memory_count(
            "cache", bits, cached, f"{_bytes(BYTES_PER_NUMBER[bits])} · {cached_tokens} · {{G}} · ({{d_h}} + {{d_v}})"
        )
        for bits in ("16", "8")
    ]
    return (*weights, *cache)


def _cached_tokens(cached: Expression) -> Iterator[str]:
    for term in cached.terms:
        if "d_h" in term.symbols:  # once for keys, and again for values
            factor = [str(term.factor)] if term.factor != 1 else []
            yield " · ".join([*factor, *(f"{{{symbol}}}" for symbol in term.symbols if symbol in ("L", "N", "W"))])


def _bytes(size: Fraction) -> str:
    return f"{size} {{{'bytes' if size > 1 else 'byte'}}}"


def _memory_count(what: str, bits: str, numbers: Expression, formula: str) -> Count:
    doubled = str(2 * int(bits))
    halved = FromParts(PARTS_SUM / 2, (f"{what}_{doubled}_bit",), "up") if doubled in BYTES_PER_NUMBER else None
    total = numbers * BYTES_PER_NUMBER[bits]
    return Count(f"{what}_{bits}_bit", total, formula, halved, unit="bytes", rounded="up")


def _costs_table(architecture: Architecture, tokens: int) -> TensorTable:
    cached = cached_numbers(architecture, tokens) if architecture.has_kv_cache else None
    return TensorTable("costs", counts=(*layer_costs(architecture.gated), *memory_costs(cached)))


TOPIC = Topic(
    "costs",
    "counts",
    _costs_table,
    (*PLAIN_LAYERS, SCORES_OF_QUERIES_AND_KEYS, CACHE_OF_KNOWN_LENGTH),
    count_figures=(CountFigure("operations", OPERATIONS), CountFigure("bytes", BYTES)),
    extra_sizes=lambda architecture, _tokens: {"params": parameter_counts(architecture).total},
    counts=" ".join((*OPERATIONS, *BYTES)),
    extra_symbols="params",
)
