"""Puts a model class's table together: tensors by role, the rules of its sizes, its lists, attention, harmless fields."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tools.derive import reading
from tools.derive.deriving import Deriver, NoRule, Stack, TensorRow
from tools.derive.fitting import Condition, condition, fields_of
from tools.derive.heads import HeadDeriver
from tools.derive.library import Values, read
from tools.derive.parts import ties
from tools.derive.probing import Sample, by_layer
from tools.derive.words import ALWAYS_STATED, HARMLESS, NO_SIZE, PATTERN, SYMBOL_OF, WINDOW, role
from tools.derive.writing import Table, text_of

TRIES = 8
_RULES = ("d/H", "d//H", "H", "d", "d_ff", "2·d", "3·d", "4·d", "d_h", "d_emb", "L", "E")


class TableDeriver:
    """Derives the whole table of one model class."""

    def __init__(self, deriver: Deriver) -> None:
        self.deriver, self.prober, self.model_class = deriver, deriver.prober, deriver.model_class
        self.heads = HeadDeriver(deriver)
        self.used = set[str]()
        self.rules = dict[str, tuple[str, ...]]()

    def table(self) -> Table:
        stacks = self.deriver.stacks()
        attention = self.heads.rows()
        self.used |= self.heads.used
        for stack in stacks:
            self.used |= fields_of(stack.count) | stack.when.fields
            for row in stack.tensors:
                self.used |= row.when.fields | fields_of(row.copies).union(*map(fields_of, row.axes))
        computed = " ".join(self.prober.hint.computed.values())
        self.used |= reading.names_in(computed) & self.prober.default.keys()
        lists = self._lists()
        tensors = self._tensors(stacks)
        self._find_rules(tensors, lists)
        table: Table = {f"class  {self.model_class.name}": []}
        base = self.model_class.model_class.base_model_prefix
        if self.model_class.part:
            table["text part"] = [("field", self.model_class.part), ("tie_word_embeddings", *ties(self.model_class, self.prober.base))]
        elif base:
            table[f"base  {self._base_class()}  {base}"] = []
        sections = {
            "sizes": self._sizes(),
            "numbers": self._numbers(),
            "switches": self._switches(),
            "words": self._words(),
            "lists": lists,
            "fixed": self._fixed(),
            **tensors,
            "attention": attention,
        }
        table |= {heading: rows for heading, rows in sections.items() if rows}
        return table

    def _base_class(self) -> str:
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        name = MODEL_MAPPING_NAMES.get(self.model_class.model_type, "-")
        return name if isinstance(name, str) else name[0]

    # Tensors

    def _tensors(self, stacks: Sequence[Stack]) -> Table:
        table: Table = {}
        for stack in stacks:
            heading = "outside the layers"
            if stack.name:
                heading = f"layers  {stack.name} × {self.deriver.words(stack.count)}"
                heading += f"  if {stack.when.text}" if stack.when.text else ""
            table[heading] = self._rows_of(stack)
        return table

    def _rows_of(self, stack: Stack) -> list[tuple[str, ...]]:
        """One row for neighbours of equal shape and condition under one module; a bias stands beside its weight."""
        words = self.deriver.words
        biases = defaultdict[str, list[TensorRow]](list)
        weights = {row.name for row in stack.tensors if row.name.endswith(".weight")}
        for row in stack.tensors:
            if row.name.endswith(".bias") and f"{row.name[:-5]}.weight" in weights:
                biases[row.name[:-5]].append(row)
        groups = defaultdict[tuple[str, ...], list[str]](list)
        for row in stack.tensors:
            base = row.name.removesuffix(".weight")
            if row.name.endswith(".bias") and f"{row.name[:-5]}.weight" in weights and self._joined(row, stack):
                continue
            flags = [f"copies {words(row.copies)}"] * (words(row.copies) != "1")
            in_out = row.name.endswith(".weight") and self._is_in_out(stack.name, base)
            flags += ["in-out"] * in_out + ["bare"] * (not row.name.endswith(".weight"))
            if row.name.endswith(".weight"):
                flags += [flag for bias in biases[base] if self._joined(bias, stack) for flag in self._bias(row, bias)]
            flags += [f"if {row.when.text}"] * bool(row.when.text)
            shape = " × ".join(f"({axis})" if " " in axis else axis for axis in map(words, row.axes)) or "()"
            parent, _, leaf = base.rpartition(".")
            groups[role(base, bool(stack.name)), parent, shape, *flags].append(leaf)
        return [
            (name, f"{parent}.{' '.join(leaves)}" if parent else " ".join(leaves), *rest)
            for (name, parent, *rest), leaves in groups.items()
        ]

    def _joined(self, bias: TensorRow, stack: Stack) -> bool:
        """Whether a bias can stand beside its weight: there is one row of each, and it is there only where the weight is."""
        weights = [row for row in stack.tensors if row.name == f"{bias.name[:-5]}.weight"]
        biases = [row for row in stack.tensors if row.name == bias.name]
        if len(weights) != 1 or len(biases) != 1 or weights[0].copies != bias.copies or not weights[0].axes:
            return False
        axis = weights[0].axes[-1 if self._is_in_out(stack.name, bias.name[:-5]) else 0]
        rows = [(sample, i) for sample in self.deriver.samples for i in sample.stacks.get(stack.name, {})]
        names = {name for name in (weights[0].name, bias.name)}
        return bias.axes == (axis,) and all(
            bias.name not in s.stacks[stack.name][i] or names <= set(s.stacks[stack.name][i]) for s, i in rows
        )

    def _bias(self, weight: TensorRow, bias: TensorRow) -> list[str]:
        if bias.when == weight.when:
            return ["bias"]
        weight_parts = weight.when.text.split(" and ")
        rest = [part for part in bias.when.text.split(" and ") if part not in weight_parts]
        return [f"bias if {' and '.join(rest)}"] if rest else ["bias"]

    def _is_in_out(self, stack: str, name: str) -> bool:
        return f"{stack}.{{i}}.{name}" in self._conv1d() if stack else name in self._conv1d()

    def _conv1d(self) -> set[str]:
        """The modules whose matrices are stored (in, out)."""
        if not hasattr(self, "_conv1d_names"):
            from tools.derive.attention import numbered

            models = [self.model_class.build(sample.given) for sample in self.deriver.samples[:6]]
            modules = [item for model in models for item in model.named_modules()]
            self._conv1d_names = {numbered(name) for name, module in modules if type(module).__name__ == "Conv1D"}
        return self._conv1d_names

    # Rules of sizes

    def _find_rules(self, tensors: Table, lists: Sequence[tuple[str, ...]]) -> None:
        """What absent and null mean for each size."""
        self.reader = reading.parse(text_of([{"class  x": [], **tensors}], ""))[0]
        prober = self.prober
        self.rules_needed = [n for n in prober.sizes if self._is_stated(n)] + prober.auto
        for name in self.rules_needed:
            default = prober.default[name]
            fits = self.used_in_tensors(tensors, name)
            if name in prober.auto or default is None:
                absent = self._rule(name, "absent", fits)
                null = self._rule(name, None, fits) if name not in prober.auto else absent
                if absent == "stated" and null not in ("stated", "refused"):
                    absent = null
                self.rules[name] = (absent,) if null == absent or absent == "stated" else (absent, f"null {null.replace('stated', 'refused')}")
            elif type(default) is int:
                try:
                    null = self._rule(name, None, fits)
                except NoRule:  # a table that doesn't know what null means refuses it
                    null = "unknown"
                self.rules[name] = (str(default), *([f"null {null}"] if null not in ("stated", "unknown") else []))
        self.rules = {name: rule for name, rule in self.rules.items() if rule[0] != "unknown"}

    def _is_stated(self, name: str) -> bool:
        symbol = self.prober.symbol.get(name)
        return name in self.used or (symbol in ALWAYS_STATED and name not in self.model_class.undeclared)

    def used_in_tensors(self, tensors: Table, name: str) -> bool:
        word = self.deriver.name(name)
        return any(word in reading.names_in(" ".join(row)) for rows in tensors.values() for row in rows)

    def _rule(self, name: str, value: Any, fits: bool) -> str:
        """What a null or an absent field means: an expression, "none", or "stated" if it must be stated."""
        prober = self.prober
        seen = list[tuple[Values, Any, dict[str, tuple[int, ...]]]]()
        for _ in range(TRIES + 2):
            given = {**prober.random_values(nulls=0), name: value}
            if value == "absent":
                del given[name]
            try:
                shapes, config = prober.build(given)
            except Exception:  # noqa: BLE001 - classes raise anything
                continue
            values = {**prober.complete(given, config), name: None}
            seen.append((values, read(config, name), shapes))
        if len(seen) < TRIES // 2:
            return "stated"
        if name in prober.nullable:
            return "none"
        default = self.deriver.default_sample
        others = [n for n in self.rules_needed if n != name and default and default.values.get(n) is None and n not in prober.nullable]
        if default and not others and (value == "absent" or prober.default[name] is None) and default.values.get(name, 0) in (None, read(default.config, name)):
            seen.append(({**default.values, name: None}, read(default.config, name), default.shapes))
        if all(type(found) is int for _, found, _ in seen):
            samples = [Sample({}, values, {}, {}, None) for values, _, _ in seen]
            terms = self.deriver.fitter(samples).fit([found for _, found, _ in seen])
            if terms is None:
                raise NoRule("field", name)
            return self.deriver.words(terms)
        if not fits and WINDOW.search(name):
            return "none" if prober.passes({**prober.base, name: value} if value is None else prober.base) else "stated"
        if not fits:
            if name in self.used:
                raise NoRule("field", name)
            return "unknown"
        for rule in _RULES:
            if all(self._explains(rule, name, values, shapes) for values, _, shapes in seen):
                return rule
        raise NoRule("field", name)

    def _explains(self, rule: str, name: str, values: Values, shapes: dict[str, tuple[int, ...]]) -> bool:
        named = {self.deriver.name(n): x for n, x in values.items()}
        named |= {n: reading.evaluate(rule_of, values) for n, rule_of in self.prober.hint.computed.items()}
        try:
            named[self.deriver.name(name)] = reading.whole(reading.evaluate(rule, named))
            return self.reader.tensors(named) == flat(by_layer(shapes))
        except (reading.Unreadable, KeyError, TypeError, IndexError):
            return False

    def _sizes(self) -> list[tuple[str, ...]]:
        prober, rows = self.prober, []
        for name, rule in self.rules.items():
            symbol = prober.symbol.get(name, "-")
            names = [name, *prober.also_called[name], *self._other_names(name)]
            rows.append((symbol, " ".join(dict.fromkeys(names)), *rule))
        for name, rule in prober.hint.computed.items():
            rows.append((name, "=", self._named(rule)))
        return rows

    def _named(self, rule: str) -> str:
        for field, symbol in self.prober.symbol.items():
            rule = re_word(field, symbol, rule)
        return rule.replace("*", "·")

    def _other_names(self, name: str) -> list[str]:
        mapping = self.model_class.text_class.attribute_map or {}
        return [other for other, own in mapping.items() if own == name]

    # Other fields

    def _numbers(self) -> list[tuple[str, ...]]:
        default = self.prober.default
        extra = {n for n in self.used if isinstance(default.get(n), float)}
        return [(name, json.dumps(default[name])) for name in default if name in extra]

    def _switches(self) -> list[tuple[str, ...]]:
        return [
            (name, json.dumps(bool(self.prober.default[name])))
            for name in self.prober.switches
            if name in self.used and not (self.model_class.part and name == "tie_word_embeddings")
        ]

    def _words(self) -> list[tuple[str, ...]]:
        rows = []
        for name in self.used & set(self.prober.texts):
            known = self.prober.words.get(name) or [self.prober.default[name]]
            rows.append((name, self.prober.default[name] or "none", " ".join(dict.fromkeys(known))))
        return sorted(rows)

    def _lists(self) -> list[tuple[str, ...]]:
        rows = []
        for name, words in self.prober.layer_words.items():
            if name in self.used:
                aliases = [f"{word}={read_as}" for word, read_as in self.prober.layer_aliases[name].items()]
                rows.append((name, self._list_rule(name), " ".join([*words, *aliases])))
        for name in self.prober.layer_numbers:
            if name in self.used:
                plain = {n: x for n, x in self.prober.base.items() if n not in self.prober.layer_words and n != name}
                absent, depth = read(self.prober.text_config(plain), name) or [], self.prober.depth()
                rows.append((name, "all" if list(absent) == list(range(depth)) else json.dumps(list(absent))))
        return rows

    def _list_rule(self, name: str) -> str:
        """The word of each layer where the list is absent."""
        samples = [s for s in self.deriver.all_samples if name not in s.given]
        rows = [(s, i) for s in samples for i in range(len(s.values[name]))]
        if not rows:
            return "stated"
        keep, self.prober.layer_words = self.prober.layer_words, {}
        numbers = [n for n in self.prober.sizes if PATTERN.search(n) or n in self.prober.effects and "layer" in n]
        truths = self.deriver.literals(rows, True, [n for n in numbers if SYMBOL_OF.get(n) not in ("L", "L_dec")])
        self.prober.layer_words = keep
        words = list(dict.fromkeys(s.values[name][i] for s, i in rows))
        cases = dict[str, Condition | None]()
        for word in words:
            cases[word] = condition(np.array([s.values[name][i] == word for s, i in rows]), truths)
        unknown = [word for word, case in cases.items() if case is None]
        if len(unknown) > 1:
            raise NoRule("field", name)
        order = sorted(words, key=lambda word: (word in unknown, len(getattr(cases[word], "text", ""))))
        for word in order[:-1]:
            self.used |= cases[word].fields if cases[word] else set()
        return "; ".join([f"{word} if {cases[word].text}" for word in order[:-1]] + [order[-1]])

    def _fixed(self) -> list[tuple[str, ...]]:
        """Fields with an effect that no expression has, and fields that can't be varied."""
        rows, prober = [], self.prober
        stated = set(self.rules) | self.used
        for name, value in prober.default.items():
            if name in stated or HARMLESS.search(name) or NO_SIZE.search(name):
                continue
            is_object = isinstance(value, dict) or (hasattr(value, "to_dict"))
            if name in prober.effects or name in prober.frozen or name in prober.unusable or is_object:
                rows.append((name, _json(value)))
        return [row for row in rows if len(row[1]) < 400]

    def harmless(self) -> list[str]:
        fixed = {row[0] for row in self._fixed()}
        other = {n for name in self.rules for n in self._other_names(name)}
        return [n for n in self.prober.default if n not in self.used | set(self.rules) | fixed | other]


def flat(stacks: Any) -> dict[tuple[str, int, str], tuple[int, tuple[int, ...]]]:
    """As `reading.Table.tensors` gives them, without empty tensors."""
    return {
        (stack, i, name): what
        for stack, layers in stacks.items()
        for i, layer in layers.items()
        for name, what in layer.items()
        if 0 not in what[1]
    }


def re_word(old: str, new: str, text: str) -> str:
    import re

    return re.sub(rf"\b{old}\b", new, text)


def _json(value: Any) -> str:
    try:
        return json.dumps(value.to_dict() if hasattr(value, "to_dict") else value)
    except TypeError:
        return json.dumps(str(value))

