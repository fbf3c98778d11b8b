"""Compares a written table with new random configs: every tensor, the heads of every layer, and the class's default."""

from __future__ import annotations

import math

from app.models.table import FamilyTable
from tools.derive import reading
from tools.derive.attention import UNSEEN, Call
from tools.derive.deriving import Deriver, NoRule
from tools.derive.heads import HeadDeriver, Seen
from tools.derive.tables import flat

CONFIGS = 24
PASSES = 4
SEED = 12345


def check(deriver: Deriver, heads: HeadDeriver, table: FamilyTable) -> None:
    """Raise NoRule at the first difference."""
    prober, compared, refused = deriver.prober, 0, set[str]()
    prober.rng.seed(SEED)
    samples = [prober.sample(absent=0.25 * (number % 2)) for number in range(CONFIGS)]
    for sample in [deriver.default_sample, *samples]:
        if sample is None:
            continue
        try:
            values = reading.values_of(table, sample.given)
            predicted = reading.tensors(table, values)
            reading.heads(table, values)  # refuses heads that aren't of one size
        except reading.UNREADABLE as reason:  # the table asks another field of this config
            refused.add(str(reason))
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
        compared += 1
    if compared < CONFIGS // 3:
        raise NoRule("counts", f"only {compared} configs compared: {'; '.join(sorted(refused))[:100]}")
    if table.attention and not sum(_compare_heads(seen, table) for seen in heads.passes(PASSES)):
        raise NoRule("attention", "no forward pass to compare")


def _compare_heads(seen: Seen, table: FamilyTable) -> int:
    """Compare the heads of all layers; return how many calls were compared."""
    try:
        predicted = reading.heads(table, reading.values_of(table, seen.sample.given))
    except reading.UNREADABLE:
        return 0
    calls = seen.calls
    if all(call.layer is None for call in calls):
        for call, expected in zip(calls, predicted.values(), strict=False):
            _compare(call, expected)
        return len(calls)
    made = {(call.module.partition(".{i}.")[2], call.layer or 0): call for call in calls}
    if made.keys() != predicted.keys():
        raise NoRule("attention", f"{min(made.keys() ^ predicted.keys())} is only in one of table and model")
    for place, call in made.items():
        _compare(call, predicted[place])
    return len(made)


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
