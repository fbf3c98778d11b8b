"""The language in which families state sizes, and the reader that finds a config's sizes by it.

A size spec says which config fields may state a size, and what the size is if none does:

    [condition?] [field ...] [= rule] [, null rule]

    "hidden_size"                     this field states it; a config without the field, or with null, is refused
    "n_embd hidden_size"              either field states it; if there are both, the first
    "num_key_value_heads = H"         absent or null: as large as H
    "head_dim = 128, null d/H"        absent: 128; null: d/H
    "max_position_embeddings = none"  absent or null: this model has no such size
    "= 4*d"                           no field states it; it always follows from d
    "multi_query? = 1"                counts only if the flag multi_query is set ("!multi_query": is not set)

A size may have several specs; the first whose condition is met counts. A rule is one of

    "128"        a whole number
    "H"          another size
    "4*d + 2"    a sum of products of sizes and numbers
    "d/H"        an exact quotient of two sizes; a remainder is an error
    "I//p"       a quotient rounded down, of at least 1
    "none"       no such size

>>> reader = SizeReader({"n_embd": 12, "n_head": 3}, {"d": "n_embd", "H": "n_head", "d_h": "= d/H"})
>>> reader.size("d_h"), reader.sources["d_h"].rule
(4, 'd/H')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from app.algebra.expression import Expression
from app.models.architecture import SizeSource
from app.models.config_fields import MAX_LAYERS, MAX_POSITIONS, MAX_SIZE, Config, ConfigError, check_whole_number
from app.models.parameter_specs import condition_met
from app.translation import N_
from app.translation import gettext as _

# By the size's symbol, a spec, or several of which the first with a met condition counts.
SizeSpecs = Mapping[str, str | tuple[str, ...]]
SIZE_NAMES: Mapping[str, str] = {
    "d": N_("the embedding dimension"),
    "H": N_("the number of attention heads"),
    "L": N_("the number of layers"),
    "V": N_("the vocabulary size"),
    "d_ff": N_("the inner dimension of the feed-forward block"),
}
UNIT_NAMES: Mapping[str, str] = {"H": N_("heads"), "H_dec": N_("decoder heads"), "p": N_("pixels per patch")}
MAX_BY_SYMBOL: Mapping[str, int] = {"L": MAX_LAYERS, "L_dec": MAX_LAYERS, "L_stored": MAX_LAYERS, "C": MAX_POSITIONS}


@dataclass(frozen=True)
class SizeRule:
    """The value of a size that no field states: `amount`, perhaps divided by the size `divisor`.

    `amount` is None for "none": the model has no such size.
    """

    text: str
    amount: Expression | None
    divisor: str = ""
    rounded_down: bool = False


@dataclass(frozen=True)
class SizeSpec:
    """One parsed size spec: its condition on flags, its fields, and the rules for absent and null fields.

    A rule of None means that the config must state the size.
    """

    condition: str
    fields: tuple[str, ...]
    if_absent: SizeRule | None
    if_null: SizeRule | None


@cache
def parse_size_spec(text: str) -> SizeSpec:
    """Parse '[condition?] [field ...] [= rule] [, null rule]'; null is by default treated as absent.

    Example: "head_dim = 128, null d/H" -> fields ("head_dim",), if_absent 128, if_null d/H
    """
    condition, _sign, rest = text.rpartition("?")
    rest, _sign, null = rest.partition(", null ")
    fields, _sign, absent = rest.partition("=")
    if_absent = _parse_rule(absent.strip())
    return SizeSpec(condition.strip(), tuple(fields.split()), if_absent, _parse_rule(null.strip()) or if_absent)


def _parse_rule(text: str) -> SizeRule | None:
    if not text:
        return None
    if text == "none":
        return SizeRule(text, None)
    operator = "//" if "//" in text else "/"
    dividend, _sign, divisor = text.partition(operator)
    return SizeRule(text, Expression.parse(dividend), divisor.strip(), operator == "//")


class SizeReader:
    """Reads the sizes of one config by symbol, each once, and notes in `sources` where they came from.

    Stated sizes are checked; others follow by rule from sizes read earlier.
    """

    def __init__(
        self,
        config: Config,
        specs: SizeSpecs,
        flags: frozenset[str] = frozenset(),
        defaults: Mapping[str, int] | None = None,
    ) -> None:
        self.config, self.specs, self.flags = config, specs, flags
        self.defaults = defaults or {}
        self.sources = dict[str, SizeSource]()
        self._sizes: dict[str, int | None] = {}

    def size(self, symbol: str) -> int | None:
        """The size of a symbol, or None if the model has no such size.

        Raises ConfigError if the config must state it and doesn't, or states something that isn't a size.
        """
        if symbol not in self._sizes:
            spec = self._spec(symbol)
            source = None if spec is None else self._read(symbol, spec)
            if source is not None:
                self.sources[symbol] = source
            self._sizes[symbol] = None if source is None else source.value
        return self._sizes[symbol]

    def required(self, symbol: str) -> int:
        """A size that the model must have; raises ConfigError if it is missing."""
        size = self.size(symbol)
        if size is None:
            raise self._not_stated(symbol)
        return size

    def _spec(self, symbol: str) -> SizeSpec | None:
        texts = self.specs.get(symbol, ())
        specs = map(parse_size_spec, (texts,) if isinstance(texts, str) else texts)
        return next((spec for spec in specs if condition_met(spec.condition, self.flags)), None)

    def _read(self, symbol: str, spec: SizeSpec) -> SizeSource | None:
        for name in spec.fields:
            value = self.config.get(name)
            if value is not None:
                size = check_whole_number(value, name, MAX_BY_SYMBOL.get(symbol, MAX_SIZE))
                return SizeSource(symbol, size, name, fields=spec.fields)
        null_field = next((name for name in spec.fields if name in self.config), None)
        rule = spec.if_null if null_field else spec.if_absent
        if rule is None:
            if symbol not in self.defaults:
                raise self._not_stated(symbol)
            return SizeSource(symbol, self.defaults[symbol], None, fields=spec.fields)
        if rule.amount is None:
            return None
        fields = (null_field,) if null_field else spec.fields
        size = self._by_rule(rule.amount, rule, spec)
        return SizeSource(symbol, size, None, rule.text, is_null=null_field is not None, fields=fields)

    def _by_rule(self, amount: Expression, rule: SizeRule, spec: SizeSpec) -> int:
        size = amount.size({symbol: self.required(symbol) for symbol in sorted(amount.symbols)})
        if not rule.divisor:
            return size
        divisor = self.required(rule.divisor)
        if size < divisor or (size % divisor and not rule.rounded_down):
            problem = _("{count:,} {units} do not divide {size:,} evenly: change one of them.")
            if spec.fields:
                problem = _('{count:,} {units} do not divide {size:,} evenly: add "{field}".')
            units = _(UNIT_NAMES[rule.divisor]) if rule.divisor in UNIT_NAMES else rule.divisor
            field = spec.fields[0] if spec.fields else ""
            raise ConfigError(problem.format(count=divisor, units=units, size=size, field=field))
        return size // divisor

    def _not_stated(self, symbol: str) -> ConfigError:
        spec = self._spec(symbol)
        field = spec.fields[0] if spec and spec.fields else symbol
        size = _(SIZE_NAMES.get(symbol, N_("the size {symbol}"))).format(symbol=symbol)
        problem = _('This config.json does not state {size}: add "{field}".')
        return ConfigError(problem.format(size=size, field=field))
