"""Parses typed arithmetic: sums, products, quotients and brackets of numbers or of symbols.

Nothing is evaluated as code. A text is cut into tokens, and an ExpressionParser reads these by recursive descent:

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/") factor }
    factor  = "-" factor | "(" sum ")" | number or name

>>> from fractions import Fraction
>>> def number(token: str) -> Fraction | None:
...     return Fraction(token) if token.isdigit() else None
>>> ExpressionParser(["2", "*", "(", "3", "+", "4", ")"], number).value()
Fraction(14, 1)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_OPERATORS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/", "−": "-", "–": "-"})

# A value that can be added, subtracted, multiplied and divided: a Fraction, or an Expression in symbols.
Value = TypeVar("Value", bound=Any)


@dataclass(frozen=True)
class Unreadable:
    """Why a text is no size: a key into the wording's sentences, and the part of the text that is meant, if any."""

    reason: str
    detail: str = ""


class CannotReadError(Exception):
    """Raised while a text is read; carries the Unreadable that the reader of the text returns."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.unreadable = Unreadable(reason, detail)


def normalize_signs(text: str) -> str:
    """The text with digits, operators and spaces of every script in one spelling: 0-9, * / -, single spaces.

    A raised or otherwise special digit, such as ², raises CannotReadError("raised"), for it is not the digit 2.

    Example: "４０９６ ÷  32" -> "4096 / 32"
    """
    if special_digits := [c for c in text if unicodedata.category(c) == "No"]:
        raise CannotReadError("raised", special_digits[0])
    plain = unicodedata.normalize("NFKC", text.translate(_OPERATORS)).translate(_OPERATORS)
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    return " ".join("".join(digits).split())


def printable(character: str) -> str:
    """The character as a sentence can repeat it: half of a surrogate pair becomes "?"."""
    return character.encode(errors="replace").decode()


class ExpressionParser(Generic[Value]):
    """Parses a list of tokens by the grammar above into one value.

    `atom` gives the value of a number or name, and None for any other token; `check` gets every intermediate value and
    returns it, or raises where it is too large. Each method below reads one rule of the grammar from the current token
    on and moves past it. All raise CannotReadError for tokens that do not follow the grammar.
    """

    def __init__(
        self,
        tokens: list[str],
        atom: Callable[[str], Value | None],
        check: Callable[[Value], Value] = lambda value: value,
    ) -> None:
        self.tokens, self.atom, self.check, self.position = tokens, atom, check, 0

    def value(self) -> Value:
        """The value of all tokens; raises CannotReadError if they are no sum, or if any are left over.

        Its reasons are "division-by-zero", "two-numbers" where a number or name is left over, as in "3 4", and
        "incomplete" where something is missing or another token is left over.
        """
        try:
            value = self.sum()
        except ZeroDivisionError:
            raise CannotReadError("division-by-zero") from None
        if self.position < len(self.tokens):
            raise CannotReadError("incomplete" if self.atom(self.peek()) is None else "two-numbers")
        return value

    def peek(self) -> str:
        """The current token without moving on; "" after the last one."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        """The current token; moves on to the next one."""
        self.position += 1
        return self.tokens[self.position - 1]

    def sum(self) -> Value:
        """Read products with + or - between them from the current token on, and add or subtract from left to right.

        `check` gets every intermediate value, and may raise.
        """
        value = self.product()
        while self.peek() in ("+", "-"):
            value = self.check(value + self.product() if self.take() == "+" else value - self.product())
        return value

    def product(self) -> Value:
        """Read factors with * or / between them from the current token on; multiply or divide from left to right.

        So 8/2*4 is 16. `check` gets every intermediate value, and may raise.
        """
        value = self.factor()
        while self.peek() in ("*", "/"):
            value = self.check(value * self.factor() if self.take() == "*" else value / self.factor())
        return value

    def factor(self) -> Value:
        """Read one of: a sum in brackets; a minus sign and a factor, which it negates; a number or name by `atom`.

        Raises CannotReadError("incomplete") for anything else, for no token, and for a bracket that is not closed.
        """
        if self.peek() == "(":
            self.take()
            value = self.sum()
            if self.peek() != ")":
                raise CannotReadError("incomplete")
            self.take()
            return value
        if self.peek() == "-":
            self.take()
            negative: Value = -self.factor()
            return negative
        atom = self.atom(self.peek()) if self.peek() else None
        if atom is None:
            raise CannotReadError("incomplete")
        self.take()
        return self.check(atom)
