"""Answers in letters, such as T × d/h: read by a small grammar into sums of products, and compared by meaning.

>>> names = {"d": "d", "h": "H", "T": "N"}
>>> read_letters("d/h", names) == read_letters("2*d / (2*h)", names)
True
>>> read_letters("d/q", names)
Unreadable(reason='unknown-letter', detail='q')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from app.algebra.dims import Dim
from app.algebra.parser import CannotReadError, Sum, Unreadable, plain_signs, shown

MAX_LENGTH = 100
MAX_TERMS = 50
_TOKEN = re.compile(r"[A-Za-zΑ-Ωα-ω][A-Za-z_']*|\d+|[-+*/()]| ")
Powers = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Expression:
    """A sum of products of symbols, whose powers may be negative where something was divided by them."""

    terms: tuple[tuple[Powers, Fraction], ...]

    @staticmethod
    def of(terms: Iterable[tuple[Powers, Fraction]]) -> Expression:
        """Like terms added up, in one order, so that equal sums compare equal."""
        sums: dict[Powers, Fraction] = {}
        for powers, factor in terms:
            sums[powers] = sums.get(powers, Fraction(0)) + factor
        if len(sums) > MAX_TERMS:
            raise CannotReadError("too-long")
        return Expression(tuple(sorted((powers, factor) for powers, factor in sums.items() if factor)))

    @staticmethod
    def number(value: int) -> Expression:
        return Expression.of([((), Fraction(value))])

    @staticmethod
    def symbol(name: str) -> Expression:
        return Expression.of([(((name, 1),), Fraction(1))])

    @staticmethod
    def from_dim(dim: Dim) -> Expression:
        return Expression.of((_powers(term.symbols), Fraction(term.factor)) for term in dim.terms)

    def __add__(self, other: Expression) -> Expression:
        return Expression.of((*self.terms, *other.terms))

    def __neg__(self) -> Expression:
        return Expression.of((powers, -factor) for powers, factor in self.terms)

    def __sub__(self, other: Expression) -> Expression:
        return self + -other

    def __mul__(self, other: Expression) -> Expression:
        return Expression.of((_joined(p, q), a * b) for p, a in self.terms for q, b in other.terms)

    def __truediv__(self, other: Expression) -> Expression:
        if len(other.terms) != 1:  # what is divided by a sum is no length of a matrix
            raise CannotReadError("division-by-zero" if not other.terms else "incomplete")
        ((powers, factor),) = other.terms
        inverse = tuple((symbol, -power) for symbol, power in powers)
        return self * Expression(((inverse, 1 / factor),))

    def replaced(self, meanings: Mapping[str, Expression]) -> Expression:
        """The same sum with symbols that mean a product written out as that product."""
        total = Expression(())
        for powers, factor in self.terms:
            product = Expression.of([((), factor)])
            for symbol, power in powers:
                meaning = meanings.get(symbol, Expression.symbol(symbol))
                for _ in range(abs(power)):
                    product = product * meaning if power > 0 else product / meaning
            total += product
        return total

    def value(self, sizes: Mapping[str, int]) -> Fraction:
        """The number it comes to."""
        total = Fraction(0)
        for powers, factor in self.terms:
            for symbol, power in powers:
                factor *= Fraction(sizes[symbol]) ** power
            total += factor
        return total

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for powers, _ in self.terms for symbol, _ in powers)


def read_letters(text: str, names: Mapping[str, str]) -> Expression | Unreadable | None:
    """What a text in letters means; `names` gives each name its symbol. None for an empty box."""
    try:
        return _read(text, names)
    except CannotReadError as error:
        return error.unreadable


def _read(text: str, names: Mapping[str, str]) -> Expression | None:
    if not text.strip():
        return None
    if len(text) > MAX_LENGTH:
        raise CannotReadError("too-long")
    tokens = _tokens(plain_signs(text))
    found = Sum(tokens, lambda token: _atom(token, names)).value()
    if not found.symbols and found != Expression.number(1):
        raise CannotReadError("numbers")
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = list[str](), 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise CannotReadError("sign", shown(text[at]))
        tokens.append(token.group())
        at = token.end()
    return [piece for piece in tokens if piece.strip()]


def _atom(token: str, names: Mapping[str, str]) -> Expression | None:
    """The meaning of one number or name; None for a sign."""
    if token.isdigit():
        return Expression.number(int(token))
    if not token[:1].isalpha():
        return None
    if token not in names:
        raise CannotReadError("unknown-letter", token)
    return Expression.symbol(names[token])


def _powers(symbols: Iterable[str]) -> Powers:
    counts: dict[str, int] = {}
    for symbol in symbols:
        counts[symbol] = counts.get(symbol, 0) + 1
    return tuple(sorted(counts.items()))


def _joined(first: Powers, second: Powers) -> Powers:
    counts = dict(first)
    for symbol, power in second:
        counts[symbol] = counts.get(symbol, 0) + power
    return tuple(sorted((symbol, power) for symbol, power in counts.items() if power))
