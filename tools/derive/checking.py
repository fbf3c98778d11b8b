"""Compares a written table with new random configs: every tensor, the heads of every layer, and the class's default."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from app.models.table import FamilyTable
from tools.derive import reading
from tools.derive.attention import UNSEEN, Call
from tools.derive.deriving import Deriver, NoRule
from tools.derive.heads import HeadDeriver
from tools.derive.tables import flat

CONFIGS = 24
PASSES = 4
SEED = 12345


@dataclass
class Outcome:
    """How many configs and layers were equal; `refused` are configs that the table asks another field of."""

    configs: int = 0
    refused: int = 0
    layers: int = 0
    reasons: set[str] = field(default_factory=set)


def check(deriver: Deriver, heads: HeadDeriver, table: FamilyTable) -> Outcome:
    """Raise NoRule at the first difference."""
    prober, outcome = deriver.prober, Outcome()
    prober.rng.seed(SEED)
    samples = [prober.sample(absent=0.25 * (number % 2)) for number in range(CONFIGS)]
    for sample in [deriver.default_sample, *samples]:
        if sample is None:
            continue
        try:
            values = reading.values_of(table, sample.given)
            predicted = reading.tensors(table, values)
            reading.heads(table, values)  # refuses heads that aren't of one size
        except reading.UNREADABLE as reason:
            outcome.refused += 1
            outcome.reasons.add(str(reason))
            continue
        # The reader leaves out the prefix that the base class doesn't have.
        actual = {
            (stack.removeprefix(table.prefix), i, name.removeprefix(table.prefix)): what
            for (stack, i, name), what in flat(sample.stacks).items()
        }
        for tensor in actual.keys() | predicted.keys():
            if actual.get(tensor) != predicted.get(tensor):
                stack, layer, name = tensor
                where = f"{stack}.{layer}.{name}" if stack else name
                raise NoRule("counts", f"{where}: {predicted.get(tensor)} for {actual.get(tensor)}")
        outcome.configs += 1
    if outcome.configs < CONFIGS // 3:
        raise NoRule("counts", f"only {outcome.configs} configs compared: {'; '.join(sorted(outcome.reasons))[:100]}")
    if table.attention:
        _check_heads(heads, table, outcome)
    return outcome


def _check_heads(heads: HeadDeriver, table: FamilyTable, outcome: Outcome) -> None:
    for seen in heads.passes(PASSES):
        try:
            values = reading.values_of(table, seen.sample.given)
            predicted = reading.heads(table, values)
        except reading.UNREADABLE as reason:
            outcome.reasons.add(str(reason))
            continue
        calls = seen.calls
        if all(call.layer is None for call in calls):
            for call, expected in zip(calls, predicted.values(), strict=False):
                _compare(call, expected)
            outcome.layers += len(calls)
            continue
        made = {(call.module.partition(".{i}.")[2], call.layer or 0): call for call in calls}
        if made.keys() != predicted.keys():
            raise NoRule("attention", "no rule was found for the layers of " + min(made.keys() ^ predicted.keys())[0])
        for place, call in made.items():
            _compare(call, predicted[place])
        outcome.layers += len(made)
    if not outcome.layers:
        raise NoRule("attention", "no forward pass could be compared")


def _compare(call: Call, expected: reading.Heads) -> None:
    pairs = zip(call.sizes, expected.sizes, strict=True)
    problems = [f"{seen} for {size}" for seen, size in pairs if seen not in (size, UNSEEN)]
    tolerance = 1e-2 if call.keys[1] == UNSEEN else 1e-4
    if call.scale is not None and not math.isclose(call.scale, expected.scale or 0, rel_tol=tolerance):
        problems.append(f"scale {expected.scale} for {call.scale}")
    if call.seen and expected.mask != "cross":
        if call.sees_later != (expected.mask == "all"):
            problems.append(f"mask {expected.mask}")
        tokens = call.keys[2]
        window = tokens if expected.window is None else min(expected.window, tokens)
        if max(call.seen) != window:
            problems.append(f"window {window} for {max(call.seen)}")
    if problems:
        raise NoRule("attention", f"{call.module}: {'; '.join(problems)}")
