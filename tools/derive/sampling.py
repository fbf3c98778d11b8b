"""Random configs of a model class that use all of its fields with an effect."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tools.derive import reading
from tools.derive.library import ModelClass, Values, read
from tools.derive.words import CHOICES, DIVISORS, NO_SIZE, ROTATED, SYMBOL_OF, WINDOW

Shapes = dict[str, tuple[int, ...]]
# Of one layer: how many tensors have this name (numbers in it are {j}), and their shape.
Layer = dict[str, tuple[int, tuple[int, ...]]]
# The layers of each stack; tensors outside the layers are layer 0 of the stack "".
Stacks = dict[str, dict[int, Layer]]
Effect = Literal["none", "shapes", "names", "error"]  # what changing a field did
FIELDS_WITH_WIDTH = ("d", "H", "G", "d_h")


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|(?<=\.expert_)\d+(?=\.)")


class Unbuildable(Exception):
    """A model class that can't be built from tiny configs."""


def by_layer(shapes: Shapes) -> Stacks:
    """Tensors by stack, layer and name within the layer."""
    stacks: Stacks = defaultdict(lambda: defaultdict(dict))
    of_name = defaultdict(set)
    for name, shape in shapes.items():
        of_name[split(name)].add(shape)
    for name, shape in shapes.items():
        stack, layer, rest = split(name)
        if len(of_name[stack, layer, rest]) > 1:  # numbered parts of unlike shapes keep their numbers
            rest = name.removeprefix(f"{stack}.{layer}.") if stack else name
        copies, _ = stacks[stack][layer].get(rest, (0, shape))
        stacks[stack][layer][rest] = (copies + 1, shape)
    return stacks


def split(name: str) -> tuple[str, int, str]:
    """'model.layers.3.mlp.experts.7.w' -> ('model.layers', 3, 'mlp.experts.{j}.w')"""
    if match := re.match(r"(.*?)\.(\d+)\.(.*)$", name):
        return match[1], int(match[2]), _NUMBER.sub("{j}", match[3])
    return "", 0, name


@dataclass
class Sample:
    """One random config: the fields it states, all values with what the class fills in, and its tensors."""

    given: Values
    values: Values
    shapes: Shapes
    stacks: Stacks
    config: Any


