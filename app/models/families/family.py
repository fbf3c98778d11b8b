"""What a family's row contains, and the sizes and flags that many rows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.models.alibi import AlibiSlopes, slopes_from_powers
from app.models.architecture import EmbeddingScale, InputKind, NormKind, NormPlacement, PositionBias, QKNorm
from app.models.config_fields import ConfigError, quoted
from app.models.layer_patterns import LayerPattern, WindowRule
from app.models.parameter_specs import NEVER, Layout
from app.models.score_scale import ScaleRule, inverse_sqrt
from app.models.size_specs import SizeSpecs
from app.models.width_rules import WidthRules
from app.translation import N_
from app.translation import gettext as _


@dataclass(frozen=True)
class Flag:
    """A yes-or-no property of a model and the config fields that may state it.

    `fields` are separated by spaces; the first one in the config counts.
    """

    fields: str = ""
    default: bool | str = False
    test: Callable[[object, str], bool] | None = None
    null: bool | None = None


# What an absent "tie_word_embeddings" means, or that the field is ignored.
Tied = bool | Literal["never"]
YES = Flag(default=True)
Flags = Mapping[str, Flag]


@dataclass(frozen=True)
class RotaryRule:
    """How a family states its rotary positions (RoPE).

    `width` is the symbol for the rotated numbers of a query, `share` the field with the rotated fraction, `theta` the
    field with the base of the angles.
    """

    width: str = "d_h"
    share: str = "partial_rotary_factor"
    default_share: float = 1.0
    theta: str = "rope_theta"
    default_theta: float = 10_000.0
    when: str = ""
    adjacent: str = NEVER
    local_theta: str = ""
    default_local_theta: float | None = None
    scaled_locally: bool = False
    layers: LayerPattern | None = None
    windowed_only: bool = False


COMMON_SIZES: SizeSpecs = {
    "d": "hidden_size",
    "H": "num_attention_heads",
    "G": "num_key_value_heads = H",
    "d_h": "head_dim = d/H",
    "d_v": "= d_h",
    "d_ff": "intermediate_size",
    "V": "vocab_size",
    "L": "num_hidden_layers",
    "C": "max_position_embeddings = none",
    "labels": "id2label num_labels = 2",
}
# Each query head has its own key/value head, and all heads together are as wide as the model, whatever the config says.
MULTI_HEAD: SizeSpecs = {"G": "= H", "d_h": "= d/H"}


@dataclass(frozen=True)
class Family:
    """How one model_type differs from others. `sizes` extend or replace COMMON_SIZES."""

    layout: Layout
    model_class: str
    sizes: SizeSpecs = field(default_factory=dict)
    flags: Flags = field(default_factory=dict)
    tied: Tied = False
    causal: bool = True
    # "is_causal": false gives nearly every causal model a mask in both directions: create_causal_mask in transformers.
    reads_is_causal: bool = True
    kv_cache: bool = True
    position_rows: str | None = None
    position_table_when: str = ""
    unused_positions: int = 0
    rotary: RotaryRule | None = None
    windows: WindowRule | None = None
    expert_layers: LayerPattern | None = None
    cross_layers: LayerPattern | None = None
    text_part_defaults: Mapping[str, int] = field(default_factory=dict)
    scale: ScaleRule = inverse_sqrt
    softcap: float | Literal["never"] | None = "never"
    position_bias: Mapping[str, PositionBias] = field(default_factory=dict)
    alibi_slopes: AlibiSlopes = slopes_from_powers
    qk_norm: QKNorm = "layer-norm"
    embedding_scale: EmbeddingScale = ""
    scales_residuals: bool = False
    width_rules: WidthRules = field(default_factory=dict)
    norm: NormKind = "LayerNorm"
    norm_placement: Mapping[str, NormPlacement] = field(default_factory=lambda: PRE_NORM)
    fixed_tokens: str | None = None
    input: InputKind = "text"
    not_modelled: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", {**COMMON_SIZES, **self.sizes})


@dataclass(frozen=True)
class CausalDecoder(Family):
    """The row of a causal decoder with rotary positions and RMSNorm, the most common kind."""

    rotary: RotaryRule | None = RotaryRule()
    norm: NormKind = "RMSNorm"


PRE_NORM: Mapping[str, NormPlacement] = {"": "pre"}
POST_NORM: Mapping[str, NormPlacement] = {"": "post"}
OUTPUT_NORM: Mapping[str, NormPlacement] = {"": "output"}
SANDWICH_NORM: Mapping[str, NormPlacement] = {"": "sandwich"}
PARALLEL_NORM: Mapping[str, NormPlacement] = {"": "parallel"}
PARALLEL_OR_PRE_NORM: Mapping[str, NormPlacement] = {"parallel": "parallel", "": "pre"}


def default_sizes(d: int, H: int, d_ff: int, V: int, L: int) -> Mapping[str, int]:
    """The five sizes that a multimodal file's text part may leave out, for `text_part_defaults`."""
    return {"d": d, "H": H, "d_ff": d_ff, "V": V, "L": L}


# Flags that many rows share: biases of the projections (q k v o) and of the feed-forward block, and a norm of queries
# and keys, whose kind is the row's `qk_norm`.
ATTENTION_BIAS: Flags = {"q k v o": Flag("attention_bias")}
MLP_BIAS: Flags = {"mlp_bias": Flag("mlp_bias")}
QKV_BIAS: Flags = {"q k v": YES}
ALL_BIASES: Flags = {"q k v o mlp_bias": YES}
WITH_QK_NORM: Flags = {"qk_norm": YES}
# The feature that isn't modelled under the flag "clipped".
CLIPPED: Mapping[str, str] = {"clipped": N_("queries, keys and values clipped to a stated range")}


def is_set(_value: object, _name: str) -> bool:
    """Flag test: True for any value; only fields that are present and not null are tested."""
    return True


def is_positive(value: object, name: str) -> bool:
    """Flag test: whether a whole number is above zero; raises ConfigError for anything else, including true
    and false.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(_('"{field}" must be a whole number, not {value}.').format(field=name, value=quoted(value)))
    return value > 0


def is_two(value: object, name: str) -> bool:
    """Flag test: whether a whole number is 2; raises ConfigError for anything but a whole number."""
    return is_positive(value, name) and value == 2


def differs_from_128(value: object, name: str) -> bool:
    """Flag test: whether a positive whole number isn't 128; raises ConfigError for anything but a whole number."""
    return is_positive(value, name) and value != 128


def clips_projections(value: object, _name: str) -> bool:
    """Flag test: whether MPT's "attn_config" has a "clip_qkv" that is not null."""
    return isinstance(value, dict) and value.get("clip_qkv") is not None


def has_word(word: str) -> Callable[[object, str], bool]:
    """A flag test: whether a list, or a text of words separated by "|", contains the lower-case `word`.

    Example: has_word("c2p")("P2C|c2p", "pos_att_type") -> True
    """

    def test(value: object, name: str) -> bool:
        words = value.lower().split("|") if isinstance(value, str) else value
        if not isinstance(words, list):
            problem = _('"{field}" must be a list of words, not {value}.')
            raise ConfigError(problem.format(field=name, value=quoted(value)))
        return word in [item.strip() for item in words if isinstance(item, str)]

    return test


def names_gated_activation(value: object, name: str) -> bool:
    """Flag test: whether a text begins with "gated-", such as "gated-gelu", or the field says so itself.

    Raises ConfigError for other values.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        problem = _('"{field}" must name an activation function, not {value}.')
        raise ConfigError(problem.format(field=name, value=quoted(value)))
    return value.startswith("gated-")
