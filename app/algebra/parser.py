"""Parses typed arithmetic: sums, products, quotients and brackets of numbers or of symbols. Nothing is evaluated as
code. A text is cut into tokens, and an ExpressionParser reads these by recursive descent: sum = product { ("+" |
"-") product } product = factor { ("*" | "/" | nothing, before a name or bracket) factor } factor = ("-" | "+")
factor | power power = ("(" sum ")" | number or name) [ "^" whole number ]

>>> from fractions import Fraction
>>> def number(token: str) -> Fraction | None:
...     return Fraction(token) if token.isdigit() else None
>>> ExpressionParser(["2", "*", "(", "3", "+", "4", ")"], number).value()
Fraction(14, 1)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.names import normal_form

_OPERATORS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/", "−": "-", "–": "-"})

_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
MAX_EXPONENT = 99
MAX_VALUE = 10**48  # above every answer: 2·H·N·N·d_h operations are below 10^33 for the longest input and widest model
MAX_DEPTH = 50  # of brackets within brackets

# A value that can be added, subtracted, multiplied and divided: a Fraction, or an Expression in symbols.
Value = TypeVar("Value", bound=Any)


@dataclass(frozen=True)
class Unreadable:
    """Why a text is no size: a key into the wording's sentences, and the part of the text that is meant, if any."""

    reason: str
    detail: str = ""
    symbols: str = ""


class CannotReadError(Exception):
    """Raised while a text is read; carries the Unreadable that the reader of the text returns."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.unreadable = Unreadable(reason, detail)


def normalize_signs(text: str) -> str:
    """The text with digits, operators and spaces of every script in one spelling: 0-9, * / - ^, single spaces.

    Example: "４０９６² ÷  32" -> "4096^2 / 32"
    """
    text = _RAISED.sub(lambda digits: "^" + digits[0].translate(_RAISED_DIGITS), text)
    if special_digits := [c for c in text if unicodedata.category(c) == "No"]:
        raise CannotReadError("special-digit", special_digits[0])
    plain = normal_form("NFKC", text.translate(_OPERATORS)).translate(_OPERATORS)
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    return " ".join("".join(digits).replace("**", "^").split())


def printable(character: str) -> str:
    """The character as a sentence can repeat it: half of a surrogate pair becomes "?"."""
    return character.encode(errors="replace").decode()


class ExpressionParser(Generic[Value]):
    """Parses a list of tokens by the grammar above into one value."""

    def __init__(
        self,
        tokens: list[str],
        atom: Callable[[str], Value | None],
        check: Callable[[Value], Value] = lambda value: value,
    ) -> None:
        self.tokens, self.atom, self.check, self.position, self.depth = tokens, atom, check, 0, 0

    def value(self) -> Value:
        """The value of all tokens; raises CannotReadError if they are no sum, or if any are left over."""
        try:
            value = self.sum()
        except ZeroDivisionError:
            raise CannotReadError("division-by-zero") from None
        if self.position < len(self.tokens):
            raise CannotReadError("two-numbers" if self.peek()[0].isalnum() else "incomplete")
        return value

    def peek(self) -> str:
        """The current token without moving on; "" after the last one."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        """The current token; moves on to the next one."""
        self.position += 1
        return self.tokens[self.position - 1]

    def sum(self) -> Value:
        """Read products with + or - between them from the current token on, and add or subtract from left to right."""
        value = self.product()
        while self.peek() in ("+", "-"):
            value = self.check(value + self.product() if self.take() == "+" else value - self.product())
        return value

    def product(self) -> Value:
        """Read factors with * or / or nothing between them from the current token on; multiply or divide left to
        right.
        """
        value, divided = self.factor(), False
        while self.peek() in ("*", "/") or self._at_name_or_bracket():
            if self._at_name_or_bracket():
                if divided:
                    raise CannotReadError("divisor")
                value = self.check(value * self.factor())
            else:
                divided = self.take() == "/"
                value = self.check(value / self.factor() if divided else value * self.factor())
        return value

    def _at_name_or_bracket(self) -> bool:
        return self.peek() == "(" or self.peek()[:1].isalpha()

    def factor(self) -> Value:
        """Read any number of plus and minus signs, then a power; each minus negates it: --2 is 2, -2^2 is -4."""
        is_negative = False
        while self.peek() in ("-", "+"):
            is_negative ^= self.take() == "-"
        value = self.power()
        negative: Value = -value if is_negative else value
        return negative

    def power(self) -> Value:
        """Read a sum in brackets, or else a number or name by `atom`; then ^ with a whole number, if there is one."""
        if self.peek() == "(":
            base: Value = self._bracket()
        else:
            atom = self.atom(self.peek()) if self.peek() else None
            if atom is None:
                raise CannotReadError("incomplete")
            self.take()
            base = self.check(atom)
        if self.peek() != "^":
            return base
        self.take()
        exponent = self.take() if self.peek().isdigit() and len(self.peek()) <= len(str(MAX_EXPONENT)) else "0"
        if not 1 <= int(exponent) <= MAX_EXPONENT or self.peek() == "^":
            raise CannotReadError("exponent")
        value = base
        for _ in range(int(exponent) - 1):
            value = self.check(value * base)
        return value

    def _bracket(self) -> Value:
        self.take()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CannotReadError("too-long")
        value = self.sum()
        self.depth -= 1
        if self.peek() != ")":
            raise CannotReadError("incomplete")
        self.take()
        return value
