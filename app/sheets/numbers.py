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

MAX_ANSWER_CHARACTERS = 100
MAX_VALUE = 10**18

_X_AS_TIMES = str.maketrans("xX", "**")
_THOUSANDS_SEPARATORS = ",'’_ "
# Digits in groups of three, set apart by one and the same separator, or else digits alone.
_NUMBER = re.compile(rf"\d{{1,3}}(?:([{_THOUSANDS_SEPARATORS}])\d{{3}})(?:\1\d{{3}})*(?!\d)|\d+")
_SIGNS = frozenset("+-*/()=")


def read_answer(text: str) -> int | Unreadable | None:
    """The whole number above zero that a text stands for; None for an empty box, Unreadable with a reason otherwise.

    Sums, products, quotients and brackets of whole numbers are read, with x for times, digits of any script, and
    thousands set apart by comma, space, apostrophe or underscore; "4096/32 = 128" too, if both sides agree. Refused are
    more than 100 characters, numbers above 10^18, letters, decimal points, fractions that remain, zero and numbers
    below it. Nothing is evaluated as code: the text is cut into numbers and signs, and these are read by the rules of
    arithmetic.
    """
    try:
        return _read_number(text)
    except CannotReadError as error:
        return error.unreadable


def _read_number(text: str) -> int | None:
    """The whole number above zero that a typed number or calculation comes to; None for a blank text.

    Raises CannotReadError for a text that is too long, other characters, sides of "=" that differ, broken arithmetic, a
    value above 10^18 at any step, and a result that is below 1 or not whole.
    """
    if not text.strip():
        return None
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise CannotReadError("too-long")
    if text.isascii() and text.isdigit():  # nearly every answer: no need to take it apart
        return _whole_size(_bounded(Fraction(int(text))))
    tokens = _tokens(normalize_signs(text).translate(_X_AS_TIMES))
    values = [ExpressionParser(side, _number, _bounded).value() for side in _sides_of_equals(tokens)]
    if len(set(values)) > 1:
        raise CannotReadError("sides-differ")
    return _whole_size(values[0])


def _tokens(text: str) -> list[str]:
    """The numbers and signs of a text in order, spaces left out; raises CannotReadError at any other character.

    A number keeps its thousands separators: "4 096/(2*16)" becomes "4 096", "/", "(", "2", "*", "16", ")".
    """
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
            raise _refusal_at(text, at)
    return tokens


def _refusal_at(text: str, at: int) -> CannotReadError:
    """The error for a character with which no number or sign begins, to be raised by the caller.

    Its reason is "letters" with the whole word, "decimal" with the point or comma, or "sign" with any other character.
    """
    if word := re.match(r"[^\W\d_]+", text[at:]):
        return CannotReadError("letters", word.group())
    if text[at] in ".,":
        return CannotReadError("decimal", text[at])
    return CannotReadError("sign", printable(text[at]))


def _sides_of_equals(tokens: list[str]) -> list[list[str]]:
    """The tokens between the equals signs: one list more than there are signs."""
    sides: list[list[str]] = [[]]
    for token in tokens:
        if token == "=":  # noqa: S105 - a sign in a sum, not a password
            sides.append([])
        else:
            sides[-1].append(token)
    return sides


def _number(token: str) -> Fraction | None:
    """The value of a number without its separators; None for a sign."""
    digits = re.sub(f"[{_THOUSANDS_SEPARATORS}]", "", token)
    return Fraction(int(digits)) if digits.isdigit() else None


def _bounded(value: Fraction) -> Fraction:
    """The value itself; raises CannotReadError if its numerator or denominator is above 10^18."""
    if abs(value.numerator) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise CannotReadError("too-large")
    return value


def _whole_size(value: Fraction) -> int:
    """The value as an int; raises CannotReadError if it is a fraction (with its decimals) or below 1."""
    if value.denominator != 1:
        raise CannotReadError("not-whole", f"{float(value):,.2f}")
    if value < 1:
        raise CannotReadError("below-one", f"{int(value):,}")
    return int(value)
