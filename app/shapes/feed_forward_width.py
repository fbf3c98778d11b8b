"""Where the inner dimension of a feed-forward block comes from: four times d, or LLaMA's rule for a gated block.

A gated block has three matrices where an ungated one has two. With two thirds of 4·d it has as many parameters
(Shazeer, arXiv:2002.05202, section 3), and LLaMA rounds that up to a multiple of 256 (Touvron et al., arXiv:2302.13971,
section 2.2, and the class FeedForward in llama/model.py of github.com/meta-llama/llama). Some later models take a
percentage of it before that, which Meta published in models/sku_list.py of github.com/meta-llama/llama-models.

>>> LLAMA_RULE.width(4096)
11008
>>> WidthRule(1024, 130).width(4096)  # Llama 3 8B
14336
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.table import PARTS_SUM, Count, FromParts

_WHOLE_PERCENT = 100


@dataclass(frozen=True)
class WidthRule:
    """LLaMA's rule with its two settings: `multiple_of`, and the "ffn_dim_multiplier" in `percent`, 100 for none."""

    multiple_of: int
    percent: int = _WHOLE_PERCENT

    def before_rounding(self, d: int) -> int:
        """Two thirds of 4·d, rounded down, and `percent` of that, rounded down again."""
        return 8 * d // 3 * self.percent // _WHOLE_PERCENT

    def width(self, d: int) -> int:
        """The inner dimension: the next multiple of `multiple_of`."""
        return -(-self.before_rounding(d) // self.multiple_of) * self.multiple_of


LLAMA_RULE = WidthRule(256)
# The settings of Meta's larger and later models by (L, d, d_ff): "ffn_dim_multiplier" and "multiple_of" in
# models/sku_list.py of github.com/meta-llama/llama-models at commit 364ed4e, the last with that file. For Llama 3.2 1B
# it states 1.5 and 256 (5,461 becomes 8,191, then 8,192), for Llama 3.2 3B 1.0 and 256, which is LLaMA's own rule.
# A config.json of transformers states neither.
PUBLISHED_RULES: Mapping[tuple[int, int, int], WidthRule] = {
    (16, 2048, 8192): WidthRule(256, 150),  # Llama 3.2 1B
    (32, 4096, 14336): WidthRule(1024, 130),  # Llama 3 and 3.1 8B
    (80, 8192, 28672): WidthRule(4096, 130),  # Llama 2 70B, Llama 3 and 3.1 70B
    (126, 16384, 53248): WidthRule(4096, 120),  # Llama 3.1 405B
}


def width_rule(architecture: Architecture) -> WidthRule | None:
    """The rule that gives the inner dimension of a gated block; None for an ungated one, and where no rule is known."""
    a = architecture
    if not a.gated:
        return None
    if LLAMA_RULE.width(a.d) == a.d_ff:
        return LLAMA_RULE
    return PUBLISHED_RULES.get((a.L, a.d, a.d_ff)) if a.family == "llama" else None


def follows_width_rule(architecture: Architecture) -> bool:
    """Whether the inner dimension is 4·d in an ungated block, or what a rule gives in a gated one."""
    return bool(width_rule(architecture)) if architecture.gated else architecture.d_ff == 4 * architecture.d


def width_sizes(architecture: Architecture, _tokens: int) -> dict[str, int]:
    """The settings of the model's rule, m and percent; and g, what is rounded up. Or none."""
    rule = width_rule(architecture)
    if rule is None:
        return {}
    d = architecture.d
    return {"m": rule.multiple_of, "percent": rule.percent, "g": rule.before_rounding(d)}


def width_counts(architecture: Architecture) -> tuple[Count, ...]:
    """The steps to the inner dimension, and the parameters of the block beside those of the other kind of block."""
    rule = width_rule(architecture)
    return tuple(_gated(architecture, rule) if rule else _ungated(architecture))


def _ungated(architecture: Architecture) -> Iterator[Count]:
    """4·d and the two matrices; then how wide a gated block can be that has no more parameters."""
    four_d, d = Expression.parse("4*d"), Expression.symbol("d")
    yield _step("width", four_d, "4 · {d}")
    yield Count("block_parameters", four_d * d * 2, "2 · {d} · {width}", FromParts(d * 2 * PARTS_SUM, ("width",)))
    yield _two_thirds("gated_width", architecture.d, "width")


def _gated(architecture: Architecture, rule: WidthRule) -> Iterator[Count]:
    """The steps of LLaMA's rule, then three matrices of this width beside two of 4·d."""
    d, m = architecture.d, Expression.symbol("m")
    yield _step("four_d", Expression.parse("4*d"), "4 · {d}")
    yield (before := _two_thirds("two_thirds", d, "four_d"))
    if rule.percent != _WHOLE_PERCENT:
        yield (before := _percent_of(before, d, rule))
    rounds = before.rounds or rule.before_rounding(d) % rule.multiple_of > 0
    up = FromParts(PARTS_SUM / m, (before.key,), "up")
    # What was rounded down already is a size of its own, so that it can be divided by m.
    divided = Expression.symbol("g") if before.rounds else before.total
    multiples = _step("multiples", divided / m, f"{{{before.key}}} ÷ {{m}}, {{rounded-up}}", up, rounds=rounds)
    yield replace(multiples, rounded="up")
    width = m * (architecture.d_ff // rule.multiple_of) if rounds else before.total
    yield _step("width", width, "{m} · {multiples}", FromParts(m * PARTS_SUM, ("multiples",)), rounds=rounds)
    three, two = Expression.parse("3*d"), Expression.parse("2*d")
    gated, ungated = FromParts(three * PARTS_SUM, ("width",)), FromParts(two * PARTS_SUM, ("four_d",))
    # Not 3·d·d_ff: the inner dimension is what the sheet asks for.
    yield Count("gated_parameters", three * width, "3 · {d} · {width}", gated, rounds=rounds)
    yield Count("ungated_parameters", Expression.parse("8*d*d"), "2 · {d} · {four_d}", ungated)


def _two_thirds(key: str, d: int, part: str) -> Count:
    """2/3 of another count, which is 4·d, rounded down for this d: 8·d/3 - 2/3 for 4096."""
    total = Expression.symbol("d") * Fraction(8, 3) - Fraction(8 * d % 3, 3)
    return _step(key, total, f"2/3 · {{{part}}}, {{rounded-down}}", _part_of(part, 2, 3), rounds=d % 3 > 0)


def _percent_of(before: Count, d: int, rule: WidthRule) -> Count:
    """The rule's percentage of the step before, rounded down."""
    exact = before.total * Fraction(rule.percent, _WHOLE_PERCENT)
    dropped = exact.value({"d": d}) % 1
    formula = f"{{percent}}/100 · {{{before.key}}}, {{rounded-down}}"
    made_from = _part_of(before.key, rule.percent, _WHOLE_PERCENT)
    return _step("multiplied", exact - dropped, formula, made_from, rounds=before.rounds or dropped > 0)


def _part_of(part: str, share: int, whole: int) -> FromParts:
    """`share/whole` of another count, rounded down."""
    return FromParts(PARTS_SUM * Fraction(share, whole), (part,), "down")


def _step(
    key: str, total: Expression, formula: str, made_from: FromParts | None = None, *, rounds: bool = False
) -> Count:
    """A number on the way to the inner dimension."""
    return Count(key, total, formula, made_from, unit="entries", rounds=rounds)
