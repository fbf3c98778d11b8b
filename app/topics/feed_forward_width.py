"""Where the inner dimension of a feed-forward block comes from: four times d, or LLaMA's rule for a gated block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.models.width_rules import WHOLE_PERCENT, WidthRule
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable
from app.topics.requirements import LAYERS_OF_ONE_SHAPE, NO_EXPERTS, ONE_STACK, Requirement
from app.topics.topic import CountFigure, Topic
from app.translation import N_


def _width_sizes(architecture: Architecture, _tokens: int) -> dict[str, int]:
    rule = architecture.width_rule
    if rule is None:
        return {}
    return {"m": rule.multiple_of, "percent": rule.percent, "g": rule.before_rounding(architecture.d)}


def _width_table(architecture: Architecture, _tokens: int) -> TensorTable:
    rule = architecture.width_rule
    counts = _gated(architecture, rule) if rule else _ungated(architecture)
    return TensorTable("feed-forward-width", counts=tuple(counts))


def _ungated(architecture: Architecture) -> Iterator[Count]:
    four_d, d = Expression.parse("4*d"), Expression.symbol("d")
    yield _step("width", four_d, "4 · {d}")
    yield Count("block_parameters", four_d * d * 2, "2 · {d} · {width}", FromParts(d * 2 * PARTS_SUM, ("width",)))
    yield _two_thirds("gated_width", architecture.d, "width")


def _gated(architecture: Architecture, rule: WidthRule) -> Iterator[Count]:
    d, m = architecture.d, Expression.symbol("m")
    yield _step("four_d", Expression.parse("4*d"), "4 · {d}")
    yield (before := _two_thirds("two_thirds", d, "four_d"))
    if rule.percent != WHOLE_PERCENT:
        yield (before := _percent_of(before, d, rule))
    rounds = before.rounds or rule.before_rounding(d) % rule.multiple_of > 0
    up = FromParts(PARTS_SUM / m, (before.key,), "up")
    # What was already rounded down gets a symbol and a size, so that it can be divided by m.
    divided = Expression.symbol("g") if before.rounds else before.total
    multiples = _step("multiples", divided / m, f"{{{before.key}}} ÷ {{m}}, {{rounded-up}}", up, rounds=rounds)
    yield replace(multiples, rounded="up")
    width = m * (architecture.d_ff // rule.multiple_of) if rounds else before.total
    yield _step("width", width, "{m} · {multiples}", FromParts(m * PARTS_SUM, ("multiples",)), rounds=rounds)
    three, two = Expression.parse("3*d"), Expression.parse("2*d")
    gated, ungated = FromParts(three * PARTS_SUM, ("width",)), FromParts(two * PARTS_SUM, ("four_d",))
    # Not 3·d·d_ff: the sheet asks for the inner dimension.
    yield Count("gated_parameters", three * width, "3 · {d} · {width}", gated, rounds=rounds)
    yield Count("ungated_parameters", Expression.parse("8*d*d"), "2 · {d} · {four_d}", ungated)


def _two_thirds(key: str, d: int, part: str) -> Count:
    total = Expression.symbol("d") * Fraction(8, 3) - Fraction(8 * d % 3, 3)
    made_from = FromParts(PARTS_SUM * Fraction(2, 3), (part,), "down")
    return _step(key, total, f"2/3 · {{{part}}}, {{rounded-down}}", made_from, rounds=d % 3 > 0)


def _percent_of(before: Count, d: int, rule: WidthRule) -> Count:
    share = Fraction(rule.percent, WHOLE_PERCENT)
    exact = before.total * share
    dropped = exact.value({"d": d}) % 1
    formula = f"{{percent}}/100 · {{{before.key}}}, {{rounded-down}}"
    made_from = FromParts(PARTS_SUM * share, (before.key,), "down")
    return _step("multiplied", exact - dropped, formula, made_from, rounds=before.rounds or dropped > 0)


def _step(
    key: str, total: Expression, formula: str, made_from: FromParts | None = None, *, rounds: bool = False
) -> Count:
    return Count(key, total, formula, made_from, unit="entries", rounds=rounds)


# 4·d in an ungated block; the result of LLaMA's rule in a gated one.
_KNOWN_WIDTH = Requirement(
    lambda architecture, _tokens: (
        architecture.width_rule is not None or (not architecture.gated and architecture.d_ff == 4 * architecture.d)
    ),
    N_(
        "The inner dimension of {model}, {number}, follows no rule that this sheet knows: choose a model such as "
        "LLaMA 7B or GPT-2."
    ),
    lambda architecture, _tokens: architecture.d_ff,
)


TOPIC = Topic(
    "feed-forward-width",
    "counts",
    _width_table,
    (ONE_STACK, NO_EXPERTS, LAYERS_OF_ONE_SHAPE, _KNOWN_WIDTH),
    about_attention=False,
    count_figures=(
        CountFigure("widths", ("four_d", "two_thirds", "multiplied", "width", "gated_width")),
        CountFigure("blocks", ("block_parameters", "gated_parameters", "ungated_parameters")),
    ),
    extra_sizes=_width_sizes,
    counts="width block_parameters gated_width four_d two_thirds multiplied multiples gated_parameters "
    "ungated_parameters",
    extra_symbols="m percent g",
)
