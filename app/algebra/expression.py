"""Sizes in symbols: sums of products and quotients of symbols and numbers, equal if they have the same value for all
sizes.

>>> Expression.parse("G*d_h").size({"G": 2, "d_h": 64})
128
>>> Expression.parse("d*N + N*d") == Expression.parse("2*N*d")
True
>>> Expression.parse("N") == Expression.parse("d_h")  # equal lengths on some sheets, but never the same expression
False
>>> Expression.parse("(G - H)*d") == Expression.parse("G*d - H*d")
True
>>> d, H = Expression.symbol("d"), Expression.symbol("H")
>>> str(d / H), (d / H * H) == d, str(1 - d * 3)
('d/H', True, '-3*d + 1')
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Literal, NamedTuple, Union

from app.algebra.parser import CannotReadError, ExpressionParser

Rounding = Literal["never", "up", "down"]
Operand = Union["Expression", int, Fraction]  # what an expression can be added to, multiplied by and so on
Sizes = Mapping[str, int | Fraction]
_ROUNDING: Mapping[str, Rounding] = {"floor": "down", "ceil": "up"}
_TOKEN = re.compile(r"\s*([A-Za-z][A-Za-z_]*|[0-9]+|[-+*/^()])")


class ExpressionError(ValueError):
    """Raised for text that isn't an expression, a symbol without a size, a division by a sum, or a size that isn't
    whole.
    """

    def __init__(self, problem: str, pattern: str, sizes: Sizes | None = None) -> None:
        self.pattern = pattern
        self.sizes = dict(sizes or {})
        known = f" (sizes given: {', '.join(f'{k}={v}' for k, v in self.sizes.items())})" if sizes else ""
        super().__init__(f"{problem} in '{pattern}'{known}")


class DividedBySumError(ExpressionError):
    """Raised for a division by a sum of several terms."""


@dataclass(frozen=True)
class Formula:
    """An expression that may be rounded as a whole: `floor(N*N/2)`, `ceil(N/E)`.

    >>> Formula.parse("floor(N*N/2)").number({"N": 9}), Formula.parse("N*N/2").number({"N": 9})
    (40, None)
    """

    expression: Expression
    rounded: Rounding = "never"

    @staticmethod
    @cache
    def parse(text: str) -> Formula:
        """Read an expression, perhaps inside floor() or ceil(); raise ExpressionError if it can't be read."""
        for name, rounded in _ROUNDING.items():
            if text.startswith(f"{name}("):
                return Formula(Expression.parse(text.removeprefix(name)), rounded)
        return Formula(Expression.parse(text))

    def number(self, sizes: Sizes) -> int | None:
        """The value of the formula, rounded as it says; None if it isn't whole after that, or divides by 0.

        Raises ExpressionError, naming the symbols that have no size.
        """
        try:
            value = self.expression.value(sizes)
        except ZeroDivisionError:
            return None
        return None if value.denominator != 1 and self.rounded == "never" else _rounded(value, self.rounded)


class Term(NamedTuple):
    """One product of an expression, such as 2·d·d/H: `factor` times `symbols`, divided by `divisors`.

    Symbols and divisors are in alphabetical order, repeated as often as they occur.
    """

    factor: int | Fraction
    symbols: tuple[str, ...] = ()
    divisors: tuple[str, ...] = ()

    def __str__(self) -> str:
        digits = [str(self.factor)] if self.factor != 1 or not self.symbols else []
        return "/".join(["*".join([*digits, *self.symbols]), *self.divisors])


