"""The topics: each is one `Topic`, which builds its table of tensors for a model.

A topic may be true only of some models: `requires` refuses the others with a sentence, so that a table never shows what
a model doesn't have.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> topic_for("whole-model", gpt2, 100).key
'plain-whole-model'
>>> topic_for("cross-attention", gpt2, 100)  # doctest: +ELLIPSIS
Traceback (most recent call last):
app.topics.requirements.TopicError: this model has no cross-attention: choose an encoder-decoder model, such as T5...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.bugs.bank import Bug
from app.models.architecture import Architecture, TokensError
from app.shapes.operation import Lookup, Operation, Softmax
from app.shapes.table import Tensor, TensorTable
from app.topics import (
    attention_layer,
    bidirectional_head,
    broadcasting,
    cache_tensor,
    costs,
    cross_attention,
    decode_step,
    experts,
    feed_forward_width,
    find_the_bug,
    first_steps,
    four_dimensions,
    growth,
    head_parameters,
    index_notation,
    layer_parameters,
    lora,
    model_costs,
    parameter_count,
    rotary_pairs,
    same_shapes,
    scale_mask_softmax,
    single_head,
    stored_weights,
    text_to_loss,
    three_dimensions,
    whole_model,
)
from app.topics.requirements import TopicError, require, unmet
from app.topics.topic import Topic, first_free
from app.translation import gettext as _

# How many inputs a batch has, unless another side of a tensor has the same number.
BATCH_SIZES = (3, 6, 9, 10, 11, 13, 15)


def topic_for(key: str, architecture: Architecture, tokens: int, bug: Bug | None = None) -> TensorTable:
    """The table of a topic for this model, with the model's own kind of softmax and lookup.

    Raises KeyError for an unknown topic.
    """
    topic = TOPICS[key]
    if bug and topic.build_for_bug:
        return topic.build_for_bug(bug, architecture, tokens)
    require(topic.requirements, architecture, tokens)
    return _as_in_the_model(topic.build_table(architecture, tokens), architecture, topic)


def refusal(key: str, architecture: Architecture, tokens: int) -> str | None:
    """Why a topic doesn't fit this model with this many tokens, and what to choose instead; None if it fits."""
    return unmet(TOPICS[key].requirements, architecture, tokens)


def sizes_for(key: str, architecture: Architecture, tokens: int, decoder_tokens: int) -> dict[str, int]:
    """A size for every symbol that the topic's table may use."""
    topic = TOPICS[key]
    model_sizes = architecture.decoder_sizes if topic.uses_decoder else architecture.all_sizes
    if architecture.H == 0:  # no layer attends
        model_sizes = {**dict.fromkeys(("H", "G", "d_h", "d_v"), 0), **model_sizes}
    window = next((run.window for run in architecture.runs if run.window), tokens + 1)
    rotated = architecture.rotary.width if architecture.rotary else 0
    rotary_sizes = {"d_rot": rotated} if rotated else {}
    extra_sizes = topic.extra_sizes(architecture, tokens)
    sides = {tokens, *(model_sizes[symbol] for symbol in ("d", "H", "G", "d_h", "d_v"))}
    batch_size = {"B": first_free(BATCH_SIZES, tokens, sides)} if topic.batched else {}
    return {**model_sizes, "W": window, **extra_sizes, **rotary_sizes, **batch_size, "N": tokens, "M": decoder_tokens}


def check_topic_tokens(key: str, architecture: Architecture, tokens: int) -> int:
    """Return `tokens` if the model has that many positions; otherwise raise TokensError."""
    if not (_is_about_decoder_alone(key) and architecture.encoder_decoder):
        return architecture.check_tokens(tokens)
    if 1 <= tokens <= architecture.max_decoder_tokens:
        return tokens
    problem = _("Tokens must be a whole number from 1 to {most:,}.")
    raise TokensError(problem.format(most=architecture.max_decoder_tokens))


def possible_tokens(key: str, architecture: Architecture, wanted: int) -> int:
    """The largest number of tokens up to `wanted` that the model can take for a topic, or the smallest above."""
    if _is_about_decoder_alone(key) and (architecture.encoder_decoder or not architecture.fixed_tokens):
        return max(1, min(wanted, architecture.max_decoder_tokens - TOPICS[key].adds_tokens))
    longest, step = min(wanted, architecture.max_tokens), TOPICS[key].token_step(architecture)
    even = max(step, longest - longest % step)
    return architecture.fixed_tokens or (even if even <= architecture.max_tokens else longest)


def _is_about_decoder_alone(key: str) -> bool:
    return TOPICS[key].uses_decoder and not TOPICS[key].reads_two_texts


def check_decoder_tokens(architecture: Architecture, tokens: int, decoder_tokens: int | None) -> int:
    """Return the number of decoder tokens; None means `tokens`, limited to the decoder's positions."""
    longest = architecture.max_decoder_tokens
    if decoder_tokens is None:
        return min(tokens, longest)
    if not architecture.encoder_decoder:
        problem = _("{model} is not an encoder-decoder model: leave decoder tokens out.")
        raise TokensError(problem.format(model=architecture.name))
    if 1 <= decoder_tokens <= longest:
        return decoder_tokens
    raise TokensError(_("Decoder tokens must be a whole number from 1 to {most:,}.").format(most=longest))


def _as_in_the_model(table: TensorTable, architecture: Architecture, topic: Topic) -> TensorTable:
    def as_in_model(tensor: Tensor) -> Tensor:
        operation: Operation | None = tensor.made_by
        if isinstance(operation, Softmax):
            operation = replace(
                operation,
                masked=operation.masked and (architecture.causal or topic.uses_decoder),
                scale=architecture.score_scale.kind,
                capped=bool(architecture.score_softcap),
                position_bias=operation.of_one_text and bool(architecture.position_bias),
                sink=architecture.has_sinks,
            )
        if isinstance(operation, Lookup):
            is_scaled, positions = architecture.embedding_scale == "root-d", architecture.has_position_table
            operation = replace(operation, scaled=is_scaled, position_table=positions)
        return tensor if operation == tensor.made_by else replace(tensor, made_by=operation)

    tensors = tuple(map(as_in_model, table.tensors))
    return table if tensors == table.tensors else replace(table, tensors=tensors)


def _no_table(_architecture: Architecture, _tokens: int) -> TensorTable:
    raise TopicError(_("The topic of this sheet no longer exists."))


NO_TOPIC = "no-topic"  # of a frozen sheet whose own topic has changed or is gone: nothing is known but what it says


class _Topics(dict[str, Topic]):
    def __missing__(self, key: str) -> Topic:
        if key == NO_TOPIC:
            return Topic(NO_TOPIC, "counts", _no_table, ())
        raise KeyError(key)


# In teaching order.
TOPICS: Mapping[str, Topic] = _Topics({
    module.TOPIC.key: module.TOPIC
    for module in (
        first_steps, single_head, bidirectional_head, scale_mask_softmax, attention_layer, three_dimensions,
        four_dimensions, find_the_bug, same_shapes, broadcasting, index_notation, decode_step, cross_attention,
        cache_tensor, rotary_pairs, head_parameters, layer_parameters, stored_weights, lora, feed_forward_width,
        whole_model, text_to_loss, parameter_count, experts, costs, growth, model_costs,
    )
})  # fmt: skip
# By the key of a topic's table; tables that aren't here have nothing to draw.
FIGURE_PLANS = {key: plans for topic in TOPICS.values() for key, plans in topic.figures.items()}
DRAWN_WITH = {key: table for topic in TOPICS.values() for key, table in topic.drawn_with.items()}
