"""Puts a model class's table together: rules of sizes, lists, tensors by role, attention, and what has no effect."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from tools.derive import reading
from tools.derive.deriving import Deriver, NoRule, Stack
from tools.derive.fitting import Truths, condition
from tools.derive.heads import HeadDeriver
from tools.derive.library import ModelClass, Values, read
from tools.derive.parts import ties
from tools.derive.sampling import Sample, Shapes, by_layer
from tools.derive.words import ALWAYS_STATED, HARMLESS, NO_SIZE, PATTERN, SYMBOL_OF, WINDOW, role
from tools.derive.writing import Row, Table, text_of, wrapped

TRIES = 12
BASE_SAMPLES = 8
CONFIGS = 40  # from which the words of layers are derived
# What an absent or null size may mean where the class doesn't say: the simplest that gives the right tensors.
_RULES = ("d/H", "d//H", "H", "d", "d_ff", "2·d", "3·d", "4·d", "d_h", "d_emb", "L", "E", "-1")
_KEYWORDS = re.compile(r"^(copies|bias if|if|window|chunk|softcap|1/sqrt)\b")
LONGEST_FIXED_VALUE = 400
LARGEST_CONSTANT = 64  # in a file with other parts


class TableDeriver:
    """Derives the whole table of one model class."""

    def __init__(self, deriver: Deriver) -> None:
        self.deriver, self.prober, self.model_class = deriver, deriver.prober, deriver.model_class
        self.heads = HeadDeriver(deriver)
        self.used = set[str]()  # the fields that expressions and conditions mention
        self.rules = dict[str, list[str]]()  # what absent and null mean, of each size

    def table(self) -> Table:
        if not any(SYMBOL_OF.get(name) == "d" for name in self.prober.effects):
            nested = getattr(self.model_class.config_class, "sub_configs", None) or {"hidden_size": None}
            raise NoRule("field", next(iter(nested)))
        stacks = self.deriver.stacks()
        self._check_constants(stacks)
        tensors = {self._heading(stack): self._rows_of(stack) for stack in stacks}
        attention = self.heads.rows()
        computed = [(name, "=", self._named(rule)) for name, rule in self.prober.hint.computed.items()]
        self._use([*_rules_of(tensors), *_rules_in(attention), *(rule for _, _, rule in computed)])
        lists = self._lists()
        self._use(case.partition("if ")[2] for row in lists for case in row[1].split("; "))
        self._use(rule for name, rule in self.prober.hint.rules.items() if name in self.used)
        self.tensor_names = reading.names_in(" ".join(_rules_of(tensors)))
        self._find_rules(tensors)
        self.base_rows = self._rows_of_base()
        tensors["outside the layers"] += self.base_rows or []
        sections = {
            "sizes": [*self._sizes(), *self._depth_of_list(), *computed],
            "numbers": self._defaults(name for name in self.used if isinstance(self.prober.default[name], float)),
            "switches": self._defaults(name for name in self.used & set(self.prober.switches)),
            "words": self._words(),
            "lists": lists,
            "fixed": self._fixed(),
            **tensors,
            "attention": attention,
        }
        return self._head() | {heading: rows for heading, rows in sections.items() if rows}

    def _head(self) -> Table:
        table: Table = {f"class  {self.model_class.name}": []}
        if self.model_class.part:
            tied = ("tie_word_embeddings", *ties(self.model_class, self.prober.base))
            table["text part"] = [("field", self.model_class.part), tied]
        elif self.base_rows is not None:
            table[f"base  {self._base_class().name}  {self.model_class.model_class.base_model_prefix}"] = []
        return table

    def _base_class(self) -> ModelClass:
        names = MODEL_MAPPING_NAMES.get(self.model_class.model_type, "")
        return ModelClass(self.model_class.model_type, names if isinstance(names, str) else names[0])

    def _rows_of_base(self) -> list[Row] | None:
        """What the class without a head has beside the tensors under its prefix; None if it can't be said."""
        prefix = self.model_class.model_class.base_model_prefix
        if self.model_class.part or not MODEL_MAPPING_NAMES.get(self.model_class.model_type):
            return None
        base, pairs = self._base_class(), list[tuple[Sample, Shapes]]()
        for sample in self.deriver.samples[:BASE_SAMPLES]:
            shapes = base.tensors(base.build(sample.given))
            pairs.append((sample, {f"{prefix}.{name}": shape for name, shape in shapes.items()}))
        for sample, shapes in pairs:
            if any(name.startswith(f"{prefix}.") and name not in shapes for name in sample.shapes):
                return None
        more = {name for sample, shapes in pairs for name in shapes.keys() - sample.shapes.keys()}
        rows = list[Row]()
        for name in sorted(name for name in more if not (name.endswith(".bias") and f"{name[:-4]}weight" in more)):
            found = [(sample, shapes[name]) for sample, shapes in pairs if name in shapes]
            fitter = self.deriver.fitter([sample for sample, _ in found])
            axes = [fitter.fit([shape[axis] for _, shape in found]) for axis in range(len(found[0][1]))]
            if len(found) < len(pairs) or re.search(r"\.\d+\.", name) or not all(axes):
                return None
            shape = " × ".join(self.deriver.words(terms) for terms in axes if terms)
            text = name.removesuffix(".weight")
            flags = ["bare"] * (text == name) + ["bias"] * (text != name and f"{text}.bias" in more)
            rows.append((role(text, in_layer=False), text, shape, *flags, f"in {base.name}"))
        return rows

    def _use(self, rules: Iterable[str]) -> None:
        fields = {symbol: field for field, symbol in self.prober.symbol.items()}
        names = {fields.get(name, name) for rule in rules for name in reading.names_in(rule)}
        self.used |= names & self.prober.default.keys()

    def _named(self, rule: str) -> str:
        """A rule on fields as a rule on symbols."""
        return re.sub(r"[A-Za-z_]\w*", lambda word: self.deriver.name(word[0]), rule).replace("*", "·")

    # Tensors

    def _check_constants(self, stacks: Sequence[Stack]) -> None:
        """Refuse widths that no probe could vary, and those that follow from a file's parts for images and sound."""
        tensors = [tensor for stack in stacks for tensor in stack.tensors]
        names = reading.names_in(" ".join(axis for tensor in tensors for axis in tensor.axes))
        if "d" not in names:
            raise NoRule("field", next(name for name, symbol in self.prober.symbol.items() if symbol == "d"))
        for tensor in tensors if getattr(self.model_class.config_class, "sub_configs", None) else []:
            if any(axis.isdigit() and int(axis) > LARGEST_CONSTANT for axis in tensor.axes):
                raise NoRule("tensor", tensor.name)

    def _heading(self, stack: Stack) -> str:
        if not stack.name:
            return "outside the layers"
        return f"layers  {stack.name} × {stack.count}" + (f"  if {stack.when}" if stack.when else "")

    def _rows_of(self, stack: Stack) -> list[Row]:
        """One row for tensors of equal shape and condition under one module; a bias stands beside its weight."""
        groups = defaultdict[Row, list[str]](list)
        for tensor in stack.tensors:
            base = tensor.name.removesuffix(".weight")
            flags = [f"copies {tensor.copies}"] * (tensor.copies != "1")
            if base == tensor.name:
                flags.append("bare")
            elif self.deriver.is_in_out(stack.name, base):
                flags.append("in-out")
            if tensor.bias is not None:
                flags.append(f"bias if {tensor.bias}" if tensor.bias else "bias")
            flags += [f"if {tensor.when}"] * bool(tensor.when)
            shape = " × ".join(f"({axis})" if " " in axis else axis for axis in tensor.axes) or "()"
            parent, _, leaf = base.rpartition(".")
            groups[
                role(f"{stack.name.rpartition('.')[2]}.{base}" if stack.name else base, bool(stack.name)),
                parent,
                shape,
                *flags,
            ].append(leaf)
        return [
            (name, f"{parent}.{' '.join(leaves)}" if parent else " ".join(leaves), *rest)
            for (name, parent, *rest), leaves in groups.items()
        ]

    # Sizes

    def _find_rules(self, tensors: Table) -> None:
        """What absent and null mean for each size."""
        prober = self.prober
        self.reader = reading.parse(text_of([{"class  x": [], **tensors}], ""))[0]
        self.stated = [name for name in prober.sizes if self._is_stated(name)] + prober.auto
        for name in self.stated:
            default = prober.default[name]
            if name in prober.hint.rules:
                self.rules[name] = [self._named(prober.hint.rules[name])]
            elif name in prober.auto:
                self.rules[name] = [self._rule(name, "absent")]
            elif default is None:
                absent, null = self._rule(name, "absent"), self._rule(name, None)
                absent = null if absent == "stated" else absent
                null = "refused" if name in prober.negative else null
                self.rules[name] = [absent] if absent in (null, "stated") else [absent, f"null {null}"]
            else:
                null = self._rule(name, None, is_needed=False)  # a table that doesn't know what null means refuses it
                self.rules[name] = [str(default)] if null in ("stated", "") else [str(default), f"null {null}"]
            if prober.symbol.get(name) == "k" and not self.rules[name][0]:
                self.rules[name] = ["stated"]
            self.rules[name] = [rule.replace("null stated", "null refused") for rule in self.rules[name]]
        self.rules = {name: rule for name, rule in self.rules.items() if rule[0]}

    def _is_stated(self, name: str) -> bool:
        is_known = self.prober.symbol.get(name) in ALWAYS_STATED and name not in self.model_class.undeclared
        return name in self.used or is_known

    def _rule(self, name: str, value: Any, is_needed: bool = True) -> str:
        """What null or "absent" means: an expression, none, or stated if it can't be; "" if it isn't known."""
        prober = self.prober
        is_needed = is_needed and name in self.used
        seen = [found for _ in range(TRIES) if (found := self._build_without(name, value))]
        if len(seen) < TRIES // 3:
            return "stated"
        if name in prober.nullable:
            return "none"
        seen += self._default_without(name, value)
        if all(type(resolved) is int for _, resolved, _ in seen):
            samples = [Sample({}, values, {}, {}, None) for values, _, _ in seen]
            terms = self.deriver.fitter(samples).fit([resolved for _, resolved, _ in seen])
            if terms is None and is_needed:
                raise NoRule("field", name)
            return self.deriver.words(terms) if terms else ""
        if self.deriver.name(name) in self.tensor_names:
            for rule in _RULES:
                if all(self._explains(rule, name, values, shapes) for values, _, shapes in seen):
                    return rule
        elif WINDOW.search(name) and not PATTERN.search(name):
            without = prober.base | dict.fromkeys(prober.windows_on(), False) | ({name: None} if value is None else {})
            without = {n: x for n, x in without.items() if n not in prober.layer_words}
            alike = [{n: [word] * prober.depth()} for n, words in prober.layer_words.items() for word in words]
            return "none" if any(prober.passes(without | kinds) for kinds in ({}, *alike)) else "stated"
        if is_needed:
            raise NoRule("field", name)
        return ""

    def _build_without(self, name: str, value: Any) -> tuple[Values, Any, Shapes] | None:
        """All other values of a random config, what the class makes of the field, and the tensors."""
        given = {**self.prober.random_values(nulls=0), name: value}
        if value == "absent":
            del given[name]
        try:
            shapes, config = self.prober.build(given)
        except Exception:  # classes raise anything
            return None
        return {**self.prober.complete(given, config), name: None}, read(config, name), shapes

    def _default_without(self, name: str, value: Any) -> list[tuple[Values, Any, Shapes]]:
        """The same of the class's default, if the field isn't stated there and all others are known."""
        default, fields = self.deriver.default_sample, self.prober.default
        # What null means is another matter where a field has a default, which a whole file may fill in.
        is_null_of_part = value is None and self.model_class.part
        is_null_of_default = value is None and fields[name] is not None
        if default is None or is_null_of_part or is_null_of_default or type(fields[name]) is int:
            return []
        known = {name, *self.prober.nullable}
        if any(default.values.get(other) is None for other in self.stated if other not in known):
            return []
        return [({**default.values, name: None}, read(default.config, name), default.shapes)]

    def _explains(self, rule: str, name: str, values: Values, shapes: Shapes) -> bool:
        named = reading.values_of(self.reader, {})
        named.update(self.deriver.named(values))
        try:
            named[self.deriver.name(name)] = reading.whole(reading.evaluate(rule, named))
            return reading.tensors(self.reader, named) == flat(by_layer(shapes))
        except reading.UNREADABLE:
            return False

    def _sizes(self) -> list[Row]:
        return [
            (self.prober.symbol.get(name, "-"), " ".join([name, *self._other_names(name)]), *rule)
            for name, rule in self.rules.items()
        ]

    def _depth_of_list(self) -> list[Row]:
        name, default = self.prober.hint.depth, self.deriver.default_sample
        names = " ".join([name, *self._other_names(name)])
        return [("L", names, str(len(default.values[name])))] if name and default else []

    def _other_names(self, name: str) -> list[str]:
        """Those that win over the name that the class declares."""
        mapping = self.model_class.text_class.attribute_map or {}
        others = [*self.prober.also_called[name], *(other for other, own in mapping.items() if own == name)]
        others += [other for other in (mapping.get(name), self.prober.hint.nested.get(name)) if other]
        others += [field for field, (of_list, _words) in self.prober.hint.letters.items() if of_list == name]
        return list(dict.fromkeys(others))

    # Other fields

    def _defaults(self, names: Iterable[str]) -> list[Row]:
        wanted = set(names) - ({"tie_word_embeddings"} if self.model_class.part else set())
        default = {name: value for name, value in self.prober.default.items() if name in wanted}
        rows = list[Row]()
        for name, value in default.items():
            names = " ".join([name, *self._other_names(name)])
            if name in self.prober.hint.rules:
                rows.append((names, self._named(self.prober.hint.rules[name])))
            elif name in self.prober.switches:
                rows.append((names, json.dumps(bool(value)), *["null false"] * (value is None)))
            else:
                is_null = "None" in self.model_class.annotations[name]
                rows.append((names, json.dumps(value), *["null none"] * is_null))
        return rows

    def _words(self) -> list[Row]:
        rows = list[Row]()
        for name in sorted(self.used & set(self.prober.texts)):
            default = self.prober.default[name]
            words = [*([default] if default else []), *self.prober.words.get(name, self.heads.varied.get(name, []))]
            rows.append((name, default or "none", " ".join(dict.fromkeys(word for word in words if word))))
        return rows

    def _lists(self) -> list[Row]:
        rows, prober = list[Row](), self.prober
        for name in sorted((prober.layer_words.keys() & self.used) | prober.hint.lists.keys()):
            aliases = [f"{word}={read_as}" for word, read_as in prober.layer_aliases[name].items()]
            aliases += [words for of_list, words in prober.hint.letters.values() if of_list == name]
            names, rule = " ".join([name, *self._other_names(name)]), self._list_rule(name)
            words = prober.layer_words.get(name, [case.partition(" if ")[0] for case in rule.split("; ")])
            rows.append((names, rule, " ".join([*words, *aliases])))
        for name in sorted(set(prober.layer_numbers) & (self.used | reading.names_in(" ".join(r[1] for r in rows)))):
            rows.append((name, self._numbers_rule(name)))
        rows += [(name, "[]", " ".join(words)) for name, words in prober.word_sets.items() if name in self.used]
        return rows

    def _numbers_rule(self, name: str) -> str:
        """Which layers are listed where the list is absent."""
        without = (name, *self.prober.layer_words)
        samples = [sample for _ in range(CONFIGS) if (sample := self._config_without(*without))]
        rows = [(sample, i) for sample in samples for i in range(self._depth(sample))]
        listed = np.array([i in sample.values[name] for sample, i in rows])
        if not listed.any():
            return "[]"
        when = condition(listed, self._truths_of_list(rows, name))
        if when is None:
            raise NoRule("field", name)
        return f"if {when}" if when else "all"

    def _depth(self, sample: Sample) -> int:
        return int(self.deriver.named(sample.values)["L"])

    def _truths_of_list(self, rows: Sequence[tuple[Sample, int]], name: str) -> Truths:
        """Conditions on the number of a layer, for the rule of a list."""
        prober = self.prober
        numbers = [n for n in prober.sizes if PATTERN.search(n) or (n in prober.effects and "layer" in n)]
        return self.deriver.truths(rows, extra=[*numbers, *self.heads.varied], without={*prober.layer_words, name})

    def _list_rule(self, name: str) -> str:
        """The word of each layer where the list is absent."""
        if name in self.prober.hint.lists:
            return self.prober.hint.lists[name]
        samples = [s for s in self.deriver.all_samples if name not in s.given]
        samples += [sample for _ in range(CONFIGS) if (sample := self._config_without(name))]
        if name in self.prober.hint.nested and self.deriver.default_sample:
            samples = [self.deriver.default_sample]
        rows = [(sample, i) for sample in samples for i in range(len(sample.values[name]))]
        if not rows:
            return "stated"
        truths = self._truths_of_list(rows, name)
        words = list(dict.fromkeys(sample.values[name][i] for sample, i in rows))
        cases = {w: condition(np.array([s.values[name][i] == w for s, i in rows]), truths) for w in words}
        known = sorted((len(case), word) for word, case in cases.items() if case is not None)
        unknown = [word for word in words if cases[word] is None]
        if len(unknown) > 1:
            raise NoRule("field", name)
        order = [word for _, word in known] + unknown
        return "; ".join([f"{word} if {cases[word]}" for word in order[:-1]] + order[-1:])

    def _config_without(self, *names: str) -> Sample | None:
        """A random config, of which no model is built."""
        given = self.prober.random_values(nulls=0)
        given |= {other: self.prober.rng.choice(values) for other, values in self.heads.varied.items()}
        given = {name: value for name, value in given.items() if name not in names}
        try:
            config = self.prober.text_config(given)
        except Exception:  # classes raise anything
            return None
        return Sample(given, self.prober.complete(given, config), {}, {}, config)

    def _fixed(self) -> list[Row]:
        """Fields with an effect that no expression has, and fields that can't be varied."""
        rows, prober = list[Row](), self.prober
        for name, value in prober.default.items():
            follows = name in prober.sizes and name in prober.hint.follows  # a class with another rejects the config
            is_of_part = name == "tie_word_embeddings" and self.model_class.part
            is_harmless = HARMLESS.search(name) or NO_SIZE.search(name)
            if name in self.used | self.rules.keys() or follows or is_of_part or is_harmless:
                continue
            is_object = isinstance(value, dict) or hasattr(value, "to_dict")
            is_left = name in prober.hint.leave
            if is_object or is_left or name in prober.effects or name in prober.frozen | prober.unusable:
                text = _json(value)
                rows += [(name, text)] if len(text) < LONGEST_FIXED_VALUE else []
        return rows

    def without_effect(self) -> Table:
        """The fields that were changed without an effect on tensors or attention, and those that weren't changed."""
        known = {*self.used, *self.rules, *self.prober.hint.lists, *(row[0] for row in self._fixed())}
        known |= {other for name in self.rules for other in self._other_names(name)}
        rest = [name for name in self.prober.default if name not in known]
        tested = {*self.prober.sizes, *self.prober.switches, *self.prober.texts, *self.prober.numbers}
        tested |= {
            n for n, x in self.prober.default.items() if HARMLESS.search(n) or NO_SIZE.search(n) or x is not None
        }
        found = {"harmless": [n for n in rest if n in tested], "untested": [n for n in rest if n not in tested]}
        return {heading: wrapped(names) for heading, names in found.items() if names}


