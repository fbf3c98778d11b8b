"""The values of one config by a family's table: each size, switch, word and list that the table names.

A value is stated by the config, or follows from the table's rule for a field that is absent or null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle, islice
from typing import Any

from app.models.architecture import SizeSource
from app.models.computation import computation_of, default_fields
from app.models.config_fields import (
    MAX_LAYERS,
    MAX_POSITIONS,
    Config,
    ConfigError,
    check_whole_number,
    quoted,
    read_bool,
    read_layer_numbers,
)
from app.models.grammar import Rule, RuleError, parse_rule
from app.models.table import FamilyTable, ListField, SizeField, Switch, WordField
from app.translation import gettext as _


class TableValues(dict[str, Any]):
    """Values by symbol or field, each worked out when it is first asked for; raises ConfigError."""

    def __init__(self, table: FamilyTable, config: Config, model_type: str) -> None:
        super().__init__()
        self.table, self.config, self.model_type = table, config, model_type
        self.sources = dict[str, SizeSource]()
        self._open = set[str]()
        self.computation = computation_of(model_type)
        self._check_fixed()

    def __missing__(self, name: str) -> Any:
        if name in self._open:
            raise RuleError(f"{name} depends on itself")
        self._open.add(name)
        self[name] = value = self._read(name)
        return value

    def by_rule(self, rule: Rule, layer: int = 0) -> Any:
        """What a rule gives for this config."""
        try:
            return rule.value(self, layer)
        except RuleError:
            raise self.no_value(rule) from None

    def whole(self, rule: Rule, layer: int = 0) -> int:
        """A whole number, 0 or more, that a rule gives for this config."""
        value = self.by_rule(rule, layer)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.no_value(rule, (), value)
        return value

    def all_hold(self, conditions: Sequence[Rule], layer: int = 0) -> bool:
        """Whether every condition is true, in this layer."""
        return all(self.holds(condition, layer) for condition in conditions)

    def holds(self, condition: Rule, layer: int = 0) -> bool:
        """Whether a condition is true, in this layer."""
        try:
            return condition.holds(self, layer)
        except RuleError:
            raise self.no_value(condition) from None

    @property
    def depth(self) -> int:
        """The number of layers of the deepest stack."""
        return max((self.layers_of(stack.count) for stack in self.table.stacks), default=0)

    def layers_of(self, count: Rule) -> int:
        """A number of layers, checked."""
        layers = self.whole(count)
        if layers > MAX_LAYERS:
            problem = _("A model may have at most {most:,} layers.")
            raise ConfigError(problem.format(most=MAX_LAYERS))
        return layers

    def _read(self, name: str) -> Any:
        table = self.table
        if name in table.other_names:
            return self[table.other_names[name]]
        if name == "tie_word_embeddings" and table.text_part:
            return read_bool(self.config, name, default=table.text_part.tied[0])
        if name in table.sizes:
            return self._size(table.sizes[name])
        if name in table.numbers:
            return self._number(table.numbers[name])
        if name in table.switches:
            return self._switch(table.switches[name])
        if name in table.words:
            return self._word(table.words[name])
        if name in table.lists:
            return self._list(table.lists[name])
        if not name.isidentifier():  # a side that is called by its rule
            return self.whole(parse_rule(name))
        if not self.computation.is_known:
            raise RuleError(f"the table has no {name}")
        default = default_fields().get(name)
        return read_bool(self.config, name, default) if isinstance(default, bool) else self.config.get(name, default)

    def _size(self, line: SizeField) -> int | None:
        field = self._stated(line.fields)
        value = None if field is None else self.config[field]
        absent = line.absent.text if line.absent else ""
        if absent and ((value == "auto" and not absent.isdigit()) or (value == -1 and absent == "-1")):
            field = value = None  # worked out as if it were absent
        if field is not None and value is not None:
            size = self._checked(line, value, field)
            self.sources[line.symbol] = SizeSource(line.symbol, size, field, fields=line.fields)
            return size
        rule = line.absent if field is None else line.null
        if rule is None:
            raise self._not_stated(field or line.fields[0], is_null=field is not None)
        size = self.by_rule(rule)
        if size is None:
            return None
        is_off = rule.text == "-1"  # conditions ask for a number above 0
        if isinstance(size, bool) or not isinstance(size, int) or (size < 0 and not is_off):
            raise self.no_value(rule, line.fields, size)
        is_default = rule.text.isdigit()
        self.sources[line.symbol] = SizeSource(
            line.symbol,
            size,
            None,
            "" if is_default else rule.text.replace("·", "*"),
            is_null=field is not None,
            fields=(field,) if field else line.fields,
        )
        return size

    def _checked(self, line: SizeField, value: object, field: str) -> int:
        if isinstance(value, list | str) and any(field in each.fields for each in self.table.lists.values()):
            value = len(value)  # it has one word or letter for each layer
        may_be_zero = type(value) is int and value == 0 and line.symbol in self.table.may_be_zero
        if may_be_zero:
            return 0
        if line.symbol in self.table.axis_symbols:
            return check_whole_number(value, field)
        return check_whole_number(value, field, MAX_POSITIONS)

    def _number(self, line: SizeField) -> float | None:
        field = line.symbol
        value = self.config.get(field)
        if value is None:
            rule = line.null if field in self.config else line.absent
            if rule is None:
                raise self._not_stated(field, is_null=field in self.config)
            number: float | None = self.by_rule(rule)
            return number
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(_('"{field}" must be a number, not {value}.').format(field=field, value=quoted(value)))
        return value

    def _switch(self, switch: Switch) -> bool:
        field = self._stated(switch.fields)
        if field and self.config[field] is None:
            if switch.null is None:
                raise self._not_stated(field, is_null=True)
            return bool(self.by_rule(switch.null))
        if field:
            return read_bool(self.config, field, default=False)
        return bool(self.by_rule(switch.absent))

    def _word(self, words: WordField) -> str:
        value = self.config.get(words.field, words.absent)
        if value is None and "none" in words.known:
            value = "none"
        if value not in words.known:
            raise self._worked_out_for(words.field, value, ", ".join(sorted(words.known)))
        return str(value)

    def _stated(self, fields: Sequence[str]) -> str | None:
        """The field that counts: transformers lets a second name win over the first, and a list over its letters."""
        stated = [field for field in reversed(fields) if field in self.config]
        return next((field for field in stated if isinstance(self.config[field], list)), next(iter(stated), None))

    def _list(self, line: ListField) -> Any:
        field = self._stated(line.fields) or line.fields[0]
        stated, depth = self.config.get(field), self.depth
        match line.kind:
            case "numbers" if stated is None and line.absent:
                when = line.absent[0][1]
                return frozenset(i for i in range(depth) if when is None or self.holds(when, i))
            case "numbers":
                return read_layer_numbers(self.config, field, line.numbers)
            case "words":
                words = stated.split("|") if isinstance(stated, str) else stated or []
                return self._known(line, field, words if isinstance(words, list) else [words])
        if stated is None or (stated == [] and "0" in line.known):  # Llama 4's first files state no layer
            if line.absent is None:
                raise self._not_stated(field, is_null=field in self.config)
            return [self._word_of_layer(line, layer) for layer in range(depth)]
        stated = list(stated) if isinstance(stated, str) else _repeated(stated)
        if not isinstance(stated, list) or len(stated) != depth:
            problem = _('"{field}" must be a list with one entry for each of the {count} layers.')
            raise ConfigError(problem.format(field=field, count=depth))
        return self._known(line, field, stated)

    def _known(self, line: ListField, field: str, words: Sequence[object]) -> list[str]:
        for word in words:
            if type(word) not in (str, int) or str(word) not in line.known:
                raise self._worked_out_for(field, word, ", ".join(sorted(line.known)))
        return [line.known[str(word)] for word in words]

    def _word_of_layer(self, line: ListField, layer: int) -> str:
        cases = line.absent or ()
        word = next((word for word, when in cases if when is None or self.by_rule(when, layer)), None)
        if word is None:
            raise self._not_stated(line.fields[0], is_null=False)
        return word

    def _check_fixed(self) -> None:
        for field, known in self.table.fixed.items():
            is_modelled = field in self.computation.fields
            if field in self.config and self.config[field] != known and not is_modelled:
                raise self._worked_out_for(field, self.config[field], quoted(known))

    def _worked_out_for(self, field: str, value: object, known: str) -> ConfigError:
        problem = _(
            'This config.json has "{field}": {value}. Models of type "{type}" were worked out for {known} only.'
        )
        return ConfigError(problem.format(field=field, value=quoted(value), type=self.model_type, known=known))

    def _not_stated(self, field: str, *, is_null: bool) -> ConfigError:
        problem = _('Add "{field}": models of type "{type}" always state it.')
        if is_null:
            problem = _('"{field}" is null, but models of type "{type}" need its value: add it.')
        return ConfigError(problem.format(field=field, type=self.model_type))

    def no_value(self, rule: Rule, fields: Sequence[str] = (), value: object = None) -> ConfigError:
        """The error that a rule has no value for this config."""
        known = {**self.table.sizes, **self.table.numbers}
        lines = (known.get(name) for name in sorted(rule.names))
        named = {field for line in lines if line for field in line.fields if field in self.config} or rule.names
        problem = _("{rule} has no possible value in this config.json: check {fields}.")
        if isinstance(value, Fraction):
            problem = _("{rule} is {value}, which is not a whole number: check {fields}.")
        names = ", ".join(f'"{name}"' for name in sorted({*named, *fields}))
        return ConfigError(problem.format(rule=rule.text.replace("*", "·"), value=value, fields=names))


def _repeated(stated: object) -> object:
    """GPT-Neo's [[["global", "local"], 12]] as the words of 24 layers; any other list as it is."""
    if not isinstance(stated, list):
        return stated
    words = list[object]()
    for item in stated[: MAX_LAYERS + 1]:
        match item:
            case [list(some), int(times)]:
                room = max(MAX_LAYERS + 1 - len(words), 0)
                words += islice(cycle(some), min(len(some) * times, room) if times > 0 else 0)
            case _:
                words.append(item)
    return words
