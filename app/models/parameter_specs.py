"""Parameter tensors in symbols: what a family's layout is made of, before any size is known.

A layout is written in the orientation of x·W (rows in, columns out) and remembers the stored orientation: nn.Linear
keeps (out, in), the Conv1D of GPT-2 keeps (in, out), the tensors of experts are stacked along a first axis.

>>> [str(parameter) for parameter in linear("q_proj", "d", "H*d_h", ATTENTION, bias="q")]
['q_proj.weight (H*d_h, d)', 'q_proj.bias (H*d_h)']
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from app.algebra.expression import Expression

Bucket = Literal["attention", "attention_norms", "mlp", "norms", "other", "embedding", "output_head"]
ATTENTION: Bucket = "attention"
ATTENTION_NORMS: Bucket = "attention_norms"
MLP: Bucket = "mlp"
NORMS: Bucket = "norms"
OTHER: Bucket = "other"
EMBEDDING: Bucket = "embedding"
OUTPUT_HEAD: Bucket = "output_head"

# Conditions name flags, separated by spaces: "moe !tied" is met where moe is set and tied is not.
ALWAYS = ""
NEVER = "never"  # a flag that no row sets
_ONE = Expression.parse("1")


@dataclass(frozen=True, eq=False)  # each is written once, in a layout: comparing identities is right, and fast
class ParameterSpec:
    """One parameter tensor under the name of its module in transformers, with its shape in symbols.

    `in_out_shape` is the shape in the orientation of x·W, `stored_shape` the same axes in their stored order. `when`
    is the condition under which the tensor exists, on the flags of the model and of the layer. `routed` marks tensors
    whose first axis counts the experts E, of which a token uses k. `copies` is how many such tensors one layer holds,
    more than one only where the name runs over {j} as well.
    """

    name: str
    in_out_shape: tuple[Expression, ...]
    stored_shape: tuple[Expression, ...]
    bucket: Bucket
    when: str = ALWAYS
    routed: bool = False
    copies: Expression = _ONE

    @cached_property
    def count(self) -> Expression:
        """How many numbers one layer holds in such tensors, or the model outside its layers."""
        return math.prod(self.stored_shape, start=self.copies)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols of all its axes and of its copies."""
        return self.copies.symbols.union(*(dim.symbols for dim in self.stored_shape))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(map(str, self.stored_shape))})"


ParameterSpecs = tuple[ParameterSpec, ...]


@dataclass(frozen=True)
class StackSpec:
    """A stack of layers: the tensors that one of its layers may have.

    `name` is the name of a layer ("layers.{i}."), `count` the symbol that counts the layers. `decoder` marks the
    decoder that reads an encoder, not that of a model which is a decoder alone.
    """

    name: str
    count: str
    parameters: ParameterSpecs
    decoder: bool = False


@dataclass(frozen=True)
class TaskHead:
    """What a model class puts on top of the base model: its tensors, the flags it sets, and its result.

    `prefix` stands before the names of the base model's tensors in such a class, empty for the base model itself.
    `logits` are the rows and columns of the result, None for a class that ends with the base model's output.
    `without_decoder` marks the classes that use the encoder of an encoder-decoder alone.
    """

    prefix: str = ""
    parameters: ParameterSpecs = ()
    flags: frozenset[str] = frozenset()
    logits: tuple[Expression, ...] | None = None
    without_decoder: bool = False


@dataclass(frozen=True)
class Layout:
    """All tensors of a family: those outside the layers, the stacks of layers, and one TaskHead per model class.

    The keys of `task_heads` are the ends of class names ("ForCausalLM"). `gated` is the condition under which the
    feed-forward block has a gate.
    """

    outside_layers: ParameterSpecs
    stacks: tuple[StackSpec, ...]
    task_heads: Mapping[str, TaskHead] = field(default_factory=dict)
    gated: str = NEVER


def condition_met(condition: str, flags: frozenset[str]) -> bool:
    """Whether every word of a condition is among the flags, and every word after a '!' is not.

    Example: "moe !tied" is met by {"moe", "q"}, not by {"moe", "tied"}; "" is met by any flags.
    """
    return all((word[1:] not in flags) if word[0] == "!" else (word in flags) for word in condition.split())


