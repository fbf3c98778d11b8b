"""Slips: a number that differs from the intended one by one mistyped digit.

>>> is_slip(4069, 4096), is_slip(409, 4096), is_slip(96, 4096), is_slip(128, 4096), is_slip(4096, -409)
(True, True, True, False, False)
"""

from __future__ import annotations

from app.shapes.consistency import Values
from app.shapes.table import Blank


def is_single_slip(key: Values, wrong: Values) -> bool:
    """Whether a single blank is wrong by a slip; a choice never is."""
    return len(wrong) == 1 and all(
        min(number, key[blank]) > 9 and is_slip_in(blank, number, key[blank]) for blank, number in wrong.items()
    )


def is_slip_in(blank: Blank, typed: int, meant: int) -> bool:
    """Whether the number typed into a blank is a slip of another one; never for a choice."""
    return blank.field != "choice" and is_slip(typed, meant)


def is_slip(typed: int, meant: int) -> bool:
    """Whether two numbers are one digit apart: mistyped, left out, added, or two neighbours swapped."""
    short, long = sorted((typed, meant))
    if short < 0:  # a difference of wrong answers
        return False
    digits, width = str(long), len(str(long))
    return _differ_by_one_digit(str(short).zfill(width), digits) or any(
        digits[:at] + digits[at + 1 :] == str(short).zfill(width - 1) for at in range(width)
    )


def _differ_by_one_digit(first: str, second: str) -> bool:
    differ = [at for at, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    if len(differ) == 2 and differ[1] == differ[0] + 1:
        return first[differ[0]] == second[differ[1]] and first[differ[1]] == second[differ[0]]
    return len(differ) == 1
