"""Parameter tensors in symbols: what a family's layout is made of, before any size is known.

A layout is written in the orientation of x·W (rows in, columns out) and remembers the stored orientation: nn.Linear
keeps (out, in), GPT-2's Conv1D keeps (in, out), and experts are stacked along a first axis.

>>> [str(parameter) for parameter in linear("q_proj", "d", "H*d_h", ModelPart.ATTENTION, bias="q")]
['q_proj.weight (H*d_h, d)', 'q_proj.bias (H*d_h)']
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Literal, get_args

from app.algebra.expression import ZERO, Expression

# The purposes of a model's parameters, as its page adds them up.
Bucket = Literal["attention", "attention_norms", "mlp", "norms", "other", "embedding", "output_head"]
# The rows of a parameter-count sheet: outside the layers, then in one layer; "" where it has none.
Row = Literal[
    "embedding", "patch_embedding", "embedding_norm", "embedding_projection", "final_norm", "pooler", "head_transform",
    "output_head", "task_head",
    "attention", "sinks", "mixer", "feed_forward", "router", "experts", "shared_experts", "norms", "",
]  # fmt: skip


class ModelPart(Enum):
    """The part of a model that a tensor belongs to: its name, its bucket, and its row on a parameter-count sheet."""

    # Outside the layers
    TOKEN_TABLE = ("token_table", "embedding", "embedding")
    POSITION_TABLE = ("position_table", "embedding", "embedding")
    TYPE_TABLE = ("type_table", "embedding", "embedding")  # token types (BERT)
    RELATIVE_TABLE = ("relative_table", "embedding", "")  # relative positions (DeBERTa)
    PATCHES = ("patches", "other", "patch_embedding")  # the patches' projection, and the class token
    EMBEDDING_NORM = ("embedding_norm", "other", "embedding_norm")
    EMBEDDING_PROJECTION = ("embedding_projection", "other", "embedding_projection")
    CONVOLUTION = ("convolution", "other", "")
    FINAL_NORM = ("final_norm", "other", "final_norm")
    POOLER = ("pooler", "other", "pooler")
    HEAD_TRANSFORM = ("head_transform", "other", "head_transform")  # before an encoder's LM head
    OUTPUT_HEAD = ("output_head", "output_head", "output_head")
    OUTPUT_BIAS = ("output_bias", "other", "output_head")  # an LM head's bias, listed apart from its matrix
    TASK_HEAD = ("task_head", "other", "task_head")  # any task head but an LM head
    # In a layer
    ATTENTION = ("attention", "attention", "attention")
    LATENT_ATTENTION = ("latent_attention", "attention", "attention")
    QUERY_NORM = ("query_norm", "attention_norms", "attention")  # or the norm of the latent that queries are made from
    # or the norm of the latent that keys and values are made from
    KEY_NORM = ("key_norm", "attention_norms", "attention")
    SINKS = ("sinks", "other", "sinks")
    CROSS_ATTENTION = ("cross_attention", "other", "")
    RELATIVE_POSITIONS = ("relative_positions", "other", "")
    INDEXER = ("indexer", "other", "")  # chooses the keys that a token attends to
    MIXER = ("mixer", "other", "mixer")  # mixes tokens without N×N scores: state spaces, linear attention, convolutions
    FEED_FORWARD = ("feed_forward", "mlp", "feed_forward")
    ROUTER = ("router", "mlp", "router")
    EXPERTS = ("experts", "mlp", "experts")
    SHARED_EXPERTS = ("shared_experts", "mlp", "shared_experts")
    SHARED_GATE = ("shared_gate", "mlp", "shared_experts")
    NORMS = ("norms", "norms", "norms")
    OTHER = ("other", "other", "")

    def __init__(self, _name: str, bucket: Bucket, row: Row) -> None:
        self.bucket: Bucket = bucket
        self.row: Row = row


# The parts that a model without a head lacks.
HEAD_PARTS = frozenset({ModelPart.OUTPUT_HEAD, ModelPart.OUTPUT_BIAS, ModelPart.HEAD_TRANSFORM, ModelPart.TASK_HEAD})
# What a tensor's numbers do: they multiply vectors, are looked up row by row, scale a norm, or are added.
TensorKind = Literal["matrix", "table", "scale", "bias"]

# How the queries, keys and values of all heads lie in one fused matrix, from its first output on; "" for other tensors.
#   by-matrix  the queries of all heads, then all keys, then all values: GPT-2, Phi-3
#   by-head    each key/value head with the queries that read it: these, its key, its value: GPT-NeoX, Falcon
#   in-parts   queries, values and keys of a quarter of the heads, four times: CodeGen
#   unknown    one matrix, in an order that a table of data/families doesn't say
FusedOrder = Literal["", "by-matrix", "by-head", "in-parts", "unknown"]

# Conditions name flags, separated by spaces: "moe !tied" is met if moe is set and tied is not.
ALWAYS = ""
NEVER = "never"  # a flag that no row sets
_ONE = Expression.parse("1")


@dataclass(frozen=True, eq=False)  # each is written once, in a layout, so comparing identities is correct and fast
class ParameterSpec:
    """One parameter tensor under the name of its module in transformers, with its shape in symbols.

    `in_out_shape` is in the orientation of x·W; `stored_shape` has the same axes in their stored order.
    """

    name: str
    in_out_shape: tuple[Expression, ...]
    stored_shape: tuple[Expression, ...]
    part: ModelPart
    kind: TensorKind
    when: str = ALWAYS
    copies: Expression = _ONE
    fused: FusedOrder = ""

    @property
    def bucket(self) -> Bucket:
        """The total on the model's page that includes this tensor."""
        return self.part.bucket

    @property
    def is_vector(self) -> bool:
        """Whether it scales or is added number by number, rather than being a matrix or a table of vectors."""
        return self.kind in ("scale", "bias")

    @property
    def routed(self) -> bool:
        """Whether the first axis counts the E experts, of which a token uses k."""
        return self.part == ModelPart.EXPERTS

    @cached_property
    def count(self) -> Expression:
        """How many numbers such tensors hold in one layer, or outside the layers."""
        return math.prod(self.stored_shape, start=self.copies)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols of all its axes and copies."""
        return self.copies.symbols.union(*(dim.symbols for dim in self.stored_shape))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(map(str, self.stored_shape))})"


ParameterSpecs = tuple[ParameterSpec, ...]


def by_row(specs: ParameterSpecs) -> dict[Row, ParameterSpecs]:
    """The tensors by the row that counts them, in the order of `Row`; rows without tensors are left out."""
    tensors = {row: tuple(spec for spec in specs if spec.part.row == row) for row in get_args(Row)}
    return {row: of_row for row, of_row in tensors.items() if of_row}


def number_of_parameters(specs: Iterable[ParameterSpec]) -> Expression:
    """How many numbers these tensors hold together, in symbols."""
    return sum((spec.count for spec in specs), ZERO)


@dataclass(frozen=True)
class StackSpec:
    """A stack of layers and the tensors that one of its layers may have.

    `name` is the name of a layer ("layers.{i}."); `count` is the symbol for the number of layers.
    """

    name: str
    count: str
    parameters: ParameterSpecs
    decoder: bool = False


@dataclass(frozen=True)
class TaskHead:
    """What a model class adds to the base model: its tensors, the flags it sets, and its result.

    `prefix` is put before the names of the base model's tensors in such a class.
    """

    prefix: str = ""
    parameters: ParameterSpecs = ()
    flags: frozenset[str] = frozenset()
    logits: tuple[Expression, ...] | None = None
    without_decoder: bool = False


@dataclass(frozen=True)
class Layout:
    """All tensors of a family: outside the layers, in the stacks of layers, and in one TaskHead per model class.

    The keys of `task_heads` are the ends of class names ("ForCausalLM").
    """

    outside_layers: ParameterSpecs
    stacks: tuple[StackSpec, ...]
    task_heads: Mapping[str, TaskHead] = field(default_factory=dict)
    gated: str = NEVER


def inner_width(specs: ParameterSpecs) -> Expression:
    """The inner width of a feed-forward block or of one expert: the rows of its last matrix, W_down."""
    down = [spec for spec in specs if spec.kind == "matrix" and spec.part != ModelPart.SHARED_GATE][-1]
    return down.in_out_shape[-2]


def condition_met(condition: str, flags: frozenset[str]) -> bool:
    """Whether the flags include every word of a condition, and no word after a '!'.

    Example: "moe !tied" is met by {"moe", "q"}, not by {"moe", "tied"}; "" is met by any flags.
    """
    return all((word[1:] not in flags) if word[0] == "!" else (word in flags) for word in condition.split())


def and_also(first: str, second: str) -> str:
    """The condition that both conditions are met."""
    return f"{first} {second}".strip()


def parse_shape(*texts: str) -> tuple[Expression, ...]:
    """A shape in symbols, each axis read from its text."""
    return tuple(Expression.parse(text) for text in texts)


def linear(
    name: str,
    rows: str,
    columns: str,
    part: ModelPart,
    *,
    bias: str | None = None,
    when: str = ALWAYS,
    conv1d: bool = False,
    fused: FusedOrder = "",
) -> ParameterSpecs:
    """The tensors of x·W + b: `name`.weight, a matrix of rows × columns, and `name`.bias of `columns` numbers."""
    in_out_shape = parse_shape(rows, columns)
    stored_shape = in_out_shape if conv1d else in_out_shape[::-1]
    matrix = ParameterSpec(f"{name}.weight", in_out_shape, stored_shape, part, "matrix", when, fused=fused)
    if bias is None:
        return (matrix,)
    return (matrix, *vector(f"{name}.bias", columns, part, when=and_also(when, bias)))


def vector(
    name: str, length: str, part: ModelPart, kind: TensorKind = "bias", *, when: str = ALWAYS, copies: str = "1"
) -> ParameterSpecs:
    """A tensor of one axis, such as a bias or a norm's scale; each layer has `copies` of it, numbered by {j}."""
    shape = parse_shape(length)
    return (ParameterSpec(name, shape, shape, part, kind, when, Expression.parse(copies)),)


