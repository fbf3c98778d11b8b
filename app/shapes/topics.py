"""The topics: each is one `TopicSpec`, which builds the table of tensors that the topic means for a model.

Families differ in their layers, and a topic may be true of some models only: `requires` refuses the others with a
sentence, so that a table never shows what a model does not have.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> topic_for("whole-model", gpt2, 100).key
'plain-whole-model'
>>> topic_for("cross-attention", gpt2, 100)
Traceback (most recent call last):
app.shapes.topics.TopicError: this model has no cross attention: choose an encoder-decoder such as T5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.models.architecture import Architecture, TokensError
from app.models.parameter_count import parameter_counts
from app.shapes.costs import layer_costs, memory_costs
from app.shapes.parameter_rows import parameter_rows
from app.shapes.table import TensorTable
from app.shapes.tables import (
    ATTENTION_LAYER,
    BIDIRECTIONAL_HEAD,
    CROSS_ATTENTION,
    DECODE_STEP,
    DIRECT_LATENT_ATTENTION,
    LATENT_ATTENTION,
    LAYER_PARAMETERS,
    PLAIN_LAYER_PARAMETERS,
    PLAIN_WHOLE_MODEL,
    ROTARY_PAIRS,
    SINGLE_HEAD,
    WHOLE_MODEL,
    WINDOWED_DECODE_STEP,
)

Subject = Literal["head", "layer", "parameters", "model", "counts"]


class TopicError(ValueError):
    """A topic that this model, or this number of tokens, has no table for; one sentence that says why."""


@dataclass(frozen=True)
class TopicSpec:
    """Everything that is particular to one topic.

    `requires` raises TopicError for a model or a number of tokens that the topic is not true of; `build_table` is only
    called for the others. `subject` is what the sheet is about: one head, a whole layer, a layer's parameters, the
    whole model, or counts. Of an encoder-decoder, a topic that `uses_decoder` takes the decoder's sizes, and one that
    `reads_two_texts` has M decoder tokens beside N encoder tokens. `masked` topics hide later tokens if the
    model is causal. `runnable_table` is the table that a run in torch is checked against, None if it cannot be run.
    `extra_sizes` are symbols that only this topic's table uses.
    """

    key: str
    subject: Subject
    build_table: Callable[[Architecture, int], TensorTable]
    requires: Callable[[Architecture, int], None] = lambda _architecture, _tokens: None
    uses_decoder: bool = False
    reads_two_texts: bool = False
    masked: bool = False
    runnable_table: TensorTable | None = None
    extra_sizes: Callable[[Architecture], Mapping[str, int]] = lambda _architecture: {}


def topic_for(key: str, architecture: Architecture, tokens: int) -> TensorTable:
    """The table of a topic for this model; raises TopicError if the topic is not true of it, KeyError if unknown."""
    topic = TOPICS[key]
    topic.requires(architecture, tokens)
    return topic.build_table(architecture, tokens)


def sizes_for(key: str, architecture: Architecture, tokens: int, decoder_tokens: int) -> dict[str, int]:
    """A size for every symbol that the topic's table may use.

    N is `tokens`, M is `decoder_tokens`, W the window (tokens + 1 for a model without one), `pairs` half the numbers
    that RoPE rotates (none without RoPE); to these come the topic's extra sizes, and the model's own: the decoder's if
    the topic uses the decoder, else the encoder's.
    """
    topic = TOPICS[key]
    model_sizes = architecture.decoder_sizes if topic.uses_decoder else architecture.all_sizes
    window = architecture.window or tokens + 1
    rotary_sizes = {"pairs": architecture.rotary.width // 2} if architecture.rotary else {}
    extra_sizes = topic.extra_sizes(architecture)
    return {**model_sizes, "W": window, **extra_sizes, **rotary_sizes, "N": tokens, "M": decoder_tokens}


def check_decoder_tokens(architecture: Architecture, tokens: int, decoder_tokens: int | None) -> int:
    """The number of decoder tokens, checked; if None, `tokens`, but no more than the decoder has positions.

    Raises TokensError for a number below 1 or above those positions, and for any number, though not for None, if the
    model is no encoder-decoder.
    """
    longest = architecture.max_decoder_tokens
    if decoder_tokens is None:
        return min(tokens, longest)
    if not architecture.encoder_decoder:
        raise TokensError(
            f"{architecture.name} has no encoder and decoder: it reads one text, so leave decoder tokens out."
        )
    if 1 <= decoder_tokens <= longest:
        return decoder_tokens
    raise TokensError(f"Decoder tokens must be a whole number from 1 to {longest:,}.")


def decode_step_table(architecture: Architecture, tokens: int) -> TensorTable | None:
    """The table of one more token after `tokens` cached ones; None without a KV cache or a position for the new token.

    None too for a bidirectional model without a decoder, and beyond the first chunk of chunked attention, where the new
    token sees its own chunk alone. If the new token no longer fits into a sliding window beside the cached ones, it is
    the table in which the oldest key is dropped.
    """
    decodes = architecture.has_kv_cache and (architecture.causal or architecture.encoder_decoder)
    if not decodes or tokens + 1 > (architecture.chunk or architecture.max_decoder_tokens):
        return None
    window_is_full = architecture.window is not None and tokens + 1 > architecture.window
    return WINDOWED_DECODE_STEP if window_is_full else DECODE_STEP


def whole_model_table(architecture: Architecture) -> TensorTable:
    """The table from tokens to logits, with a gate in the feed-forward block if the model has one."""
    return WHOLE_MODEL if architecture.gated else PLAIN_WHOLE_MODEL


def _has_latent_attention(architecture: Architecture) -> bool:
    """Whether keys and values are made from a latent of r_kv numbers (DeepSeek)."""
    return "r_kv" in architecture.all_sizes


def _head_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """One head, with a mask if the model is causal, else without."""
    return SINGLE_HEAD if architecture.causal else BIDIRECTIONAL_HEAD


def _layer_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The layer with latent attention if the model has it: with or without a latent for the queries (r_q)."""
    if not _has_latent_attention(architecture):
        return ATTENTION_LAYER
    return LATENT_ATTENTION if "r_q" in architecture.all_sizes else DIRECT_LATENT_ATTENTION


