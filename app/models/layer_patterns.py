"""Which layers of a model differ from their neighbours: layers with experts, a window or cross attention.

A LayerPattern takes the config and the number of layers, and gives True or False for each layer. Functions that return
patterns are named for the layers they choose: all_after("n", 3) chooses the fourth layer and all later ones, unless the
config's field "n" states another number. Patterns raise ConfigError for fields that they can't read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.models.config_fields import (
    MAX_POSITIONS,
    Config,
    ConfigError,
    check_whole_number,
    quoted,
    read_bool,
    read_layer_numbers,
)
from app.translation import gettext as _

LayerPattern = Callable[[Config, int], list[bool]]

_WINDOWED = {"sliding_attention", "chunked_attention"}


def every_layer(config: Config, layers: int) -> list[bool]:
    """The pattern of all layers."""
    return [True] * layers


def all_but_every(period: int, field: str | None = None, *, first: bool = False) -> LayerPattern:
    """The pattern of all layers except the last (or, with `first`, the first) of every n.

    Example: period 3 and 7 layers -> yes yes no yes yes no yes; with `first`: no yes yes no yes yes no
    """

    def pattern(config: Config, layers: int) -> list[bool]:
        stated = config.get(field) if field else None
        n = period if stated is None else check_whole_number(stated, field or "", MAX_POSITIONS)
        return [(i if first else i + 1) % n != 0 for i in range(layers)]

    return pattern


def all_after(field: str, default: int) -> LayerPattern:
    """The pattern of all layers after the first n.

    Example: n = 2 and 5 layers -> no no yes yes yes
    """

    def pattern(config: Config, layers: int) -> list[bool]:
        first = _read_count(config, field, default)
        return [i >= first for i in range(layers)]

    return pattern


def every_other_before(field: str, default: int) -> LayerPattern:
    """The pattern of every other layer among the first n, starting with the model's first.

    Example: n = 4 and 7 layers -> yes no yes no no no no
    """

    def pattern(config: Config, layers: int) -> list[bool]:
        last = _read_count(config, field, default)
        return [i % 2 == 0 and i < last for i in range(layers)]

    return pattern


def without_rotary(config: Config, layers: int) -> list[bool]:
    """The pattern of the layers without rotary positions: SmolLM 3 has its windows there."""
    return [not rotary for rotary in with_rotary(config, layers)]


def with_rotary(config: Config, layers: int) -> list[bool]:
    """The pattern of the layers with rotary positions: Llama 4 has its chunks there."""
    stated = config.get("no_rope_layers")
    if stated:
        if not isinstance(stated, list) or len(stated) != layers:
            problem = _('"no_rope_layers" must be a list with a 0 or 1 for each of the {count} layers.')
            raise ConfigError(problem.format(count=layers))
        return [bool(item) for item in stated]
    step = check_whole_number(config.get("no_rope_layer_interval", 4), "no_rope_layer_interval", MAX_POSITIONS)
    return [(i + 1) % step != 0 for i in range(layers)]


def local_attention_types(config: Config, layers: int) -> list[bool]:
    """The pattern of GPT-Neo's layers with a window, called "local".

    Raises ConfigError unless each layer has a type.
    """
    stated = config.get("attention_types")
    if stated is None:
        return [i % 2 == 1 for i in range(layers)]
    types: list[object] = []
    for group in stated if isinstance(stated, list) else [None]:
        match group:
            case [list(names), int(times)] if len(types) + len(names) * times <= layers:
                types += names * times
            case _:
                types.append(None)
    if len(types) != layers or not all(kind in ("global", "local") for kind in types):
        problem = _('"attention_types" must give each of the {count} layers the type "global" or "local".')
        raise ConfigError(problem.format(count=layers))
    return [kind == "local" for kind in types]


def sparse_steps(config: Config, layers: int) -> list[bool]:
    """The pattern of Qwen's layers with experts: the last of every n, where n is "decoder_sparse_step" or 1."""
    step = check_whole_number(config.get("decoder_sparse_step", 1), "decoder_sparse_step", MAX_POSITIONS)
    without_experts = read_layer_numbers(config, "mlp_only_layers", ())
    return [i not in without_experts and (i + 1) % step == 0 for i in range(layers)]


def interleaved_experts(config: Config, layers: int) -> list[bool]:
    """The pattern of Llama 4's layers with experts, listed in "moe_layers" and counted from 0."""
    step = check_whole_number(config.get("interleave_moe_layer_step", 1), "interleave_moe_layer_step", MAX_POSITIONS)
    listed = read_layer_numbers(config, "moe_layers", tuple(range(step - 1, layers, step)))
    return [i in listed for i in range(layers)]


def listed_cross_layers(config: Config, layers: int) -> list[bool]:
    """The pattern of Llama 3.2 Vision's layers that look at the image, from "cross_attention_layers"."""
    listed = read_layer_numbers(config, "cross_attention_layers", (3, 8, 13, 18, 23, 28, 33, 38))
    return [i in listed for i in range(layers)]


@dataclass(frozen=True)
class WindowRule:
    """How a family states its sliding windows.

    `layers` is the pattern of the layers with a window, `field` the config field with its length in keys, and `missing`
    the length if that field is absent.
    """

    layers: LayerPattern = every_layer
    field: str = "sliding_window"
    missing: int | None = None
    switch: str | None = None
    chunked: bool = False


def window_per_layer(
    rule: WindowRule | None, config: Config, layers: int, *, centred: bool = False
) -> tuple[int | None, ...]:
    """How many keys a query sees in each layer, counting its own token's; None if it sees all.

    A centred window is made odd: 4 becomes 5.

    Example: windows of 4 in all layers except every third, 5 layers -> (4, 4, None, 4, 4); centred: (5, 5, None, 5, 5)
    """
    if rule is None or not layers:
        return (None,) * layers
    length = None
    if rule.switch is None or read_bool(config, rule.switch, False):
        value = config.get(rule.field, rule.missing)  # null isn't missing: it means no window
        length = None if value is None else check_whole_number(value, rule.field, MAX_POSITIONS)
    listed = _listed_windows(config, layers)
    if length is None:
        return (None,) * layers
    length = length // 2 * 2 + 1 if centred else length
    windowed = rule.layers(config, layers) if listed is None else listed
    return tuple(length if has_window else None for has_window in windowed)


def _listed_windows(config: Config, layers: int) -> list[bool] | None:
    types = config.get("layer_types")
    if types is None:
        return None
    if not isinstance(types, list) or len(types) != layers:
        problem = _('"layer_types" must be a list with one entry for each of the {count} layers.')
        raise ConfigError(problem.format(count=layers))
    unknown = [kind for kind in types if not isinstance(kind, str) or kind not in {*_WINDOWED, "full_attention"}]
    if unknown:
        problem = _('"layer_types" names {kind}, which is not attention with N×N scores: use another model.')
        raise ConfigError(problem.format(kind=quoted(unknown[0])))
    return [kind in _WINDOWED for kind in types]


def _read_count(config: Config, field: str, default: int) -> int:
    value = config.get(field)
    if value == 0 and not isinstance(value, bool):
        return 0
    return default if value is None else check_whole_number(value, field, MAX_POSITIONS)
