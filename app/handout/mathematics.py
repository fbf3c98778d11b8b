"""Symbols as pieces that a typesetter sets: italic letters, what stands below them, and names from code.

>>> Pieces("classic").symbols("H·d_head")
[{'base': 'H', 'below': ''}, '·', {'base': 'd', 'below': 'head'}]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.algebra.expression import Expression
from app.sheets.worksheet import Variant, format_number

Piece = str | dict[str, str]
_NAME = re.compile(r"([A-Za-zθ][\w']*)")
_SPOKEN = re.compile(r"[A-Za-zθ][\w']*|[^A-Za-zθ]+")


@dataclass(frozen=True)
class Pieces:
    """Writes symbols as one notation does: the framework's are names from code, the others' letters."""

    notation: str

    def symbols(self, text: str) -> list[Piece]:
        """Every symbol of a sum of products, and what stands between them as it is."""
        return [self._symbol(piece) if _NAME.fullmatch(piece) else piece for piece in _NAME.split(text) if piece]

    def sentence(self, text: str, known: frozenset[str]) -> list[Piece]:
        """A sentence with those of its words that are `known` symbols set as such."""
        return [self._symbol(piece) if piece in known else piece for piece in _SPOKEN.findall(text)]

    def _symbol(self, text: str) -> Piece:
        if self.notation == "framework":
            return {"code": text}
        base, _, below = text.partition("_")
        return {"base": base.replace("'", "′"), "below": below}


def working(variant: Variant, dim: Expression, words: str = "") -> list[Piece]:
    """How a number comes about: symbols and their sizes, or the words of a sum that is long."""
    pieces = Pieces(variant.worksheet.notation)
    written = pieces.symbols(variant.notation.write(dim))
    if len(dim.terms) > 2:
        return [words] if words else written
    numbers = _numbers(variant, dim)
    return [*written, f" = {numbers}"] if numbers else written


def _numbers(variant: Variant, dim: Expression) -> str:
    """The product or quotient in numbers; nothing where a single symbol says it all."""
    [*terms] = dim.terms
    if len(terms) == 1 and terms[0].factor == 1 and len(terms[0].symbols) < 2:
        return _share(variant, terms[0].symbols[0]) if terms[0].symbols else ""
    return " + ".join(_product(variant.sizes, term.factor, term.symbols) for term in terms)


def _product(sizes: Mapping[str, int], factor: object, symbols: tuple[str, ...]) -> str:
    shown = [str(factor)] if factor != 1 or not symbols else []
    return " · ".join([*shown, *(format_number(sizes[symbol]) for symbol in symbols)])


def _share(variant: Variant, symbol: str) -> str:
    """The width of a head as a share of the model's, where that is what it is."""
    a = variant.architecture
    if symbol in ("d_h", "d_v") and variant.sizes[symbol] * a.H == a.d:
        return f"{format_number(a.d)}/{a.H} = {format_number(variant.sizes[symbol])}"
    return ""