def norm(
    name: str, length: str, part: ModelPart = ModelPart.NORMS, *, bias: str | None = None, when: str = ALWAYS
) -> ParameterSpecs:
    """The tensors of a normalization: its scale, and its bias under the condition `bias` (None: never)."""
    scale = vector(f"{name}.weight", length, part, "scale", when=when)
    return scale if bias is None else scale + vector(f"{name}.bias", length, part, when=and_also(when, bias))


def embedding_table(
    name: str, rows: str, columns: str, part: ModelPart = ModelPart.TOKEN_TABLE, *, when: str = ALWAYS
) -> ParameterSpecs:
    """An embedding table with one row per token, position or type; it is stored as it is used."""
    shape = parse_shape(rows, columns)
    return (ParameterSpec(f"{name}.weight", shape, shape, part, "table", when),)


def tensor(
    name: str,
    stored_shape: str,
    part: ModelPart,
    kind: TensorKind = "matrix",
    *,
    in_out_shape: str | None = None,
    when: str = ALWAYS,
) -> ParameterSpecs:
    """Any other tensor, with its axes separated by commas in their stored order.

    Example: tensor("conv.weight", "d, d, 3", ModelPart.CONVOLUTION)
    """
    stored = parse_shape(*stored_shape.split(","))
    in_out = parse_shape(*in_out_shape.split(",")) if in_out_shape else stored
    return (ParameterSpec(name, in_out, stored, part, kind, when),)


def experts(name: str, rows: str, columns: str, *, when: str = ALWAYS, transposed: bool = True) -> ParameterSpecs:
    """One matrix for each of the E experts, stacked in one tensor (Shazeer et al., arXiv:1701.06538); a token
    uses k.
    """
    stored_shape = f"E, {columns}, {rows}" if transposed else f"E, {rows}, {columns}"
    return tensor(name, stored_shape, ModelPart.EXPERTS, in_out_shape=f"E, {rows}, {columns}", when=when)


def concat(*groups: ParameterSpecs) -> ParameterSpecs:
    """All groups of tensors as one, in order."""
    return tuple(parameter for group in groups for parameter in group)


def layers(name: str, *groups: ParameterSpecs, count: str = "L", decoder: bool = False) -> tuple[StackSpec, ...]:
    """One stack of layers, each with all these groups of tensors; arguments as in StackSpec."""
    return (StackSpec(name, count, concat(*groups), decoder),)
