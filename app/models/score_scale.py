"""What one head's scores Q·Kᵀ are multiplied by before the softmax, and where a config states it.

Most models multiply by 1/√d_h (Vaswani et al., arXiv:1706.03762, section 3.2.1). A family with another rule names one
of the functions below in its row; each follows the family's attention module in transformers.

>>> by_query_scalar({"query_pre_attn_scalar": 144}, 128, frozenset())
ScoreScale(kind='root', factor=0.08333333333333333, field='query_pre_attn_scalar', number=144.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.models.config_fields import Config, ConfigError, read_bool, read_positive_number
from app.translation import gettext as _

ScaleKind = Literal["inverse-sqrt", "none", "stated", "root", "yarn"]


@dataclass(frozen=True)
class ScoreScale:
    """The number that the scores are multiplied by: `factor`, which is 1 for the kind "none"."""

    kind: ScaleKind
    factor: float
    field: str = ""
    number: float = 1


# A model's scale, from its config, the head dimension d_h and its flags.
ScaleRule = Callable[[Config, int, frozenset[str]], ScoreScale]


def inverse_sqrt(_config: Config, d_h: int, _flags: frozenset[str]) -> ScoreScale:
    """1/√d_h, as in nearly all models."""
    return ScoreScale("inverse-sqrt", d_h**-0.5)


def unscaled(_config: Config, _d_h: int, _flags: frozenset[str]) -> ScoreScale:
    """No scale: T5 (arXiv:1910.10683) and GPT-Neo take the softmax of Q·Kᵀ itself."""
    return ScoreScale("none", 1.0)


def unless_switched_off(config: Config, d_h: int, flags: frozenset[str]) -> ScoreScale:
    """1/√d_h, or no scale if "scale_attn_weights" is false: GPT-2 and GPT-BigCode."""
    return (inverse_sqrt if read_bool(config, "scale_attn_weights", True) else unscaled)(config, d_h, flags)


def by_query_scalar(config: Config, d_h: int, flags: frozenset[str]) -> ScoreScale:
    """1/√query_pre_attn_scalar, by default 256 (Gemma 2 and 3); it is of the usual kind if the scalar is d_h.

    Raises ConfigError unless the scalar is a number above 0.
    """
    scalar = read_positive_number(config, "query_pre_attn_scalar", 256)
    if scalar == d_h:
        return inverse_sqrt(config, d_h, flags)
    return ScoreScale("root", scalar**-0.5, "query_pre_attn_scalar", scalar)


def by_multiplier(config: Config, d_h: int, _flags: frozenset[str]) -> ScoreScale:
    """The field "attention_multiplier", by default 1 (Granite); it is of the usual kind if it equals 1/√d_h."""
    factor = read_positive_number(config, "attention_multiplier", 1.0)
    return ScoreScale("inverse-sqrt" if factor == d_h**-0.5 else "stated", factor, "attention_multiplier")


def by_softmax_scale(config: Config, d_h: int, flags: frozenset[str]) -> ScoreScale:
    """The "softmax_scale" in MPT's "attn_config" if stated, and otherwise 1/√d_h.

    Raises ConfigError unless the scale is a number above 0.
    """
    attention = config.get("attn_config")
    if not isinstance(attention, dict) or attention.get("softmax_scale") is None:
        return inverse_sqrt(config, d_h, flags)
    return ScoreScale("stated", read_positive_number(attention, "softmax_scale", None), "attn_config.softmax_scale")


def by_yarn(config: Config, d_h: int, flags: frozenset[str]) -> ScoreScale:
    """m²/√d_h with m = 0.1 · mscale_all_dim · ln(factor) + 1 for DeepSeek's models with scaled RoPE; otherwise 1/√d_h.

    Raises ConfigError if one of the numbers isn't above 0 or the factor is missing.
    """
    scaling = rope_settings(config)
    is_scaled = scaling.get("rope_type", scaling.get("type", "default")) != "default"
    if not is_scaled or not scaling.get("mscale_all_dim"):
        return inverse_sqrt(config, d_h, flags)
    share = read_positive_number(scaling, "mscale_all_dim", None)
    factor = read_positive_number(scaling, "factor", None)
    m = 0.1 * share * math.log(factor) + 1.0 if factor > 1 else 1.0
    return ScoreScale("yarn", m * m * d_h**-0.5, "rope_scaling.mscale_all_dim", m * m)


def disentangled(config: Config, d_h: int, flags: frozenset[str]) -> ScoreScale:
    """1/√(n·d_h), where n counts DeBERTa's kinds of scores (He et al., arXiv:2006.03654): content, c2p and p2c."""
    kinds = 1 + len(flags & {"c2p", "p2c"}) if "relative" in flags else 1
    if kinds == 1:
        return inverse_sqrt(config, d_h, flags)
    return ScoreScale("root", (d_h * kinds) ** -0.5, "pos_att_type", d_h * kinds)


def by_kinds_of_scores(config: Config, d_h: int) -> ScoreScale:
    """1/√(n·d_h), where n counts DeBERTa's kinds of scores (He et al., arXiv:2006.03654): content, c2p and p2c."""
    stated = config.get("pos_att_type") or []
    words = stated.split("|") if isinstance(stated, str) else stated
    kinds = {word.strip().lower() for word in words if isinstance(word, str)} & {"c2p", "p2c"}
    if not kinds or not read_bool(config, "relative_attention", False):
        return ScoreScale("inverse-sqrt", d_h**-0.5)
    number = d_h * (1 + len(kinds))
    return ScoreScale("root", number**-0.5, "pos_att_type", number)


def rope_settings(config: Config) -> dict[str, Any]:
    """The config's "rope_scaling" or, as transformers 5 writes it, "rope_parameters".

    Raises ConfigError if it isn't an object.
    """
    settings = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(settings, dict):
        raise ConfigError(_('"rope_scaling" must be a JSON object or null.'))
    trained_length = config.get("original_max_position_embeddings")
    return settings | {"original_max_position_embeddings": trained_length} if settings and trained_length else settings


# The rules of data/computation.toml by name.
SCALE_RULES: Mapping[str, Callable[[Config, int], ScoreScale]] = {
    "unless_switched_off": lambda config, d_h: unless_switched_off(config, d_h, frozenset()),
    "by_softmax_scale": lambda config, d_h: by_softmax_scale(config, d_h, frozenset()),
    "by_yarn": lambda config, d_h: by_yarn(config, d_h, frozenset()),
    "by_kinds_of_scores": by_kinds_of_scores,
}
