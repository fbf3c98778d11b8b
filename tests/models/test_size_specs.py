"""The language in which families state sizes: every form of a spec, every kind of rule, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from app.models.architecture import SizeSource
from app.models.config_fields import ConfigError
from app.models.families import FAMILIES
from app.models.size_specs import SizeReader, parse_size_spec

D = ("d_model",)


@pytest.mark.parametrize(
    ("text", "condition", "fields", "if_absent", "if_null"),
    [
        ("d_model", "", D, None, None),
        ("d_model hidden_size", "", ("d_model", "hidden_size"), None, None),
        ("d_model = H", "", D, "H", "H"),
        ("d_model = 128, null d/H", "", D, "128", "d/H"),
        ("d_model = none", "", D, "none", "none"),
        ("= 4*d", "", (), "4*d", "4*d"),
        ("multi_query !alibi? d_model = 1", "multi_query !alibi", D, "1", "1"),
    ],
)
def test_a_spec_is_a_condition_fields_and_rules(
    text: str, condition: str, fields: tuple[str, ...], if_absent: str | None, if_null: str | None
) -> None:
    spec = parse_size_spec(text)
    assert (spec.condition, spec.fields) == (condition, fields)
    assert (spec.if_absent and spec.if_absent.text, spec.if_null and spec.if_null.text) == (if_absent, if_null)


def test_every_spec_of_every_family_can_be_read() -> None:
    for family in FAMILIES.values():
        for texts in family.sizes.values():
            for text in (texts,) if isinstance(texts, str) else texts:
                spec = parse_size_spec(text)
                assert spec.fields or spec.if_absent, text


@pytest.mark.parametrize(
    ("rule", "size"), [("128", 128), ("H", 5), ("2*d + 1", 25), ("d/k", 4), ("d//H", 2), ("none", None)]
)
def test_each_kind_of_rule(rule: str, size: int | None) -> None:
    """A number, a size, a sum of products, an exact quotient, one rounded down, and no such size."""
    assert read({"x": f"= {rule}"}).size("x") == size


@pytest.mark.parametrize(
    ("config", "size", "source"),
    [
        ({"a": 7, "b": 8}, 7, SizeSource("x", 7, "a", fields=("a", "b"))),
        ({"b": 8}, 8, SizeSource("x", 8, "b", fields=("a", "b"))),
        ({"a": None, "b": 8}, 8, SizeSource("x", 8, "b", fields=("a", "b"))),
        ({}, 5, SizeSource("x", 5, None, "H", fields=("a", "b"))),
        ({"b": None}, 1, SizeSource("x", 1, None, "1", is_null=True, fields=("b",))),
    ],
)
def test_a_size_and_where_it_came_from(config: dict[str, Any], size: int, source: SizeSource) -> None:
    reader = read({"x": "a b = H, null 1"}, config)
    assert (reader.size("x"), reader.sources["x"]) == (size, source)


def test_the_first_spec_whose_condition_is_met_counts() -> None:
    specs = {"x": ("new? n_kv = 7", "multi? = 1", "= H")}
    assert [read(specs, {}, frozenset(flags)).size("x") for flags in (("new", "multi"), ("multi",), ())] == [7, 1, 5]


@pytest.mark.parametrize("rule", ["d/H", "H/d", "H//d"])
def test_a_quotient_with_a_remainder_or_below_one_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="do not divide"):
        read({"x": f"= {rule}"}).size("x")


def test_what_the_config_should_state_and_does_not_is_refused_or_a_default() -> None:
    with pytest.raises(ConfigError, match='add "a"'):
        read({"x": "a"}).size("x")
    with pytest.raises(ConfigError, match='add "a"'):
        read({"x": "a = none"}).required("x")
    reader = SizeReader({}, {"x": "a"}, defaults={"x": 9})
    assert (reader.size("x"), reader.sources["x"].is_default) == (9, True)


def read(
    specs: dict[str, Any], config: dict[str, Any] | None = None, flags: frozenset[str] = frozenset()
) -> SizeReader:
    """A reader of a config with d = 12, H = 5 and k = 3, and of these specs."""
    known = {"d": "= 12", "H": "= 5", "k": "= 3"}
    return SizeReader(config or {}, {**known, **specs}, flags)
