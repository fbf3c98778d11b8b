"""Cuts a typed answer into numbers, names of symbols and signs, the same way on sheets in numbers and in letters.

>>> answer_tokens("4,096/hd_h", {"h", "d_h"})
['4,096', '/', 'h', 'd_h']
>>> number_value("4,096"), number_value("1.5e3"), number_value("4Ki")
(Fraction(4096, 1), Fraction(1500, 1), Fraction(4096, 1))
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction

from app.algebra.parser import CannotReadError, normalize_signs, printable

MAX_ANSWER_CHARACTERS = 100
MAX_WORD = 200  # letters that are cut into names: more than there are symbols in any answer
MAX_POWER_OF_TEN = 60
PREFIXES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
            "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip

_SEPARATORS = ",'’_ "
# Digits in groups of three with the same separator, or digits only.
_WHOLE = rf"(?:\d{{1,3}}(?:(?P<by>[{_SEPARATORS}])\d{{3}})(?:(?P=by)\d{{3}})*(?!\d)|\d+)"
_DECIMAL = rf"({_WHOLE}(?:\.\d+)?)(?:[eE]([+-]?\d+))?"
_NUMBER = re.compile(rf"{_DECIMAL}((?:[KMGT]i|[kKMGT])(?![A-Za-z_]))?")
_WITHOUT_PREFIX = re.compile(rf"{_DECIMAL}()")
_NAME = re.compile(r"[A-Za-zΑ-Ωα-ω][A-Za-zΑ-Ωα-ω_']*")
_SIGNS = frozenset("+-*/^()=")


def tidy_answer(text: str, max_characters: int = MAX_ANSWER_CHARACTERS) -> str:
    """A typed text with one spelling for digits, signs and spaces, without a leading = and the braces of d_{h}.

    Raises CannotReadError("too-long") for more than `max_characters`, and "special-digit" for a digit such as ½.
    """
    if len(text) > max_characters:
        raise CannotReadError("too-long")
    tidy = normalize_signs(text)
    if "{" in tidy:
        tidy = re.sub(r"_\{(\w+)\}", r"_\1", tidy)
    return tidy[1:].lstrip() if tidy.startswith("=") else tidy


def answer_tokens(text: str, names: Collection[str], *, prefixes: bool = True) -> list[str]:
    """The numbers, names and signs of a tidy text in order, without spaces: "4k/d_h" -> ['4k', '/', 'd_h']."""
    tokens, at, number_at = list[str](), 0, (_NUMBER if prefixes else _WITHOUT_PREFIX).match
    while at < len(text):
        if number := number_at(text, at):
            tokens.append(_checked_number(number, names))
            at = number.end()
        elif name := _NAME.match(text, at):
            tokens += _names_in(name[0], names)
            at = name.end()
        elif text[at] in _SIGNS:
            tokens.append(text[at])
            at += 1
        elif text[at] == " ":
            at += 1
        else:
            raise _refusal_at(text, at)
    return tokens


def number_value(token: str) -> Fraction | None:
    """The exact value of a number token, such as "1,024", "1.5e3", "4k" (4000) or "4Ki" (4096), or None."""
    if token.isdigit():
        return Fraction(int(token))
    number = _NUMBER.fullmatch(token)
    if number is None:
        return None
    digits, _, power, prefix = number.groups()
    value = Fraction(re.sub(f"[{_SEPARATORS}]", "", digits)) * PREFIXES.get(prefix or "", 1)
    return value * Fraction(10) ** int(power) if power else value


def _checked_number(number: re.Match[str], names: Collection[str]) -> str:
    if number[0].isdigit():
        return number[0]
    digits, _, power, prefix = number.groups()
    if power and (len(power) > 3 or abs(int(power)) > MAX_POWER_OF_TEN):
        raise CannotReadError("too-large")
    if prefix in names:
        raise CannotReadError("prefix-or-symbol", number[0])
    if re.fullmatch(r"\d{1,3}\.\d{3}", digits) and not power and not prefix:
        raise CannotReadError("decimal-or-thousands", digits)
    return number[0]


def _names_in(word: str, names: Collection[str]) -> list[str]:
    if word in names:
        return [word]
    if len(word) > MAX_WORD:
        raise CannotReadError("too-long")
    longest, length = max(map(len, names), default=0), len(word)
    ends = {length: length}  # for a position from which only names follow: where its first name ends
    for start in reversed(range(length)):
        possible = range(min(start + longest, length), start, -1)
        if end := next((end for end in possible if end in ends and word[start:end] in names), 0):
            ends[start] = end
    if 0 not in ends:
        raise CannotReadError("letters", word)
    cuts, start = list[str](), 0
    while start < length:
        cuts.append(word[start : ends[start]])
        start = ends[start]
    return cuts


def _refusal_at(text: str, at: int) -> CannotReadError:
    if re.match(r", ?\d{3}|, \d|; ?\d", text[at:]):
        return CannotReadError("two-numbers")
    if text[at] in ".,":
        return CannotReadError("decimal", text[at])
    if word := re.match(r"[^\W\d_]+", text[at:]):
        return CannotReadError("letters", word[0])
    return CannotReadError("sign", printable(text[at]))
