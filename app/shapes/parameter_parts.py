"""The parts of a model that its parameters belong to: embedding, attention, feed-forward block, final norm, LM head.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> list(outside_parts(gpt2)), [(kind.layers, list(kind.parts)) for kind in layer_kinds(gpt2.stacks[0])]
(['embedding', 'final_norm'], [(12, ['attention', 'feed_forward', 'norms'])])
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture, LayerStack
from app.models.parameter_specs import ParameterSpec, ParameterSpecs

# The parts outside the layers, and those of one layer, in the order of the sheet.
OUTSIDE_PARTS = (
    "embedding",
    "patch_embedding",
    "embedding_norm",
    "embedding_projection",
    "final_norm",
    "pooler",
    "head_transform",
    "output_head",
    "task_head",
)
LAYER_PARTS = ("attention", "sinks", "feed_forward", "router", "experts", "shared_experts", "norms")
UNNAMED = "unnamed"  # what no row of a sheet is about
# Parts of the base model outside its layers, by the names of their modules in transformers.
_PART_BY_NAME = {
    "patch_embedding": r"patch_embeddings|cls_token",
    "embedding_norm": r"^embeddings\.(LayerNorm|norm)\.|^word_embeddings_layernorm\.",
    "embedding_projection": r"embeddings_project\.|embedding_hidden_mapping_in\.|\bproject_(in|out)\.",
    "final_norm": r"^(decoder\.|encoder\.)?(norm|norm_f|ln_f|layernorm|layer_norm|final_norm|final_layer_?norm)\.",
    "pooler": r"^pooler\b",
}
_NO_LM_PART = r"seq_relationship|sop_classifier"  # heads for sentence pairs, beside an LM head


@dataclass(frozen=True)
class LayerKind:
    """The layers of a stack that have the same tensors: how many they are, and one layer's tensors by part."""

    layers: int
    parts: Mapping[str, ParameterSpecs]

    @property
    def has_experts(self) -> bool:
        """Whether the feed-forward block of these layers is a mixture of experts."""
        return "experts" in self.parts


def outside_parts(architecture: Architecture) -> dict[str, ParameterSpecs]:
    """The tensors outside the layers by part, in the order of OUTSIDE_PARTS; then UNNAMED, if a tensor has no part.

    The bias of an LM head belongs to it even where its matrix is the token embedding.
    """
    has_lm_head = "V" in {symbol for dim in architecture.task_head.logits or () for symbol in dim.symbols}
    base = ((_part_of_base(spec), spec) for spec in architecture.base_parameters)
    head = ((_part_of_head(spec, has_lm_head), spec) for spec in architecture.head_parameters)
    return _by_part((*base, *head), OUTSIDE_PARTS)


def layer_kinds(stack: LayerStack) -> tuple[LayerKind, ...]:
    """The kinds of layers of a stack by their tensors, in the order in which they first come."""
    layers_by_parameters = dict[ParameterSpecs, int]()
    for run in stack.runs:
        layers_by_parameters[run.parameters] = layers_by_parameters.get(run.parameters, 0) + run.count
    return tuple(
        LayerKind(layers, _by_part(((_part_of_layer(spec, specs), spec) for spec in specs), LAYER_PARTS))
        for specs, layers in layers_by_parameters.items()
    )


def number_of_parameters(specs: Iterable[ParameterSpec]) -> Expression:
    """The numbers of all these tensors together, in symbols."""
    return sum((spec.count for spec in specs), ZERO)


def _by_part(named: Iterable[tuple[str, ParameterSpec]], order: tuple[str, ...]) -> dict[str, ParameterSpecs]:
    """The tensors under the names given with them, in this order, UNNAMED last; names without tensors are left out."""
    pairs = tuple(named)
    return {part: specs for part in (*order, UNNAMED) if (specs := tuple(spec for name, spec in pairs if name == part))}


def _part_of_base(spec: ParameterSpec) -> str:
    """The part of a tensor of the base model outside its layers; tables of relative positions have none."""
    if spec.bucket == "embedding":
        return UNNAMED if "rel_embeddings" in spec.name else "embedding"
    return next((part for part, pattern in _PART_BY_NAME.items() if re.search(pattern, spec.name)), UNNAMED)


def _part_of_head(spec: ParameterSpec, has_lm_head: bool) -> str:
    """The part of a tensor of the task head: the LM head itself, what stands before it, or another head as one part.

    The LM head itself is its matrix and its biases over the vocabulary.
    """
    if spec.bucket == "output_head" or [str(dim) for dim in spec.stored_shape] == ["V"]:
        return "output_head"
    return "head_transform" if has_lm_head and not re.search(_NO_LM_PART, spec.name) else "task_head"


def _part_of_layer(spec: ParameterSpec, layer: ParameterSpecs) -> str:
    """The part of a tensor of one layer; the layer's other tensors tell a router from a plain feed-forward block."""
    if spec.bucket in ("attention", "attention_norms"):
        return "attention"
    if spec.bucket == "norms":
        return "norms"
    if spec.bucket == "mlp":
        return _part_of_feed_forward(spec, any(other.routed for other in layer))
    return "sinks" if spec.name.endswith("sinks") else UNNAMED


def _part_of_feed_forward(spec: ParameterSpec, has_experts: bool) -> str:
    """Which part of a feed-forward block a tensor is: the whole block, or experts, shared experts or router."""
    if not has_experts:
        return "feed_forward"
    if spec.routed:
        return "experts"
    return "shared_experts" if "shared_expert" in spec.name else "router"
