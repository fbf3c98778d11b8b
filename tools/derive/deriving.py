"""Derives the tensors of one model class: their shapes in symbols, and the conditions under which they exist."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from app.models.grammar import RuleError
from tools.derive import reading
from tools.derive.attention import numbered
from tools.derive.fitting import Fitter, Terms, Truth, Truths, both, condition, negated, text
from tools.derive.library import ModelClass
from tools.derive.probing import Prober
from tools.derive.sampling import FIELDS_WITH_WIDTH, Sample, Unbuildable, by_layer
from tools.derive.words import COUNTS, PATTERN, SYMBOL_OF

SAMPLES = 32
FEWEST_SAMPLES = 10
FEWEST_IN_CASE = 3  # observations from which a case is derived
ENOUGH = 8  # samples that have a tensor
# Sizes that decide about no tensor, unless they may be null.
_NO_CONDITION = {"L", "L_dec", "H", "d", "V"}


class NoRule(Exception):
    """Something that no expression describes: a kind (tensor, field, attention, counts), and what it is."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind} {what}")
        self.kind, self.what = kind, what


@dataclass
class Tensor:
    """A tensor under one condition: how many of it a layer has, and its axes.

    `bias` is the condition of the bias beside a weight, "" for always and None for none.
    """

    name: str
    when: str
    copies: str
    axes: tuple[str, ...]
    bias: str | None = None


@dataclass
class Stack:
    """A stack of layers; the one with the name "" is everything outside the layers."""

    name: str
    count: str = ""
    when: str = ""
    tensors: list[Tensor] = field(default_factory=list)


Row = tuple[Sample, int]  # a layer of a sample
Case = tuple[str, Any]  # a condition, and what fits where it holds
Observation = tuple[Sample, int, tuple[int, ...]]  # the number and the shape of a tensor in a layer


