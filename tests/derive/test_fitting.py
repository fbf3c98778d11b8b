"""Finding expressions and conditions from observed numbers, on numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tools.derive.fitting import Fitter, Truth, condition, text

COLUMNS = {
    "d": [96, 192, 288, 480, 192, 288, 480, 96],
    "H": [4, 6, 8, 12, 8, 12, 6, 8],
    "G": [2, 3, 4, 6, 2, 3, 2, 4],
    "d_h": [16, 24, 40, 56, 40, 16, 56, 24],
    "V": [101, 103, 107, 109, 113, 127, 109, 101],
}


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (lambda d, H, G, d_h, V: 2 * H * d_h, "2*H*d_h"),
        (lambda d, H, G, d_h, V: d // H, "d/H"),
        (lambda d, H, G, d_h, V: V + 8, "V + 8"),
        (lambda d, H, G, d_h, V: H * d_h + 2 * G * d_h, "2*G*d_h + H*d_h"),
        (lambda d, H, G, d_h, V: -(-8 * d_h // (3 * 64)) * 64, "up(8*d_h/3, 64)"),
        (lambda d, H, G, d_h, V: V // G, "V//G"),
        (lambda d, H, G, d_h, V: 3, "3"),
    ],
)
def test_the_simplest_expression_that_explains_all_numbers_is_found(rule, found: str) -> None:  # type: ignore[no-untyped-def]
    numbers = [rule(*row) for row in zip(*COLUMNS.values(), strict=True)]
    terms = Fitter(COLUMNS).fit(numbers)
    assert terms is not None
    assert text(terms) == found


def test_numbers_that_follow_from_no_field_have_no_expression() -> None:
    assert Fitter(COLUMNS).fit([7, 1, 90, 4, 1000, 77, 3, 512]) is None


LAYERS = np.arange(12)
TRUTHS = {
    "i >= 3": LAYERS >= 3,
    "i % 2 == 0": LAYERS % 2 == 0,
    "i in listed": np.isin(LAYERS, (1, 5)),
}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LAYERS >= 0, ""),
        (LAYERS >= 3, "i >= 3"),
        ((LAYERS >= 3) & (LAYERS % 2 == 0), "i >= 3 and i % 2 == 0"),
        ((LAYERS % 2 == 0) | np.isin(LAYERS, (1, 5)), "i % 2 == 0 or i in listed"),
    ],
)
def test_the_simplest_condition_that_holds_exactly_there_is_found(wanted: Truth, found: str) -> None:
    assert condition(wanted, TRUTHS) == found


def test_layers_that_no_two_literals_describe_have_no_condition() -> None:
    assert condition(np.isin(LAYERS, (0, 7, 8)), TRUTHS) is None
