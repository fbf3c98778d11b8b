"""What a student typed, read as a whole number, or the reason why it couldn't be read, which is never "wrong".

>>> read_answer("4096/32"), read_answer("4 096"), read_answer("４０９６"), read_answer("2^12")
(128, 4096, 4096, 4096)
>>> read_answer("13.5 GB", box="bytes"), rounding_margin("13.5 GB", "bytes")
(13500000000, 50000000)
>>> read_answer("about 100")
Unreadable(reason='letters', detail='about', symbols='')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count
from types import MappingProxyType
from typing import Literal

from app.algebra.parser import MAX_VALUE, CannotReadError, ExpressionParser, Unreadable
from app.names import without_unseen
from app.shapes.table import CountUnit
from app.sheets.answer_tokens import MAX_ANSWER_CHARACTERS, PREFIXES, answer_tokens, number_value, tidy_answer

__all__ = ["MAX_ANSWER_CHARACTERS", "MAX_VALUE", "Unreadable", "read_answer", "rounding_margin"]

BoxUnit = CountUnit | Literal["side"]
ROUNDED_DIGITS = 3

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})
# What may follow a box's number, in full; a prefix comes first where it is possible.
_UNITS: Mapping[BoxUnit, re.Pattern[str]] = {
    "side": re.compile("()(?:tokens?|rows?|col(?:umn)?s?|numbers?|dim(?:ension)?s?|features?|entries)"),
    "parameters": re.compile("()(?:param(?:eter)?s?|numbers?|weights?|entries)"),
    "entries": re.compile("()(?:entries|numbers?|weights?|scores?|angles?|dim(?:ension)?s?)"),
    "index": re.compile("()(?:rows?|col(?:umn)?s?|dim(?:ension)?s?|heads?|tokens?)"),
    "operations": re.compile("([kKMGT]?)(?:FLOPs?|FLOPS|flops?|operations?|ops?)"),
    "bytes": re.compile("([KMGT]i|[kKMGT]|)(?:B|[bB]ytes?)"),
}
_ROUNDED = re.compile(r"(\d[\d,'’_ ]*(?:\.\d+)?) ?([KMGT]i|[kKMGT])\w*")
_DECIMAL_PREFIX = re.compile(r"\d ?([kKMGT])(?:B|[bB]ytes?|FLOPs?|FLOPS|flops?|operations?|ops?)?\s*$")
_GROUPED = re.compile(r"\W?(\d{1,3})[ ,]([1-9]\d{2})\W?")
_SMALL_UNIT = re.compile(r"(?<=[\d ])([kmgt])(i?)b(?=\s*$)")  # 25 mb, as many type it; Mb are megabits
_LAST_WORD = re.compile("(?<![A-Za-z_])[A-Za-z]+$")
_TWO_SIDES = re.compile(r"\W*\d[\d,'’_. ]*[xX×]\s*\d[\d,'’_. ]*\W*")


def read_answer(
    text: str, symbols: Mapping[str, int] = _NO_SYMBOLS, box: BoxUnit | None = None
) -> int | Unreadable | None:
    """The whole number that a text means; None for an empty box, Unreadable with a reason otherwise."""
    if text.isascii() and text.isdigit() and len(text) < MAX_ANSWER_CHARACTERS // 4:  # nearly every answer
        number = int(text)
        return number if number >= least_number(box) else Unreadable("below-one", "0")
    text = without_unseen(text)
    try:
        return _read_number(text, symbols, box)
    except CannotReadError as error:
        unreadable = error.unreadable
        if unreadable.reason == "letters" and not any(map(str.isdigit, text)):
            # words without a number are quoted in full: "a hundred"
            return replace(unreadable, detail=tidy_answer(text).strip())
        return unreadable


def least_number(box: BoxUnit | None) -> int:
    """The smallest number that a box takes: 0 for a count, such as masked entries, otherwise 1."""
    return 1 if box in (None, "side") else 0


def check_least(value: int, box: BoxUnit | None) -> int:
    """The value itself; raises CannotReadError if it is below the box's `least_number`."""
    if value < least_number(box):
        raise CannotReadError("below-one" if least_number(box) else "below-zero", f"{value:,}")
    return value


def rounding_margin(text: str, box: BoxUnit) -> int:
    """By how much the true number may differ from a rounded one, such as 13.5 GB; 0 for any other text."""
    if box not in ("bytes", "operations") or text.isdigit():
        return 0
    rounded = _ROUNDED.fullmatch(_with_capital_unit(tidy_answer(text)))
    if not rounded:
        return 0
    whole, _, decimals = re.sub("[^0-9.]", "", rounded[1]).lstrip("0").partition(".")
    zeros = 0 if decimals else len(whole) - len(whole.rstrip("0"))
    last_digit = Fraction(10) ** (zeros - len(decimals))
    if not (significant := (whole + decimals).lstrip("0")):
        return 0
    third_digit = Fraction(10) ** (len(significant) - len(decimals) - ROUNDED_DIGITS)
    return int(min(last_digit, third_digit) * PREFIXES[rounded[2]] / 2)


