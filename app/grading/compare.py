"""Compares what was typed with numbers: with the key, and with what else it may mean.

On a sheet in numbers a count may be rounded: by its unit, as 13.5 GB is, or by as much as the worksheet tolerates. On a
sheet in letters answers are compared by what they mean in the model.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from app.misconceptions.predictions import expectations
from app.shapes.table import Blank
from app.sheets.answer_tokens import PREFIXES
from app.sheets.numbers import decimal_prefix
from app.sheets.reading import Answer
from app.sheets.variant import Variant


def is_right(variant: Variant, blank: Blank, typed: Answer) -> bool:
    """Whether an answer is right: it is the key's number, or, where the box may be rounded, can stand for it.

    13.5 GB can stand for 13.45 to 13.55 GB; with a tolerance of 0.01, so can what is at most 1 % off the key. On a
    sheet in letters an answer is right if it means the same as the key in this model: equal sizes alone don't suffice.
    """
    if typed.meaning is None:
        key = variant.answer(blank)
        return typed.value == key or variant.within_rounding(blank, typed, key)
    return variant.reader.is_equivalent(typed, variant.expression(blank))


NearMiss = Literal["close", "close-or-rounded", "binary", "prefix", "coincidence"]


def near_miss(variant: Variant, blank: Blank, typed: Answer, text: str) -> NearMiss | None:
    """How a wrong answer just misses its key, or may have been misread; None otherwise.

    The caller must have found the answer wrong: that is not checked. `text` is what was typed, `typed` what that was
    read as. On a sheet in letters, a formula that comes to the right number in this model is a "coincidence", and
    nothing else is tried. Of a number, tried in this order:

    - "binary": in a box of bytes, right within its rounding if the decimal prefix were binary (25 MB for 25 MiB).
    - "close" or, in a box of bytes or operations, "close-or-rounded": a count with no tolerance, typed with two or more
      significant digits and at least one trailing zero, less than one unit of its last significant digit from the key.
    - "prefix": any other wrong number that ends in a decimal prefix, without a unit: 4k was read as 4000, but may have
      meant 4096.
    """
    if typed.meaning is not None:
        return "coincidence" if typed.value == variant.answer(blank) else None
    key, unit, prefix = variant.answer(blank), variant.reader.unit(blank), decimal_prefix(text)
    if prefix and unit == "bytes":
        factor = Fraction(PREFIXES[f"{prefix.upper()}i"], PREFIXES[prefix])
        if abs(typed.value * factor - key) <= typed.margin * factor:
            return "binary"
    digits = str(typed.value).rstrip("0")
    step = 10 ** (len(str(typed.value)) - len(digits))
    if (
        blank.field == "count"
        and not variant.worksheet.tolerance
        and len(digits) > 1
        and 1 < step > abs(typed.value - key)
    ):
        return "close-or-rounded" if unit in ("bytes", "operations") else "close"
    return "prefix" if prefix and text.rstrip().endswith(prefix) else None


def number_meant(variant: Variant, blank: Blank, typed: Answer, *, right: bool) -> int:
    """The number that an answer is compared by in `variant.problem_for_marking`: that problem's key if it is `right`.

    Otherwise it is the value of an expression in that problem, rounded up, or the typed number. A number that may be
    rounded counts as the nearest one among those within its rounding that a misconception predicts, if there is any.
    """
    if right:
        return variant.problem_for_marking.answers[blank]
    if typed.meaning is not None:
        return typed.meaning.size(variant.problem_for_marking.sizes, "up")  # N/3 is whole at the sheet’s length alone
    if not variant.may_be_rounded(blank, typed):
        return typed.value
    predicted = (expected.wrong_answers.get(blank) for expected in expectations(variant.problem))
    close = [number for number in predicted if number is not None and variant.within_rounding(blank, typed, number)]
    return min(close, key=lambda number: abs(number - typed.value), default=typed.value)
