"""Which layers have N×N scores, and of what shape, scale and mask, from what forward passes show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.derive import reading
from tools.derive.attention import TOKENS, Call, Pass
from tools.derive.deriving import Deriver, NoRule
from tools.derive.fitting import ALWAYS, Condition, condition, fields_of
from tools.derive.library import Values
from tools.derive.probing import Sample
from tools.derive.words import HARMLESS, PATTERN, SCALE, SYMBOL_OF, WINDOW, WITHOUT_SCORES

PASSES = 10
# What a window field means for the number of keys that a token sees, the token included.
_WINDOWS = ("{w}", "{w} + 1", "{w} - 1", "2·{w} + 1", "2·{w} - 1", "2·({w}//2) + 1", "{w}//2 + 1", "{w}//2", "2·{w}")


@dataclass
class Seen:
    """A sample and the calls of attention in its forward pass."""

    sample: Sample
    found: Pass


@dataclass
class Heads:
    """A row of a table's attention: what all calls of one module under one condition have in common."""

    heads: str
    kv_heads: str
    width: str
    value_width: str
    scale: str
    mask: str
    softcap: str
    sinks: bool


Observed = tuple[Sample, Call, bool | None]


class HeadDeriver:
    """Derives the rows of a table's attention for one model class."""

    def __init__(self, deriver: Deriver) -> None:
        self.deriver, self.prober = deriver, deriver.prober
        self.used = set[str]()  # the fields that rows mention
        self.varied = dict[str, list[Any]]()  # fields that change only attention
        self.care = 0  # failed forward passes: the more, the fewer fields are varied

    def rows(self) -> list[tuple[str, ...]]:
        """The rows; raises NoRule if the heads of some module have no expression."""
        self._look()
        try:
            return self._rows()
        except NoRule:
            if not self.varied:
                raise
            # What has no expression stays at its default, which the table then demands.
            self.prober.frozen |= set(self.varied)
            self.varied, self.used = {}, set()
            return self._rows()

    def _look(self) -> None:
        """Find the fields that change nothing but attention, one at a time."""
        sample = before = None
        for _ in range(12):
            sample = self.runnable()
            before = self.prober.passes(sample.given) if sample else None
            if before and before.calls:
                break
        if sample is None or before is None:
            return
        for name, value in self.prober.default.items():
            if name in self.prober.effects or name in sample.given or HARMLESS.search(name):
                continue
            others = self._others(name, value)
            changes = [x for x in others[:1] if self._differs(before, sample.given, name, x)]
            if changes or (name in self.prober.texts and any(self._differs(before, sample.given, name, x) for x in others)):
                self.varied[name] = others if SCALE.search(name) and not isinstance(value, bool) else [value, *others]

    def _others(self, name: str, value: Any) -> list[Any]:
        """Values to try in a field that changes no tensor."""
        if isinstance(value, bool):
            return [not value]
        if isinstance(value, float):
            return [0.375, 0.25, 0.75]
        if type(value) is int and SCALE.search(name):
            return [3, 2, 5]
        return self.prober.words_in_source(name) if name in self.prober.texts else []

    def _differs(self, before: Pass | None, given: Values, name: str, value: Any) -> bool:
        after = self.prober.passes({**given, name: value})
        return before is not None and after is not None and (after.causal, after.calls) != (before.causal, before.calls)

    def runnable(self) -> Sample | None:
        """A sample for a forward pass: some classes build what they can't run."""
        prober = self.prober
        keep = prober.variants, prober.sizes
        try:
            if self.care > 2:
                prober.variants = {name: values[-1:] for name, values in prober.variants.items()}
            if self.care > 5:
                prober.sizes = [n for n in prober.sizes if SYMBOL_OF.get(n) != "d_h" and n not in prober.model_class.undeclared]
            return prober.sample()
        finally:
            prober.variants, prober.sizes = keep

    def passes(self, wanted: int = PASSES) -> list[Seen]:
        """Forward passes of new samples, until enough show attention."""
        seen = list[Seen]()
        for _ in range(3 * wanted):
            if sum(bool(s.found.calls) for s in seen) >= wanted:
                break
            sample = self.runnable()
            if not sample:
                continue
            extra = {name: self.prober.rng.choice(values) for name, values in self.varied.items()}
            found = self.prober.passes({**sample.given, **extra})
            if found is None:
                self.care += 1
                if self.care in (3, 6):
                    seen.clear()  # from here on fewer fields are varied
                continue
            sample.values.update({name: value for name, value in extra.items() if value is not None})
            sample.given.update(extra)
            seen.append(Seen(sample, found))
        return seen

    def _rows(self) -> list[tuple[str, ...]]:
        seen = self.passes()
        if len(seen) < 4:
            raise NoRule("attention", f"no forward pass: {self.prober.last_error}"[:160])
        modules = dict.fromkeys((c.module, c.is_self_attention) for s in seen for c in s.found.calls)
        if reason := WITHOUT_SCORES.get(self.prober.model_class.model_type):
            return [("none", reason)]
        if not modules:
            raise NoRule("attention", "no scores were seen in a forward pass")
        rows = [row for module, is_self in modules for row in self._module(seen, module, is_self)]
        return list(dict.fromkeys(rows))

    def _module(self, seen: Sequence[Seen], module: str, is_self: bool) -> list[tuple[str, ...]]:
        observed = [
            (s.sample, call, s.found.causal)
            for s in seen
            for call in s.found.calls
            if (call.module, call.is_self_attention) == (module, is_self)
        ]
        stack, _, rest = module.partition(".{i}.")
        layered = observed[0][1].layer is not None
        if not rest:
            stack, rest = self._main_stack(), module or "attention"
        truths = self._truths(observed, layered)
        cases = self.deriver.cases(observed, truths, lambda some: self._heads(some, is_self))
        if not cases:
            raise NoRule("attention", module or "attention")
        when = self._layers(seen, observed, stack) if layered else ALWAYS
        rows = []
        for case, heads in cases:
            flags = [f"softcap {heads.softcap}"] * bool(heads.softcap) + ["sinks"] * heads.sinks
            if layered and is_self:
                here = [o for o in observed if not case.text or self._holds(case, o)]
                flags = self._windows(here) + flags
            condition = when & case
            self.used |= condition.fields
            flags += [f"if {condition.text}"] * bool(condition.text)
            columns = (heads.heads, heads.kv_heads, heads.width, heads.value_width, heads.scale, heads.mask)
            rows.append((stack, rest, *columns, *flags))
        return rows

    def _holds(self, case: Condition, observed: Observed) -> bool:
        sample, call, _ = observed
        values = {self.deriver.name(n): x for n, x in sample.values.items()}
        return bool(reading.evaluate(case.text, {**values, "i": call.layer}))

    def _main_stack(self) -> str:
        return max(self.deriver.samples[0].stacks, key=lambda name: len(self.deriver.samples[0].stacks[name]))

    def _truths(self, observed: Sequence[Observed], layered: bool) -> Any:
        switches = [n for n in self.varied if isinstance(self.prober.default[n], bool)]
        self.prober.effects |= dict.fromkeys(switches, "shapes")
        words = {n: v for n, v in self.varied.items() if n in self.prober.texts}
        self.prober.words |= words
        try:
            extra = [n for n in self.prober.sizes if PATTERN.search(n)] if layered else []
            return self.deriver.literals([(s, c.layer or 0) for s, c, _ in observed], layered, extra)
        finally:
            for name in switches:
                del self.prober.effects[name]
            for name in words:
                del self.prober.words[name]

    def _heads(self, observed: Sequence[Observed], is_self: bool) -> Heads | None:
        fitter = self.deriver.fitter([sample for sample, _, _ in observed])
        calls = [call for _, call, _ in observed]
        found = [
            fitter.fit([numbers(call) for call in calls])
            for numbers in (
                lambda call: call.queries[1],
                lambda call: call.keys[1],
                lambda call: call.queries[3],
                lambda call: call.values[3],
            )
        ]
        scale, mask, softcap = self._scale(observed), self._mask(observed, is_self), self._softcap(observed)
        if None in found or scale is None or mask is None or softcap is None or len({call.sinks for call in calls}) > 1:
            return None
        heads, kv_heads, width, value_width = (self.deriver.words(terms) for terms in found)
        self.used |= {field for terms in found for field in fields_of(terms)}
        scale = scale.replace("WIDTH", width if width.replace("_", "").isalnum() else f"({width})" if not scale.startswith("1/sqrt") else width)
        return Heads(heads, kv_heads, width, value_width, scale, mask, softcap, calls[0].sinks)

    def _scale(self, observed: Sequence[Observed]) -> str | None:
        """What scores are multiplied by."""
        scales = [call.scale for _, call, _ in observed]
        if None in scales:
            return "1/sqrt(WIDTH)" if not any(scales) else None
        widths = [call.queries[3] for _, call, _ in observed]

        def equal(numbers: Sequence[float]) -> bool:
            return all(math.isclose(x, y, rel_tol=1e-5) for x, y in zip(numbers, scales, strict=True))

        for words, numbers in (
            ("1", [1.0 for _ in widths]),
            ("1/sqrt(WIDTH)", [w**-0.5 for w in widths]),
            ("1/WIDTH", [1 / w for w in widths]),
        ):
            if equal(numbers):
                return words
        for name, default in self.prober.default.items():
            values = [sample.values.get(name) for sample, _, _ in observed]
            if isinstance(default, bool) or not all(isinstance(x, int | float) and x > 0 for x in values) or len(set(values)) == 1:
                continue
            for words, numbers in ((name, values), (f"1/sqrt({name})", [x**-0.5 for x in values]), (f"{name}/sqrt(WIDTH)", [x * w**-0.5 for x, w in zip(values, widths, strict=True)])):
                if equal(numbers):
                    self.used.add(name)
                    return words.replace(name, self.deriver.name(name))
        return None

    def _softcap(self, observed: Sequence[Observed]) -> str | None:
        """The field with the largest score: "" for none."""
        caps = [call.softcap for _, call, _ in observed]
        if not any(caps):
            return ""
        for name in self.prober.default:
            if all(sample.values.get(name) == cap for (sample, _, _), cap in zip(observed, caps, strict=True)):
                self.used.add(name)
                return self.deriver.name(name)
        return None

    def _mask(self, observed: Sequence[Observed], is_self: bool) -> str | None:
        if not is_self:
            return "cross"
        if observed[0][1].seen:
            later = {call.sees_later for _, call, _ in observed}
        else:
            later = {causal is False for _, _, causal in observed if causal is not None}
        return None if len(later) != 1 else "all" if later.pop() else "causal"

    def _layers(self, seen: Sequence[Seen], observed: Sequence[Observed], stack: str) -> Condition:
        """In which layers this module is called."""
        has = {(id(sample), call.layer) for sample, call, _ in observed}
        every = [(s.sample, i) for s in seen for i in range(self._depth(s.sample, stack))]
        wanted = np.array([(id(s), i) in has for s, i in every])
        found = condition(wanted, self.deriver.literals(every, True, [n for n in self.prober.sizes if PATTERN.search(n)]))
        if found is None:
            raise NoRule("attention", f"the layers of {stack} that have attention")
        return found

    def _depth(self, sample: Sample, stack: str) -> int:
        return max(sample.stacks.get(stack) or {-1: 0}) + 1

    def _windows(self, observed: Sequence[Observed]) -> list[str]:
        """How many keys a token sees at most, and in which layers."""
        windowed = np.array([max(call.seen) < TOKENS for _, call, _ in observed])
        if not windowed.any():
            return []
        truths = self._truths(observed, layered=True)
        when = condition(windowed, truths)
        some = [o for o, here in zip(observed, windowed, strict=True) if here]
        chunked = any(x > y for _, call, _ in some for x, y in zip(call.seen, call.seen[1:], strict=False)) and not some[0][1].sees_later
        for name in self.prober.sizes:
            if not WINDOW.search(name):
                continue
            for words in _WINDOWS:
                rule = words.format(w=self.deriver.name(name))
                if all(self._window(rule, o) == max(o[1].seen) for o in some):
                    if when is None:
                        break
                    self.used |= {name, *when.fields}
                    return [f"{'chunk' if chunked else 'window'} {rule}" + (f" if {when.text}" if when.text else "")]
        raise NoRule("attention", f"the windows of {some[0][1].module}")

    def _window(self, rule: str, observed: Observed) -> int | None:
        values = {self.deriver.name(n): x for n, x in observed[0].values.items()}
        try:
            result: int = min(reading.evaluate(rule, values), TOKENS)
        except (TypeError, KeyError):
            return None
        return result