def _decode_table(architecture: Architecture, tokens: int) -> TensorTable:
    """A decode step after `tokens` cached tokens; `requires` has refused models that have none."""
    table = decode_step_table(architecture, tokens)
    assert table is not None  # noqa: S101 - see above
    return table


def _layer_parameters_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The matrices of one layer, W_gate among them if the feed-forward block is gated."""
    return LAYER_PARAMETERS if architecture.gated else PLAIN_LAYER_PARAMETERS


def _whole_model_with_angles(architecture: Architecture, _tokens: int) -> TensorTable:
    """The whole model, and the table of rotary angles if the model has RoPE."""
    table = whole_model_table(architecture)
    angles = (ROTARY_PAIRS["angles"],) if architecture.rotary else ()
    return replace(table, tensors=(*table.tensors, *angles))


def _parameter_count_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The parameters of the whole model as counts; no matrices."""
    return TensorTable("parameter-count", counts=parameter_rows(architecture))


def _costs_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """FLOPs of one layer, then bytes of parameters and KV cache, as counts; no matrices."""
    return TensorTable("costs", counts=(*layer_costs(architecture.gated), *memory_costs()))


def _requires_no_mask(architecture: Architecture, _tokens: int) -> None:
    """Raise TopicError for a causal model."""
    if architecture.causal:
        raise TopicError(f"{architecture.name} hides later tokens; take a model that looks both ways, such as BERT.")


def _requires_a_decode_step(architecture: Architecture, tokens: int) -> None:
    """Raise TopicError for a model that has no decode step, or no position for one more token after `tokens`."""
    if architecture.chunk is not None and tokens >= architecture.chunk:
        raise TopicError(
            f"{architecture.name} attends within chunks of {architecture.chunk:,} tokens: choose fewer tokens."
        )
    if decode_step_table(architecture, tokens) is None:
        raise TopicError(
            f"{architecture.name} has no decode step after {tokens:,} tokens: no cache, or no position left."
        )


def _requires_encoder_and_decoder(architecture: Architecture, _tokens: int) -> None:
    """Raise TopicError for a model that is no encoder-decoder."""
    if not architecture.encoder_decoder:
        raise TopicError(f"{architecture.name} has no cross attention: choose an encoder-decoder such as T5.")


def _requires_plain_layers(architecture: Architecture, _tokens: int) -> None:
    """Raise TopicError for a model with latent attention or a mixture of experts."""
    if _has_latent_attention(architecture) or "E" in architecture.all_sizes:
        raise TopicError(f"{architecture.name} has latent attention or experts; take a model with plain layers here.")


def _requires_next_token(architecture: Architecture, _tokens: int) -> None:
    """Raise TopicError for an encoder-decoder, and for a model without logits."""
    if architecture.encoder_decoder or architecture.task_head.logits is None:
        raise TopicError(f"{architecture.name} does not predict a next token; take a model that does here.")


def _requires_layers_alike(architecture: Architecture, _tokens: int) -> None:
    """Raise TopicError for a model with several stacks of layers, or with layers of different parameter counts."""
    if len(architecture.stacks) != 1 or len(parameter_counts(architecture).layers) != 1:
        raise TopicError(
            f"The layers of {architecture.name} differ from each other; take a model with layers all alike."
        )


def _total_parameters(architecture: Architecture) -> Mapping[str, int]:
    """The symbol `params`: the number of all parameters of the model."""
    return {"params": parameter_counts(architecture).total}


# In the order in which they are taught.
TOPICS: Mapping[str, TopicSpec] = {
    topic.key: topic
    for topic in (
        TopicSpec(
            "single-head",
            "head",
            _head_table,
            masked=True,
            runnable_table=SINGLE_HEAD,
        ),
        TopicSpec(
            "bidirectional-head",
            "head",
            lambda _architecture, _tokens: BIDIRECTIONAL_HEAD,
            _requires_no_mask,
            runnable_table=BIDIRECTIONAL_HEAD,
        ),
        TopicSpec(
            "attention-layer",
            "layer",
            _layer_table,
            masked=True,
            runnable_table=ATTENTION_LAYER,
        ),
        TopicSpec(
            "decode-step",
            "head",
            _decode_table,
            _requires_a_decode_step,
            uses_decoder=True,
        ),
        TopicSpec(
            "cross-attention",
            "head",
            lambda _architecture, _tokens: CROSS_ATTENTION,
            _requires_encoder_and_decoder,
            uses_decoder=True,
            reads_two_texts=True,
        ),
        TopicSpec("layer-parameters", "parameters", _layer_parameters_table, _requires_plain_layers),
        TopicSpec(
            "whole-model",
            "model",
            _whole_model_with_angles,
            _requires_next_token,
        ),
        TopicSpec("parameter-count", "counts", _parameter_count_table, _requires_layers_alike),
        TopicSpec("costs", "counts", _costs_table, _requires_plain_layers, extra_sizes=_total_parameters),
    )
}
