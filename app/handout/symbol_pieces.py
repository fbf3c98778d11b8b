"""Symbols as pieces that Typst sets: italic letters with subscripts."""

from __future__ import annotations

import re

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.sheets.notation import ONE_NAME, add_up, without_own_name
from app.sheets.prose import FormulaPiece
from app.sheets.variant import Variant

# Plain text, or {"base": "d", "below": "h"} for a letter with its subscript.
Piece = str | dict[str, str]
_SYMBOL = re.compile(r"([A-Za-zθ][\w']*)")
_WORD = re.compile(r"’?[A-Za-zθ][\w']*|[^A-Za-zθ]+")


def split_expression(text: str) -> list[Piece]:
    """Split a sum of products: every word is a symbol, everything between words is plain text.

    >>> split_expression("H·d_head")
    [{'base': 'H', 'below': ''}, '·', {'base': 'd', 'below': 'head'}]
    """
    return [split_symbol(piece) if _SYMBOL.fullmatch(piece) else piece for piece in _SYMBOL.split(text) if piece]


def split_sentence(text: str, symbols: frozenset[str]) -> list[Piece]:
    """Split a sentence: only the words in `symbols` are symbols, with or without ᵀ; the s of "head’s" isn't."""
    return [split_symbol(piece) if piece.removesuffix("ᵀ") in symbols else piece for piece in _WORD.findall(text)]


def split_symbol(text: str) -> Piece:
    base, _, below = text.partition("_")  # the base of Kᵀ includes the ᵀ
    return {"base": base.replace("'", "′"), "below": below}


def write_working(variant: Variant, dim: Expression, formula: tuple[FormulaPiece, ...]) -> list[Piece]:
    """The working of a dimension, as pieces: its symbols, then the numbers if they add anything.

    Example:
        H·d_h with H = 32 and d_h = 128 becomes the pieces of "H·d_h = 32 · 128".
    """
    dim = dim.substitute({symbol: Expression.symbol(ONE_NAME[symbol]) for symbol in without_own_name(variant.sizes)})
    symbols = split_expression(variant.notation.write(dim))
    if len(dim.terms) > 2:
        return [split_symbol(piece.text) if piece.is_symbol else piece.text for piece in formula] or symbols
    numbers = _in_numbers(variant, dim)
    return [*symbols, f" = {numbers}"] if numbers else symbols


def _in_numbers(variant: Variant, dim: Expression) -> str:
    terms = sorted(dim.terms, key=lambda term: term.factor < 0)
    if not dim.symbols:
        return ""
    if len(terms) == 1 and terms[0].factor == 1 and len(terms[0].symbols) < 2 and not terms[0].divisors:
        return _head_width_as_quotient(variant, terms[0].symbols[0])

    def numbers(symbols: tuple[str, ...]) -> list[str]:
        return [format_number(variant.sizes[symbol]) for symbol in symbols]

    return add_up(((term.factor, numbers(term.symbols), numbers(term.divisors)) for term in terms), " · ")


def _head_width_as_quotient(variant: Variant, symbol: str) -> str:
    architecture = variant.architecture
    if symbol in ("d_h", "d_v") and variant.sizes[symbol] * architecture.H == architecture.d:
        return f"{format_number(architecture.d)}/{architecture.H} = {format_number(variant.sizes[symbol])}"
    return ""
