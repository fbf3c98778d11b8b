"""The language of rules and conditions in tables: what it computes, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from app.models.grammar import RuleError, parse_rule

NAMES: dict[str, Any] = {
    "d": 96,
    "H": 7,
    "scalar": 144.0,
    "rank": None,
    "kinds": ["full", "linear", "full"],
    "dense": [0, 2],
    "word": "gated",
}


@pytest.mark.parametrize(
    ("text", "layer", "value"),
    [
        ("4·d + 2", 0, 386),
        ("d/8", 0, 12),
        ("d/H", 0, Fraction(96, 7)),
        ("d//H", 0, 13),
        ("up(8·d/3, 100)", 0, 300),
        ("int(d·2/3)", 0, 64),
        ("max(d, 100) - min(d, 100)", 0, 4),
        ("1/sqrt(scalar)", 0, 1 / 12),
        ("d if i < 2 else 2·d", 2, 192),
        ("rank is None", 0, True),
        ("rank is not None and rank > 3", 0, False),
        ("rank > 3", 0, False),
        ("kinds[i] == 'linear'", 1, True),
        ("(i + 1) % 2 == 0 or i in dense", 2, True),
        ("i not in dense", 2, False),
        ("not (i >= 1)", 0, True),
        ("word != 'plain'", 0, True),
    ],
)
def test_a_rule_has_the_value_that_python_gives_it(text: str, layer: int, value: object) -> None:
    assert parse_rule(text).value(NAMES, layer) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "d.real",
        "d ** 9",
        "[d]",
        "lambda: d",
        "print(d)",
        "d; H",
        "d if H",
        "'a' 'b' + f'{d}'",
        "d < H < 9",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)


@pytest.mark.parametrize("text", ["rank·2", "d/(H - 7)", "kinds[9]"])
def test_a_rule_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text).value(NAMES)


def test_a_sum_of_products_is_read_as_symbols() -> None:
    assert str(parse_rule("2·d·H + (d + H)·d/H").expression()) == "2*H*d + d + d*d/H"
    with pytest.raises(RuleError):
        parse_rule("d//H").expression()
