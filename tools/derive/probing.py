"""Which fields of a config have an effect, seen by changing one at a time."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from typing import Any

from transformers.configuration_utils import ALLOWED_LAYER_TYPES

from tools.derive.attention import Call, forward_pass
from tools.derive.library import Values, read
from tools.derive.sampling import FIELDS_WITH_WIDTH, Effect, Sampler, Stacks, Unbuildable, by_layer
from tools.derive.words import HARMLESS, LAYER_WORDS, PATTERN, SYMBOL_OF


class Prober(Sampler):
    """Probes one model class; `look` first, then `sample` as often as needed."""

    def look(self) -> None:
        """Change one field at a time, and note which tensors change."""
        self._set_base(self._first_config())
        self.only_defaults = not any(SYMBOL_OF.get(name) == "d" for name in self.base)
        for name, value in self.default.items():
            self._look_at_list(name, value)
        self._mix_layers()
        for name in sorted(self.model_class.undeclared & set(self.sizes)):
            self._is_other_name(name)
        for name in self.sizes:
            self._look_at_size(name)
        for name in list(self.symbol):  # of two sizes with one symbol, the one with an effect keeps it
            twins = [n for n in self.sizes if SYMBOL_OF.get(n) == self.symbol[name] and n != name and n in self.effects]
            if twins and name not in self.effects:
                self.symbol[twins[0]] = self.symbol.pop(name)
        for name in self.auto:  # what the class works out may also be stated
            effects = {value: self.effect(name, value) for value in (5, 7, 11)}
            self.variants[name] = [value for value, effect in effects.items() if effect != "error"]
        for name in self.switches:
            self._note(name, self.effect(name, not self.base.get(name, self.default[name])))
        for name in self.texts:
            self._look_at_text(name)
        for name in self.numbers:
            self._note(name, self.effect(name, self.default[name] * 2 or 0.5))
        self._look_again()

    def _mix_layers(self) -> None:
        """Give the base layers of every kind, so that the fields of each kind have an effect."""
        mixed = {**self.base, **{name: [*words] * 9 for name, words in self.layer_words.items() if len(words) > 1}}
        with suppress(Exception):  # classes raise anything; the first base will do
            self._set_base(self._with_depth(mixed))

    def _set_base(self, base: Values) -> None:
        shapes, config = self.build(base)
        self.base, self.base_shapes, self.base_config = base, shapes, config
        stacks = by_layer(shapes)
        self.tensors_of_base = {(stack, name) for stack in stacks for layer in stacks[stack].values() for name in layer}

    def _with_depth(self, values: Values) -> Values:
        """The same with lists of layers cut to the depth."""
        depth = next((values[name] for name in values if SYMBOL_OF.get(name) == "L"), 0)
        lists = {name: (values[name] * 9)[:depth] for name in self.layer_words if isinstance(values.get(name), list)}
        return {**values, **lists} if depth else values

    def _look_again(self) -> None:
        """Look at the fields without effect once more, where a switch, a null or a word takes or adds tensors."""
        states: list[tuple[str, Any]] = [
            (n, not self.base.get(n, self.default[n])) for n in self.switches if self.effects.get(n) == "names"
        ]
        states += [(n, None if self.base.get(n) is not None else self.variants[n][0]) for n in sorted(self.nullable)]
        states += [(n, [1, 2]) for n in self.layer_numbers]
        states += [(n, word) for n, words in self.words.items() for word in words if word != self.default[n]]
        first, known = self.base, self.tensors_of_base
        for name, value in states[:8]:
            try:
                self._set_base({**first, name: value})
            except Exception:  # noqa: S112 - classes raise anything
                continue
            for size in [n for n in self.sizes if n not in self.effects and n != name]:
                now = self.base.get(size, read(self.base_config, size))
                if any(self.effect(size, x) in ("shapes", "names") for x in self._values_to_try(size, now)[:2]):
                    self._look_at_size(size)
            for switch in [n for n in self.switches if n not in self.effects and n != name]:
                self._note(switch, self.effect(switch, not self.base.get(switch, self.default[switch])))
        self._set_base(first)
        self.tensors_of_base = known

    def _first_config(self) -> Values:
        error: Exception = Unbuildable()
        for attempt in range(12):
            values = self.random_sizes(without_symbol=False) | self.windows_on() | dict(self.hint.base)
            if self.model_class.part and "tie_word_embeddings" in self.default:
                values["tie_word_embeddings"] = False  # the whole config may have another default
            if attempt >= 8:  # the class's own sizes, with few layers
                few = ("L", "L_dec", "V")
                values = self.tokens | {
                    n: x for n, x in values.items() if SYMBOL_OF.get(n) in few or n in self.hint.given
                }
            try:
                self.build(values)
            except Exception as failure:
                error = failure
            else:
                return values
        raise Unbuildable(f"{type(error).__name__}: {str(error)[:200]}")

    def effect(self, name: str, value: Any) -> Effect:
        """What changes if only this field has this value."""
        try:
            shapes, _ = self.build(self._with_depth({**self.base, name: value}))
        except Exception:
            return "error"
        if shapes == self.base_shapes:
            return "none"
        before, after = by_layer(self.base_shapes), by_layer(shapes)
        for stack, layers in before.items():
            for i, layer in layers.items():
                for tensor, had in layer.items():
                    if after.get(stack, {}).get(i, {}).get(tensor, had) != had:
                        self.moves[name].add((stack, tensor))
        return "names" if _first_names(before) != _first_names(after) else "shapes"

    def _note(self, name: str, *effects: Effect) -> None:
        for effect in ("names", "shapes"):
            if effect in effects:
                self.effects.setdefault(name, effect)
        if all(effect == "error" for effect in effects):
            self.unusable.add(name)

    def _is_other_name(self, name: str) -> None:
        """Whether a field that the class doesn't declare is another name of one that it does."""
        left = {n: x for n, x in self.base.items() if n not in self.layer_words}
        others = {n: x for n, x in left.items() if SYMBOL_OF.get(n) not in ("d", "L")}
        try:
            part = self.text_config({**others, name: 480})
        except Exception:
            return
        for declared in self.sizes:
            if declared not in self.model_class.undeclared and read(part, declared) == 480:
                self.also_called[declared].append(name)
                self.sizes.remove(name)
                self.symbol.pop(name, None)
                return

    def _look_at_size(self, name: str) -> None:
        default, symbol = self.default[name], SYMBOL_OF.get(name)
        now = self.base.get(name, read(self.base_config, name))
        now = now if type(now) is int else default
        effects = {value: self.effect(name, value) for value in self._values_to_try(name, now) if value != now}
        usable = [value for value, effect in effects.items() if effect != "error"]
        may_be_zero = symbol == "n_sh" or default == 0 or 0 in self.hint.choices.get(symbol or "", ())
        if not may_be_zero and any(effects[value] == "shapes" for value in usable):
            usable = [value for value in usable if value]
        if not usable and symbol in FIELDS_WITH_WIDTH:
            self.stuck.add(name)
            self.effects[name] = "shapes"
            return
        is_pattern = bool(PATTERN.search(name)) and not symbol and isinstance(now, int)
        if any(effects[value] != "none" for value in usable) or is_pattern:
            self._note(name, *(effects[value] for value in usable))
            self.patterns |= {name} if is_pattern else set()
            self.variants[name] = [value for value in usable if value or not is_pattern] + [now] * (type(now) is int)
        elif not usable and effects:
            self.unusable.add(name)
        if now is None and any(effects[value] == "names" for value in usable):
            self.nullable.add(name)  # it is null in the base
        elif name in self.effects or default is None:
            self._look_at_null(name, usable or [now])

    def _look_at_null(self, name: str, usable: list[Any]) -> None:
        if self.effect(name, None) != "names":
            return
        self.effects[name] = "names"
        if type(read(self.text_config({**self.base, name: None}), name)) is int:
            self.resolved.add(name)
        else:
            self.nullable.add(name)
            self.variants.setdefault(name, usable)

    def _values_to_try(self, name: str, now: Any) -> list[int]:
        default, symbol = self.default[name], SYMBOL_OF.get(name)
        if symbol and not self.only_defaults:
            chosen = {SYMBOL_OF[n]: x for n, x in self.base.items() if n in SYMBOL_OF}
            tried = dict.fromkeys(self.choose(symbol, chosen) for _ in range(6))
            return [*tried, *([0] if symbol == "n_sh" or default == 0 else [])]
        if default is None:
            return [2, 4, 24, *([-1] if name in self.negative else [])]
        if default > 64 and not PATTERN.search(name):
            return [default * 2, default // 2, default + 1, default // 4]
        return list(dict.fromkeys([default * 2, default + 1, max(default // 2, 1), 1, 2, 3, 0]))

    def _look_at_text(self, name: str) -> None:
        if HARMLESS.search(name):
            return
        words = [*self.hint.words.get(name, ()), *self.words_in_source(name)]
        effects = {
            word: self.effect(name, word) for word in dict.fromkeys([*words, "probe"]) if word != self.default[name]
        }
        known = [word for word, effect in effects.items() if effect != "error" and word != "probe"]
        if any(effects[word] in ("shapes", "names") for word in known):
            default = [] if self.default[name] is None else [self.default[name]]
            self.words[name] = [*default, *known]
            self._note(name, *(effects[word] for word in known))
        elif effects.get("probe") != "none" and not known:
            self.unusable.add(name)

    def words_in_source(self, name: str) -> list[str]:
        """The texts with which the source compares this field, and those that its annotation allows."""
        words = (
            re.findall(r"'(\w[\w-]*)'", self.model_class.annotations[name])
            if "Literal" in self.model_class.annotations[name]
            else []
        )
        for node in ast.walk(_parsed(self.model_class.source)):
            if isinstance(node, ast.Compare) and any(
                getattr(x, "attr", getattr(x, "id", "")) == name for x in ast.walk(node)
            ):
                words += [x.value for x in ast.walk(node) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        return [word for word in words if word != name]

    def _look_at_list(self, name: str, default: Any) -> None:
        now, depth = self.listed(self.base_config, name), self.depth()
        if isinstance(now, list | tuple) and now and all(isinstance(x, str) for x in now) and len(now) == depth:
            words = [*self.hint.words.get(name, dict.fromkeys([*now, *ALLOWED_LAYER_TYPES, *LAYER_WORDS]))]
            words = [word for word in words if self.effect(name, [word] * depth) != "error"]
            if len(words) > 1 and self._runs(name, [now[0]] * depth):
                # A layer of some kind needs one of the first kind before it.
                words = [word for word in words if self._runs(name, [now[0], *[word] * (depth - 1)])]
            for word in words:
                read_as = self.listed(self.text_config({**self.base, name: [word] * depth}), name)[0]
                if read_as != word:
                    self.layer_aliases[name][word] = read_as
            self.layer_words[name] = list(dict.fromkeys(self.layer_aliases[name].get(word, word) for word in words))
            self._note(name, *(self.effect(name, [word] * depth) for word in words))
        elif "list[int]" in self.model_class.annotations[name].lower() and default in (None, [], ()):
            effect = self.effect(name, [1, 2])
            if effect in ("names", "shapes"):
                self.layer_numbers.append(name)
                self._note(name, effect)
        elif "list[str]" in self.model_class.annotations[name] and default in (None, [], ()):
            words = list(dict.fromkeys(self.words_in_source(name)))
            effects = [self.effect(name, [word]) for word in words]
            if {"names", "shapes"} & set(effects):
                self.word_sets[name] = [word for word, effect in zip(words, effects, strict=True) if effect != "error"]
                self._note(name, *effects)
        elif isinstance(default, list | tuple) and default and type(default[0]) in (int, float):
            self._note(name, self.effect(name, [default[0] * 2, *default[1:]]))

    def _runs(self, name: str, value: Any) -> bool:
        return self.passes({**self.base, name: value}) is not None

    def passes(self, values: Values) -> list[Call] | None:
        """What attention was given in a forward pass, or None if there can't be one."""
        try:
            return forward_pass(self.model_class, values)
        except Exception as error:
            self.last_error = f"{type(error).__name__}: {str(error)[:200]}"
            return None

    def depth(self) -> int:
        names = [name for name in self.default if SYMBOL_OF.get(name) == "L"]
        return next((read(self.base_config, name) for name in names), 0) or getattr(
            self.base_config, "num_hidden_layers", 0
        )


def _first_names(stacks: Stacks) -> set[tuple[str, int, str]]:
    """The tensors there are, outside the layers and in the first three."""
    return {
        (stack, i, name) for stack, layers in stacks.items() for i, layer in layers.items() if i < 3 for name in layer
    }


_TREES = dict[str, ast.Module]()


def _parsed(source: str) -> ast.Module:
    if source not in _TREES:
        _TREES[source] = ast.parse(source)
    return _TREES[source]
