"""Operations executed: random tensors of the declared shapes, through torch and einops, give the declared shapes.

The line of PyTorch that an operation writes is run as it is, and a product besides through einsum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
import torch
from einops import einsum, rearrange, repeat
from torch import Tensor as Numbers

from app.models.architecture import Architecture
from app.shapes.operation import (
    Add,
    AddExperts,
    BroadcastAdd,
    BroadcastMultiply,
    Concat,
    Convolve,
    Einsum,
    First,
    Gate,
    LargestWeights,
    Lookup,
    Matmul,
    Operation,
    Rearrange,
    Repeat,
    Reshape,
    Rope,
    SelectRows,
    Slice,
    Softmax,
    Transpose,
    Unsqueeze,
    View,
)
from app.shapes.table import Tensor, TensorTable, learned, tensor
from app.topics.registry import TOPICS, sizes_for, topic_for
from app.topics.single_head import SINGLE_HEAD
from tests.helpers.every_family import possible

TOKENS = 12  # sent to experts evenly in every family
WORDS = {"norm": "layer_norm", "attention": "same", "activation": "gelu", "scaled-scores": "({scores} / {d_h} ** 0.5)",
         "transformer": "same"}  # fmt: skip


def rope(numbers: Numbers, angles: Numbers) -> Numbers:
    """Pairs of the first numbers rotated, as complex numbers are."""
    width = 2 * angles.shape[-1]
    pairs = torch.view_as_complex(numbers[..., :width].reshape(*angles.shape, 2).contiguous())
    rotated = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    return torch.cat((rotated, numbers[..., width:]), dim=-1)


CALLED: Mapping[str, Callable[..., object]] = {
    "softmax": torch.softmax,
    "cat": torch.cat,
    "cos": torch.cos,
    "sin": torch.sin,
    "zeros": torch.zeros,
    "gelu": torch.nn.functional.gelu,
    "layer_norm": lambda numbers: torch.nn.functional.layer_norm(numbers, numbers.shape[-1:]),
    "same": torch.clone,
    "RoPE": rope,
    "conv1d": torch.nn.functional.conv1d,
    "conv2d": lambda numbers, kernel, stride: torch.nn.functional.conv2d(numbers, kernel, stride=int(stride)),
    "shift_right": lambda ids: torch.nn.functional.pad(ids[:, :-1], (1, 0)),
}


def by_line_of_torch(made: Tensor, given: Mapping[str, Numbers], sizes: Mapping[str, int], shape: str) -> Numbers:
    """What the operation's own line of PyTorch makes of the operands."""
    assert made.made_by
    line = made.made_by.code(shape)
    for _ in range(2):  # a phrase may name tensors
        line = re.sub(r"\{([a-z-]+)\}", lambda found: WORDS.get(found[1], found[0]), line)
    line = re.sub(r" \+ \{(mask|position-bias)\}|, \{with-sink\}", "", line).replace("{softcap}", "")
    line = line.replace("{score-scale} · ", "").replace(" · ", " * ")
    names = {f"_{key}": numbers for key, numbers in given.items()}
    sent = int(shape.split(",")[0]) if isinstance(made.made_by, SelectRows) else len(given[made.made_by.operands[0]])
    names |= {f"_{key}": torch.tensor(size) for key, size in sizes.items()} | {"sent": torch.arange(sent)}
    line = re.sub(r"\{(\w+)\}", r"_\1", line).replace("_H // _G", f"{sizes['H']} // {sizes['G']}")
    line = line.replace("topk(_k)", f"topk({sizes.get('k')})")
    result = eval(line, {"__builtins__": {}, **CALLED, **names})  # noqa: S307 - the table's own line
    assert isinstance(result, Numbers)
    return result