@dataclass(frozen=True)
class Expression:
    """A sum of terms in a fixed order, with like terms added up, so that equal expressions compare equal.

    Zero is one term with factor 0.
    """

    terms: tuple[Term, ...]

    @staticmethod
    @cache
    def parse(text: str) -> Expression:
        """Read arithmetic with symbols and whole numbers: 'N', 'G*d_h', '2*N + 1', 'N*k/E', '(G - H)*d', 'd^2'.

        Raises ExpressionError for anything else, and its subclass DividedBySumError for a division by a sum.
        """
        try:
            return ExpressionParser(_tokens(text), _atom).value()
        except CannotReadError as error:
            raise ExpressionError(f"cannot read it ({error.unreadable.reason})", text) from None

    @staticmethod
    def number(value: int | Fraction) -> Expression:
        return Expression((Term(value.numerator if value.denominator == 1 else value),))

    @staticmethod
    def symbol(name: str) -> Expression:
        return Expression((Term(1, (name,)),))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Every symbol in the expression, divisors included."""
        return frozenset(symbol for term in self.terms for symbol in term.symbols + term.divisors)

    @cached_property
    def _only_symbol(self) -> str | None:
        term = self.terms[0]
        alone = len(self.terms) == len(term.symbols) == term.factor == 1 and not term.divisors
        return term.symbols[0] if alone else None

    def size(self, sizes: Mapping[str, int], rounded: Rounding = "never") -> int:
        """The value as a whole number, rounded "up" or "down" as `rounded` says."""
        try:
            if self._only_symbol:
                return sizes[self._only_symbol]
            number = self._evaluate(sizes)
        except KeyError:
            raise self._without_size(sizes) from None
        if number.denominator != 1 and rounded == "never":
            raise ExpressionError(f"{number} is not a whole number", str(self), sizes)
        return _rounded(number, rounded)

    def value(self, sizes: Sizes) -> Fraction:
        """The exact value of the expression.

        Raises ExpressionError, naming the symbols that have no size, and ZeroDivisionError for a divisor of size 0.
        """
        try:
            return Fraction(self._evaluate(sizes))
        except KeyError:
            raise self._without_size(sizes) from None

    def substitute(self, meanings: Mapping[str, Expression]) -> Expression:
        """The expression with each symbol in `meanings` replaced by its meaning.

        Raises DividedBySumError if a divisor is replaced by a sum.

        Example: N*d with d = H*d_h -> H*N*d_h
        """
        if self.symbols.isdisjoint(meanings):
            return self
        return Expression(_collect(part for term in self.terms for part in _substitute(term, meanings).terms))

    def fold(self, product: Expression, symbol: str) -> Expression:
        """The expression with `symbol` in place of each complete occurrence of a product of symbols.

        Example: 2*H*N*d_h with the product H*d_h as d -> 2*N*d
        """
        (parts,) = product.terms
        return Expression(_collect(_fold(term, parts.symbols, symbol) for term in self.terms))

    def __add__(self, other: Operand) -> Expression:
        return Expression(_collect(self.terms + _expression(other).terms))

    def __neg__(self) -> Expression:
        return Expression(tuple(term._replace(factor=-term.factor) for term in self.terms))

    def __sub__(self, other: Operand) -> Expression:
        return self + -other

    def __rsub__(self, other: Operand) -> Expression:
        return -self + other

    def __mul__(self, other: Operand) -> Expression:
        return Expression(_collect([_multiply(a, b) for a in self.terms for b in _expression(other).terms]))

    def __truediv__(self, other: Operand) -> Expression:
        divisor = _expression(other)
        if len(divisor.terms) != 1:
            raise DividedBySumError("cannot divide by a sum", str(divisor))
        factor, symbols, divisors = divisor.terms[0]
        inverse = Term(Fraction(1) / factor, divisors, symbols)
        return Expression(_collect([_multiply(term, inverse) for term in self.terms]))

    def __rtruediv__(self, other: Operand) -> Expression:
        return _expression(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))

    def _evaluate(self, sizes: Sizes) -> int | Fraction:
        total: int | Fraction = 0
        for product, symbols, divisors in self.terms:
            for symbol in symbols:
                product *= sizes[symbol]
            for symbol in divisors:
                product = Fraction(product) / sizes[symbol]
            total += product
        return total

    def _without_size(self, sizes: Sizes) -> ExpressionError:
        missing = ", ".join(sorted(self.symbols - sizes.keys()))
        return ExpressionError(f"no size for {missing}", str(self), sizes)


def _rounded(number: int | Fraction, rounded: Rounding) -> int:
    return math.ceil(number) if rounded == "up" else math.floor(number)


def _expression(operand: Operand) -> Expression:
    return operand if isinstance(operand, Expression) else Expression.number(operand)


def _tokens(text: str) -> list[str]:
    tokens, position, end = list[str](), 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"cannot read '{text[position:].strip()}'", text)
        ends_factor = bool(tokens) and (tokens[-1][0].isalnum() or tokens[-1] == ")")
        if ends_factor and (match[1][0].isalnum() or match[1] == "("):
            raise ExpressionError(f"no sign before '{match[1]}'", text)
        tokens.append(match[1])
        position = match.end()
    return tokens


def _atom(token: str) -> Expression | None:
    if token.isdigit():
        return Expression.number(int(token))
    return Expression.symbol(token) if token[0].isalpha() else None


def _multiply(a: Term, b: Term) -> Term:
    if not a.divisors and not b.divisors:
        return Term(a.factor * b.factor, tuple(sorted(a.symbols + b.symbols)))
    symbols, divisors = sorted(a.symbols + b.symbols), sorted(a.divisors + b.divisors)
    for symbol in tuple(divisors):
        if symbol in symbols:
            symbols.remove(symbol)
            divisors.remove(symbol)
    return Term(a.factor * b.factor, tuple(symbols), tuple(divisors))


def _collect(terms: Iterable[Term]) -> tuple[Term, ...]:
    collected: dict[tuple[tuple[str, ...], tuple[str, ...]], Term] = {}
    for term in terms:
        key = (term.symbols, term.divisors)
        like = collected.get(key)
        collected[key] = Term(like.factor + term.factor, *key) if like else term
    nonzero = [term for term in collected.values() if term.factor]
    if len(nonzero) > 1:
        nonzero.sort(key=lambda term: (not term.symbols, term.symbols, term.divisors))
    return tuple(nonzero) or (Term(0),)


def _substitute(term: Term, meanings: Mapping[str, Expression]) -> Expression:
    symbols, divisors = (tuple(s for s in names if s not in meanings) for names in (term.symbols, term.divisors))
    product = Expression((Term(term.factor, symbols, divisors),))
    for symbol in term.symbols:
        if symbol in meanings:
            product *= meanings[symbol]
    for symbol in term.divisors:
        if symbol in meanings:
            product /= meanings[symbol]
    return product


def _fold(term: Term, product: tuple[str, ...], symbol: str) -> Term:
    symbols = list(term.symbols)
    while all(symbols.count(part) >= product.count(part) for part in product):
        for part in product:
            symbols.remove(part)
        symbols.append(symbol)
    return Term(term.factor, tuple(sorted(symbols)), term.divisors)


ZERO, ONE = Expression((Term(0),)), Expression((Term(1),))
