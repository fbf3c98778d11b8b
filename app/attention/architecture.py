"""A published config.json read into one frozen Architecture; the only place where model families differ.

>>> read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}').d_h
64
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

MAX_CONFIG_BYTES = 1_000_000
MAX_SIZE = 10_000_000
MAX_TOKENS = 2**24


class ConfigError(ValueError):
    """A config.json that cannot be used; the message is one sentence that says what to change."""


class TokensError(ValueError):
    """A number of tokens that cannot be used with this model; the message says which numbers can."""


@dataclass(frozen=True)
class Reading:
    """Where one size of an Architecture came from: a config field, or the rule that filled its absence."""

    symbol: str
    value: int
    field: str | None
    rule: str = "stated"


@dataclass(frozen=True)
class Rotary:
    """Rotary position embedding (Su et al., arXiv:2104.09864): base, how many of the d_h numbers turn, and scaling.

    `scaling` is the config's own `rope_scaling` entry, empty where there is none.
    """

    theta: float
    width: int
    scaling: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Architecture:
    """The named sizes of one model, all of them counts: N is not among them, it belongs to the sheet.

    d: width of the model. H, G: query heads and key/value heads of a layer. d_h: width of a query and a key.
    d_v: width of a value. d_ff: width inside the feed-forward block. V: vocabulary. L: layers.
    C: the stated maximum length, None where the config states none; it limits N only where `position_table` is true.
    `biases` names the projections that have one (of q, k, v, o).
    """

    name: str
    family: str
    d: int
    H: int
    G: int
    d_h: int
    d_v: int
    d_ff: int
    V: int
    L: int
    C: int | None
    causal: bool
    position_table: bool
    tied_embeddings: bool
    biases: str
    qk_norm_eps: float | None
    rotary: Rotary | None
    window: int | None
    initializer_range: float
    readings: tuple[Reading, ...]

    @property
    def sizes(self) -> dict[str, int | None]:
        """Every size by its symbol, in reading order."""
        return {symbol: getattr(self, symbol) for symbol in ("d", "H", "G", "d_h", "d_v", "d_ff", "V", "L", "C")}

    @property
    def query_heads_per_kv_head(self) -> int:
        """H/G: how many query heads read the same keys and values (Ainslie et al., arXiv:2305.13245)."""
        return self.H // self.G

    @property
    def max_tokens(self) -> int:
        """The longest input a sheet may ask about: the position table where there is one."""
        return self.C if self.position_table and self.C else MAX_TOKENS

    def with_kv_head_per_query_head(self) -> Architecture:
        """The simplification of many courses: every query head has keys and values of its own (G = H)."""
        return replace(self, G=self.H)

    def check_tokens(self, tokens: int) -> int:
        """The number itself if a sheet can use it; raises TokensError otherwise."""
        if 1 <= tokens <= self.max_tokens:
            return tokens
        why = f": {self.name} has a table of {self.C:,} positions" if self.position_table and self.C else ""
        raise TokensError(f"Tokens must be a whole number from 1 to {self.max_tokens:,}{why}.")


@dataclass(frozen=True)
class Family:
    """What one model_type does differently: names of its fields, and what its published configs leave unsaid.

    `bias_field` is a config field that switches the biases named in `biases` on; without one they are always there.
    """

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tied: bool = False
    causal: bool = True
    biases: str = ""
    bias_field: str | None = None
    position_table: bool = False
    qk_norm: bool = False
    rotary: bool = True
    windowed: str | None = None


FIELDS: Mapping[str, tuple[str, ...]] = {
    "d": ("hidden_size",),
    "H": ("num_attention_heads",),
    "G": ("num_key_value_heads",),
    "d_h": ("head_dim",),
    "d_ff": ("intermediate_size",),
    "V": ("vocab_size",),
    "L": ("num_hidden_layers",),
    "C": ("max_position_embeddings",),
}

FAMILIES: Mapping[str, Family] = {
    "llama": Family(biases="qkvo", bias_field="attention_bias"),
    "mistral": Family(windowed="sliding_window"),
    "qwen2": Family(biases="qkv", windowed="use_sliding_window"),
    "qwen3": Family(biases="qkvo", bias_field="attention_bias", qk_norm=True, windowed="use_sliding_window"),
    "gpt2": Family(
        fields={"d": ("n_embd",), "H": ("n_head",), "L": ("n_layer",), "d_ff": ("n_inner",), "C": ("n_positions",)},
        tied=True,
        biases="qkvo",
        position_table=True,
        rotary=False,
    ),
}


def read_config(text: str | bytes, name: str = "this model") -> Architecture:
    """Read the text of a config.json; raises ConfigError, with one sentence on what to change."""
    if len(text) > MAX_CONFIG_BYTES:
        raise ConfigError(f"A config.json is at most {MAX_CONFIG_BYTES:,} bytes long; this one has {len(text):,}.")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError("This is not JSON: paste the whole config.json, from its first { to its last }.") from None
    return architecture_from(config, name)


def architecture_from(config: object, name: str = "this model") -> Architecture:
    """Read an already parsed config.json; raises ConfigError."""
    if not isinstance(config, dict):
        raise ConfigError("A config.json holds one JSON object: { … } with the model's sizes in it.")
    family = _family(config)
    reader = _Reader(config, {**FIELDS, **family.fields})
    d, heads = reader.required("d", "the width of the model"), reader.required("H", "the number of attention heads")
    kv_heads = reader.optional("G", heads, "H")
    if heads % kv_heads:
        raise ConfigError(f"{heads} heads cannot share {kv_heads} key/value heads evenly: check the two counts.")
    d_h = reader.stated("d_h") or reader.derived("d_h", _even_head_width(d, heads, reader.name_of("d_h")), "d/H")
    eps = config.get("rms_norm_eps", 1e-6)
    return Architecture(
        name=name,
        family=str(config["model_type"]),
        d=d,
        H=heads,
        G=kv_heads,
        d_h=d_h,
        d_v=reader.derived("d_v", d_h, "d_h"),
        d_ff=reader.optional("d_ff", 4 * d, "4*d") if family.position_table else reader.required("d_ff", "d_ff"),
        V=reader.required("V", "the size of the vocabulary"),
        L=reader.required("L", "the number of layers"),
        C=reader.stated("C", most=10**9),
        causal=family.causal,
        position_table=family.position_table,
        tied_embeddings=_flag(config, "tie_word_embeddings", family.tied),
        biases=family.biases if not family.bias_field or _flag(config, family.bias_field, False) else "",
        qk_norm_eps=_number(config, "rms_norm_eps", eps) if family.qk_norm else None,
        rotary=_rotary(config, d_h) if family.rotary else None,
        window=_window(config, family, reader),
        initializer_range=_number(config, "initializer_range", 0.02),
        readings=tuple(reader.readings),
    )


class _Reader:
    """Takes sizes out of a config one by one and remembers where each came from."""

    def __init__(self, config: Mapping[str, Any], fields: Mapping[str, tuple[str, ...]]) -> None:
        self.config, self.fields, self.readings = config, fields, list[Reading]()

    def name_of(self, symbol: str) -> str:
        return self.fields[symbol][0]

    def stated(self, symbol: str, most: int = MAX_SIZE) -> int | None:
        for name in self.fields[symbol]:
            value = self.config.get(name)
            if value is not None:
                size = whole_number(value, name, most)
                self.readings.append(Reading(symbol, size, name))
                return size
        return None

    def required(self, symbol: str, meaning: str) -> int:
        size = self.stated(symbol)
        if size is None:
            raise ConfigError(f'This config.json does not state {meaning}: add "{self.name_of(symbol)}".')
        return size

    def optional(self, symbol: str, default: int, rule: str) -> int:
        return self.stated(symbol) or self.derived(symbol, default, rule)

    def derived(self, symbol: str, value: int, rule: str) -> int:
        self.readings.append(Reading(symbol, value, None, rule))
        return value


def whole_number(value: object, name: str, most: int = MAX_SIZE) -> int:
    """The value as a size from 1 to `most`; raises ConfigError naming the field."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    shown = repr(value) if len(repr(value)) < 30 else repr(value)[:27] + "…"
    raise ConfigError(f'"{name}" must be a whole number from 1 to {most:,}, and it is {shown}.')


