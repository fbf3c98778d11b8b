"""Reads the fields of a config.json one by one, checking each: true or false, a number, a list of layers.

>>> read_bool({"tie_word_embeddings": None}, "tie_word_embeddings", default=True)
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.refusal import Refusal
from app.translation import gettext as _

MAX_SIZE = 10_000_000
MAX_LAYERS = 10_000
MAX_POSITIONS = 10**9

Config = Mapping[str, Any]


class ConfigError(Refusal):
    """A config.json that can't be used."""


def check_whole_number(value: object, name: str, maximum: int = MAX_SIZE) -> int:
    """Return a whole number from 1 to `maximum`; anything else, such as true or "8", raises ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= maximum:
        return value
    problem = _('"{field}" must be a whole number from 1 to {most:,}, not {value}.')
    raise ConfigError(problem.format(field=name, most=maximum, value=quoted(value)))


def read_bool(config: Config, name: str, default: bool) -> bool:
    """The field as true or false, or `default` if it is absent or null; anything else raises ConfigError."""
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(_('"{field}" must be true or false, not {value}.').format(field=name, value=quoted(value)))
    return value


def read_positive_number(config: Config, name: str, default: object) -> float:
    """The field as a float above 0 and below 10^12, or `default` if it is absent or null; anything else raises
    ConfigError.
    """
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        problem = _('"{field}" must be a number above zero, not {value}.')
        raise ConfigError(problem.format(field=name, value=quoted(value)))
    return float(value)


def read_layer_numbers(config: Config, name: str, default: tuple[int, ...]) -> frozenset[int]:
    """The field as a set of layers counted from 0, such as [3, 8, 13], or `default` if it is absent or null."""
    value = config.get(name)
    if value is None:
        return frozenset(default)
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        problem = _('"{field}" must be a list of layer numbers, not {value}.')
        raise ConfigError(problem.format(field=name, value=quoted(value)))
    return frozenset(value)


def quoted(value: object) -> str:
    """A config's value as words for an error message, cut to 30 characters.

    Example: 8 -> "8", "yes" -> "'yes'", [1, 2] -> "a list [ … ]", {} -> "an object { … }", and a whole number of more
    than 40 digits -> "a number of very many digits". Anything else is as `repr` writes it.
    """
    if isinstance(value, dict):
        text = _("an object {{ … }}").format()
    elif isinstance(value, list):
        text = _("a list [ … ]")
    elif isinstance(value, int):  # Python refuses to write out the longest whole numbers
        text = str(value) if abs(value) < 10**40 else _("a number of very many digits")
    else:
        text = repr(value[:30] if isinstance(value, str) else value)
    return text if len(text) < 30 else text[:27] + "…"
