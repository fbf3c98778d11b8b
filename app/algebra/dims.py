"""Symbols for the sizes of tensors, with products and sums of them, read from text once.

>>> Dim.parse("G*d_h").size({"G": 2, "d_h": 64})
128
>>> Dim.parse("N") == Dim.parse("d_h")  # of one length on some sheets, never the same Dim
False
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

_SYMBOL = re.compile(r"[A-Za-z][A-Za-z_]*")


class DimError(ValueError):
    """A symbolic size that cannot be read, or a symbol that was given no size."""

    def __init__(self, problem: str, pattern: str, sizes: Mapping[str, int] | None = None) -> None:
        self.pattern = pattern
        self.sizes = dict(sizes or {})
        known = f" (sizes given: {', '.join(f'{k}={v}' for k, v in self.sizes.items())})" if sizes else ""
        super().__init__(f"{problem} in '{pattern}'{known}")


@dataclass(frozen=True)
class Term:
    """A number times symbols, such as 2·G·d_h; the number is a fraction where 4-bit weights take half a byte each."""

    factor: int | Fraction
    symbols: tuple[str, ...] = ()

    def size(self, sizes: Mapping[str, int]) -> int | Fraction:
        return self.factor * math.prod([sizes[symbol] for symbol in self.symbols])

    def __str__(self) -> str:
        digits = [str(self.factor)] if self.factor != 1 or not self.symbols else []
        return "*".join([*digits, *self.symbols])


@dataclass(frozen=True)
class Dim:
    """The length of one axis in symbols: a sum of terms, kept in one order so that equal sums compare equal."""

    terms: tuple[Term, ...]

    @staticmethod
    @cache
    def parse(text: str) -> Dim:
        """Read 'N', 'G*d_h' or 'N + 1'; raises DimError for anything else."""
        return Dim(_collect(_parse_term(part, text) for part in text.split("+")))

    @cached_property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for term in self.terms for symbol in term.symbols)

    @cached_property
    def _symbol(self) -> str | None:
        """The one symbol that this is, where it is nothing else."""
        term = self.terms[0]
        return term.symbols[0] if len(self.terms) == len(term.symbols) == term.factor == 1 else None

    def size(self, sizes: Mapping[str, int]) -> int:
        """The length once every symbol has a size, rounded up; raises DimError naming a symbol that has none."""
        try:
            if self._symbol:
                return sizes[self._symbol]
            return math.ceil(sum([term.size(sizes) for term in self.terms]))
        except KeyError:
            missing = ", ".join(sorted(self.symbols - sizes.keys()))
            raise DimError(f"no size for {missing}", str(self), sizes) from None

    def __mul__(self, other: Dim) -> Dim:
        products = (Term(a.factor * b.factor, a.symbols + b.symbols) for a in self.terms for b in other.terms)
        return Dim(_collect(products))

    def __add__(self, other: Dim) -> Dim:
        return Dim(_collect(self.terms + other.terms))

    def times(self, factor: int | Fraction) -> Dim:
        """The same sum so many times."""
        return Dim(_collect(Term(term.factor * factor, term.symbols) for term in self.terms))

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))


def _parse_term(part: str, whole: str) -> Term:
    factor, symbols = 1, list[str]()
    for piece in (piece.strip() for piece in part.split("*")):
        if piece.isascii() and piece.isdigit():
            factor *= int(piece)
        elif _SYMBOL.fullmatch(piece):
            symbols.append(piece)
        else:
            raise DimError(f"cannot read '{piece}'", whole)
    return Term(factor, tuple(symbols))


def _collect(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Like terms added up, in one order: symbols before plain numbers, capitals first (G*d_h, N + 1)."""
    factors: dict[tuple[str, ...], int | Fraction] = {}
    for term in terms:
        key = tuple(sorted(term.symbols))
        factors[key] = factors.get(key, 0) + term.factor
    kept = [Term(factor, symbols) for symbols, factor in factors.items() if factor]
    return tuple(sorted(kept, key=lambda term: (not term.symbols, term.symbols))) or (Term(0),)