def and_also(first: str, second: str) -> str:
    """The condition that is met where both conditions are."""
    return f"{first} {second}".strip()


def parse_shape(*texts: str) -> tuple[Expression, ...]:
    """A shape in symbols, each axis read from its text. Example: "d", "H*d_h" -> an axis of d and one of H·d_h."""
    return tuple(Expression.parse(text) for text in texts)


def linear(
    name: str,
    rows: str,
    columns: str,
    bucket: Bucket,
    *,
    bias: str | None = None,
    when: str = ALWAYS,
    conv1d: bool = False,
) -> ParameterSpecs:
    """The tensors of x·W + b: a matrix of rows × columns, stored as columns × rows unless it is a Conv1D.

    They are called `name`.weight and `name`.bias. The matrix exists under the condition `when`, the bias, of `columns`
    numbers, if `bias` is met as well; a `bias` of None is never met.
    """
    in_out_shape = parse_shape(rows, columns)
    matrix = ParameterSpec(f"{name}.weight", in_out_shape, in_out_shape if conv1d else in_out_shape[::-1], bucket, when)
    if bias is None:
        return (matrix,)
    return (matrix, *vector(f"{name}.bias", columns, bucket, when=and_also(when, bias)))


def vector(name: str, length: str, bucket: Bucket, *, when: str = ALWAYS, copies: str = "1") -> ParameterSpecs:
    """A tensor of one axis, such as a bias or a norm's scale; each layer has `copies` of it, named by {j}."""
    return (
        ParameterSpec(name, parse_shape(length), parse_shape(length), bucket, when, copies=Expression.parse(copies)),
    )


def norm(
    name: str, length: str, bucket: Bucket = NORMS, *, bias: str | None = None, when: str = ALWAYS
) -> ParameterSpecs:
    """The tensors of a normalization: its scale, and its bias under the condition `bias`, None for never.

    RMSNorm has no bias, LayerNorm mostly has one.
    """
    scale = vector(f"{name}.weight", length, bucket, when=when)
    return scale if bias is None else scale + vector(f"{name}.bias", length, bucket, when=and_also(when, bias))


def embedding_table(
    name: str, rows: str, columns: str, bucket: Bucket = EMBEDDING, *, when: str = ALWAYS
) -> ParameterSpecs:
    """An embedding table of one row per token, position or type; rows are looked up, so it is stored as it is used."""
    shape = parse_shape(rows, columns)
    return (ParameterSpec(f"{name}.weight", shape, shape, bucket, when),)


def tensor(
    name: str,
    stored_shape: str,
    bucket: Bucket,
    *,
    in_out_shape: str | None = None,
    when: str = ALWAYS,
    routed: bool = False,
) -> ParameterSpecs:
    """Any other tensor, its axes separated by commas in their stored order.

    `in_out_shape` has them in the order in which x·W reads them, None where that is the same.

    Example: tensor("conv.weight", "d, d, 3", OTHER)
    """
    stored = parse_shape(*stored_shape.split(","))
    in_out = parse_shape(*in_out_shape.split(",")) if in_out_shape else stored
    return (ParameterSpec(name, in_out, stored, bucket, when, routed),)


def experts(name: str, rows: str, columns: str, *, when: str = ALWAYS, transposed: bool = True) -> ParameterSpecs:
    """One matrix of each of the E experts, all in one tensor (Shazeer et al., arXiv:1701.06538); a token meets k.

    The tensor is E × rows × columns in the orientation of x·W, and stored as E × columns × rows if `transposed`.
    """
    stored_shape = f"E, {columns}, {rows}" if transposed else f"E, {rows}, {columns}"
    return tensor(name, stored_shape, MLP, in_out_shape=f"E, {rows}, {columns}", when=when, routed=True)


def concat(*groups: ParameterSpecs) -> ParameterSpecs:
    """All groups of tensors as one, in their order."""
    return tuple(parameter for group in groups for parameter in group)
