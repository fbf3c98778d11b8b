"""Which layers of a model differ from their neighbours: those with experts, with a window, with cross attention.

Every function takes the config and the number of layers and says for each layer, counted from 0, yes or no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.models.size_specs import MAX_LENGTH, ConfigError, flag, layer_numbers, shown, whole_number

Config = Mapping[str, Any]
Pattern = Callable[[Config, int], list[bool]]

_WINDOWED = {"sliding_attention", "chunked_attention"}


def every_layer(config: Config, layers: int) -> list[bool]:
    return [True] * layers


def all_but_every(period: int, field: str | None = None) -> Pattern:
    """Windows in all layers but every n-th; `field` may state another n."""

    def pattern(config: Config, layers: int) -> list[bool]:
        stated = config.get(field) if field else None
        n = period if stated is None else whole_number(stated, field or "", MAX_LENGTH)
        return [(i + 1) % n != 0 for i in range(layers)]

    return pattern


def after_first(field: str, default: int) -> Pattern:
    """No for the first layers, of which `field` states the number, and yes for all after them."""

    def pattern(config: Config, layers: int) -> list[bool]:
        first = _count(config, field, default)
        return [i >= first for i in range(layers)]

    return pattern


def odd_before(field: str, default: int) -> Pattern:
    """Every other layer, beginning with the first, of as many as `field` states."""

    def pattern(config: Config, layers: int) -> list[bool]:
        last = _count(config, field, default)
        return [i % 2 == 0 and i < last for i in range(layers)]

    return pattern


def without_rotary(config: Config, layers: int) -> list[bool]:
    """SmolLM 3: windows, where there are any, in the layers without rotary positions."""
    return [not rotary for rotary in _rotary_layers(config, layers)]


def with_rotary(config: Config, layers: int) -> list[bool]:
    """Llama 4: chunks in the layers that do have rotary positions (its "no_rope_layers" says 1 for these)."""
    return _rotary_layers(config, layers)


def sparse_steps(config: Config, layers: int) -> list[bool]:
    """Qwen: experts in every n-th layer, except in those listed as plain."""
    step = whole_number(config.get("decoder_sparse_step", 1), "decoder_sparse_step", MAX_LENGTH)
    plain = layer_numbers(config, "mlp_only_layers", ())
    return [i not in plain and (i + 1) % step == 0 for i in range(layers)]


def interleaved_experts(config: Config, layers: int) -> list[bool]:
    """Llama 4: the layers listed in "moe_layers", or every n-th."""
    step = whole_number(config.get("interleave_moe_layer_step", 1), "interleave_moe_layer_step", MAX_LENGTH)
    listed = layer_numbers(config, "moe_layers", tuple(range(step - 1, layers, step)))
    return [i in listed for i in range(layers)]


def listed_cross_layers(config: Config, layers: int) -> list[bool]:
    """Llama 3.2 Vision: the layers that look at the image."""
    listed = layer_numbers(config, "cross_attention_layers", (3, 8, 13, 18, 23, 28, 33, 38))
    return [i in listed for i in range(layers)]


@dataclass(frozen=True)
class Windows:
    """Sliding windows: the field with their length and what its absence means, the layers, a field that allows them."""

    layers: Pattern = every_layer
    field: str = "sliding_window"
    missing: int | None = None
    switch: str | None = None


def windows(rule: Windows | None, config: Config, layers: int) -> tuple[int | None, ...]:
    """The window of each layer: how many keys a query sees, itself included; None where it sees them all.

    A stated "layer_types" overrides the family's pattern. Raises ConfigError for layers that are not attention.
    """
    if rule is None or not layers:
        return (None,) * layers
    length = _window_length(rule, config)
    listed = _layer_types(config, layers)
    windowed = rule.layers(config, layers) if listed is None and length else listed or []
    return tuple(length if yes else None for yes in windowed) if length else (None,) * layers


def _window_length(rule: Windows, config: Config) -> int | None:
    if rule.switch and not flag(config, rule.switch, False):
        return None
    value = config.get(rule.field, rule.missing)  # null is not missing: it means no window
    return None if value is None else whole_number(value, rule.field, MAX_LENGTH)


def _layer_types(config: Config, layers: int) -> list[bool] | None:
    types = config.get("layer_types")
    if types is None:
        return None
    if not isinstance(types, list) or len(types) != layers:
        raise ConfigError(f'"layer_types" must be a list with one entry for each of the {layers} layers.')
    unknown = [kind for kind in types if not isinstance(kind, str) or kind not in {*_WINDOWED, "full_attention"}]
    if unknown:
        raise ConfigError(f'"layer_types" names {shown(unknown[0])}, which is not attention with N×N scores.')
    return [kind in _WINDOWED for kind in types]


def _rotary_layers(config: Config, layers: int) -> list[bool]:
    stated = config.get("no_rope_layers")
    if stated:
        if not isinstance(stated, list) or len(stated) != layers:
            raise ConfigError(f'"no_rope_layers" must be a list with one 0 or 1 for each of the {layers} layers.')
        return [bool(item) for item in stated]
    step = whole_number(config.get("no_rope_layer_interval", 4), "no_rope_layer_interval", MAX_LENGTH)
    return [(i + 1) % step != 0 for i in range(layers)]


def _count(config: Config, field: str, default: int) -> int:
    value = config.get(field)
    if value == 0 and not isinstance(value, bool):
        return 0
    return default if value is None else whole_number(value, field, MAX_LENGTH)
