"""The simplest expression of some sizes that equals an observed number in every probe, and the simplest condition.

>>> fitter = Fitter({"d": [96, 192, 288, 480], "H": [4, 6, 8, 12], "V": [101, 103, 107, 109]})
>>> text(fitter.fit([96 * 4, 192 * 6, 288 * 8, 480 * 12])), text(fitter.fit([24, 32, 36, 40]))
('d*H', 'd/H')
>>> text(fitter.fit([109, 111, 115, 117]))
'V + 8'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

ENOUGH_FOR_SUMS = 6  # probes: sums and rounded shares fit fewer by chance

Vector = np.ndarray[Any, np.dtype[np.int64]]
Truth = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Term:
    """A coefficient times the fields `over` the line, divided by those `under` it; perhaps rounded.

    `multiple` rounds up to a multiple of it; 0 rounds down; None doesn't round.
    """

    coefficient: Fraction
    over: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    multiple: int | None = None

    def ordered(self, key: Callable[[str], Any]) -> Term:
        return Term(self.coefficient, tuple(sorted(self.over, key=key)), self.under, self.multiple)

    def text(self, name: Callable[[str], str]) -> str:
        number = abs(self.coefficient)
        factors = [str(number.numerator)] * (number.numerator != 1 or not self.over) + [name(f) for f in self.over]
        divisors = [name(f) for f in self.under] + [str(number.denominator)] * (number.denominator != 1)
        sign = "//" if self.multiple == 0 else "/"
        words = "*".join(factors) + "".join(sign + divisor for divisor in divisors)
        return f"up({words}, {self.multiple})" if self.multiple else words


Terms = tuple[Term, ...]


def text(terms: Terms, name: Callable[[str], str] = str) -> str:
    """The expression in the grammar of tables; `name` says how it calls a field."""
    words = ""
    for term in terms:
        sign = "-" if term.coefficient < 0 else "+"
        words += f" {sign} {term.text(name)}" if words else term.text(name) if sign == "+" else f"-{term.text(name)}"
    return words


class Fitter:
    """Finds expressions for vectors that hold one number per probe, from the fields' values in the same probes."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], weight: Callable[[str], int] = lambda _field: 0) -> None:
        self.columns = dict[str, Vector]()
        seen = set[bytes]()
        for field in sorted(columns, key=weight):
            if all(type(value) is int and value > 0 for value in columns[field]):
                column = np.array(columns[field], dtype=np.int64)
                # A field that never changes, or always equals one that is better known, explains nothing.
                if column.tobytes() not in seen and len(set(columns[field])) > 1:
                    seen.add(column.tobytes())
                    self.columns[field] = column
        self.cost = {field: weight(field) for field in self.columns}
        self.rows = len(next(iter(columns.values()))) if columns else 1
        self._found = dict[tuple[int, ...], Terms | None]()
        self._monomials = list[tuple[Term, Vector]]()
        self._sums = dict[bytes, tuple[Term, Vector]]()

    def fit(self, numbers: Sequence[int]) -> Terms | None:
        """The simplest expression, or None."""
        key = tuple(numbers)
        if key not in self._found:
            self._found[key] = self._fit(np.array(key, dtype=np.int64))
        return self._found[key]

    def _fit(self, target: Vector) -> Terms | None:
        if (target == target[0]).all():
            return (Term(Fraction(int(target[0]))),)
        if not self._monomials:
            self._prepare()
        for term, column in self._monomials:
            if (target * column[0] == column * target[0]).all():
                return (Term(Fraction(int(target[0]), int(column[0])), term.over, term.under),)
        if self.rows < ENOUGH_FOR_SUMS:
            return None
        return self._two_terms(target) or self._rounded(target) or self._three_terms(target)

    def _prepare(self) -> None:
        """All products of up to three fields and quotients of up to two by one, the simplest first."""
        names = list(self.columns)
        one = np.ones(self.rows, dtype=np.int64)
        for degree, most in ((1, 20), (2, 20), (3, 12)):
            for over in combinations_with_replacement(names[:most], degree):
                if max(over.count(field) for field in over) <= 2:
                    product = one.copy()
                    for field in over:
                        product = product * self.columns[field]
                    self._monomials.append((Term(Fraction(1), over), product))
        for under in names:
            for degree in (1, 2):
                for over in combinations(names[:14], degree):
                    product = one.copy()
                    for field in over:
                        product = product * self.columns[field]
                    if under not in over and not (product % self.columns[under]).any():
                        self._monomials.append((Term(Fraction(1), over, (under,)), product // self.columns[under]))
        self._monomials.sort(key=lambda item: self._complexity(item[0]))
        self._small = [m for m in self._monomials if len(m[0].over) + len(m[0].under) <= 2 or m[0].under][:160]
        for term, column in self._small:
            for times in (1, 2, 3, 4):
                scaled = Term(Fraction(times), term.over, term.under)
                self._sums.setdefault(_without_constant(column * times), (scaled, column * times))

    def _complexity(self, term: Term) -> float:
        return len(term.over) + 2 * len(term.under) + sum(self.cost[f] for f in term.over + term.under) / 10

    def _two_terms(self, target: Vector) -> Terms | None:
        """c·x + constant, or a·x + b·y (+ constant)."""
        if hit := self._sums.get(_without_constant(target)):
            return _with_constant((hit[0],), target - hit[1])
        for times in (1, 2, 3, 4, -1, -2):
            for term, column in self._small:
                rest = target - times * column
                if hit := self._sums.get(_without_constant(rest)):
                    terms = (hit[0], Term(Fraction(times), term.over, term.under))
                    return _with_constant(terms, rest - hit[1])
        return None

    def _three_terms(self, target: Vector) -> Terms | None:
        for (first, x), (second, y) in combinations(self._small[:60], 2):
            for a in (1, 2):
                for b in (1, 2):
                    rest = target - a * x - b * y
                    if hit := self._sums.get(_without_constant(rest)):
                        terms = (
                            hit[0],
                            Term(Fraction(a), first.over, first.under),
                            Term(Fraction(b), second.over, second.under),
                        )
                        return _with_constant(terms, rest - hit[1])
        return None

    def _rounded(self, target: Vector) -> Terms | None:
        """A share of one field or a quotient of two, rounded down, or a share rounded up to a multiple."""
        for term, column in self._monomials[:250]:
            for under in self.columns if not term.under else ():
                if under not in term.over and (column // self.columns[under] == target).all():
                    return (Term(Fraction(1), term.over, (under,), 0),)
        for field in list(self.columns)[:10]:
            column = self.columns[field]
            for share in _SHARES:
                if (column * share.numerator // share.denominator == target).all():
                    return (Term(share, (field,), (), 0),)
            for multiple in (8, 16, 32, 64, 128, 256):
                for share in _ROUNDED_UP:
                    steps = -(-(column * share.numerator) // (share.denominator * multiple))
                    if (steps * multiple == target).all():
                        return (Term(share, (field,), (), multiple),)
        return None


_SHARES = sorted({Fraction(p, q) for q in range(2, 65) for p in (1, 2, 3, 4, 5, 7, 8)}, key=lambda f: f.denominator)
_ROUNDED_UP = [
    Fraction(p, q)
    for p, q in ((1, 2), (1, 3), (2, 3), (4, 3), (8, 3), (1, 16), (1, 8), (1, 4), (1, 1), (2, 1), (3, 1), (4, 1))
]


def _without_constant(vector: Vector) -> bytes:
    return bytes((vector - vector[0]).tobytes())


def _with_constant(terms: Terms, rest: Vector) -> Terms:
    constant = int(rest[0])
    return (*terms, Term(Fraction(constant))) if constant else terms


# Where each condition of a list of candidates holds; the simplest first.
Truths = Mapping[str, Truth]


def both(first: str, second: str) -> str:
    """The condition that both hold; "" always holds."""
    parts = [f"({part})" if " or " in part else part for part in dict.fromkeys((first, second)) if part]
    return " and ".join(parts) if len(parts) > 1 else first or second


def negated(literal: str) -> str:
    """The opposite of a condition without "and" and "or"."""
    for word, opposite in _OPPOSITES:
        if word in literal:
            return literal.replace(word, opposite, 1)
    return literal.removeprefix("not ") if literal.startswith("not ") else f"not {literal}"


def condition(wanted: Truth, truths: Truths) -> str | None:
    """The simplest condition that is true exactly where `wanted` is, or None."""
    if wanted.all():
        return ""
    useful = list[tuple[str, Truth]]()
    seen = set[bytes]()
    for literal, truth in truths.items():
        if truth.tobytes() not in seen and truth.any() and not truth.all():
            seen.add(truth.tobytes())
            useful.append((literal, truth))
    return next(_conditions(wanted, useful), None)


def _conditions(wanted: Truth, useful: list[tuple[str, Truth]]) -> Iterator[str]:
    for literal, truth in useful:
        if (truth == wanted).all():
            yield literal
    necessary = [(literal, truth) for literal, truth in useful if truth[wanted].all()]
    sufficient = [(literal, truth) for literal, truth in useful if not truth[~wanted].any()]
    for size in (2, 3):
        for some in combinations(necessary[:60], size):
            if (np.logical_and.reduce([truth for _, truth in some]) == wanted).all():
                yield " and ".join(literal for literal, _ in some)
        for some in combinations(sufficient[:60], size):
            if (np.logical_or.reduce([truth for _, truth in some]) == wanted).all():
                yield " or ".join(literal for literal, _ in some)
    pairs = list(combinations(useful[:60], 2))
    for first, x in necessary[:40]:
        for (second, y), (third, z) in pairs:
            if ((x & (y | z)) == wanted).all():
                yield f"{first} and ({second} or {third})"
    for first, x in sufficient[:40]:
        for (second, y), (third, z) in pairs:
            if ((x | (y & z)) == wanted).all():
                yield f"{first} or {second} and {third}"


_OPPOSITES = (
    (" == ", " != "),
    (" != ", " == "),
    (" >= ", " < "),
    (" <= ", " > "),
    (" < ", " >= "),
    (" > ", " <= "),
    (" is not ", " is "),
    (" is ", " is not "),
    (" not in ", " in "),
    (" in ", " not in "),
)
