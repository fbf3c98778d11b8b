"""Parameter tensors in symbols, before any size is known: their names, shapes and parts.

A tensor's shape is known in the orientation of x·W (rows in, columns out) and as it is stored: nn.Linear keeps
(out, in), GPT-2's Conv1D keeps (in, out), and experts are stacked along a first axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
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

_ONE = Expression.parse("1")


@dataclass(frozen=True, eq=False)  # each is made once, from a table, so comparing identities is correct and fast
class ParameterSpec:
    """One parameter tensor under the name of its module in transformers, with its shape in symbols.

    `in_out_shape` is in the orientation of x·W; `stored_shape` has the same axes in their stored order.
    """

    name: str
    in_out_shape: tuple[Expression, ...]
    stored_shape: tuple[Expression, ...]
    part: ModelPart
    kind: TensorKind
    copies: Expression = _ONE
    fused: FusedOrder = ""
    is_conv1d: bool = False

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
    """What a model class adds to the base model: a prefix before the names of its tensors, tensors, and a result."""

    prefix: str = ""
    parameters: ParameterSpecs = ()
    logits: tuple[Expression, ...] | None = None


def inner_width(specs: ParameterSpecs) -> Expression:
    """The inner width of a feed-forward block or of one expert: the rows of its last matrix, W_down."""
    down = [spec for spec in specs if spec.kind == "matrix" and spec.part != ModelPart.SHARED_GATE][-1]
    return down.in_out_shape[-2]


def parse_shape(*texts: str) -> tuple[Expression, ...]:
    """A shape in symbols, each axis read from its text."""
    return tuple(Expression.parse(text) for text in texts)
