"""What a row of a family is, and the parts that rows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from app.models.layer_patterns import Pattern, Windows
from app.models.parameter_specs import Layout
from app.models.size_specs import ConfigError, shown

Specs = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Flag:
    """A yes or no: the fields that may state it, and what absence and null mean.

    `default` may name another flag of the row; null means the same unless `null` says otherwise. Without `test`, which
    gets the value and the name of its field, the field must hold true or false.
    """

    fields: str = ""
    default: bool | str = False
    test: Callable[[object, str], bool] | None = None
    null: bool | None = None


YES = Flag(default=True)
Flags = Mapping[str, Flag]


@dataclass(frozen=True)
class Rope:
    """Rotary positions: which width turns, and the fields for its share and its base with their defaults."""

    width: str = "d_h"
    share: str = "partial_rotary_factor"
    default_share: float = 1.0
    theta: str = "rope_theta"
    default_theta: float = 10_000.0
    when: str = ""


@dataclass(frozen=True)
class Family:
    """What one model_type does differently.

    `flags` may set several at once ("q k v": the three biases). `tied`: what an absent tie_word_embeddings means, or
    "always" or "never". `positions`: the size that counts the positions a table holds, None where there is no table,
    as where the flags of `positions_when` do not hold; `unused_positions`: how many of them no token takes.
    `part_defaults`: sizes that multimodal files of this family leave out of their text part, and only there.
    """

    layout: Layout
    model_class: str
    sizes: Specs = field(default_factory=dict)
    flags: Mapping[str, Flag] = field(default_factory=dict)
    tied: bool | str = False
    causal: bool = True
    cache: bool = True
    positions: str | None = None
    positions_when: str = ""
    unused_positions: int = 0
    rotary: Rope | None = None
    windows: Windows | None = None
    experts: Pattern | None = None
    cross_layers: Pattern | None = None
    part_defaults: Mapping[str, int] = field(default_factory=dict)


SIZES: Specs = {
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
_ROPE = Rope()


def decoder(layout: Layout, name: str, sizes: Specs | None = None, **more: object) -> Family:
    """A decoder with rotary positions, the most frequent kind of row."""
    family = Family(layout, f"{name}ForCausalLM", {**SIZES, **(sizes or {})}, rotary=_ROPE)
    return replace(family, **more)  # type: ignore[arg-type]  # the rows below are checked by the tests that build them


def parts(d: int, H: int, d_ff: int, V: int, L: int) -> Mapping[str, int]:
    return {"d": d, "H": H, "d_ff": d_ff, "V": V, "L": L}


ATTENTION_BIAS: Flags = {"q k v o": Flag("attention_bias")}
MLP_BIAS: Flags = {"mlp_bias": Flag("mlp_bias")}
QKV_BIAS = {"q k v": YES}
ALL_BIASES: Flags = {"q k v o mlp_bias": YES}
QK_NORM = {"qk_norm": YES}
PER_HEAD_RMS = {"qk_norm rms_per_head": YES}


def positive(value: object, name: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f'"{name}" must be a whole number, and it is {shown(value)}.')
    return value > 0


def is_two(value: object, name: str) -> bool:
    return positive(value, name) and value == 2


def says(word: str) -> Callable[[object, str], bool]:
    """Whether a list, or a text with parts set apart by |, has this part."""

    def test(value: object, name: str) -> bool:
        parts = value.lower().split("|") if isinstance(value, str) else value
        if not isinstance(parts, list):
            raise ConfigError(f'"{name}" must be a list of words, and it is {shown(value)}.')
        return word in [part.strip() for part in parts if isinstance(part, str)]

    return test


def says_gated(value: object, name: str) -> bool:
    if not isinstance(value, str):
        raise ConfigError(f'"{name}" must name an activation, and it is {shown(value)}.')
    return value.startswith("gated-")
