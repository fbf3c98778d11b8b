"""What students write on a sheet: everything right, a misconception's answers, or a slip.

tests/misconceptions/test_students_by_hand.py tests whether the catalogue is right about them.
"""

from __future__ import annotations

import random

from app.misconceptions.predictions import expectations
from app.sheets.variant import Variant

FilledSheet = dict[str, int]  # the number in each blank by its name, such as "queries.rows"


def right_sheet(variant: Variant) -> FilledSheet:
    """The right number of every blank."""
    return dict(variant.key)


def typed_boxes(variant: Variant) -> list[str]:
    """The boxes in which a digit can slip: not choices, nor dimensions such as −1."""
    boxes = variant.blanks_by_name.items()
    return [box for box, blank in boxes if blank.field != "choice" and variant.key[box] >= 0]


def misconception_sheets(variant: Variant) -> list[tuple[str, FilledSheet]]:
    """Each misconception's key with the sheet it fills in, once for each way in which it shows."""
    right = right_sheet(variant)
    return [
        (each.misconception, {**right, **{str(blank): n for blank, n in each.wrong_answers.items()}})
        for each in expectations(variant.problem)
    ]


def with_slip(sheet: FilledSheet, blank: str, chance: random.Random) -> FilledSheet:
    """The sheet with a slip in one blank: one digit mistyped, left out, doubled or swapped with the next; never 0."""
    slips = [n for n in _slips(str(sheet[blank]), chance) if n not in (0, sheet[blank])]
    return {**sheet, blank: chance.choice(slips)}


def _slips(digits: str, chance: random.Random) -> list[int]:
    at = chance.randrange(len(digits))
    before, digit, after = digits[:at], digits[at], digits[at + 1 :]
    mistyped = [before + chance.choice([c for c in "123456789" if c != digit]) + after] * 3
    slips = [*mistyped, before + after, before + 2 * digit + after, before + after[:1] + digit + after[1:]]
    return [int(slip or 0) for slip in slips]
