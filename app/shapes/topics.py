"""Which table a topic means for one model: families differ in their layers, and some topics suit only some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_count import parameter_counts
from app.models.parameter_specs import Bucket, ParameterSpecs
from app.shapes.costs import layer_costs, memory_costs
from app.shapes.shapes_json import decode_topic, model_topic
from app.shapes.table import Count, TensorTable
from app.shapes.tables import (
    ATTENTION_LAYER,
    BIDIRECTIONAL_HEAD,
    CROSS_ATTENTION,
    DIRECT_LATENT_ATTENTION,
    LATENT_ATTENTION,
    LAYER_PARAMETERS,
    PLAIN_LAYER_PARAMETERS,
    ROTARY_PAIRS,
    SINGLE_HEAD,
)


class TopicError(ValueError):
    """A topic that this model, or this number of tokens, has no table for; one sentence that says why."""


def topic_for(key: str, architecture: Architecture, tokens: int) -> TensorTable:
    """The table of a topic for this model; raises TopicError."""
    return MAKERS[key](architecture, tokens)


def _head(architecture: Architecture, _tokens: int) -> TensorTable:
    return SINGLE_HEAD if architecture.causal else BIDIRECTIONAL_HEAD


def _bidirectional(architecture: Architecture, _tokens: int) -> TensorTable:
    if architecture.causal:
        raise TopicError(f"{architecture.name} hides later tokens; take a model that looks both ways, such as BERT.")
    return BIDIRECTIONAL_HEAD


def _layer(architecture: Architecture, _tokens: int) -> TensorTable:
    if not _latent(architecture):
        return ATTENTION_LAYER
    return LATENT_ATTENTION if "r_q" in architecture.all_sizes else DIRECT_LATENT_ATTENTION


def _latent(architecture: Architecture) -> bool:
    return "r_kv" in architecture.all_sizes


def _decode(architecture: Architecture, tokens: int) -> TensorTable:
    topic = decode_topic(architecture, tokens)
    if topic is None:
        raise TopicError(
            f"{architecture.name} has no decode step after {tokens:,} tokens: no cache, or no position left."
        )
    return topic


def _cross(architecture: Architecture, _tokens: int) -> TensorTable:
    if not architecture.encoder_decoder:
        raise TopicError(f"{architecture.name} has no cross attention: choose an encoder-decoder such as T5.")
    return CROSS_ATTENTION


def _layer_parameters(architecture: Architecture, _tokens: int) -> TensorTable:
    if _latent(architecture) or "E" in architecture.all_sizes:
        raise TopicError(f"{architecture.name} has latent attention or experts; take a model with plain layers here.")
    return LAYER_PARAMETERS if architecture.gated else PLAIN_LAYER_PARAMETERS


def _whole_model(architecture: Architecture, _tokens: int) -> TensorTable:
    if architecture.encoder_decoder or architecture.task_head.logits is None:
        raise TopicError(f"{architecture.name} does not predict a next token; take a model that does here.")
    topic = model_topic(architecture)
    angles = (ROTARY_PAIRS["angles"],) if architecture.rotary else ()
    return replace(topic, tensors=(*topic.tensors, *angles))


def _costs(architecture: Architecture, tokens: int) -> TensorTable:
    _layer_parameters(architecture, tokens)
    return TensorTable("costs", (), (*layer_costs(architecture.gated), *memory_costs()))


def _parameter_count(architecture: Architecture, _tokens: int) -> TensorTable:
    """Parameters of the whole model as sums of products, for models whose layers are all alike."""
    if len(architecture.stacks) != 1 or len(parameter_counts(architecture).layers) != 1:
        raise TopicError(
            f"The layers of {architecture.name} differ from each other; take a model with layers all alike."
        )
    layer, rest = architecture.stacks[0].runs[-1].parameters, architecture.outside_parameters
    parts = {
        "embedding": (_sum(rest, "embedding"), "vocabulary · width, and positions where there is a table"),
        "all_layers": (_sum(layer) * Expression.parse("L"), "L · (attention + feed-forward + norms)"),
        "final_norm": (_sum(rest, "other"), "after the last layer"),
        "output_head": (_sum(rest, "output_head"), "its own matrix, not the embedding's"),
    }
    amounts = {
        **parts,
        "attention": (_sum(layer, "attention", "attention_norms"), "all of one layer's projections"),
        "feed_forward": (_sum(layer, "mlp"), "all of one layer's feed-forward matrices"),
        "norms": (_sum(layer, "norms", "other"), "all of one layer's norms"),
        "total": (sum((dim for dim, _ in parts.values()), ZERO), "embedding + layers + final norm + output head"),
    }
    return TensorTable(
        "parameter-count", (), tuple(Count(key, *amount) for key, amount in amounts.items() if amount[0] != ZERO)
    )


def _sum(parameters: ParameterSpecs, *buckets: Bucket) -> Expression:
    """The numbers in these tensors, in symbols: in those of the named buckets, or in all of them."""
    return sum((spec.count for spec in parameters if not buckets or spec.bucket in buckets), ZERO)


def sizes_for(key: str, architecture: Architecture, tokens: int, decoder_tokens: int) -> dict[str, int]:
    """A size for every symbol of the topic: N tokens, M of them decoded, the sizes of the model, W keys in a window."""
    decodes = key in ("decode-step", "cross-attention")
    sizes = architecture.decoder_sizes if decodes else architecture.all_sizes
    counted = {"params": parameter_counts(architecture).total} if key == "costs" else {}
    turned = {"pairs": architecture.rotary.width // 2} if architecture.rotary else {}
    return {**sizes, "W": architecture.window or tokens + 1, **counted, **turned, "N": tokens, "M": decoder_tokens}


# In the order in which they are taught.
MAKERS: Mapping[str, Callable[[Architecture, int], TensorTable]] = {
    "single-head": _head,
    "bidirectional-head": _bidirectional,
    "attention-layer": _layer,
    "decode-step": _decode,
    "cross-attention": _cross,
    "layer-parameters": _layer_parameters,
    "whole-model": _whole_model,
    "parameter-count": _parameter_count,
    "costs": _costs,
}