class Sampler:
    """The fields of one model class, what is known of them, and random configs."""

    def __init__(self, model_class: ModelClass, seed: int = 0) -> None:
        self.model_class = model_class
        self.rng = random.Random(seed)  # noqa: S311 - no secret
        self.hint = model_class.hint
        # A negative number, such as -1, stands for one that the class works out.
        self.negative = {name for name, value in model_class.default.items() if type(value) is int and value < 0}
        self.default: Values = {
            name: None if name in self.negative else value for name, value in model_class.default.items()
        }
        self.last_error = ""
        sizes = [name for name in self.default if self._may_be_size(name)]
        self.sizes = [name for name in sizes if name not in self.hint.leave]
        self.switches = [n for n in self.default if self._may_be_switch(n) and n not in self.hint.leave]
        self.numbers = [name for name, value in self.default.items() if isinstance(value, float)]
        self.auto = [name for name, value in self.default.items() if value == "auto"]
        self.texts = [n for n, v in self.default.items() if self._is_text(n, v) and n not in self.auto]
        self.tokens = {
            name: 0
            for name, value in self.default.items()
            if (name.endswith("_token_id") and isinstance(value, int)) or name == "pad_token_id"
        }
        self.symbol = self._symbols()
        self.has_square_heads = False  # heads together are as wide as the model
        # What a Prober finds.
        self.effects = dict[str, Effect]()  # the strongest effect of each field that has one
        self.variants = dict[str, list[Any]]()  # values that can be built, of fields without a symbol
        self.nullable = set[str]()  # null takes tensors away
        self.resolved = set[str]()  # null is replaced by a number, and changes which tensors there are
        self.stuck = set[str]()  # can't change on their own
        # Sizes that may say which layers are of a kind, or that something is switched off.
        self.patterns = self.negative & set(self.sizes)
        self.words = dict[str, list[str]]()  # of text fields that have an effect
        self.layer_words = dict[str, list[str]]()  # of fields with one word per layer
        self.layer_aliases = defaultdict[str, dict[str, str]](dict)  # words that the class reads as another
        self.layer_numbers = list[str]()  # fields that list layers
        self.word_sets = dict[str, list[str]]()  # of fields that list some words
        self.also_called = defaultdict[str, list[str]](list)
        self.moves = defaultdict[str, set[tuple[str, str]]](set)  # the tensors whose shape a field changes on its own
        self.unusable = set[str]()  # fields that can't be varied, whose effect isn't known
        self.only_defaults = False  # its base has the class's own sizes
        self.frozen = set[str]()  # fields whose effect has no expression: probes keep the default

    def _may_be_size(self, name: str) -> bool:
        value, annotation = self.default[name], self.model_class.annotations[name]
        if NO_SIZE.search(name) or isinstance(value, bool):
            return False
        return isinstance(value, int) or (
            value is None and "int" in annotation and not re.search("list|dict|bool", annotation)
        )

    def _may_be_switch(self, name: str) -> bool:
        value, annotation = self.default[name], self.model_class.annotations[name]
        return isinstance(value, bool) or (value is None and bool(re.fullmatch(r".*\bbool\b( \| None)?.*", annotation)))

    def _is_text(self, name: str, value: Any) -> bool:
        annotation = self.model_class.annotations[name]
        return isinstance(value, str) or (
            value is None and "str" in annotation and "int" not in annotation and "list" not in annotation
        )

    def _symbols(self) -> dict[str, str]:
        """The symbol of each size that has one; of two fields with the same symbol, the first that is declared."""
        symbols = dict[str, str]()
        for name in self.sizes:
            symbol = SYMBOL_OF.get(name)
            if symbol and symbol not in symbols.values() and name not in self.model_class.undeclared:
                symbols[name] = symbol
        for name in self.sizes:
            symbol = SYMBOL_OF.get(name)
            if symbol and symbol not in symbols.values():
                symbols[name] = symbol
        return symbols

    # Building

    def build(self, values: Values) -> tuple[Shapes, Any]:
        model = self.model_class.build(values)
        return self.model_class.tensors(model), self.model_class.text_config(model)

    def text_config(self, values: Values) -> Any:
        config = self.model_class.config(values)
        return getattr(config, self.model_class.part) if self.model_class.part else config

    def choose(self, symbol: str, chosen: Mapping[str, int]) -> int:
        """A number for a symbol; key/value heads divide the heads."""
        if symbol == "d_emb" and "d" in chosen and self.rng.random() < 0.25:
            return chosen["d"]  # equal widths often need no projection
        heads = chosen.get("H", 12)
        if symbol == "d_h" and self.has_square_heads:
            return chosen["d"] // heads
        choices = [
            n for n in self.hint.choices.get(symbol, CHOICES[symbol]) if symbol != "G" or (heads % n == 0 and n < heads)
        ]
        return self.rng.choice(choices)

    def random_sizes(self, without_symbol: bool = True) -> Values:
        """Random numbers for fields with a symbol and, if wanted, for the others that have an effect."""
        values = {**self.tokens, **{name: n for name, n in DIVISORS.items() if name in self.default}, **self.hint.given}
        chosen = dict[str, int]()
        for name in sorted(self.sizes, key=lambda name: "Hd".find(SYMBOL_OF.get(name, "-")) % 3):
            symbol = SYMBOL_OF.get(name)
            if symbol and name not in self.frozen:
                if self.symbol.get(name) != symbol and self.effects.get(name):  # a second size of the same kind
                    values[name] = self.choose(symbol, chosen)
                else:
                    values[name] = chosen[symbol] = chosen.get(symbol) or self.choose(symbol, chosen)
                if self.default[name] == 0 and self.effects.get(name) == "names" and self.rng.random() < 0.25:
                    values[name] = 0  # switched off, as by default
            elif WINDOW.search(name) and name not in {*self.effects, *self.patterns}:
                values[name] = self.rng.choice([4, 5, 6, 7])
            elif ROTATED.search(name) and name not in self.effects:
                values[name] = 8
            elif without_symbol and name in self.variants and name not in self.frozen:
                is_off = -1 in self.variants[name] and self.rng.random() < 0.4
                values[name] = -1 if is_off else self.rng.choice([x for x in self.variants[name] if x != -1] or [-1])
        for name in self.auto:
            if self.variants.get(name) and self.rng.random() < 0.5:
                values[name] = self.rng.choice(self.variants[name])
        depth = chosen.get("L")
        default_depth = next((self.default[name] for name in self.sizes if SYMBOL_OF.get(name) == "L"), None)
        for name, value in self.default.items():  # one item per layer, cut to the depth
            if isinstance(value, list | tuple) and depth and len(value) == default_depth and len(value) > 2:
                values[name] = list(value)[:depth]
        followers = {name: rule for name, rule in self.hint.follows.items() if name in self.sizes}
        for name, rule in followers.items():
            values[name] = chosen[SYMBOL_OF.get(name, name)] = rule({**self.default, **values})
        if "mrope_section" in self.model_class.source:  # three parts of a head's pairs, for time, height and width
            width = chosen.get("d_h", chosen.get("d", 96) // chosen.get("H", 4))
            pairs = int(width * self.default.get("partial_rotary_factor", 1)) // 2
            parts = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]
            values["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": parts}
        for name, rule in self.hint.follows.items():
            if name not in followers:
                values[name] = rule({**self.default, **values})
        return values

    def windows_on(self) -> Values:
        """The switches without which layers may not have windows."""
        return {name: True for name in self.switches if WINDOW.search(name)}

    def sample(self, absent: float = 0.0, nulls: float = 0.25, attempts: int = 6) -> Sample | None:
        """A random config that can be built; `absent` and `nulls` are the shares of fields left out or null."""
        for attempt in range(attempts):
            values = self.random_values(nulls, without_symbol=attempt < attempts - 2)
            for name in list(values):
                if name not in self.tokens and self.rng.random() < absent:
                    del values[name]
            try:
                shapes, config = self.build(values)
            except Exception as error:
                self.last_error = f"{type(error).__name__}: {str(error)[:200]}"
                continue
            return Sample(values, self.complete(values, config), shapes, by_layer(shapes), config)
        return None

    def random_values(self, nulls: float, without_symbol: bool = True) -> Values:
        values = self.random_sizes(without_symbol)
        if self.only_defaults:
            few = ("L", "L_dec", "V")
            values = {
                n: x
                for n, x in values.items()
                if n in self.tokens or n in self.variants or SYMBOL_OF.get(n) in few or n in self.hint.given
            }
        for name in self.switches:
            if name in self.effects and name not in self.frozen:
                values[name] = self.rng.random() < 0.5
        for name in sorted(self.nullable | self.resolved):
            if self.rng.random() < nulls and name not in self.frozen:
                values[name] = None
        for name, words in self.words.items():
            if name not in self.frozen:
                values[name] = self.rng.choice(words)
        depth = next((values[name] for name in values if SYMBOL_OF.get(name) == "L"), 4)
        if self.hint.depth:
            depth = self.rng.choice(CHOICES["L"])
        for name, words in self.layer_words.items():
            if words and self.rng.random() < 0.6 and name not in self.frozen:
                stated = [*words, *self.layer_aliases[name]]
                values[name] = [self.rng.choice(stated) for _ in range(depth)]
                values |= self.windows_on()
        for name in self.layer_numbers:
            if self.rng.random() < 0.5 and name not in self.frozen:
                values[name] = sorted(self.rng.sample(range(depth), 2))
        for name, words in self.word_sets.items():
            if name not in self.frozen:
                values[name] = [word for word in words if self.rng.random() < 0.5]
        for name, rule in self.hint.follows.items():
            if name in self.switches:
                values[name] = rule(values)
        return values

    def complete(self, given: Values, config: Any) -> Values:
        """All values of a config: those given, the defaults, and what the class fills in."""
        values = {**self.default, **given}
        for name in [*self.layer_words, *self.layer_numbers, *self.word_sets]:
            values[name] = list(self.listed(config, name) or [])
        for name in self.auto:
            values[name] = read(config, name)
        for name, rule in self.hint.rules.items():
            values[name] = reading.evaluate(rule, values) if values.get(name) is None else values[name]
        for name in self.sizes:
            found = read(config, name)
            if values.get(name) is None and type(found) is int and name not in self.nullable:
                values[name] = found
        return values

    def listed(self, config: Any, name: str) -> Any:
        return read(config, self.hint.nested.get(name, name))