def one_head_by_einsum(product: Matmul, left: Numbers, right: Numbers, sizes: Mapping[str, int]) -> Numbers:
    """A product head by head: of each query head with the key/value head that it reads, side by side again."""
    (rows, left_side), (other, right_side) = product.operand_sides
    split = rearrange(right, f"{other} (g e) -> g {other} e", g=sizes["H" if "h" in right_side else "G"])
    if left_side.startswith("("):  # the scores of the first head
        first = rearrange(left, f"{rows} (h e) -> h {rows} e", h=sizes["H"])[0]
        return einsum(first, split[0], f"{rows} e, {other} e -> {rows} {other}")
    split = split.repeat_interleave(sizes["H"] // len(split), dim=0)
    return rearrange(left @ split, f"h {rows} e -> {rows} (h e)")


def by_pattern(
    operation: Operation, operands: list[Numbers], shape: tuple[int, ...], sizes: Mapping[str, int]
) -> Numbers:
    """What einsum, rearrange and repeat make of the operands, with the axes of the line that the sheet shows."""
    if isinstance(operation, Einsum):
        return einsum(operands[0], operands[1], operation.pattern)
    sides = zip((*operation.operand_sides[0], *operation.sides), (*operands[0].shape, *shape), strict=True)
    lengths = {side: length for side, length in sides if "(" not in side}
    if isinstance(operation, Rearrange):
        return rearrange(operands[0], operation.pattern, **lengths)
    return repeat(operands[0], operation.pattern, **lengths, r=sizes["H"] // sizes["G"])


def executed(table: TensorTable, sizes: Mapping[str, int]) -> int:
    """Make every tensor of a table out of random ones; each has the declared shape."""
    shapes, made = table.shapes(sizes), dict[str, Numbers]()
    generator = torch.Generator().manual_seed(0)
    count = 0
    for each in (*(t for t in table.tensors if t.parameter), *table.activations):
        operation = each.made_by
        if operation is None or each.key in made:
            made.setdefault(each.key, torch.randn(shapes[each.key], generator=generator))
            if each.key in ("tokens", "targets"):
                made[each.key] = torch.zeros(shapes[each.key], dtype=torch.long)
            continue
        shape = ", ".join(map(str, shapes[each.key]))
        operands = [made[key] for key in operation.operands]
        if isinstance(operation, Matmul) and operation.is_by_head:
            result = one_head_by_einsum(operation, operands[0], operands[1], sizes)
        elif isinstance(operation, Concat) and operation.is_by_head:
            parts = rearrange(operands[0], "n (h u) -> n h u", h=sizes["H"])
            beside = operands[1][:, None].expand(-1, sizes["H"], -1)
            result = rearrange(torch.cat((parts, beside), dim=-1), "n h k -> n (h k)")
        elif operation.shows_pattern:
            result = by_pattern(operation, operands, shapes[each.key], sizes)
        else:
            result = by_line_of_torch(each, made, sizes, shape)
        assert tuple(result.shape) == shapes[each.key], (table.key, each.key)
        check_by_einops(operation, operands, result, sizes)
        made[each.key], count = result, count + 1
    return count


def copied(operand: Numbers, sides: tuple[str, ...], lengths: Mapping[str, int]) -> Numbers:
    """An operand with every number copied along the sides that it lacks or has once, as broadcasting only seems to."""
    kept = [side for side in sides if side != "1"]
    missing = {side: length for side, length in lengths.items() if side not in kept and side != "1"}
    return repeat(operand, f"{' '.join(sides)} -> {' '.join(lengths)}", **missing)


def check_by_einops(operation: Operation, operands: list[Numbers], result: Numbers, sizes: Mapping[str, int]) -> None:
    """The same numbers by the operation's pattern, where einops has one call for it."""
    if isinstance(operation, Matmul) and not operation.is_by_head:
        expected = einsum(operands[0], operands[1], operation.pattern.replace("1", "one"))  # a sum over one number
    elif isinstance(operation, BroadcastAdd):
        lengths = dict(zip(operation.sides, result.shape, strict=True))
        left, right = (
            copied(each, sides, lengths) for each, sides in zip(operands, operation.operand_sides, strict=True)
        )
        expected = left * right if isinstance(operation, BroadcastMultiply) else left + right
    elif isinstance(operation, View | Reshape | Transpose | Unsqueeze):
        lengths = dict(zip(operation.sides, result.shape, strict=True))
        if isinstance(operation, Reshape):
            lengths = dict(zip(operation.operand_sides[0], operands[0].shape, strict=True))
        named = {axis: lengths[axis] for axis in re.findall("[a-z]+", operation.pattern) if axis in lengths}
        expected = rearrange(operands[0], operation.pattern, **named)
    elif isinstance(operation, Repeat):
        at = next(i for i, side in enumerate(operation.sides) if side != operation.operand_sides[0][i])
        copies = torch.stack([operands[0]] * (sizes["H"] // sizes["G"]), dim=at + 1)
        expected = copies.flatten(at, at + 1)
    elif isinstance(operation, Add):
        expected = operands[0] + operands[1]
    elif isinstance(operation, Softmax):
        assert torch.allclose(result.sum(-1), torch.ones(result.shape[:-1]), atol=1e-5)
        return
    else:
        return
    assert torch.allclose(result, expected, atol=1e-3, rtol=1e-4), operation


def small(architecture: Architecture, topic: str) -> dict[str, int]:
    """The sizes of a topic for a case, which are small, and the vocabulary cut, of which only rows are looked up."""
    sizes = sizes_for(topic, architecture, TOKENS, TOKENS)
    return {**sizes, "V": min(sizes.get("V", 50), 50)}


@pytest.mark.parametrize("topic", [key for key, topic in TOPICS.items() if topic.tables])
def test_every_operation_makes_the_shapes_that_its_table_declares(topic: str) -> None:
    seen, count = set[tuple[str, tuple[tuple[int, ...], ...]]](), 0
    for architecture in possible(topic):
        table, sizes = topic_for(topic, architecture, TOKENS), small(architecture, topic)
        key = (str([(t.key, t.made_by) for t in table.tensors]), tuple(table.shapes(sizes).values()))
        if key not in seen:
            seen.add(key)
            count += executed(table, sizes)
    assert count or not any(t.made_by for t in table.tensors)


@pytest.mark.parametrize(
    ("kind", "of", "pattern"),
    [
        (Matmul, "input W_Q", "n d -> n h"),
        (Matmul, "input W_Q", "n d, d h"),
        (Matmul, "input W_Q", "n d, d h, h -> n h"),
        (Matmul, "input W_Q", "n d, d h -> n -> h"),
        (Matmul, "input W_Q", "n d, e h -> n h"),
        (Matmul, "input W_Q", "n d, d h -> n k"),
        (Matmul, "input", "n d -> n d"),
        (Add, "input output", "n d, n e -> n d"),
        (Gate, "gate up", "n d, n e -> n d"),
        (BroadcastAdd, "scores mask", "h n m, h m -> h n m"),
        (BroadcastAdd, "scores mask", "h n m, h 1 1 m -> h n m"),
        (BroadcastAdd, "scores mask", "h 1 m, h 1 m -> h n m"),
        (BroadcastMultiply, "vectors scale", "n d, 1 d -> 1 d"),
        (Unsqueeze, "mask", "b n -> 1 n 1 b"),
        (Unsqueeze, "mask", "b n -> b n"),
        (Softmax, "scores", "n m -> m n"),
        (Rope, "queries angles", "n h, n p -> n p"),
        (Concat, "latent rotary_key", "n r, n p -> n r"),
        (View, "queries", "n (h e) -> h n e"),
        (View, "queries", "n h -> n h"),
        (Reshape, "context", "n h e -> n (e h)"),
        (Transpose, "queries", "n h e -> h e n"),
        (Repeat, "keys", "g n e -> g n e"),
        (Lookup, "tokens embedding", "n i v d -> n d"),
        (LargestWeights, "logits", "N e -> N k"),
        (Slice, "logits", "b n v -> b s w"),
        (First, "final", "b n d -> b n d"),
        (First, "final", "b n d -> d b"),
        (Convolve, "sound W_conv", "b m t, d n k -> b d t"),
        (Convolve, "sound W_conv", "b m t, d m k -> b t d"),
        (Convolve, "sound", "b m t -> b d t"),
        (SelectRows, "input", ""),
        (AddExperts, "", "m d -> n d"),
    ],
)
def test_a_pattern_that_an_operation_cannot_have_is_an_error(kind: type[Operation], of: str, pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{kind.__name__}({of}) cannot be '{pattern}'")):
        kind(of, pattern)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (tensor("keys", "K", "N, d_h", "key", Matmul("inptu W_K", "n d, d h -> n h")), "inptu"),
        (tensor("keys", "K", "N, d_v", "key", Matmul("input W_K", "n d, d h -> n h")), "h is d_h, then d_v"),
        (tensor("keys", "K", "H, N, d_h", "key", Matmul("input W_K", "n d, d h -> n h")), "2 sides"),
        (tensor("keys", "K", "N, H, d_h", "key", View("input", "n (h e) -> n h e")), "its parts make"),
    ],
)
def test_a_typo_in_a_table_is_an_error_that_names_it(wrong: Tensor, said: str) -> None:
    given = (tensor("input", "X", "N, d", "input"), learned("W_K", "d, d_h", "key"))
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        TensorTable("a-table", (*given, wrong))
    assert "a-table, keys" in str(error.value)


def test_the_axes_of_scores_meet_in_the_head_dimension() -> None:
    sides = SINGLE_HEAD["scores"].equal_sides
    assert {axis: [str(blank) for blank in blanks] for axis, blanks in sides.items()} == {
        "n": ["queries.rows", "scores.rows"],
        "h": ["queries.columns", "keys.columns"],
        "m": ["keys.rows", "scores.columns"],
    }
