"""Sums, products, quotients and brackets read from typed text by recursive descent: numbers and letters share it.

Nothing is evaluated as code: a text is cut into tokens, and these are read by the rules of arithmetic.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

SPELLINGS = {"×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/", "−": "-", "–": "-"}
_SIGNS = str.maketrans(SPELLINGS)

# A value that can be added, subtracted, multiplied and divided: a Fraction, or an Expression in letters.
Value = TypeVar("Value", bound=Any)


@dataclass(frozen=True)
class Unreadable:
    """Why a text is no size: a key into the wording's sentences, and the part of the text that is meant."""

    reason: str
    detail: str = ""


class CannotReadError(Exception):
    """Raised while a text is read, and turned into the Unreadable it carries."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.unreadable = Unreadable(reason, detail)


def plain_signs(text: str) -> str:
    """One spelling for digits, signs and spaces of every script; a raised 2 is not the digit 2."""
    if raised := [c for c in text if unicodedata.category(c) == "No"]:
        raise CannotReadError("raised", raised[0])
    plain = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    return " ".join("".join(digits).split())


def shown(character: str) -> str:
    """A character that a sentence can repeat: half a character cannot be shown."""
    return character.encode(errors="replace").decode()


class Sum(Generic[Value]):
    """Reads a list of tokens; `atom` gives the value of a number or name, None for a sign; `check` bounds results."""

    def __init__(
        self,
        tokens: list[str],
        atom: Callable[[str], Value | None],
        check: Callable[[Value], Value] = lambda value: value,
    ) -> None:
        self.tokens, self.atom, self.check, self.at = tokens, atom, check, 0

    def value(self) -> Value:
        """The value of all tokens; raises CannotReadError."""
        try:
            value = self.sum()
        except ZeroDivisionError:
            raise CannotReadError("division-by-zero") from None
        if self.at < len(self.tokens):
            raise CannotReadError("incomplete" if self.atom(self.next()) is None else "two-numbers")
        return value

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self) -> Value:
        value = self.product()
        while self.next() in ("+", "-"):
            value = self.check(value + self.product() if self.take() == "+" else value - self.product())
        return value

    def product(self) -> Value:
        value = self.factor()
        while self.next() in ("*", "/"):
            value = self.check(value * self.factor() if self.take() == "*" else value / self.factor())
        return value

    def factor(self) -> Value:
        if self.next() == "(":
            self.take()
            value = self.sum()
            if self.next() != ")":
                raise CannotReadError("incomplete")
            self.take()
            return value
        if self.next() == "-":
            self.take()
            negative: Value = -self.factor()
            return negative
        atom = self.atom(self.next()) if self.next() else None
        if atom is None:
            raise CannotReadError("incomplete")
        self.take()
        return self.check(atom)
