"""What a student typed, read as a whole number; or the reason why it could not be read, which is never "wrong".

>>> read_answer("4096/32"), read_answer("4 096"), read_answer("４０９６")
(128, 4096, 4096)
>>> read_answer("about 100")
Unreadable(reason='letters', detail='about')
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

MAX_LENGTH = 100
MAX_VALUE = 10**18

_SPELLINGS = str.maketrans(
    {"×": "*", "·": "*", "⋅": "*", "∗": "*", "x": "*", "X": "*", "÷": "/", "⁄": "/", "∕": "/", "−": "-", "–": "-"}
)
_SEPARATORS = ",'’_ "
_NUMBER = re.compile(rf"\d{{1,3}}(?:([{_SEPARATORS}])\d{{3}})(?:\1\d{{3}})*(?!\d)|\d+")
_SIGNS = frozenset("+-*/()=")


@dataclass(frozen=True)
class Unreadable:
    """Why a text is no size: a key into the wording's sentences, and the part of the text that is meant."""

    reason: str
    detail: str = ""


class _CannotReadError(Exception):
    def __init__(self, reason: str, detail: str = "") -> None:
        self.unreadable = Unreadable(reason, detail)


def read_answer(text: str) -> int | Unreadable | None:
    """The whole number above zero that a text stands for; None for an empty box.

    Sums, products, quotients and brackets of whole numbers are read, with digits of any script and thousands set
    apart by comma, space, apostrophe or underscore; "4096/32 = 128" too, where both sides agree. Nothing is evaluated
    as code: the text is cut into numbers and signs, and these are read by the rules of arithmetic.
    """
    try:
        return _read(text)
    except _CannotReadError as error:
        return error.unreadable


def _read(text: str) -> int | None:
    if not text.strip():
        return None
    if len(text) > MAX_LENGTH:
        raise _CannotReadError("too-long")
    if text.isascii() and text.isdigit():  # nearly every answer: no need to take it apart
        return _size(_bounded(Fraction(int(text))))
    values = [_Sum(tokens).value() for tokens in _sides(_tokens(_plain(text)))]
    if len(set(values)) > 1:
        raise _CannotReadError("sides-differ")
    return _size(values[0])


def _plain(text: str) -> str:
    """One spelling for digits, signs and spaces of every script; a raised 2 is not the digit 2."""
    if raised := [c for c in text if unicodedata.category(c) == "No"]:
        raise _CannotReadError("raised", raised[0])
    plain = unicodedata.normalize("NFKC", text.translate(_SPELLINGS)).translate(_SPELLINGS)
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    return " ".join("".join(digits).split())


def _tokens(text: str) -> list[str]:
    tokens, at = list[str](), 0
    while at < len(text):
        if number := _NUMBER.match(text, at):
            tokens.append(number.group())
            at = number.end()
        elif text[at] in _SIGNS:
            tokens.append(text[at])
            at += 1
        elif text[at] == " ":
            at += 1
        else:
            raise _no_token(text, at)
    return tokens


def _no_token(text: str, at: int) -> _CannotReadError:
    if word := re.match(r"[^\W\d_]+", text[at:]):
        return _CannotReadError("letters", word.group())
    if text[at] in ".,":
        return _CannotReadError("decimal", text[at])
    return _CannotReadError("sign", text[at].encode(errors="replace").decode())  # half a character cannot be shown


def _sides(tokens: list[str]) -> list[list[str]]:
    sides: list[list[str]] = [[]]
    for token in tokens:
        if token == "=":  # noqa: S105 - a sign in a sum, not a password
            sides.append([])
        else:
            sides[-1].append(token)
    return sides


class _Sum:
    """Arithmetic by recursive descent over tokens, in fractions, so that 4096/32*2 is exact."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def value(self) -> Fraction:
        value = self.sum()
        if self.at < len(self.tokens):
            raise _CannotReadError("two-numbers" if self.tokens[self.at].isdigit() else "incomplete")
        return value

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self) -> Fraction:
        value = self.product()
        while self.next() in ("+", "-"):
            value = _bounded(value + self.product() if self.take() == "+" else value - self.product())
        return value

    def product(self) -> Fraction:
        value = self.factor()
        while self.next() in ("*", "/"):
            value = _bounded(value * self.factor() if self.take() == "*" else _quotient(value, self.factor()))
        return value

    def factor(self) -> Fraction:
        if self.next() == "(":
            self.take()
            value = self.sum()
            if self.next() != ")":
                raise _CannotReadError("incomplete")
            self.take()
            return value
        if self.next() == "-":
            self.take()
            return -self.factor()
        digits = re.sub(f"[{_SEPARATORS}]", "", self.next())
        if not digits.isdigit():
            raise _CannotReadError("incomplete")
        self.take()
        return _bounded(Fraction(int(digits)))


def _quotient(value: Fraction, divisor: Fraction) -> Fraction:
    if divisor == 0:
        raise _CannotReadError("division-by-zero")
    return value / divisor


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise _CannotReadError("too-large")
    return value


def _size(value: Fraction) -> int:
    if value.denominator != 1:
        raise _CannotReadError("not-whole", f"{float(value):,.2f}")
    if value < 1:
        raise _CannotReadError("below-one", f"{int(value):,}")
    return int(value)
