"""What one head's scores Q·Kᵀ are multiplied by before the softmax.

Most models multiply by 1/√d_h (Vaswani et al., arXiv:1706.03762, section 3.2.1). A type's table has the rule; these are
the ones that no table has, each as in the type's attention module in transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.models.config_fields import Config, ConfigError, quoted, read_bool, read_positive_number
from app.translation import gettext as _

ScaleKind = Literal["inverse-sqrt", "none", "stated", "root", "yarn"]


@dataclass(frozen=True)
class ScoreScale:
    """The number that the scores are multiplied by: `factor`, which is 1 for the kind "none"."""

    kind: ScaleKind
    factor: float
    field: str = ""
    number: float = 1


def by_softmax_scale(config: Config, d_h: int) -> ScoreScale:
    """The "softmax_scale" in MPT's "attn_config" if stated, and otherwise 1/√d_h."""
    attention = config.get("attn_config")
    if not isinstance(attention, dict) or attention.get("softmax_scale") is None:
        return ScoreScale("inverse-sqrt", d_h**-0.5)
    return ScoreScale("stated", read_positive_number(attention, "softmax_scale", None), "attn_config.softmax_scale")


def by_yarn(config: Config, d_h: int) -> ScoreScale:
    """m²/√d_h with m = 0.1 · mscale_all_dim · ln(factor) + 1 for DeepSeek's models with scaled RoPE; otherwise
    1/√d_h.
    """
    scaling = rope_settings(config)
    is_scaled = scaling.get("rope_type", scaling.get("type", "default")) != "default"
    if not is_scaled or not scaling.get("mscale_all_dim"):
        return ScoreScale("inverse-sqrt", d_h**-0.5)
    share = read_positive_number(scaling, "mscale_all_dim", None)
    factor = read_positive_number(scaling, "factor", None)
    m = 0.1 * share * math.log(factor) + 1.0 if factor > 1 else 1.0
    return ScoreScale("yarn", m * m * d_h**-0.5, "rope_scaling.mscale_all_dim", m * m)


def by_kinds_of_scores(config: Config, d_h: int) -> ScoreScale:
    """1/√(n·d_h), where n counts DeBERTa's kinds of scores (He et al., arXiv:2006.03654): content, c2p and p2c."""
    stated = config.get("pos_att_type") or []
    words = stated.split("|") if isinstance(stated, str) else stated
    if not isinstance(words, list):
        raise ConfigError(_('"pos_att_type" must be a list of words, not {value}.').format(value=quoted(stated)))
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
    "by_softmax_scale": by_softmax_scale,
    "by_yarn": by_yarn,
    "by_kinds_of_scores": by_kinds_of_scores,
}
