"""Derives the table of one model class: tensors with shapes and conditions, what absent and null fields mean, lists."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tools.derive import reading
from tools.derive.fitting import ALWAYS, Condition, Fitter, Literal, Terms, Truth, Truths, condition, fields_of, text
from tools.derive.library import ModelClass, Values, read
from tools.derive.probing import FIELDS_WITH_WIDTH, Prober, Sample, Unbuildable, by_layer
from tools.derive.words import ALWAYS_STATED, NO_SIZE, PATTERN, SYMBOL_OF, role
from tools.derive.writing import Table, text_of, wrapped

SAMPLES = 40
MODEL_SIZES = ("d", "d_emb")
_LIST_RULE = re.compile("interval|every|period|offset|pattern|step|max_window|first|last|freq|start|end")


class NoRule(Exception):
    """Something that no expression describes: a kind (tensor, field, attention), and what it is."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind} {what}")
        self.kind, self.what = kind, what


@dataclass
class TensorRow:
    """A tensor of one stack under one condition: how many of it a layer has, and its axes."""

    stack: str
    name: str
    when: Condition
    copies: Terms
    axes: tuple[Terms, ...]
    in_out: bool = False


@dataclass
class Stack:
    """A stack of layers; the one with the name "" is everything outside the layers."""

    name: str
    count: Terms = ()
    when: Condition = ALWAYS
    tensors: list[TensorRow] = field(default_factory=list)


Row = tuple[Sample, int]
Observation = tuple[Sample, int, tuple[int, ...]]


