"""How makers of gated feed-forward blocks chose the inner dimension: LLaMA's rule, with each model's settings.

A gated block has three matrices where an ungated one has two. With two thirds of 4·d it has as many parameters
(Shazeer, arXiv:2002.05202, section 3). LLaMA rounds that up to a multiple of 256 (Touvron et al., arXiv:2302.13971,
section 2.2, and the class FeedForward in llama/model.py of github.com/meta-llama/llama).

>>> LLAMA_RULE.width(4096)
11008
>>> WidthRule(1024, 130).width(4096)  # Llama 3 8B
14336
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WHOLE_PERCENT = 100


@dataclass(frozen=True)
class WidthRule:
    """LLaMA's rule with its two settings: `multiple_of`, and "ffn_dim_multiplier" as `percent` (100 for none)."""

    multiple_of: int
    percent: int = WHOLE_PERCENT

    def before_rounding(self, d: int) -> int:
        """Two thirds of 4·d, rounded down, and `percent` of that, rounded down again."""
        return 8 * d // 3 * self.percent // WHOLE_PERCENT

    def width(self, d: int) -> int:
        """The inner dimension: `before_rounding`, rounded up to a multiple of `multiple_of`."""
        return -(-self.before_rounding(d) // self.multiple_of) * self.multiple_of


# The rules of a family's models by (L, d, d_ff).
WidthRules = Mapping[tuple[int, int, int], WidthRule]
LLAMA_RULE = WidthRule(256)
# The settings of Meta's larger and later models: "ffn_dim_multiplier" and "multiple_of" in models/sku_list.py of
# github.com/meta-llama/llama-models at commit 364ed4e, the last with that file. It states 1.5 and 256 for Llama 3.2 1B
# (5,461 becomes 8,191, then 8,192), and 1.0 and 256, which is LLaMA's rule, for Llama 3.2 3B. A config.json of
# transformers states neither.
META_RULES: WidthRules = {
    (16, 2048, 8192): WidthRule(256, 150),  # Llama 3.2 1B
    (32, 4096, 14336): WidthRule(1024, 130),  # Llama 3 and 3.1 8B
    (80, 8192, 28672): WidthRule(4096, 130),  # Llama 2 70B, Llama 3 and 3.1 70B
    (126, 16384, 53248): WidthRule(4096, 120),  # Llama 3.1 405B
}


def width_rule(rules: WidthRules, L: int, d: int, d_ff: int) -> WidthRule | None:
    """The rule that gives d_ff in a gated block: LLaMA's, the one in `rules` for these sizes, or None."""
    return LLAMA_RULE if LLAMA_RULE.width(d) == d_ff else rules.get((L, d, d_ff))
