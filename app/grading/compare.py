"""Compares what was typed with numbers: the key's, and others that it may mean.

A count may be rounded: by its unit, as 13.5 GB is, or by as much as the worksheet tolerates. On a sheet in letters,
answers are compared by their values in the model.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from app.misconceptions.predictions import expectations
from app.shapes.table import Blank
from app.sheets.answers import PREFIXES, Answer, box_unit, decimal_prefix
from app.sheets.variant import Variant


def is_right(variant: Variant, blank: Blank, typed: Answer) -> bool:
    if typed.meaning is None:
        key = variant.answer(blank)
        return typed.value == key or typed.may_be_rounded_from(key)
    return variant.is_equivalent(typed, variant.expression(blank))


NearMiss = Literal["close", "close-or-rounded", "binary", "prefix", "coincidence"]


def near_miss(variant: Variant, blank: Blank, typed: Answer, text: str) -> NearMiss | None:
    """How a wrong answer narrowly misses its key or may have been misread, or None.

    The caller must have found the answer wrong; this isn't checked.
    """
    if typed.meaning is not None:
        return "coincidence" if typed.value == variant.answer(blank) else None
    key, unit, prefix = variant.answer(blank), box_unit(variant.problem, blank), decimal_prefix(text)
    if prefix and unit == "bytes":
        factor = Fraction(PREFIXES[f"{prefix.upper()}i"], PREFIXES[prefix])
        if abs(typed.value * factor - key) <= typed.margin * factor:
            return "binary"
    digits = str(typed.value).rstrip("0")
    step = 10 ** (len(str(typed.value)) - len(digits))
    if blank.is_count and len(digits) > 1 and 1 < step > abs(typed.value - key):
        return "close-or-rounded" if unit in ("bytes", "operations") else "close"
    return "prefix" if prefix and text.rstrip().endswith(prefix) else None


def number_meant(variant: Variant, blank: Blank, typed: Answer, *, right: bool) -> int:
    """The number that an answer is compared by: the key of `variant.problem_for_marking` if it is `right`."""
    if right:
        return variant.problem_for_marking.answers[blank]
    if typed.meaning is not None:
        # N/3 may be whole only at the sheet’s own length
        return typed.meaning.size(variant.problem_for_marking.sizes, "up")
    if not typed.margin:
        return typed.value
    predicted = (expected.wrong_answers.get(blank) for expected in expectations(variant.problem))
    close = [number for number in predicted if number is not None and typed.may_be_rounded_from(number)]
    return min(close, key=lambda number: abs(number - typed.value), default=typed.value)
