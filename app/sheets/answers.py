"""How a typed text becomes an Answer, or the reason why it couldn't be read, which is never "wrong".

A box takes a whole number, symbols, or what its question offers; `read_answer` decides which. Numbers and symbols are
both cut into tokens, which app/algebra/parser.py reads as arithmetic.

>>> read_number("4096/32"), read_number("4 096"), read_number("４０９６"), read_number("2^12")
(128, 4096, 4096, 4096)
>>> read_number("13.5 GB", unit="bytes"), rounding_margin("13.5 GB", "bytes")
(13500000000, 50000000)
>>> read_number("about 100")
Unreadable(reason='letters', detail='about', symbols='')
>>> names = {"d": "d", "h": "H", "T": "N"}
>>> read_symbols("d/h", names) == read_symbols("2*d / (2*h)", names)
True
>>> read_symbols("d/q", names)
Unreadable(reason='unknown-letter', detail='q', symbols='')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import Literal

from app.algebra.expression import ONE, ZERO, Expression, ExpressionError
from app.algebra.parser import (
    MAX_VALUE,
    CannotReadError,
    ExpressionParser,
    Unreadable,
    normalize_signs,
    printable,
)
from app.misconceptions.symbols import BOX_SYMBOLS
from app.names import without_unseen
from app.shapes.table import Blank, Count, CountUnit, Joint, JointPart, OneOf, WrittenPattern
from app.sheets.notation import SheetSymbols
from app.topics.problem import Problem

# In characters. A longer text is refused before anything else is done with it.
MAX_BOX_TEXT = 200  # that are stored of a box
MAX_NUMBER_TEXT = 100
MAX_SYMBOLS_TEXT = 1000  # a mixture of experts' parameters, as a sum of products, take up to 300

BoxUnit = CountUnit | Literal["side"]


@dataclass(frozen=True)
class Answer:
    """What an answer was read as: its number and, on a sheet in letters, the expression behind it.

    `margin` is by how much the true number may differ from one that was typed rounded, such as 13.5 GB.
    """

    value: int
    meaning: Expression | None = None
    margin: int = 0

    def may_be_rounded_from(self, number: int) -> bool:
        """Whether the text was rounded, and may be so from this number."""
        return self.margin > 0 and abs(self.value - number) <= self.margin


def read_answer(symbols: SheetSymbols, blank: Blank, text: str) -> Answer | Unreadable | None:
    """What a text in a box of a sheet means; None for an empty box, Unreadable with a reason otherwise."""
    if len(text) > MAX_SYMBOLS_TEXT:
        return Unreadable("too-long")
    text = without_unseen(text)
    if not text.strip():
        return None
    asked, unit = symbols.problem.table.askable.get(blank.tensor), box_unit(symbols.problem, blank)
    number: int | None = None
    try:
        match asked:
            case WrittenPattern():
                number = asked.number_of(text)
            case OneOf():
                number = _option(text.strip(), tuple(map(str, asked.options)))
            case Joint():
                number = _part(text.strip(), asked.part(blank.field))
            case Count() if asked.dims:
                number = _negative_dimension(text.strip(), asked.dims)
        if number is not None:
            return Answer(number)
        if symbols.in_letters:
            return _in_symbols(text, symbols, unit)
        return Answer(_number(text, symbols.size_by_name, unit), margin=rounding_margin(text, unit))
    except CannotReadError as error:
        return error.unreadable


def box_unit(problem: Problem, blank: Blank) -> BoxUnit:
    """What a box's number counts: "side" for rows and columns, otherwise the count's unit, such as "bytes"."""
    asked = problem.table.askable.get(blank.tensor)
    if not blank.is_count:
        return "side"
    return asked.unit if isinstance(asked, Count) else "parameters"


# What a question offers

_SMALL_NUMBER = re.compile(r"-?[0-9]{1,3}")


def _option(text: str, options: tuple[str, ...]) -> int:
    if text not in options:
        raise CannotReadError("no-option", ", ".join(options))
    return int(text)


def _part(text: str, part: JointPart) -> int | None:
    """The number of a word, a dimension, or -1; None if it is to be read as any other size."""
    if part.kind == "word":
        place = next((at for at, word in enumerate(part.words, start=1) if text in (word, str(at))), None)
        if place is None:
            raise CannotReadError("no-option", ", ".join(part.words))
        return place
    written = normalize_signs(text).replace(" ", "")
    if _SMALL_NUMBER.fullmatch(written) and (part.kind == "dimension" or written == "-1"):
        return int(written)
    if part.kind == "dimension":
        raise CannotReadError("no-dimension", text)
    return None


def _negative_dimension(text: str, dims: int) -> int | None:
    """The dimension that a negative number counts from the end, as torch does; None for any other text."""
    written = normalize_signs(text).replace(" ", "")
    if not (_SMALL_NUMBER.fullmatch(written) and int(written) < 0):
        return None
    if dims + int(written) < 0:
        raise CannotReadError("no-dimension", text)
    return dims + int(written)


# Numbers, with a unit or without: 4096, 4,096, 4k, 4096/32, 32 × 128 = 4096, 13.5 GB, H*128

_NO_SIZES: Mapping[str, int] = MappingProxyType({})
PREFIXES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
            "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip
# What may follow a box's number, in full; a prefix comes first where it is possible.
_UNITS: Mapping[BoxUnit, re.Pattern[str]] = {
    "side": re.compile("()(?:tokens?|rows?|col(?:umn)?s?|numbers?|dim(?:ension)?s?|features?|entries)"),
    "parameters": re.compile("()(?:param(?:eter)?s?|numbers?|weights?|entries)"),
    "entries": re.compile("()(?:entries|numbers?|weights?|scores?|angles?|dim(?:ension)?s?)"),
    "index": re.compile("()(?:rows?|col(?:umn)?s?|dim(?:ension)?s?|heads?|tokens?)"),
    "operations": re.compile("([kKMGT]?)(?:FLOPs?|FLOPS|flops?|operations?|ops?)"),
    "bytes": re.compile("([KMGT]i|[kKMGT]|)(?:B|[bB]ytes?)"),
}
_LAST_WORD = re.compile("(?<![A-Za-z_])[A-Za-z]+$")
_SMALL_UNIT = re.compile(r"(?<=[\d ])([kmgt])(i?)b(?=\s*$)")  # 25 mb, as many type it; Mb are megabits
_TWO_SIDES = re.compile(r"\W*\d[\d,'’_. ]*[xX×]\s*\d[\d,'’_. ]*\W*")
_GROUPED = re.compile(r"\W?(\d{1,3})[ ,]([1-9]\d{2})\W?")


def read_number(
    text: str, sizes: Mapping[str, int] = _NO_SIZES, unit: BoxUnit | None = None
) -> int | Unreadable | None:
    """The whole number that a text means, in which names of `sizes` may stand for numbers; None for an empty text."""
    text = without_unseen(text)
    try:
        return _number(text, sizes, unit) if text.strip() else None
    except CannotReadError as error:
        return error.unreadable


def _number(text: str, sizes: Mapping[str, int], unit: BoxUnit | None) -> int:
    if text.isascii() and text.isdigit() and len(text) < MAX_NUMBER_TEXT // 4:  # nearly every answer
        return _at_least(int(text), unit)
    tidy = _tidied(text, MAX_NUMBER_TEXT)
    if unit == "bytes":
        tidy = _with_capital_unit(tidy)
    if unit == "side":
        _check_one_side(text, tidy, sizes)
    amount, factor = _without_unit(tidy, unit, sizes) if unit else (tidy, 1)

    def atom(token: str) -> Fraction | None:
        return Fraction(sizes[token]) if token in sizes else _number_value(token)

    def value_of(side: list[str]) -> Fraction:
        return ExpressionParser(side, atom, _bounded).value()

    try:
        tokens = answer_tokens(_with_x_as_times(amount, sizes), sizes)
    except CannotReadError as error:
        if error.unreadable.reason == "letters" and not any(map(str.isdigit, text)):
            # words without a number are quoted in full: "a hundred"
            raise CannotReadError("letters", tidy.strip()) from None
        raise
    values = {value_of(_without_note(side, sizes, value_of)) for side in _sides_of_equals(tokens)}
    if len(values) > 1:
        raise CannotReadError("sides-differ")
    value = _bounded(values.pop() * factor)
    if factor != 1:
        value = Fraction(round(value))  # 12.55 GiB isn't a whole number of bytes
    if value.denominator != 1:
        raise CannotReadError("not-whole", _in_decimals(value))
    return _at_least(int(value), unit)


def _at_least(value: int, unit: BoxUnit | None) -> int:
    least = 1 if unit in (None, "side") else 0  # a count may be 0, such as masked entries
    if value < least:
        raise CannotReadError("below-one" if least else "below-zero", f"{value:,}")
    return value


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) > MAX_VALUE or value.denominator > MAX_VALUE:
        raise CannotReadError("too-large")
    return value


def _in_decimals(value: Fraction) -> str:
    places = next(number for number in count(2) if round(value, number).denominator != 1)
    whole, rest = divmod(round(abs(value) * 10**places), 10**places)
    return f"{'-' if value < 0 else ''}{whole:,}.{rest:0{places}}"


def _check_one_side(text: str, tidy: str, sizes: Mapping[str, int]) -> None:
    if _TWO_SIDES.fullmatch(text):
        raise CannotReadError("two-numbers")
    if groups := _GROUPED.fullmatch(tidy):
        first, second, known = int(groups[1]), int(groups[2]), set(sizes.values())
        if {first, second} <= known and 1000 * first + second not in known:
            raise CannotReadError("two-numbers")


def _with_x_as_times(text: str, names: Collection[str]) -> str:
    with_x = sorted((re.escape(name) for name in names if "x" in name), key=len, reverse=True)
    return re.sub("|".join((*with_x, "[xX]")), lambda found: "*" if found[0] in "xX" else found[0], text)


def _with_capital_unit(text: str) -> str:
    return _SMALL_UNIT.sub(lambda unit: f"{unit[1].upper()}{unit[2]}B", text)


def _without_unit(text: str, unit: BoxUnit, names: Collection[str]) -> tuple[str, int]:
    word = _LAST_WORD.search(text) if text[-1:].isalpha() else None
    if word is None or word.start() == 0:
        return text, 1
    if word[0] in names and text[: word.start()].rstrip()[-1:] in ("*", "/"):
        return text, 1
    if found := _UNITS[unit].fullmatch(word[0]):
        return text[: word.start()], PREFIXES.get(found[1], 1)
    is_factor = word[0] in names and not text[: word.start()].rstrip()[-1].isdigit()
    if not is_factor and any(other.fullmatch(word[0]) for other in _UNITS.values()):
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


def _without_note(tokens: list[str], sizes: Mapping[str, int], value_of: Callable[[list[str]], Fraction]) -> list[str]:
    """The tokens without a symbol in brackets after its size: 4096 (d)."""
    match tokens:
        case [*number, "(", name, ")"] if number and name in sizes and sizes.keys().isdisjoint(number):
            ends = number[-1] == ")" or _number_value(number[-1]) is not None
            return number if ends and value_of(number) == sizes[name] else tokens
    return tokens


# Rounded numbers

ROUNDED_DIGITS = 3
_ROUNDED = re.compile(r"(\d[\d,'’_ ]*(?:\.\d+)?) ?([KMGT]i|[kKMGT])\w*")
_DECIMAL_PREFIX = re.compile(r"\d ?([kKMGT])(?:B|[bB]ytes?|FLOPs?|FLOPS|flops?|operations?|ops?)?\s*$")


def rounding_margin(text: str, unit: BoxUnit) -> int:
    """By how much the true number may differ from a rounded one, such as 13.5 GB; 0 for any other text."""
    if unit not in ("bytes", "operations") or text.isdigit():
        return 0
    rounded = _ROUNDED.fullmatch(_with_capital_unit(_tidied(text, MAX_NUMBER_TEXT)))
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


# Symbols, such as T × d/h: expressions, which are compared by value

MAX_TERMS, MAX_DEGREE = 50, 50
MAX_STEPS = 3000  # terms and factors of all intermediate sums and products; right answers take up to 900
FORMULAS_REMEMBERED = 1024


def read_symbols(text: str, names: Mapping[str, str]) -> Expression | Unreadable | None:
    """The expression that a typed text means, with at least one symbol, by name; None for an empty text."""
    try:
        return _expression(text, names) if text.strip() else None
    except CannotReadError as error:
        return error.unreadable


def _in_symbols(text: str, symbols: SheetSymbols, unit: BoxUnit) -> Answer:
    meaning = _expression(text, symbols.by_name, symbols.written)
    value = meaning.value(symbols.problem.sizes)
    if value.denominator != 1:
        raise CannotReadError("no-length")
    if value > MAX_VALUE:
        raise CannotReadError("too-large")
    return Answer(_at_least(int(value), unit), meaning)


def _expression(
    text: str, names: Mapping[str, str], known: Iterable[str] = (), *, may_be_number: bool = False
) -> Expression:
    def atom(token: str) -> Expression | None:
        if symbol := names.get(token):
            return Expression.symbol(symbol)
        number = _number_value(token)
        return None if number is None else Expression.number(number)

    steps = 0

    def check(meaning: Expression) -> Expression:
        nonlocal steps
        steps += sum(1 + len(symbols) + len(divisors) for _factor, symbols, divisors in meaning.terms)
        if steps > MAX_STEPS or len(meaning.terms) > MAX_TERMS:
            raise CannotReadError("too-long")
        for factor, symbols, divisors in meaning.terms:
            if len(symbols) + len(divisors) > MAX_DEGREE:
                raise CannotReadError("too-long")
            if abs(factor.numerator) > MAX_VALUE or factor.denominator > MAX_VALUE:
                raise CannotReadError("too-large")
        return meaning

    try:
        tokens = answer_tokens(_tidied(text, MAX_SYMBOLS_TEXT), names, prefixes=False)
        meaning = ExpressionParser(tokens, atom, check).value()
    except ExpressionError:  # a quotient by a sum isn't a matrix's length
        raise CannotReadError("incomplete") from None
    except CannotReadError as error:
        if error.unreadable.reason == "letters":
            raise CannotReadError("unknown-letter", error.unreadable.detail, ", ".join(known)) from None
        raise
    if not (meaning.symbols or meaning in (ZERO, ONE) or may_be_number):
        raise CannotReadError("numbers")
    return meaning


def parse_formula(symbols: SheetSymbols, text: str) -> Expression | Unreadable | None:
    """What an author's formula for a box means; it may also name the box's right size and its other side."""
    sizes, notation = symbols.problem.sizes, symbols.notation
    names = {
        **{symbol: symbol for symbol in sizes},
        **{notation.symbol(symbol): symbol for symbol in sizes},
        **symbols.by_name,
        **{name: name for name in BOX_SYMBOLS},
    }
    return _formula(without_unseen(text), tuple(names.items()), (*symbols.written, *BOX_SYMBOLS))


@lru_cache(FORMULAS_REMEMBERED)
def _formula(text: str, names: tuple[tuple[str, str], ...], known: tuple[str, ...]) -> Expression | Unreadable | None:
    try:
        return _expression(text, dict(names), known, may_be_number=True) if text.strip() else None
    except CannotReadError as error:
        return error.unreadable


# Tokens: the numbers, names and signs of a text

MAX_WORD = 200  # letters that are cut into names: more than there are symbols in any answer
MAX_POWER_OF_TEN = 60
_SEPARATORS = ",'’_ "
# Digits in groups of three with the same separator, or digits only.
_WHOLE = rf"(?:\d{{1,3}}(?:(?P<by>[{_SEPARATORS}])\d{{3}})(?:(?P=by)\d{{3}})*(?!\d)|\d+)"
_DECIMAL = rf"({_WHOLE}(?:\.\d+)?)(?:[eE]([+-]?\d+))?"
_NUMBER = re.compile(rf"{_DECIMAL}((?:[KMGT]i|[kKMGT])(?![A-Za-z_]))?")
_WITHOUT_PREFIX = re.compile(rf"{_DECIMAL}()")
_NAME = re.compile(r"[A-Za-zΑ-Ωα-ω][A-Za-zΑ-Ωα-ω_']*")
_SIGNS = frozenset("+-*/^()=")


def _tidied(text: str, max_characters: int) -> str:
    """The text with one spelling for digits, signs and spaces, without a leading = and the braces of d_{h}."""
    if len(text) > max_characters:
        raise CannotReadError("too-long")
    tidy = normalize_signs(text)
    if "{" in tidy:
        tidy = re.sub(r"_\{(\w+)\}", r"_\1", tidy)
    return tidy[1:].lstrip() if tidy.startswith("=") else tidy


def answer_tokens(text: str, names: Collection[str], *, prefixes: bool = True) -> list[str]:
    """The numbers, names and signs of a tidy text in order, without spaces.

    >>> answer_tokens("4,096/hd_h", {"h", "d_h"})
    ['4,096', '/', 'h', 'd_h']
    """
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


def _number_value(token: str) -> Fraction | None:
    """The exact value of a number such as "1,024", "1.5e3", "4k" (4000) or "4Ki" (4096); None for other tokens."""
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
    """The longest names that leave only names: h and d_h of "hd_h"."""
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