class Deriver:
    """Derives the tensors of one model class from random samples."""

    def __init__(self, model_class: ModelClass) -> None:
        self.model_class = model_class
        self.prober = Prober(model_class)
        self.prober.look()
        self.default_sample = self._default_sample()
        wanted = SAMPLES * (2 if self.prober.patterns & self.prober.negative else 1)
        self.samples = [s for _ in range(wanted) if (s := self.prober.sample())]
        if len(self.samples) < FEWEST_SAMPLES:
            raise Unbuildable(self.prober.last_error)
        self._add_rare()
        self._fitters = dict[Any, Fitter]()

    def _add_rare(self) -> None:
        """More samples with the tensors that few of them have."""
        for _ in range(2 * SAMPLES):
            seen = Counter((stack, name) for s in self.samples for stack, name in _tensors_of(s))
            rare = {tensor for tensor, number in seen.items() if number < ENOUGH}
            if not rare:
                return
            if (sample := self.prober.sample()) and rare & _tensors_of(sample):
                self.samples.append(sample)

    def _default_sample(self) -> Sample | None:
        """The class's own default, at full size: small numbers fit too many expressions."""
        try:
            model = self.model_class.build_config(self.model_class.config({}))
        except Exception:  # classes raise anything
            return None
        shapes, config = self.model_class.tensors(model), self.model_class.text_config(model)
        values = self.prober.complete({}, config)
        if self.model_class.part:
            values["tie_word_embeddings"] = self.model_class.is_tied(model)
        return Sample({}, values, shapes, by_layer(shapes), config)

    @property
    def all_samples(self) -> list[Sample]:
        """The random samples, and the default one if the class says what all of its sizes are."""
        default, prober = self.default_sample, self.prober
        needed = [name for name in prober.sizes if name in prober.effects and name not in prober.nullable]
        if default and all(type(default.values[name]) is int for name in [*needed, *prober.auto]):
            return [*self.samples, default]
        return self.samples

    def name(self, field: str) -> str:
        """How tables call a field in expressions."""
        return self.prober.symbol.get(field, field)

    def named(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values under the names that expressions use."""
        computed = {
            name: reading.evaluate(rule, values)
            for name, rule in self.prober.hint.computed.items()
            if all(values.get(field) is not None for field in reading.names_in(rule) & values.keys())
        }
        if depth := self.prober.hint.depth:
            computed["L"] = len(values[depth])
        return {**{self.name(field): value for field, value in values.items()}, **computed}

    def words(self, terms: Terms) -> str:
        """An expression as tables write it: counts before widths."""
        ordered = tuple(term.ordered(lambda f: (COUNTS.match(self.name(f)) is None, self.name(f))) for term in terms)
        return text(ordered, self.name).replace("*", "·")

    # Fitting

    def fitter(self, samples: Sequence[Sample], tensor: tuple[str, str] | None = None) -> Fitter:
        """Fits by the fields with an effect; for a tensor, by those that changed its shape on their own."""
        prober, known = self.prober, self._seen(tensor)
        names = [n for n in prober.sizes if n in prober.effects or SYMBOL_OF.get(n) in FIELDS_WITH_WIDTH]
        if known:
            names = [n for n in names if known in prober.moves[n] or n in prober.stuck]
        else:
            names += [n for n in prober.sizes if n in SYMBOL_OF and n not in names]
        # A width of heads or a number of key/value heads without an effect is one that the class ignores.
        ignored = {n for n in names if SYMBOL_OF.get(n) in ("G", "d_h") and n not in prober.effects}
        computed = [*prober.hint.computed, *(["L"] if prober.hint.depth else [])]
        names = [*(n for n in names if n not in ignored), *prober.auto, *computed]
        key = (*map(id, samples), *names)
        if key not in self._fitters:
            values = [{**s.values, **self.named(s.values)} if computed else s.values for s in samples]
            self._fitters[key] = Fitter({n: [v.get(n) for v in values] for n in names}, self._weight)
        return self._fitters[key]

    def _weight(self, name: str) -> int:
        return 0 if SYMBOL_OF.get(name) in FIELDS_WITH_WIDTH else 1 if name in SYMBOL_OF else 2

    def _seen(self, tensor: tuple[str, str] | None) -> tuple[str, str] | None:
        """The tensor whose dependence on single fields was seen: this one, or the weight that a bias belongs to."""
        if tensor is None:
            return None
        weight = (tensor[0], re.sub(r"bias$", "weight", tensor[1]))
        return next((x for x in (tensor, weight) if x in self.prober.tensors_of_base), None)

    def truths(
        self,
        rows: Sequence[Row],
        layered: bool = True,
        extra: Iterable[str] = (),
        words: Mapping[str, list[str]] | None = None,
        without: Collection[str] = (),
    ) -> Truths:
        """Every simple condition on the fields and on the number of a layer, with its truth in each row.

        `extra` are fields to use although they change no tensor, `words` those of further text fields; the lists in
        `without` aren't used.
        """
        named = {id(sample): self.named(sample.values) for sample, _ in rows}
        deepest = max((i for _, i in rows), default=0) + 1
        for values in named.values():  # a stack may be deeper than a list of the other stack's layers
            values |= {name: [*values[name], *[None] * deepest] for name in self.prober.layer_words}
        places = [{**named[id(sample)], "i": i} for sample, i in rows]
        found = dict[str, Truth]()
        for literal in dict.fromkeys(self._literals(layered, set(extra), words or {}, without)):
            try:
                found[literal] = np.array([bool(reading.evaluate(literal, place)) for place in places])
            except (RuleError, KeyError):
                continue
        return found

    def _literals(
        self, layered: bool, extra: set[str], words_of: Mapping[str, list[str]], without: Collection[str]
    ) -> Iterator[str]:
        prober = self.prober
        for name in prober.switches:
            if name in prober.effects or name in extra:
                yield from (name, f"not {name}")
        for name in sorted(prober.nullable):
            yield from (f"{self.name(name)} is not None", f"{self.name(name)} is None")
        for name, words in {**prober.words, **words_of}.items():
            for sign in ("==", "!="):
                yield from (f"{name} {sign} {word!r}" for word in words)
        for name, words in prober.word_sets.items():
            yield from (f"{word!r} {sign} {name}" for word in words for sign in ("in", "not in"))
        numbers = [n for n in prober.sizes if prober.effects.get(n) == "names" or n in extra | prober.patterns]
        numbers = sorted(n for n in numbers if SYMBOL_OF.get(n) not in _NO_CONDITION or n in prober.nullable)
        for name in numbers:
            yield from (f"{self.name(name)} > {number}" for number in (0, 1))
            if not PATTERN.search(name):
                yield from (f"{self.name(name)} {sign} {number}" for number in (1, 2) for sign in ("==", "!="))
        if "d_emb" in prober.symbol.values():
            yield from ("d_emb != d", "d_emb == d")
        if layered:
            yield from self._layer_literals([self.name(name) for name in numbers], without)

    def _layer_literals(self, numbers: list[str], without: Collection[str]) -> Iterator[str]:
        for name, words in self.prober.layer_words.items():
            if name in without:
                continue
            for sign in ("==", "!="):
                yield from (f"{name}[i] {sign} {word!r}" for word in words)
                yield from (f"i {sign} first({name}, {word!r})" for word in words)
        for number in numbers:
            yield from (f"i {sign} {number}" for sign in (">=", "<", "<=", ">"))
            yield from (f"{i} % {number} {sign} 0" for i in ("(i + 1)", "i") for sign in ("==", "!="))
            offsets = [other for other in numbers if other != number and "offset" in other]
            yield from (f"i % {number} {sign} {offset}" for offset in offsets for sign in ("==", "!="))
        for name in (name for name in self.prober.layer_numbers if name not in without):
            yield from (f"i in {name}", f"i not in {name}")
        yield from ("i == 0", "i > 0")
        yield from (f"{i} % {c} {sign} 0" for c in range(2, 9) for i in ("i", "(i + 1)") for sign in ("==", "!="))
        yield from (f"i {sign} {c}" for c in (1, 2, 3, 4) for sign in ("<", ">="))
        depths = [symbol for symbol in ("L", "L_dec") if symbol in self.prober.symbol.values()]
        yield from (f"i {sign} {depth} - 1" for depth in depths for sign in ("==", "<"))

    def cases(self, observed: Sequence[Any], truths: Truths, fit: Callable[[Any], Any], depth: int = 2) -> list[Case]:
        """What fits all that was observed; or else parts of it, by one condition after the other; or nothing."""
        if fitted := fit(observed):
            return [("", fitted)]
        seen = set[bytes]()
        for literal, truth in truths.items() if depth else ():
            if truth.all() or not truth.any() or truth.tobytes() in seen:
                continue
            seen |= {truth.tobytes(), (~truth).tobytes()}
            if min(truth.sum(), (~truth).sum()) < FEWEST_IN_CASE:
                continue
            inside = self._part(observed, truths, truth, fit, depth - 1 if depth == 1 else 0)
            outside = self._part(observed, truths, ~truth, fit, depth - 1) if inside else []
            if inside and outside:
                yes = [(both(literal, when), what) for when, what in inside]
                return yes + [(both(negated(literal), when), what) for when, what in outside]
        return []

    def _part(self, observed: Sequence[Any], truths: Truths, truth: Truth, fit: Any, depth: int) -> list[Case]:
        some = [what for what, here in zip(observed, truth, strict=True) if here]
        return self.cases(some, {literal: t[truth] for literal, t in truths.items()}, fit, depth)

    # Tensors

    def stacks(self) -> list[Stack]:
        """All tensors, by stack."""
        return [self._stack(name) for name in sorted({name for sample in self.all_samples for name in sample.stacks})]

    def _stack(self, name: str) -> Stack:
        having = [sample for sample in self.all_samples if name in sample.stacks]
        stack = Stack(name)
        if name:
            # Layers that hold no parameters still count: the highest number tells.
            count = self.fitter(having).fit([max(sample.stacks[name]) + 1 for sample in having])
            here = np.array([name in sample.stacks for sample in self.all_samples])
            when = condition(here, self.truths([(sample, 0) for sample in self.all_samples], layered=False))
            if count is None or when is None:
                raise NoRule("tensor", name)
            stack.count, stack.when = self.words(count), when
        rows = [(s, i) for s in having for i in (range(max(s.stacks[name]) + 1) if name else (0,))]
        truths = self.truths(rows, layered=bool(name))
        names = dict.fromkeys(tensor for s, i in rows for tensor in s.stacks[name].get(i, {}))
        biases = {weight: self._bias(name, weight, rows, truths) for weight in names}
        beside = {f"{weight.removesuffix('.weight')}.bias" for weight, bias in biases.items() if bias is not None}
        for tensor in names:
            if tensor not in beside:
                found = self._tensors(name, tensor, rows, truths)
                stack.tensors += [replace(row, bias=biases[tensor]) for row in found]
        return stack

    def _bias(self, stack: str, weight: str, rows: Sequence[Row], truths: Truths) -> str | None:
        """When a weight has a bias beside it; None if never, or if the bias is of another length."""
        base, is_weight, _ = weight.rpartition(".weight")
        layers = [s.stacks[stack].get(i, {}) for s, i in rows]
        both_there = [
            (layer[weight], layer[f"{base}.bias"]) for layer in layers if {weight, f"{base}.bias"} <= layer.keys()
        ]
        alone = any(f"{base}.bias" in layer and weight not in layer for layer in layers)
        if not is_weight or not both_there or alone or not both_there[0][0][1]:
            return None
        axis = -1 if self.is_in_out(stack, base) else 0
        if any((copies, shape[axis : axis + 1 or None]) != bias for (copies, shape), bias in both_there):
            return None
        there = np.array([weight in layer for layer in layers])
        wanted = np.array([f"{base}.bias" in layer for layer in layers])[there]
        return condition(wanted, {literal: truth[there] for literal, truth in truths.items()})

    def is_in_out(self, stack: str, name: str) -> bool:
        """Whether a module's matrix is stored (in, out)."""
        return (f"{stack}.{{i}}.{name}" if stack else name) in self._conv1d

    @cached_property
    def _conv1d(self) -> set[str]:
        models = [self.model_class.build(sample.given) for sample in self.samples[:6]]
        modules = [item for model in models for item in model.named_modules()]
        return {numbered(name) for name, module in modules if type(module).__name__ == "Conv1D"}

    def _tensors(self, stack: str, name: str, rows: Sequence[Row], truths: Truths) -> list[Tensor]:
        label = f"{stack}.{{i}}.{name}" if stack else name
        present = np.array([name in s.stacks[stack].get(i, {}) for s, i in rows])
        when = condition(present, truths)
        if when is None:
            raise NoRule("tensor", label)
        observed = [(s, *s.stacks[stack][i][name]) for (s, i), here in zip(rows, present, strict=True) if here]
        inside = {literal: truth[present] for literal, truth in truths.items()}
        cases = self.cases(observed, inside, lambda some: self._shape(some, (stack, name)))
        if not cases:
            raise NoRule("tensor", label)
        return [Tensor(name, both(when, case), *shape) for case, shape in cases]

    def _shape(
        self, observed: Sequence[Observation], tensor: tuple[str, str] | None
    ) -> tuple[str, tuple[str, ...]] | None:
        """How many there are, and the axes."""
        if len({len(shape) for _, _, shape in observed}) > 1:
            return None
        fitter = self.fitter([sample for sample, _, _ in observed], tensor)
        copies = fitter.fit([number for _, number, _ in observed])
        axes = [fitter.fit([shape[axis] for _, _, shape in observed]) for axis in range(len(observed[0][2]))]
        found = [self.words(terms) for terms in axes if terms]
        if copies and len(found) == len(axes):
            return self.words(copies), tuple(found)
        # It may depend on fields that change nothing on their own.
        return self._shape(observed, None) if self._seen(tensor) else None


def _tensors_of(sample: Sample) -> set[tuple[str, str]]:
    stacks = sample.stacks
    return {(stack, name) for stack in stacks for layer in stacks[stack].values() for name in layer}
