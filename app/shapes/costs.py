"""What a layer and a model cost: floating-point operations and bytes, from the same equations as the shapes.

A multiplication and an addition are two operations (FLOPs), as in Kaplan et al. (arXiv:2001.08361, section 2.1).

>>> from .table import SINGLE_HEAD
>>> str(product_flops(SINGLE_HEAD, "scores"))
'2*N*N*d_h'
"""

from __future__ import annotations

from fractions import Fraction

from app.algebra.expression import ZERO, Expression
from app.shapes.table import Count, TensorTable
from app.shapes.tables import LAYER_PARAMETERS, SINGLE_HEAD

# Which heads make a tensor: queries and what follows from them in each query head, keys and values in each of theirs.
MADE_BY = {"queries": "H", "keys": "G", "values": "G", "scores": "H", "context": "H", "output": "H"}
BYTES = {"16": Fraction(2), "8": Fraction(1), "4": Fraction(1, 2)}  # of one number, by its bits
TWO = Expression.parse("2")


def product_flops(topic: TensorTable, key: str) -> Expression:
    """The operations of the product that makes a tensor: two for each triple of its einsum letters."""
    tensor = topic[key]
    if tensor.equation is None:
        raise KeyError(f"{key} is not made by a product")
    total = TWO
    for blanks in tensor.equation.blanks(key).values():
        total *= topic[blanks[0].tensor].dim(blanks[0].field)
    return total


def layer_costs(gated: bool) -> tuple[Count, ...]:
    """The operations of each product of one layer for N tokens, all heads, nothing saved on masked entries."""
    heads = [
        Count(f"{key}_flops", Expression.parse(made_by) * product_flops(SINGLE_HEAD, key), text)
        for key, made_by, text in ((key, MADE_BY[key], _text(key)) for key in MADE_BY)
    ]
    matrices = [t for t in LAYER_PARAMETERS.tensors if t.role == "hidden" and (gated or t.key != "W_gate")]
    tokens = Expression.parse("2*N")
    feed_forward = sum((tokens * matrix.rows * matrix.columns for matrix in matrices), ZERO)
    names = " + ".join(t.key for t in matrices)
    return (*heads, Count("feed_forward_flops", feed_forward, f"2 · N · ({names})"))


def _text(key: str) -> str:
    equation = SINGLE_HEAD[key].equation
    assert equation is not None  # noqa: S101 - each of MADE_BY is a product
    return f"2 · {equation.formula}, in {MADE_BY[key]} heads"


def memory_costs() -> tuple[Count, ...]:
    """Bytes of all weights at several widths of a number, and of the key/value cache after N tokens.

    `params` is the number of parameters. The cache keeps a key and a value for every token, layer and key/value head
    (Pope et al., arXiv:2211.05102).
    """
    weights = [
        Count(f"weights_{bits}_bit", Expression.parse("params") * size, f"{size} bytes · parameters")
        for bits, size in BYTES.items()
    ]
    kept = Expression.parse("L*N*G*d_h + L*N*G*d_v")
    cache = [
        Count(f"cache_{bits}_bit", kept * BYTES[bits], f"{BYTES[bits]} bytes · L · N · (keys + values of G heads)")
        for bits in ("16", "8")
    ]
    return (*weights, *cache)