def _rules_of(tensors: Table) -> Iterator[str]:
    """Every expression and condition of the sections of tensors."""
    for heading, rows in tensors.items():
        yield from (part.removeprefix("if ") for part in heading.partition(" × ")[2].split("  "))
        yield from _rules_in([row[:2] + tuple(row[2].split(" × ")) + row[3:] for row in rows])


def _rules_in(rows: Sequence[Row]) -> Iterator[str]:
    """The expressions and conditions in the columns after the first two."""
    words = {"bare", "in-out", "bias", "sinks", "causal", "all", "cross", "()"}
    for row in rows if rows and rows[0][0] != "none" else []:
        for cell in row[2:]:
            if cell not in words:
                yield from re.sub(_KEYWORDS, "", cell).split(" if ")


def flat(stacks: Any) -> dict[tuple[str, int, str], tuple[int, tuple[int, ...]]]:
    """Tensors by stack, layer and name, as `reading.tensors` gives them: without empty ones."""
    return {
        (stack, i, name): what
        for stack, layers in stacks.items()
        for i, layer in layers.items()
        for name, what in layer.items()
        if 0 not in what[1]
    }


def _json(value: Any) -> str:
    try:
        return json.dumps(value.to_dict() if hasattr(value, "to_dict") else value)
    except TypeError:
        return json.dumps(str(value))