def _family(config: Mapping[str, Any]) -> Family:
    model_type = config.get("model_type")
    known = ", ".join(sorted(FAMILIES))
    if not isinstance(model_type, str):
        raise ConfigError(f'This config.json does not state "model_type"; known here: {known}.')
    if model_type not in FAMILIES:
        raise ConfigError(f'Models of type "{model_type[:40]}" are not known here yet; known are: {known}.')
    return FAMILIES[model_type]


def _even_head_width(d: int, heads: int, field_name: str) -> int:
    if d % heads:
        raise ConfigError(f'{heads} heads do not divide the width {d} evenly, and no "{field_name}" is stated: add it.')
    return d // heads


def _rotary(config: Mapping[str, Any], d_h: int) -> Rotary:
    # transformers 5 writes "rope_parameters", with the base inside; older files keep base and scaling apart.
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(scaling, dict):
        raise ConfigError('"rope_scaling" must be an object { … } or null.')
    theta = _number(config, "rope_theta", scaling.get("rope_theta", 10_000.0))
    return Rotary(theta, d_h, MappingProxyType(scaling))


def _window(config: Mapping[str, Any], family: Family, reader: _Reader) -> int | None:
    if not family.windowed or not config.get(family.windowed) or config.get("sliding_window") is None:
        return None
    return whole_number(config["sliding_window"], "sliding_window", 10**9)


def _flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(f'"{name}" must be true or false.')
    return value


def _number(config: Mapping[str, Any], name: str, default: object) -> float:
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise ConfigError(f'"{name}" must be a number above zero.')
    return float(value)