class Deriver:
    """Derives the rows of one model class from random samples."""

    def __init__(self, model_class: ModelClass) -> None:
        self.model_class = model_class
        self.prober = Prober(model_class)
        self.prober.look()
        self.default_sample = self._default_sample()
        self.samples = [s for _ in range(SAMPLES) if (s := self.prober.sample())]
        if len(self.samples) < 10:
            raise Unbuildable(self.prober.last_error)
        self.fitters = dict[Any, Fitter]()
        self.rules = dict[str, tuple[str, str]]()  # of each size: what absent and null mean
        self.list_rules = dict[str, str]()

    def _default_sample(self) -> Sample | None:
        """The class's own default, at full size: small numbers fit too many expressions."""
        try:
            config = self.model_class.config({})
            model = self.model_class.build_config(config)
        except Exception:  # noqa: BLE001 - classes raise anything
            return None
        shapes, text_config = self.model_class.tensors(model), self.model_class.text_config(model)
        values = self.prober.complete({}, text_config)
        if self.model_class.part:
            values["tie_word_embeddings"] = model.get_output_embeddings() is not None and (
                model.get_output_embeddings().weight is model.get_input_embeddings().weight
            )
        return Sample({}, values, shapes, by_layer(shapes), text_config)

    @property
    def all_samples(self) -> list[Sample]:
        """The random samples, and the default one if the class says what all of its sizes are."""
        default, prober = self.default_sample, self.prober
        needed = [n for n in [*prober.sizes, *prober.auto] if n not in prober.nullable and (n in prober.effects or n in prober.auto)]
        if default and all(type(default.values[n]) is int for n in needed):
            return [*self.samples, default]
        return self.samples

    def name(self, field: str) -> str:
        """How a table calls a field in expressions."""
        return self.prober.symbol.get(field, field)

    def words(self, terms: Terms) -> str:
        return text(terms, self.name).replace("*", "·")

    # Fitting

    def fitter(self, samples: Sequence[Sample], tensor: tuple[str, str] | None = None) -> Fitter:
        """Fits by the fields with an effect; for a tensor, by those that changed its shape on their own."""
        prober, known = self.prober, self._seen(tensor)
        names = [n for n in prober.sizes if n in prober.effects or SYMBOL_OF.get(n) in FIELDS_WITH_WIDTH]
        if known:
            names = [n for n in names if known in prober.moves[n] or n in prober.stuck]
        else:
            names += [n for n in prober.sizes if n in SYMBOL_OF and n not in names]
        names = [*names, *prober.auto, *prober.hint.computed]
        key = (*map(id, samples), *names)
        if key not in self.fitters:
            columns = {n: [self._value(s, n) for s in samples] for n in names}
            self.fitters[key] = Fitter(columns, self._weight)
        return self.fitters[key]

    def _value(self, sample: Sample, name: str) -> Any:
        if name in self.prober.hint.computed:
            return reading.evaluate(self.prober.hint.computed[name], sample.values)
        return sample.values.get(name)

    def _weight(self, name: str) -> int:
        return 0 if SYMBOL_OF.get(name) in FIELDS_WITH_WIDTH else 1 if name in SYMBOL_OF else 2

    def _seen(self, tensor: tuple[str, str] | None) -> tuple[str, str] | None:
        """The tensor whose dependence on single fields was seen: this one, or the weight that a bias belongs to."""
        if tensor is None:
            return None
        weight = (tensor[0], re.sub(r"bias$", "weight", tensor[1]))
        return next((x for x in (tensor, weight) if x in self.prober.tensors_of_base), None)

    def literals(self, rows: Sequence[Row], layered: bool = True, extra: Iterable[str] = ()) -> Truths:
        """Every literal on the fields and on the number of a layer, with its truth in each row."""
        truths = dict[Literal, Truth]()
        for literal in self._literals(layered, set(extra)):
            try:
                truths[literal] = np.array([bool(literal.test(s.values, i)) for s, i in rows])
            except (TypeError, ZeroDivisionError, IndexError, KeyError):
                continue
        return truths

    def _literals(self, layered: bool, extra: set[str]) -> Iterator[Literal]:
        prober = self.prober
        for n in prober.switches:
            if n in prober.effects:
                yield Literal(n, lambda v, _i, n=n: v[n], (n,))
                yield Literal(f"not {n}", lambda v, _i, n=n: not v[n], (n,))
        for n in sorted(prober.nullable):
            yield Literal(f"{self.name(n)} is not None", lambda v, _i, n=n: v[n] is not None, (n,))
            yield Literal(f"{self.name(n)} is None", lambda v, _i, n=n: v[n] is None, (n,))
        for n, words in prober.words.items():
            for word in dict.fromkeys(words):
                yield Literal(f"{n} == {word!r}", lambda v, _i, n=n, word=word: v[n] == word, (n,))
            for word in dict.fromkeys(words):
                yield Literal(f"{n} != {word!r}", lambda v, _i, n=n, word=word: v[n] != word, (n,))
        no_condition = {"L", "L_dec", "H", "d", "V"}
        numbers = sorted(n for n in prober.sizes if prober.effects.get(n) == "names" and (SYMBOL_OF.get(n) not in no_condition or n in prober.nullable))
        numbers += sorted(extra - set(numbers))
        yield from self._comparisons(numbers)
        if layered:
            yield from self._layer_literals(numbers)

    def _comparisons(self, numbers: list[str]) -> Iterator[Literal]:
        for n in numbers:
            for c in (0, 1):
                yield Literal(f"{self.name(n)} > {c}", lambda v, _i, n=n, c=c: v[n] is not None and v[n] > c, (n,))
            if not PATTERN.search(n):
                for c in (1, 2):
                    yield Literal(f"{self.name(n)} == {c}", lambda v, _i, n=n, c=c: v[n] == c, (n,))
                    yield Literal(f"{self.name(n)} != {c}", lambda v, _i, n=n, c=c: v[n] != c, (n,))
        widths = [n for n in self.prober.sizes if n in self.prober.effects and SYMBOL_OF.get(n) in MODEL_SIZES]
        for a in widths:
            for b in widths:
                if a != b:
                    words = f"{self.name(a)} != {self.name(b)}"
                    yield Literal(words, lambda v, _i, a=a, b=b: v[a] != v[b], (a, b))

    def _layer_literals(self, numbers: list[str]) -> Iterator[Literal]:
        for n, words in self.prober.layer_words.items():
            for word in words:
                yield Literal(f"{n}[i] == {word!r}", lambda v, i, n=n, word=word: v[n][i] == word, (n,))
            for word in words:
                yield Literal(f"{n}[i] != {word!r}", lambda v, i, n=n, word=word: v[n][i] != word, (n,))
        for n in numbers:
            m = self.name(n)
            yield Literal(f"i >= {m}", lambda v, i, n=n: i >= v[n], (n,))
            yield Literal(f"i < {m}", lambda v, i, n=n: i < v[n], (n,))
            yield Literal(f"i <= {m}", lambda v, i, n=n: i <= v[n], (n,))
            yield Literal(f"(i + 1) % {m} == 0", lambda v, i, n=n: (i + 1) % v[n] == 0, (n,))
            yield Literal(f"(i + 1) % {m} != 0", lambda v, i, n=n: (i + 1) % v[n] != 0, (n,))
            yield Literal(f"i % {m} == 0", lambda v, i, n=n: i % v[n] == 0, (n,))
            yield Literal(f"i % {m} != 0", lambda v, i, n=n: i % v[n] != 0, (n,))
            for offset in numbers:
                if n != offset and "offset" in offset:
                    yield Literal(f"i % {m} == {offset}", lambda v, i, n=n, o=offset: i % v[n] == v[o], (n, offset))
                    yield Literal(f"i % {m} != {offset}", lambda v, i, n=n, o=offset: i % v[n] != v[o], (n, offset))
        for n in self.prober.layer_numbers:
            yield Literal(f"i in {n}", lambda v, i, n=n: i in v[n], (n,))
            yield Literal(f"i not in {n}", lambda v, i, n=n: i not in v[n], (n,))
        yield Literal("i == 0", lambda _v, i: i == 0)
        yield Literal("i > 0", lambda _v, i: i > 0)
        for c in range(2, 9):
            for shift, words in ((0, "i"), (1, "(i + 1)")):
                yield Literal(f"{words} % {c} == 0", lambda _v, i, c=c, s=shift: (i + s) % c == 0)
                yield Literal(f"{words} % {c} != 0", lambda _v, i, c=c, s=shift: (i + s) % c != 0)
        for c in (1, 2, 3, 4):
            yield Literal(f"i < {c}", lambda _v, i, c=c: i < c)
            yield Literal(f"i >= {c}", lambda _v, i, c=c: i >= c)
        for n in self.prober.sizes:
            if SYMBOL_OF.get(n) in ("L", "L_dec"):
                m = self.name(n)
                yield Literal(f"i == {m} - 1", lambda v, i, n=n: i == v[n] - 1, (n,))
                yield Literal(f"i < {m} - 1", lambda v, i, n=n: i < v[n] - 1, (n,))

    # Tensors

    def stacks(self) -> list[Stack]:
        """All tensors, by stack."""
        names = sorted({name for sample in self.all_samples for name in sample.stacks})
        return [self._stack(name) for name in names]

    def _stack(self, name: str) -> Stack:
        having = [sample for sample in self.all_samples if name in sample.stacks]
        stack = Stack(name)
        if name:
            # Layers that hold no parameters still count: the highest number tells.
            depths = [max(sample.stacks[name]) + 1 for sample in having]
            count = self.fitter(having).fit(depths)
            here = np.array([name in sample.stacks for sample in self.all_samples])
            when = condition(here, self.literals([(s, 0) for s in self.all_samples], layered=False))
            if count is None or when is None:
                raise NoRule("tensor", name)
            stack.count, stack.when = count, when
        rows = [(s, i) for s in having for i in (range(max(s.stacks[name]) + 1) if name else (0,))]
        truths = self.literals(rows, layered=bool(name))
        for tensor in dict.fromkeys(tensor for s, i in rows for tensor in s.stacks[name].get(i, {})):
            stack.tensors += self._tensor(name, tensor, rows, truths)
        return stack

    def _tensor(self, stack: str, name: str, rows: Sequence[Row], truths: Truths) -> list[TensorRow]:
        present = np.array([name in s.stacks[stack].get(i, {}) for s, i in rows])
        when = condition(present, truths)
        label = f"{stack}.{{i}}.{name}" if stack else name
        if when is None:
            raise NoRule("tensor", label)
        observed = [(s, *s.stacks[stack][i][name]) for (s, i), here in zip(rows, present, strict=True) if here]
        if fitted := self._shape(observed, (stack, name)):
            return [TensorRow(stack, name, when, *fitted)]
        inside = {literal: truth[present] for literal, truth in truths.items()}
        cases = self.cases(observed, inside, lambda some: self._shape(some, (stack, name)))
        if not cases:
            raise NoRule("tensor", label)
        return [TensorRow(stack, name, when & case, *fitted) for case, fitted in cases]

    def _shape(self, observed: Sequence[Observation], tensor: tuple[str, str] | None) -> tuple[Terms, tuple[Terms, ...]] | None:
        """How many there are, and the axes."""
        if len({len(shape) for _, _, shape in observed}) > 1:
            return None
        fitter = self.fitter([sample for sample, _, _ in observed], tensor)
        copies = fitter.fit([number for _, number, _ in observed])
        axes = [fitter.fit([shape[axis] for _, _, shape in observed]) for axis in range(len(observed[0][2]))]
        found = [terms for terms in axes if terms is not None]
        if copies is not None and len(found) == len(axes):
            return copies, tuple(found)
        # It may depend on fields that change nothing on their own.
        return self._shape(observed, None) if self._seen(tensor) else None

    def cases(self, observed: Sequence[Any], truths: Truths, fit: Callable[[Sequence[Any]], Any], depth: int = 2) -> list[tuple[Condition, Any]] | None:
        """What fits where no single thing does: parts by one literal after the other, and what fits each part."""
        if fitted := fit(observed):
            return [(ALWAYS, fitted)]
        if not depth:
            return None
        seen = set[bytes]()
        for literal, truth in truths.items():
            if truth.all() or not truth.any() or truth.tobytes() in seen:
                continue
            seen |= {truth.tobytes(), (~truth).tobytes()}
            inside = self._part(observed, truths, truth, fit, depth - 1 if depth == 1 else 0)
            outside = inside and self._part(observed, truths, ~truth, fit, depth - 1)
            if inside and outside:
                yes, no = Condition(literal.text, frozenset(literal.fields)), _negated(literal)
                return [(yes & c, f) for c, f in inside] + [(no & c, f) for c, f in outside]
        return None

    def _part(self, observed: Sequence[Any], truths: Truths, truth: Truth, fit: Any, depth: int) -> list[tuple[Condition, Any]] | None:
        some = [what for what, here in zip(observed, truth, strict=True) if here]
        return self.cases(some, {literal: t[truth] for literal, t in truths.items()}, fit, depth)


def _negated(literal: Literal) -> Condition:
    opposite = {" == ": " != ", " != ": " == ", " >= ": " < ", " < ": " >= ", " is not ": " is ", " is ": " is not ", " not in ": " in ", " in ": " not in "}
    words = next((literal.text.replace(a, b, 1) for a, b in opposite.items() if a in literal.text), "")
    if not words:
        words = literal.text.removeprefix("not ") if literal.text.startswith("not ") else f"not {literal.text}"
    return Condition(words, frozenset(literal.fields))
