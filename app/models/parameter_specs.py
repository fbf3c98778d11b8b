"""Parameter tensors in symbols: what a family's layout is made of, before any size is known.

A layout is written in the x·W orientation (rows in, columns out) and remembers how the checkpoint stores each tensor:
nn.Linear keeps (out, in), the Conv1D of GPT-2 keeps (in, out), expert tensors are stacked in front.

>>> [str(weight) for weight in linear("q_proj", "d", "H*d_h", ATTENTION, bias="q")]
['q_proj.weight (H*d_h, d)', 'q_proj.bias (H*d_h)']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import mul
from typing import Literal

from app.algebra.dims import Dim

Bucket = Literal["attention", "attention_norms", "mlp", "norms", "other", "embedding", "output_head"]
ATTENTION: Bucket = "attention"
ATTENTION_NORMS: Bucket = "attention_norms"
MLP: Bucket = "mlp"
NORMS: Bucket = "norms"
OTHER: Bucket = "other"
EMBEDDING: Bucket = "embedding"
OUTPUT_HEAD: Bucket = "output_head"

ONE = Dim.parse("1")
ALWAYS = ""
NEVER = "never"  # a flag that no row sets


@dataclass(frozen=True)
class Weight:
    """One parameter tensor as the checkpoint names it, with its shape in symbols.

    `flow` is the x·W orientation, `stored` the order of axes in the checkpoint. `when` names the flags of a model and
    layer under which the tensor exists ("moe !tied": both must hold, the second must not). `routed` marks tensors whose
    first axis counts the experts E, of which a token uses k. `copies` is how many such tensors one layer holds where
    the name runs over {j} as well.
    """

    name: str
    flow: tuple[Dim, ...]
    stored: tuple[Dim, ...]
    bucket: Bucket
    when: str = ALWAYS
    routed: bool = False
    copies: Dim = ONE

    def exists(self, flags: frozenset[str]) -> bool:
        return holds(self.when, flags)

    @property
    def numbers(self) -> Dim:
        """How many numbers one layer, or the model outside the layers, holds in such tensors."""
        return reduce(mul, self.stored, self.copies)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(map(str, self.stored))})"


@dataclass(frozen=True)
class Stack:
    """The tensors of one layer, and under which name and how often the layer stands in the model."""

    name: str
    count: str
    weights: tuple[Weight, ...]
    decoder: bool = False


@dataclass(frozen=True)
class Head:
    """What a model class puts on top of the base model: its tensors, the flags it sets, and its result in symbols.

    The tensors of the base model carry `prefix` in the checkpoint of such a class (none for the base model itself).
    """

    prefix: str = ""
    weights: tuple[Weight, ...] = ()
    flags: frozenset[str] = frozenset()
    logits: tuple[Dim, Dim] | None = None
    without_decoder: bool = False


@dataclass(frozen=True)
class Layout:
    """All tensors of a family: those outside the layers, the stacks of layers, and one Head per model class.

    `heads` goes by the end of the class name ("ForCausalLM"). `gated` is the condition under which the feed-forward
    block has a gate.
    """

    outside: tuple[Weight, ...]
    stacks: tuple[Stack, ...]
    heads: Mapping[str, Head] = field(default_factory=dict)
    gated: str = NEVER

    def has_gate(self, flags: frozenset[str]) -> bool:
        return holds(self.gated, flags)


def holds(when: str, flags: frozenset[str]) -> bool:
    """Whether every word of a condition is among the flags, and every word after a '!' is not."""
    return all((word[1:] not in flags) if word[0] == "!" else (word in flags) for word in when.split())


def dims(*texts: str) -> tuple[Dim, ...]:
    return tuple(Dim.parse(text) for text in texts)


def both(first: str, second: str) -> str:
    """The condition under which both conditions hold."""
    return f"{first} {second}".strip()


def linear(
    name: str,
    rows: str,
    columns: str,
    bucket: Bucket,
    *,
    bias: str | None = None,
    when: str = ALWAYS,
    conv1d: bool = False,
) -> tuple[Weight, ...]:
    """x·W + b: the matrix, rows × columns, and where `bias` is a condition its bias, too."""
    flow = dims(rows, columns)
    matrix = Weight(f"{name}.weight", flow, flow if conv1d else flow[::-1], bucket, when)
    if bias is None:
        return (matrix,)
    return (matrix, *vector(f"{name}.bias", columns, bucket, when=both(when, bias)))


def vector(name: str, length: str, bucket: Bucket, *, when: str = ALWAYS, copies: str = "1") -> tuple[Weight, ...]:
    """Numbers in a row: a bias, a norm's scale; `copies` of them in each layer where the name runs over {j}."""
    return (Weight(name, dims(length), dims(length), bucket, when, copies=Dim.parse(copies)),)


def norm(
    name: str, length: str, bucket: Bucket = NORMS, *, bias: str | None = None, when: str = ALWAYS
) -> tuple[Weight, ...]:
    """A normalization's scale, and where `bias` is a condition its shift: RMSNorm has none, LayerNorm mostly has."""
    scale = vector(f"{name}.weight", length, bucket, when=when)
    return scale if bias is None else scale + vector(f"{name}.bias", length, bucket, when=both(when, bias))


def table(name: str, rows: str, columns: str, bucket: Bucket = EMBEDDING, *, when: str = ALWAYS) -> tuple[Weight, ...]:
    """An embedding, one row for each token, position or type: looked up, so stored as it is used."""
    return (Weight(f"{name}.weight", dims(rows, columns), dims(rows, columns), bucket, when),)


def tensor(
    name: str, shape: str, bucket: Bucket, *, flow: str | None = None, when: str = ALWAYS, routed: bool = False
) -> tuple[Weight, ...]:
    """Any other tensor, its axes as stored; `flow` where x·W reads them in another order."""
    stored = dims(*shape.split(","))
    return (Weight(name, dims(*flow.split(",")) if flow else stored, stored, bucket, when, routed),)


def experts(name: str, rows: str, columns: str, *, when: str = ALWAYS, transposed: bool = True) -> tuple[Weight, ...]:
    """The same matrix of all E experts in one tensor (Shazeer et al., arXiv:1701.06538); a token meets k of them."""
    stored = f"E, {columns}, {rows}" if transposed else f"E, {rows}, {columns}"
    return tensor(name, stored, MLP, flow=f"E, {rows}, {columns}", when=when, routed=True)


def layer(*groups: tuple[Weight, ...]) -> tuple[Weight, ...]:
    return tuple(weight for group in groups for weight in group)
