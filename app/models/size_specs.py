"""Values taken out of a config.json one by one, each checked, each with a note of where it came from.

A rule says what an absent field means: a whole number, another size ("H"), a sum of products ("C + 2"), an exact
quotient ("d/H"), a rounded one ("I//p"), or "none".

>>> reader = SizeReader({"n_embd": 12, "n_head": 3}, {"d": ("n_embd",), "H": ("n_head",), "d_h": ("= d/H",)})
>>> reader.size("d_h"), reader.readings[-1].rule
(4, 'd/H')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from app.algebra.dims import Dim
from app.models.parameter_specs import holds

MAX_SIZE = 10_000_000
MAX_LAYERS = 10_000
MAX_LENGTH = 10**9

MEANINGS: Mapping[str, str] = {
    "d": "the width of the model",
    "H": "the number of attention heads",
    "L": "the number of layers",
    "V": "the size of the vocabulary",
    "d_ff": "the width of the feed-forward block",
}
_MOST: Mapping[str, int] = {"L": MAX_LAYERS, "L_dec": MAX_LAYERS, "L_stored": MAX_LAYERS, "C": MAX_LENGTH}


class ConfigError(ValueError):
    """A config.json that cannot be used; the message is one sentence that says what to change."""


@dataclass(frozen=True)
class Reading:
    """Where one size of an Architecture came from: a config field, or the rule that filled its absence.

    `fields` are those that may state it, none where it always follows from other sizes.
    """

    symbol: str
    value: int
    field: str | None
    rule: str = "stated"
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class SizeSpec:
    """One way to find a size: the fields that may state it, and the rules for an absent field and for a null one."""

    when: str
    names: tuple[str, ...]
    missing: str | None
    null: str | None


@cache
def size_spec(text: str) -> SizeSpec:
    """Read '[condition?] field field [= rule] [, null rule]', the form in which the rows of families.py state sizes."""
    when, _, rest = text.rpartition("?")
    rest, _, null = rest.partition(", null ")
    names, _, missing = rest.partition("=")
    absent = missing.strip() or None
    return SizeSpec(when.strip(), tuple(names.split()), absent, null.strip() or absent)


class SizeReader:
    """The sizes of one config by their symbols: stated ones checked, absent ones by rule, each read once."""

    def __init__(
        self,
        config: Mapping[str, Any],
        specs: Mapping[str, Sequence[str]],
        flags: frozenset[str] = frozenset(),
        defaults: Mapping[str, int] | None = None,
        family: str = "this family",
    ) -> None:
        self.config, self.specs, self.flags = config, specs, flags
        self.defaults, self.family = defaults or {}, family
        self.readings: list[Reading] = []
        self.sizes: dict[str, int | None] = {}

    def size(self, symbol: str) -> int | None:
        """The size; None where this model has no such thing. Raises ConfigError where the config should state it."""
        if symbol not in self.sizes:
            spec = self._spec(symbol)
            self.sizes[symbol] = None if spec is None else self._read(symbol, spec)
        return self.sizes[symbol]

    def required(self, symbol: str) -> int:
        size = self.size(symbol)
        if size is None:
            spec = self._spec(symbol)
            raise self._missing(symbol, spec.names[0] if spec and spec.names else symbol)
        return size

    def known(self) -> dict[str, int]:
        """Every size of the family that this model has, by its symbol."""
        for symbol in self.specs:
            self.size(symbol)
        return {symbol: size for symbol, size in self.sizes.items() if size is not None}

    def _spec(self, symbol: str) -> SizeSpec | None:
        specs = (size_spec(text) for text in self.specs.get(symbol, ()))
        return next((spec for spec in specs if holds(spec.when, self.flags)), None)

    def _read(self, symbol: str, spec: SizeSpec) -> int | None:
        for name in spec.names:
            value = self.config.get(name)
            if value is not None:
                size = whole_number(value, name, _MOST.get(symbol, MAX_SIZE))
                return self._note(spec.names, symbol, size, name, "stated")
        null_name = next((name for name in spec.names if name in self.config), None)
        rule = spec.null if null_name else spec.missing
        if rule is None:
            return self._default(symbol, spec)
        if rule == "none":
            return None
        value = self._by_rule(symbol, rule, spec)
        if null_name:
            return self._note((null_name,), symbol, value, None, f"null: {rule}")
        return self._note(spec.names, symbol, value, None, rule)

    def _default(self, symbol: str, spec: SizeSpec) -> int:
        if symbol not in self.defaults:
            raise self._missing(symbol, spec.names[0] if spec.names else symbol)
        return self._note(spec.names, symbol, self.defaults[symbol], None, f"default of {self.family}")

    def _note(self, names: tuple[str, ...], symbol: str, size: int, field: str | None, rule: str) -> int:
        self.readings.append(Reading(symbol, size, field, rule, names))
        return size

    def _missing(self, symbol: str, name: str) -> ConfigError:
        meaning = MEANINGS.get(symbol, f"the size {symbol}")
        return ConfigError(f'This config.json does not state {meaning}: add "{name}".')

    def _by_rule(self, symbol: str, rule: str, spec: SizeSpec) -> int:
        if rule.isdigit():
            return int(rule)
        if "//" in rule:
            return self._quotient(rule.split("//"), rounded=True, symbol=symbol, spec=spec)
        if "/" in rule:
            return self._quotient(rule.split("/"), rounded=False, symbol=symbol, spec=spec)
        dim = Dim.parse(rule)
        return dim.size({part: self.required(part) for part in dim.symbols})

    def _quotient(self, parts: list[str], *, rounded: bool, symbol: str, spec: SizeSpec) -> int:
        whole, share = (self.required(part.strip()) for part in parts)
        if whole < share or (whole % share and not rounded):
            add = f', and no "{spec.names[0]}" is stated: add it' if spec.names else ": change one of them"
            raise ConfigError(f"{share:,} {_PARTS.get(parts[1], parts[1])} do not divide {whole:,} evenly{add}.")
        return whole // share


_PARTS: Mapping[str, str] = {"H": "heads", "H_dec": "decoder heads", "p": "pixels a patch"}


def whole_number(value: object, name: str, most: int = MAX_SIZE) -> int:
    """The value as a size from 1 to `most`; raises ConfigError naming the field."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    raise ConfigError(f'"{name}" must be a whole number from 1 to {most:,}, and it is {shown(value)}.')


def flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(f'"{name}" must be true or false, and it is {shown(value)}.')
    return value


def number(config: Mapping[str, Any], name: str, default: object) -> float:
    """A number above zero; null and absent mean the default."""
    value = config.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise ConfigError(f'"{name}" must be a number above zero, and it is {shown(value)}.')
    return float(value)


def layer_numbers(config: Mapping[str, Any], name: str, default: tuple[int, ...]) -> frozenset[int]:
    """A list of layers, counted from 0, such as [3, 8, 13]."""
    value = config.get(name)
    if value is None:
        return frozenset(default)
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise ConfigError(f'"{name}" must be a list of layer numbers, and it is {shown(value)}.')
    return frozenset(value)


def shown(value: object) -> str:
    """A value from a config as part of a sentence: never more than 30 characters of it."""
    text = str(value)[:40] if isinstance(value, int) and abs(value) < 10**40 else _short_repr(value)
    return text if len(text) < 30 else text[:27] + "…"


def _short_repr(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object { … }" if isinstance(value, dict) else "a list [ … ]"
    if isinstance(value, int):  # Python refuses to write out the longest whole numbers
        return "a number of very many digits"
    return repr(value[:30] if isinstance(value, str) else value)
