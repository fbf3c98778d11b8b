"""Where a layer normalizes, and which numbers RoPE rotates, seen in one forward pass."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

from tools.derive.attention import RECORDER, prepare, run
from tools.derive.heads import HeadDeriver
from tools.derive.library import ModelClass, Values
from tools.derive.sampling import Sample

_NORM = re.compile(r"norm|^ln", re.IGNORECASE)
_FEED_FORWARD = re.compile(
    r"^(mlp|feed_forward|ffn|block_sparse_moe|intermediate|ff|fc1|DenseReluDense)$"
    r"|dense_h_to_4h$|fc1$|\.wi$|ffn\.lin1$"
)
PASSES = 2


@dataclass
class _Module:
    name: str
    kind: str
    received: int
    returned: int
    inputs: int = 1  # of the same shape: an attention module with two adds the residual itself


def rows(heads: HeadDeriver) -> list[tuple[str, ...]]:
    """What several forward passes agree on."""
    placements, rotations = set[str](), set[tuple[str, ...]]()
    for _ in range(PASSES):
        sample = heads.runnable()
        if sample is None:
            continue
        try:
            placements.add(placement(heads.deriver.model_class, sample.given))
            rotations.add(rotation(heads, sample))
        except Exception:  # noqa: S112 - a proposal: nothing is written where nothing was seen
            continue
    found: list[tuple[str, ...]] = []
    if len(placements) == 1 and "" not in placements:
        found.append(("norm", placements.pop()))
    if len(rotations) == 1 and () not in rotations:
        found.append(("rotary", *rotations.pop()))
    return found


def placement(model_class: ModelClass, values: Values) -> str:
    """pre, post, output, sandwich or parallel, by which module's result another one receives in the second layer."""
    model = model_class.build_to_run(values, "eager")
    prepare(model)
    stacks = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList)
        and len(module) > 1
        and any(re.search("att", child, re.IGNORECASE) for child, _ in module[1].named_modules())
    ]
    if not stacks:
        return ""
    layer = dict(model.named_modules())[f"{stacks[0]}.1"]
    seen, alive = list[_Module](), list[Any]()

    def note(name: str) -> Callable[..., None]:
        def hook(module: Any, arguments: Any, keywords: Any, result: Any) -> None:
            tensors = [x for x in [*arguments[:1], *keywords.values()] if isinstance(x, torch.Tensor)]
            received = next((x for x in tensors if x.is_floating_point()), None)
            returned = result[0] if isinstance(result, tuple) else result
            alive.extend((received, returned))  # so that no id is used twice
            inputs = sum(
                received is not None and x.shape == received.shape
                for x in [*arguments, *keywords.values()]
                if isinstance(x, torch.Tensor)
            )
            seen.append(_Module(name, type(module).__name__, id(received), id(returned), inputs))

        return hook

    for name, module in layer.named_modules():
        module.register_forward_hook(note(name), with_kwargs=True)
    run(model, torch.randint(3, 90, (1, 9)))
    return _placement(seen)


def _placement(seen: Sequence[_Module]) -> str:
    attention = [m for m in seen if re.search("att", m.kind, re.IGNORECASE)]
    if not attention:
        return ""
    block = min(attention, key=lambda module: len(module.name))
    if block.inputs > 1:
        return ""
    norms = [m for m in seen if _NORM.search(m.name.rsplit(".", 1)[-1]) or _NORM.search(m.kind)]
    before = next((norm for norm in norms if norm.returned == block.received), None)
    after = any(norm.received == block.returned for norm in norms)
    feed_forward = next((m for m in seen if _FEED_FORWARD.search(m.name)), None)
    if before and feed_forward:
        second = next((norm for norm in norms if norm.returned == feed_forward.received), None)
        if feed_forward.received == block.received or (second and second.received == before.received):
            return "parallel"
    if before:
        return "sandwich" if after else "pre"
    if after:
        return "output"
    whole = next((m for m in seen if m.name == ""), None)
    return "post" if whole and any(norm.returned == whole.returned for norm in norms) else ""


def rotation(heads: HeadDeriver, sample: Sample) -> tuple[str, ...]:
    """RoPE's width, pairs and θ: with one token at all positions, the second query is the first one rotated."""
    queries = list[torch.Tensor]()

    def record(module: Any, query: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
        queries.append(query.detach()[0, 0])
        return RECORDER(module, query, *arguments, **keywords)

    AttentionInterface.register("probe", record)
    try:
        torch.manual_seed(1)
        model = heads.deriver.model_class.build_to_run(sample.given, "probe")
        prepare(model)
        run(model, torch.full((1, 8), 5))
    finally:
        AttentionInterface.register("probe", RECORDER)
    if not queries:
        return ()
    found = _rotation(queries[0][0].double().tolist(), queries[0][1].double().tolist())
    if found is None or found == (0, "", 0):
        return ("none",) if found else ()
    width, pairs, theta = found
    of = len(queries[0][0])
    share = f"d_h/{of // width}" if of % width == 0 else f"{width / of}·d_h"
    names = [heads.deriver.name(n) for n, x in sample.values.items() if x == width and n in heads.prober.symbol]
    words = "d_h" if width == of else next((n for n in names if n == "d_rope"), share)
    return words, pairs, f"{theta:.1f}"


def _rotation(first: list[float], second: list[float]) -> tuple[int, str, int] | None:
    moved = [j for j, (a, b) in enumerate(zip(first, second, strict=True)) if abs(a - b) > 1e-7 * (1 + abs(a))]
    if not moved:
        return 0, "", 0

    def angle(j: int, k: int) -> float:
        turn = math.atan2(second[k], second[j]) - math.atan2(first[k], first[j])
        return abs(math.remainder(turn, 2 * math.pi))

    def keeps_length(j: int, k: int) -> bool:
        before, after = first[j] ** 2 + first[k] ** 2, second[j] ** 2 + second[k] ** 2
        return abs(before - after) < 1e-4 * before

    # The smallest even width, at either end of the head, that holds all numbers that moved.
    for width in range(max(4, (moved[-1] + 1 - moved[0]) // 2 * 2), len(first) + 1, 2):
        for start in {0, len(first) - width}:
            if start > moved[0] or start + width <= moved[-1]:
                continue
            halves = [(start + j, start + j + width // 2) for j in range(width // 2)]
            adjacent = [(start + 2 * j, start + 2 * j + 1) for j in range(width // 2)]
            for name, pairs in (("halves", halves), ("adjacent", adjacent)):
                slower = angle(*pairs[1])
                if all(keeps_length(*pair) for pair in pairs) and abs(angle(*pairs[0]) - 1) < 1e-2 and 0 < slower < 1:
                    return width, name, round(slower ** (-width / 2))
    return None
