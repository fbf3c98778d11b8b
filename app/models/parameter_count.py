"""Counts every parameter tensor of a model from its symbols: the answer to "how can it have only 7 billion?".

>>> from app.models.read_config import build_architecture
>>> sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 3}
>>> counts = parameter_counts(build_architecture({"model_type": "llama", "vocab_size": 10, **sizes}))
>>> counts.embedding + counts.output_head + counts.other + 3 * counts.layers[0].total == counts.total
True
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from app.models.architecture import Architecture, LayerStack
from app.models.parameter_specs import Bucket, ParameterSpec, ParameterSpecs

LAYER_BUCKETS: tuple[Bucket, ...] = ("attention", "attention_norms", "mlp", "norms", "other")


@dataclass(frozen=True)
class Parameter:
    """One parameter tensor with its sizes filled in.

    `name` is its module's name in transformers (a checkpoint may use another), with {i} for the layer and {j} if a
    layer has several.
    """

    name: str
    spec: ParameterSpec
    stored_shape: tuple[int, ...]
    in_out_shape: tuple[int, ...]
    instances: int
    active: int

    @property
    def count(self) -> int:
        """How many numbers one such tensor holds."""
        return math.prod(self.stored_shape)

    @property
    def total(self) -> int:
        """How many numbers all its instances hold."""
        return self.count * self.instances


@dataclass(frozen=True)
class LayerCounts:
    """The parameters of each of `count` neighbouring layers, by purpose."""

    count: int
    attention: int
    attention_norms: int
    mlp: int
    norms: int
    other: int

    @property
    def total(self) -> int:
        """The parameters of one of these layers."""
        return self.attention + self.attention_norms + self.mlp + self.norms + self.other


@dataclass(frozen=True)
class ParameterCounts:
    """A whole model's parameters: total = embedding + output_head + other + the layers.

    `embedding` holds the tables of tokens, positions and types; `output_head` is 0 if it shares the embedding.
    """

    embedding: int
    output_head: int
    other: int
    layers: tuple[LayerCounts, ...]
    active: int

    @property
    def total(self) -> int:
        """The parameters of the whole model, with all layers and experts."""
        outside = self.embedding + self.output_head + self.other
        return outside + sum(layer.count * layer.total for layer in self.layers)


def parameter_tensors(architecture: Architecture) -> tuple[Parameter, ...]:
    """Every parameter tensor of the model: outside its layers, in the layers, then in the task head."""
    prefix, sizes = architecture.task_head.prefix, architecture.all_sizes
    return (
        *(_parameter(prefix + spec.name, spec, 1, sizes) for spec in architecture.base_parameters),
        *(tensor for stack in architecture.stacks for tensor in _stack_tensors(stack, prefix, sizes)),
        *(_parameter(spec.name, spec, 1, sizes) for spec in architecture.head_parameters),
    )


def parameter_counts(architecture: Architecture) -> ParameterCounts:
    """A model's parameters by purpose, with all layers and experts; tied tensors count once."""
    outside = _bucket_counts(architecture.outside_parameters, architecture.all_sizes)
    return ParameterCounts(
        embedding=outside["embedding"],
        output_head=outside["output_head"],
        other=outside.total() - outside["embedding"] - outside["output_head"],
        layers=tuple(counts for stack in architecture.stacks for counts in layer_counts(architecture, stack)),
        active=sum(tensor.active * tensor.instances for tensor in parameter_tensors(architecture)),
    )


def layer_counts(architecture: Architecture, stack: LayerStack) -> tuple[LayerCounts, ...]:
    """One layer's parameters by purpose, for each layer of the stack, first to last."""
    by_kind = {kind.parameters: _bucket_counts(kind.parameters, architecture.all_sizes) for kind in stack.kinds}
    counted = [(by_kind[run.parameters], run.count) for run in stack.runs]
    return tuple(
        LayerCounts(sum(count for _, count in group), *(buckets[bucket] for bucket in LAYER_BUCKETS))
        for buckets, group in groupby(counted, key=lambda pair: pair[0])
    )


def parameters_json(architecture: Architecture) -> dict[str, Any]:
    """What `attention-shapes parameters --json` prints: totals by purpose, then layers, then every tensor."""
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
        "tensors": [
            {
                "name": parameter.name,
                "symbols": [str(dim) for dim in parameter.spec.stored_shape],
                "shape": list(parameter.stored_shape),
                "count": parameter.count,
                "layers": parameter.instances,
            }
            for parameter in parameter_tensors(architecture)
        ],
    }


def _stack_tensors(stack: LayerStack, prefix: str, sizes: Mapping[str, int]) -> Iterator[Parameter]:
    layers_with = Counter[ParameterSpec]()
    for run in stack.runs:
        for spec in run.parameters:
            layers_with[spec] += run.count
    for spec in stack.spec.parameters:
        if spec in layers_with:
            instances = layers_with[spec] * spec.copies.size(sizes)
            yield _parameter(prefix + stack.spec.name + spec.name, spec, instances, sizes)


def _parameter(name: str, spec: ParameterSpec, instances: int, sizes: Mapping[str, int]) -> Parameter:
    stored_shape = tuple(dim.size(sizes) for dim in spec.stored_shape)
    in_out_shape = tuple(dim.size(sizes) for dim in spec.in_out_shape)
    return Parameter(
        name, spec, stored_shape, in_out_shape, instances, active_count(spec, math.prod(stored_shape), sizes)
    )


def active_count(spec: ParameterSpec, count: int, sizes: Mapping[str, int]) -> int:
    """How many of `count` numbers in such tensors one token uses: k/E of routed experts, rounded down."""
    return count * sizes["k"] // sizes["E"] if spec.routed and "k" in sizes else count


def _bucket_counts(parameters: ParameterSpecs, sizes: Mapping[str, int]) -> Counter[Bucket]:
    counts = Counter[Bucket]()
    for spec in parameters:
        counts[spec.bucket] += spec.count.size(sizes)
    return counts
