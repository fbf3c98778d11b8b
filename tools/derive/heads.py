"""Which layers have N×N scores, and of what shape, scale and mask, from what forward passes show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.models.grammar import RuleError
from tools.derive import reading
from tools.derive.attention import TOKENS, UNSEEN, Call
from tools.derive.deriving import Deriver, NoRule
from tools.derive.fitting import Truths, both, condition
from tools.derive.library import Values
from tools.derive.sampling import Sample
from tools.derive.words import HARMLESS, PATTERN, SCALE, WINDOW, WITHOUT_SCORES
from tools.derive.writing import Row

PASSES = 10
# RoPE stretched by YaRN, and what it multiplies scores by in some models.
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
YARN_FACTOR = (0.1 * math.log(4) + 1) ** 2
# What a window field means for the number of keys that a token sees, the token included.
_WINDOWS = ("{w}", "{w} + 1", "{w} - 1", "2·{w} + 1", "2·{w} - 1", "2·({w}//2) + 1", "{w}//2 + 1", "{w}//2", "2·{w}")


@dataclass
class Seen:
    """A sample and what its forward pass showed."""

    sample: Sample
    calls: list[Call]


@dataclass
class Observed:
    """A call of attention in the forward pass of a sample."""

    sample: Sample
    call: Call


class HeadDeriver:
    """Derives the rows of a table's attention for one model class."""

    def __init__(self, deriver: Deriver) -> None:
        self.deriver, self.prober = deriver, deriver.prober
        self.varied = dict[str, list[Any]]()  # fields that change nothing but attention
        self.care = 0  # failed forward passes: the more, the fewer fields are varied

    def rows(self) -> list[Row]:
        """The rows; raises NoRule if the heads of some module have no expression."""
        if reason := WITHOUT_SCORES.get(self.prober.model_class.model_type):
            return [("none", reason)]
        self._look()
        try:
            rows = self._rows()
        except NoRule:
            if not self.varied:
                raise
            rows = self._rows_without_some()
        return self._with_yarn(rows)

    def _rows_without_some(self) -> list[Row]:
        """The rows with a field at its default, or all of them, which the table then demands."""
        varied = self.varied
        for frozen in [*([name] for name in varied if len(varied) > 1), list(varied)]:
            self.varied = {name: values for name, values in varied.items() if name not in frozen}
            try:
                rows = self._rows()
            except NoRule:
                if len(frozen) == len(varied):
                    raise
            else:
                self.prober.frozen |= set(frozen)
                break
        return rows

    def _with_yarn(self, rows: list[Row]) -> list[Row]:
        """With a flag at the modules whose scale YaRN changes."""
        sample = self.runnable() if "mscale_all_dim" in self.prober.model_class.source else None
        if sample is None:
            return rows
        before = self.prober.passes(sample.given)
        after = self.prober.passes({**sample.given, "rope_parameters": YARN})
        changed = {
            old.module.rpartition(".{i}.")[2]
            for old, new in zip(before or [], after or [], strict=False)
            if old.scale and new.scale and math.isclose(new.scale, old.scale * YARN_FACTOR, rel_tol=1e-4)
        }
        return [(*row, "yarn") if row[1] in changed else row for row in rows]

    def _look(self) -> None:
        """Find the fields that change nothing but attention, one at a time."""
        samples = [sample for _ in range(12) if (sample := self.runnable())]
        passes = ((sample, self.prober.passes(sample.given)) for sample in samples)
        sample, before = next(((s, found) for s, found in passes if found), (None, None))
        if sample is None or before is None:
            return
        for name, value in self.prober.default.items():
            is_given = name in sample.given and name not in self.prober.switches
            is_left = name in self.prober.hint.leave
            if name in self.prober.effects or is_given or is_left or HARMLESS.search(name):
                continue
            others = self._others(name, value)
            tried = others if name in self.prober.texts else others[:1]
            # A switch of windows may have no effect in the few layers of a probe.
            is_window = isinstance(value, bool) and WINDOW.search(name)
            if is_window or any(self._differs(before, sample.given, name, other) for other in tried):
                is_number = SCALE.search(name) and not isinstance(value, bool)
                self.varied[name] = others if is_number else [value, *others]

    def _others(self, name: str, value: Any) -> list[Any]:
        """Values to try in a field that changes no tensor."""
        if isinstance(value, bool):
            return [not value]
        if isinstance(value, float):
            return [0.375, 0.25, 0.75]
        if type(value) is int and SCALE.search(name):
            return [3, 2, 5]
        return self.prober.words_in_source(name) if name in self.prober.texts else []

    def _differs(self, before: list[Call], given: Values, name: str, value: Any) -> bool:
        after = self.prober.passes({**given, name: value})
        return after is not None and after != before

    def runnable(self) -> Sample | None:
        """A sample for a forward pass: some classes build what they can't run."""
        prober = self.prober
        keep = prober.variants, prober.sizes
        try:
            if self.care > 2:
                prober.variants = {name: values[-1:] for name, values in prober.variants.items()}
            prober.has_square_heads = self.care > 5
            if self.care > 8:
                prober.sizes = [n for n in prober.sizes if n not in prober.model_class.undeclared]
            return prober.sample()
        finally:
            prober.variants, prober.sizes = keep
            prober.has_square_heads = False

    def passes(self, wanted: int = PASSES) -> list[Seen]:
        """Forward passes of new samples, until enough show attention."""
        seen = list[Seen]()
        for _ in range(3 * wanted):
            sample = self.runnable()
            if not sample:
                continue
            given = {name: self.prober.rng.choice(values) for name, values in self.varied.items()} | sample.given
            found = self.prober.passes(given)
            if found is None:
                self.care += 1
                if self.care in (3, 6, 9):
                    seen.clear()  # from here on fewer fields are varied
                continue
            values = self.prober.complete(given, self.prober.text_config(given))
            seen.append(Seen(replace(sample, given=given, values=sample.values | values), found))
            if sum(bool(s.calls) for s in seen) == wanted:
                break
        return seen

    def _rows(self) -> list[Row]:
        seen = self.passes()
        if len(seen) < PASSES // 2:
            print(f"no forward pass: {self.prober.last_error}")
            raise NoRule("attention", "no small model of this type runs")
        modules = dict.fromkeys((call.module, call.is_self_attention) for s in seen for call in s.calls)
        if not modules:
            raise NoRule("attention", "no scores were seen in a forward pass")
        return list(dict.fromkeys(row for module, is_self in modules for row in self._module(seen, module, is_self)))

    def _module(self, seen: Sequence[Seen], module: str, is_self: bool) -> list[Row]:
        observed = [
            Observed(s.sample, call)
            for s in seen
            for call in s.calls
            if (call.module, call.is_self_attention) == (module, is_self)
        ]
        stack, _, rest = module.partition(".{i}.")
        layered = observed[0].call.layer is not None
        if not rest:
            stack, rest = self._main_stack(), module or "attention"
        cases = self.deriver.cases(observed, self._truths(observed, layered), self._heads)
        if not cases:
            raise NoRule("attention", module or "attention")
        when = self._layers(seen, observed, stack) if layered else ""
        rows = list[Row]()
        for case, (columns, flags) in cases:
            here = [o for o in observed if not case or self._holds(case, o)]
            windows = self._windows(here) if layered and is_self else []
            whole = both(when, case)
            rows.append((stack, rest, *columns, *windows, *flags, *([f"if {whole}"] if whole else [])))
        return rows

    def _main_stack(self) -> str:
        stacks = self.deriver.samples[0].stacks
        return max(stacks, key=lambda name: len(stacks[name]))

    def _holds(self, case: str, observed: Observed) -> bool:
        return bool(reading.evaluate(case, {**self.deriver.named(observed.sample.values), "i": observed.call.layer}))

    def _truths(self, observed: Sequence[Observed], layered: bool) -> Truths:
        words = {name: values for name, values in self.varied.items() if name in self.prober.texts}
        patterns = [name for name in self.prober.sizes if PATTERN.search(name)] if layered else []
        rows = [(o.sample, o.call.layer or 0) for o in observed]
        return self.deriver.truths(rows, layered, [*patterns, *self.varied], words)

    def _heads(self, observed: Sequence[Observed]) -> tuple[list[str], list[str]] | None:
        """The columns and flags of a row that describes all these calls."""
        fitter, calls = self.deriver.fitter([o.sample for o in observed]), [o.call for o in observed]
        sizes = [fitter.fit(list(numbers)) for numbers in zip(*(call.sizes for call in calls), strict=True)]
        words = [self.deriver.words(terms) for terms in sizes if terms]
        if len(words) == len(sizes) and calls[0].keys[1] == UNSEEN:
            words[1] = self._unseen_kv_heads(words[0])
        scale, mask, softcap = self._scale(observed), self._mask(observed), self._softcap(observed)
        if len(words) < len(sizes) or not scale or not mask or softcap is None or len({c.sinks for c in calls}) > 1:
            return None
        flags = [f"softcap {softcap}"] * bool(softcap) + ["sinks"] * calls[0].sinks
        return [*words, scale.format(width=words[2]), mask], flags

    def _unseen_kv_heads(self, heads: str) -> str:
        """As many as there are heads, if no field says otherwise."""
        if self.prober.hint.kv_heads:
            return self.prober.hint.kv_heads
        fields = [
            field for field, symbol in self.prober.symbol.items() if symbol == "G" and field in self.prober.effects
        ]
        if fields:
            raise NoRule("attention", f"{fields[0]}: the number of key/value heads wasn't seen")
        return heads

    def _scale(self, observed: Sequence[Observed]) -> str | None:
        """What scores are multiplied by."""
        if self.prober.hint.scale:
            return self.prober.hint.scale
        seen = [o for o in observed if o.call.scale is not None]
        if len(seen) < 0.9 * len(observed):  # products of nearly equal numbers don't show their scale
            return None
        observed, scales = seen, [float(o.call.scale or 0) for o in seen]
        widths = [o.call.queries[3] for o in observed]
        tolerance = 1e-2 if observed[0].call.keys[1] == UNSEEN else 1e-5

        def equal(numbers: Sequence[float]) -> bool:
            return all(math.isclose(x, y, rel_tol=tolerance) for x, y in zip(numbers, scales, strict=True))

        if equal([1.0] * len(scales)):
            return "1"
        if equal([w**-0.5 for w in widths]):
            return "1/sqrt({width})"
        if equal([1 / w for w in widths]):
            return "1/({width})"
        for field, default in self.prober.default.items():
            values = [x for o in observed if isinstance(x := o.sample.values.get(field), int | float) and x > 0]
            if isinstance(default, bool) or len(values) < len(scales) or len(set(values)) == 1:
                continue
            name = self.deriver.name(field)
            if equal(values):
                return name
            if equal([x**-0.5 for x in values]):
                return f"1/sqrt({name})"
            if equal([x * w**-0.5 for x, w in zip(values, widths, strict=True)]):
                return f"{name}/sqrt({{width}})"
        return None

    def _softcap(self, observed: Sequence[Observed]) -> str | None:
        """The field with the largest score: "" for none."""
        if not any(o.call.softcap for o in observed):
            return ""
        fields = (f for f in self.prober.default if all(o.sample.values.get(f) == o.call.softcap for o in observed))
        return next((self.deriver.name(field) for field in fields), None)

    def _mask(self, observed: Sequence[Observed]) -> str | None:
        if not observed[0].call.is_self_attention:
            return "cross"
        later = {o.call.sees_later for o in observed}
        return None if len(later) != 1 else "all" if later.pop() else "causal"

    def _layers(self, seen: Sequence[Seen], observed: Sequence[Observed], stack: str) -> str:
        """In which layers this module is called."""
        has = {(id(o.sample), o.call.layer) for o in observed}
        rows = [(s.sample, i) for s in seen for i in range(max(s.sample.stacks.get(stack, [-1])) + 1)]
        wanted = np.array([(id(sample), i) in has for sample, i in rows])
        patterns = [name for name in self.prober.sizes if PATTERN.search(name)]
        found = condition(wanted, self.deriver.truths(rows, extra=patterns))
        if found is None:
            raise NoRule("attention", f"no rule was found for the layers of {stack} that have attention")
        return found

    def _windows(self, observed: Sequence[Observed]) -> list[str]:
        """How many keys a token sees at most, and in which layers."""
        windowed = np.array([max(o.call.seen) < TOKENS for o in observed])
        if not windowed.any():
            return []
        when = condition(windowed, self._truths(observed, layered=True))
        some = [o for o, here in zip(observed, windowed, strict=True) if here]
        kind = "chunk" if all(o.call.is_chunked for o in some) else "window"
        for field in self.prober.sizes if when is not None else ():
            for rule in _WINDOWS if WINDOW.search(field) else ():
                words = rule.format(w=self.deriver.name(field))
                if all(self._keys(words, o) == max(o.call.seen) for o in some):
                    return [f"{kind} {words} if {when}" if when else f"{kind} {words}"]
        raise NoRule("attention", f"no rule was found for the windows of {some[0].call.module}")

    def _keys(self, rule: str, observed: Observed) -> int | None:
        try:
            return min(int(reading.evaluate(rule, self.deriver.named(observed.sample.values))), TOKENS)
        except (RuleError, TypeError, KeyError):
            return None
