"""Every parameter tensor of a model, counted from its symbols: the answer to "how can it have only 7 billion?".

>>> from app.models.architecture import architecture_from
>>> sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 3}
>>> counts = parameter_counts(architecture_from({"model_type": "llama", "vocab_size": 10, **sizes}))
>>> counts.embedding + counts.output_head + counts.other + 3 * counts.layers[0].total == counts.total
True
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from app.models.architecture import Architecture, LayerRun, Layers
from app.models.parameter_specs import Bucket, Weight

LAYER_BUCKETS: tuple[Bucket, ...] = ("attention", "attention_norms", "mlp", "norms", "other")


@dataclass(frozen=True)
class Parameter:
    """One parameter tensor with its sizes filled in.

    `name` is the checkpoint's, with {i} for the layer (and {j} where one layer has several). `stored` is the shape in
    the checkpoint, `flow` the same axes in the x·W orientation, in whole numbers; the symbols of both are the
    weight's. `places` is how many such tensors the model holds, `active` how many numbers of one a token meets.
    """

    name: str
    weight: Weight
    stored: tuple[int, ...]
    flow: tuple[int, ...]
    places: int
    active: int

    @property
    def count(self) -> int:
        """The numbers in one such tensor."""
        return math.prod(self.stored)

    @property
    def total(self) -> int:
        return self.count * self.places


@dataclass(frozen=True)
class LayerCounts:
    """How many parameters each of `count` neighbouring layers has, by what they are for.

    `mlp` holds the router and all experts; `other` what is neither attention nor feed-forward nor norm: sinks, tables
    of relative positions, and in a decoder that reads an encoder its cross attention.
    """

    count: int
    attention: int
    attention_norms: int
    mlp: int
    norms: int
    other: int

    @property
    def total(self) -> int:
        return self.attention + self.attention_norms + self.mlp + self.norms + self.other


@dataclass(frozen=True)
class ParameterCounts:
    """A whole model's parameters: total = embedding + output_head + other + the layers.

    `embedding` holds the tables of tokens, positions and types; `output_head` is 0 where it is the embedding again.
    `active` is what one token meets: in a mixture of experts only k of E experts (arXiv:1701.06538).
    """

    embedding: int
    output_head: int
    other: int
    layers: tuple[LayerCounts, ...]
    active: int

    @property
    def total(self) -> int:
        outside = self.embedding + self.output_head + self.other
        return outside + sum(layer.count * layer.total for layer in self.layers)


def parameter_tensors(architecture: Architecture) -> tuple[Parameter, ...]:
    """Every parameter tensor of the model, those outside the layers first; tied tensors stand once."""
    prefix, sizes = architecture.head.prefix, architecture.symbols
    found = [_parameter(prefix + w.name, w, 1, sizes) for w in architecture.outside if w.exists(architecture.flags)]
    for part in architecture.layers:
        found += _layer_tensors(architecture, part, sizes)
    found += [_parameter(w.name, w, 1, sizes) for w in architecture.head.weights if w.exists(architecture.flags)]
    return tuple(found)


def parameter_counts(architecture: Architecture) -> ParameterCounts:
    """The parameters of a model by what they are for; every number a sum over `parameter_tensors`."""
    outside = Counter[str]()
    active = 0
    for parameter in parameter_tensors(architecture):
        active += parameter.active * parameter.places
        if "{i}" not in parameter.name:
            outside[parameter.weight.bucket] += parameter.total
    return ParameterCounts(
        embedding=outside["embedding"],
        output_head=outside["output_head"],
        other=outside.total() - outside["embedding"] - outside["output_head"],
        layers=tuple(counts for part in architecture.layers for counts in layer_counts(architecture, part)),
        active=active,
    )


def layer_counts(architecture: Architecture, part: Layers) -> tuple[LayerCounts, ...]:
    """The layers of one stack run by run, neighbours with equal counts together."""
    sizes = architecture.symbols
    by_flags = {run.flags: _buckets(architecture, part, run, sizes) for run in part.runs}
    rows = [(run.count, by_flags[run.flags]) for run in part.runs]
    runs = [(sum(count for count, _ in group), row) for row, group in _grouped(rows)]
    return tuple(LayerCounts(count, *row) for count, row in runs)


def parameters_json(architecture: Architecture) -> dict[str, Any]:
    """What `attention-shapes parameters --json` prints; shapes and symbols as the checkpoint stores them.

    For a tensor, "count" is the numbers in one, and "layers" how often it stands in the model, so that their products
    add up to "total".
    """
    counts = parameter_counts(architecture)
    return {
        "total": counts.total,
        "active": counts.active,
        "embedding": counts.embedding,
        "output_head": counts.output_head,
        "other": counts.other,
        "layers": [
            {"count": run.count, **{bucket: getattr(run, bucket) for bucket in LAYER_BUCKETS}, "total": run.total}
            for run in counts.layers
        ],
        "tensors": [_tensor_json(parameter) for parameter in parameter_tensors(architecture)],
    }


def _tensor_json(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "symbols": [str(dim) for dim in parameter.weight.stored],
        "shape": list(parameter.stored),
        "count": parameter.count,
        "layers": parameter.places,
    }


def _layer_tensors(architecture: Architecture, part: Layers, sizes: Mapping[str, int]) -> Iterable[Parameter]:
    held = Counter[frozenset[str]]()
    for run in part.runs:
        held[architecture.flags | run.flags] += run.count
    for weight in part.stack.weights:
        layers = sum(count for flags, count in held.items() if weight.exists(flags))
        if layers:
            name = architecture.head.prefix + part.stack.name + weight.name
            yield _parameter(name, weight, layers * weight.copies.size(sizes), sizes)


def _parameter(name: str, weight: Weight, places: int, sizes: Mapping[str, int]) -> Parameter:
    stored = tuple(dim.size(sizes) for dim in weight.stored)
    flow = tuple(dim.size(sizes) for dim in weight.flow)
    count = math.prod(stored)
    return Parameter(name, weight, stored, flow, places, count * sizes["k"] // sizes["E"] if weight.routed else count)


def _buckets(architecture: Architecture, part: Layers, run: LayerRun, sizes: Mapping[str, int]) -> tuple[int, ...]:
    flags = architecture.flags | run.flags
    sums = Counter[str]()
    for weight in part.stack.weights:
        if weight.exists(flags):
            sums[weight.bucket] += weight.copies.size(sizes) * math.prod(dim.size(sizes) for dim in weight.stored)
    return tuple(sums[bucket] for bucket in LAYER_BUCKETS)


def _grouped(rows: Iterable[tuple[int, tuple[int, ...]]]) -> Iterable[tuple[tuple[int, ...], list[tuple[int, Any]]]]:
    return ((row, list(group)) for row, group in groupby(rows, key=lambda pair: pair[1]))