def decimal_prefix(text: str) -> str:
    """The decimal prefix at the end of a typed number, such as the k of 4k; "" without one, and for Ki, Mi, Gi, Ti.

    >>> decimal_prefix("4k"), decimal_prefix("25 mb"), decimal_prefix("25 MiB"), decimal_prefix("4096")
    ('k', 'M', '', '')
    """
    prefixed = _DECIMAL_PREFIX.search(_with_capital_unit(without_unseen(text)))
    return prefixed[1] if prefixed else ""


def _read_number(text: str, symbols: Mapping[str, int], box: BoxUnit | None) -> int | None:
    if not text.strip():
        return None
    tidy = tidy_answer(text)
    if box == "bytes":
        tidy = _with_capital_unit(tidy)
    if box == "side":
        _check_one_side(text, tidy, symbols)
    amount, factor = _without_unit(tidy, box, symbols) if box else (tidy, 1)

    def atom(token: str) -> Fraction | None:
        return Fraction(symbols[token]) if token in symbols else number_value(token)

    tokens = answer_tokens(_with_x_as_times(amount, symbols), symbols)

    def value_of(side: list[str]) -> Fraction:
        return ExpressionParser(side, atom, _bounded).value()

    values = [value_of(_without_note(side, symbols, value_of)) for side in _sides_of_equals(tokens)]
    if len(set(values)) > 1:
        raise CannotReadError("sides-differ")
    value = _bounded(values[0] * factor)
    if factor != 1:
        value = Fraction(round(value))  # 12.55 GiB isn't a whole number of bytes
    if value.denominator != 1:
        raise CannotReadError("not-whole", _in_decimals(value))
    return check_least(int(value), box)


def _without_note(
    tokens: list[str], symbols: Mapping[str, int], value_of: Callable[[list[str]], Fraction]
) -> list[str]:
    match tokens:
        case [*number, "(", name, ")"] if number and name in symbols and symbols.keys().isdisjoint(number):
            ends = number[-1] == ")" or number_value(number[-1]) is not None
            return number if ends and value_of(number) == symbols[name] else tokens
    return tokens


def _in_decimals(value: Fraction) -> str:
    places = next(number for number in count(2) if round(value, number).denominator != 1)
    whole, rest = divmod(round(abs(value) * 10**places), 10**places)
    return f"{'-' if value < 0 else ''}{whole:,}.{rest:0{places}}"


def _check_one_side(text: str, tidy: str, symbols: Mapping[str, int]) -> None:
    if _TWO_SIDES.fullmatch(text):
        raise CannotReadError("two-numbers")
    if groups := _GROUPED.fullmatch(tidy):
        first, second, sizes = int(groups[1]), int(groups[2]), set(symbols.values())
        if {first, second} <= sizes and 1000 * first + second not in sizes:
            raise CannotReadError("two-numbers")


def _with_x_as_times(text: str, symbols: Collection[str]) -> str:
    names = sorted((re.escape(name) for name in symbols if "x" in name), key=len, reverse=True)
    return re.sub("|".join((*names, "[xX]")), lambda found: "*" if found[0] in "xX" else found[0], text)


def _with_capital_unit(text: str) -> str:
    return _SMALL_UNIT.sub(lambda unit: f"{unit[1].upper()}{unit[2]}B", text)


def _without_unit(text: str, box: BoxUnit, symbols: Collection[str]) -> tuple[str, int]:
    word = _LAST_WORD.search(text) if text[-1:].isalpha() else None
    if word is None or word.start() == 0:
        return text, 1
    if word[0] in symbols and text[: word.start()].rstrip()[-1:] in ("*", "/"):
        return text, 1
    if unit := _UNITS[box].fullmatch(word[0]):
        return text[: word.start()], PREFIXES.get(unit[1], 1)
    is_factor = word[0] in symbols and not text[: word.start()].rstrip()[-1].isdigit()
    if not is_factor and any(unit.fullmatch(word[0]) for unit in _UNITS.values()):
        raise CannotReadError("unit", word[0])
    return text, 1


def _sides_of_equals(tokens: list[str]) -> list[list[str]]:
    sides: list[list[str]] = [[]]
    for token in tokens:
        if token == "=":  # noqa: S105 - a sign in a sum, not a password
            sides.append([])
        else:
            sides[-1].append(token)
    return sides


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise CannotReadError("too-large")
    return value
