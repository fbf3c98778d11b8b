"""Parses typed arithmetic: sums, products, quotients and brackets of numbers or symbols. Nothing is evaluated as code.

A text is cut into tokens, which an ExpressionParser reads by recursive descent:

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/" | nothing, before a name or bracket) factor }
    factor  = ("-" | "+") factor | power
    power   = ("(" sum ")" | number or name) [ "^" whole number ]

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
# larger than every answer: 2·H·N·N·d_h operations are below 10^33 for the longest input and widest model
MAX_VALUE = 10**48
MAX_DEPTH = 50  # brackets within brackets

# A value with arithmetic: a Fraction, or an Expression in symbols.
Value = TypeVar("Value", bound=Any)


@dataclass(frozen=True)
class Unreadable:
    """Why a text isn't a size: the key of a sentence in the wording, and the part of the text to quote, if any."""

    reason: str
    detail: str = ""
    symbols: str = ""


class CannotReadError(Exception):
    """Raised with the reason why a text can't be read."""

    def __init__(self, reason: str, detail: str = "", symbols: str = "") -> None:
        self.unreadable = Unreadable(reason, detail, symbols)


def normalize_signs(text: str) -> str:
    """The text with one spelling for digits, operators and spaces of all scripts: 0-9, * / - ^, single spaces.

    Example: "４０９６² ÷  32" -> "4096^2 / 32"
    """
    text = _RAISED.sub(lambda digits: "^" + digits[0].translate(_RAISED_DIGITS), text)
    if special_digits := [c for c in text if unicodedata.category(c) == "No"]:
        raise CannotReadError("special-digit", special_digits[0])
    plain = normal_form("NFKC", text.translate(_OPERATORS)).translate(_OPERATORS)
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    return " ".join("".join(digits).replace("**", "^").split())


def printable(character: str) -> str:
    """The character as it can be shown in a sentence: half of a surrogate pair becomes "?"."""
    return character.encode(errors="replace").decode()


class ExpressionParser(Generic[Value]):
    """Parses a list of tokens into one value, by the grammar above."""

    def __init__(
        self,
        tokens: list[str],
        atom: Callable[[str], Value | None],
        check: Callable[[Value], Value] = lambda value: value,
    ) -> None:
        self.tokens, self.atom, self.check, self.position, self.depth = tokens, atom, check, 0, 0

    def value(self) -> Value:
        """The value of all tokens; raises CannotReadError if they aren't one complete expression."""
        try:
            value = self.sum()
        except ZeroDivisionError:
            raise CannotReadError("division-by-zero") from None
        if self.position < len(self.tokens):
            raise CannotReadError("two-numbers" if self.peek()[0].isalnum() else "incomplete")
        return value

    def peek(self) -> str:
        """The current token, or "" after the last one; doesn't move on."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        """The current token; moves on to the next one."""
        self.position += 1
        return self.tokens[self.position - 1]

    def sum(self) -> Value:
        """Read terms with + or - between them, adding and subtracting from left to right."""
        value = self.product()
        while self.peek() in ("+", "-"):
            value = self.check(value + self.product() if self.take() == "+" else value - self.product())
        return value

    def product(self) -> Value:
        """Read factors with *, / or nothing between them, multiplying and dividing from left to right."""
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
        """Read signs, then a power; each minus negates the power: --2 is 2, -2^2 is -4."""
        is_negative = False
        while self.peek() in ("-", "+"):
            is_negative ^= self.take() == "-"
        value = self.power()
        negative: Value = -value if is_negative else value
        return negative

    def power(self) -> Value:
        """Read a sum in brackets, a number or a name, and then ^ with a whole number, if there is one."""
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
