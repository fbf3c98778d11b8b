"""What a student typed, read as a whole number; or the reason why it could not be read, which is never "wrong".

>>> read_answer("4096/32"), read_answer("4 096"), read_answer("４０９６")
(128, 4096, 4096)
>>> read_answer("about 100")
Unreadable(reason='letters', detail='about')
"""

from __future__ import annotations

import re
from fractions import Fraction

from app.algebra.parser import CannotReadError, ExpressionParser, Unreadable, normalize_signs, printable

__all__ = ["Unreadable", "read_answer"]

MAX_LENGTH = 100
MAX_VALUE = 10**18

_TIMES = str.maketrans("xX", "**")
_SEPARATORS = ",'’_ "
_NUMBER = re.compile(rf"\d{{1,3}}(?:([{_SEPARATORS}])\d{{3}})(?:\1\d{{3}})*(?!\d)|\d+")
_SIGNS = frozenset("+-*/()=")


def read_answer(text: str) -> int | Unreadable | None:
    """The whole number above zero that a text stands for; None for an empty box.

    Sums, products, quotients and brackets of whole numbers are read, with digits of any script and thousands set
    apart by comma, space, apostrophe or underscore; "4096/32 = 128" too, where both sides agree. Nothing is evaluated
    as code: the text is cut into numbers and signs, and these are read by the rules of arithmetic.
    """
    try:
        return _read(text)
    except CannotReadError as error:
        return error.unreadable


def _read(text: str) -> int | None:
    if not text.strip():
        return None
    if len(text) > MAX_LENGTH:
        raise CannotReadError("too-long")
    if text.isascii() and text.isdigit():  # nearly every answer: no need to take it apart
        return _size(_bounded(Fraction(int(text))))
    values = [
        ExpressionParser(tokens, _number, _bounded).value()
        for tokens in _sides(_tokens(normalize_signs(text).translate(_TIMES)))
    ]
    if len(set(values)) > 1:
        raise CannotReadError("sides-differ")
    return _size(values[0])


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


def _no_token(text: str, at: int) -> CannotReadError:
    if word := re.match(r"[^\W\d_]+", text[at:]):
        return CannotReadError("letters", word.group())
    if text[at] in ".,":
        return CannotReadError("decimal", text[at])
    return CannotReadError("sign", printable(text[at]))


def _sides(tokens: list[str]) -> list[list[str]]:
    sides: list[list[str]] = [[]]
    for token in tokens:
        if token == "=":  # noqa: S105 - a sign in a sum, not a password
            sides.append([])
        else:
            sides[-1].append(token)
    return sides


def _number(token: str) -> Fraction | None:
    digits = re.sub(f"[{_SEPARATORS}]", "", token)
    return Fraction(int(digits)) if digits.isdigit() else None


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise CannotReadError("too-large")
    return value


def _size(value: Fraction) -> int:
    if value.denominator != 1:
        raise CannotReadError("not-whole", f"{float(value):,.2f}")
    if value < 1:
        raise CannotReadError("below-one", f"{int(value):,}")
    return int(value)
