"""The topics: each is one `TopicSpec`, which builds the table of tensors that the topic means for a model.

Families differ in their layers, and a topic may be true of some models only: `requires` refuses the others with a
sentence, so that a table never shows what a model does not have.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> topic_for("whole-model", gpt2, 100).key
'plain-whole-model'
>>> topic_for("cross-attention", gpt2, 100)  # doctest: +ELLIPSIS
Traceback (most recent call last):
app.shapes.requirements.TopicError: this model has no cross-attention: choose an encoder-decoder model, such as T5...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from app.algebra.expression import Expression
from app.models.architecture import Architecture, TokensError
from app.models.families import FAMILIES
from app.models.parameter_count import parameter_counts
from app.shapes.costs import cached_numbers, layer_costs, memory_costs
from app.shapes.experts import even_tokens, expert_sizes, experts_table, require_experts_alike
from app.shapes.feed_forward_width import width_counts, width_sizes
from app.shapes.growth import growth_counts, require_attention_to_all
from app.shapes.operation import Lookup, Operation, Softmax
from app.shapes.parameter_inventory import Fact, experts_inventory, parameter_inventory
from app.shapes.parameter_rows import parameter_rows
from app.shapes.requirements import (
    Requirement,
    TopicError,
    all_of,
    require_attention_of_one_shape,
    require_cache_of_known_length,
    require_encoder_and_decoder,
    require_known_width,
    require_kv_cache,
    require_layers_of_one_shape,
    require_named_parts,
    require_next_token,
    require_no_experts,
    require_no_mask,
    require_norms_before_blocks,
    require_one_mask_for_all_layers,
    require_one_stack,
    require_own_projections,
    require_plain_sums,
    require_room_for_one_more,
    require_scores_of_queries_and_keys,
    require_weights_that_sum_to_one,
)
from app.shapes.rotary import require_rotary_pairs, rotary_table
from app.shapes.softmax_counts import chosen_token, softmax_counts
from app.shapes.table import Blank, Count, TensorTable
from app.shapes.tables import (
    ATTENTION_LAYER,
    BATCHED_GROUPED_HEADS,
    BATCHED_HEADS,
    BIDIRECTIONAL_HEAD,
    CROSS_ATTENTION,
    DECODE_STEP,
    DIRECT_LATENT_ATTENTION,
    EXPERTS,
    GROUPED_HEADS,
    HEAD_PARAMETERS,
    HEADS_AS_DIMENSION,
    LATENT_ATTENTION,
    LAYER_PARAMETERS,
    MASKED_SOFTMAX,
    PLAIN_LAYER_PARAMETERS,
    PLAIN_WHOLE_MODEL,
    ROTARY_PAIRS,
    SINGLE_HEAD,
    UNMASKED_SOFTMAX,
    WHOLE_MODEL,
    WINDOWED_DECODE_STEP,
)
from app.translation import gettext as _

# How many inputs a batch has, where no other side of a tensor is the same number.
BATCH_SIZES = (3, 6, 9, 10, 11, 13, 15)
COMMON_SYMBOLS = ("N", "M", "W", "d_rot")  # of sizes that sheets of every topic may have beside the model's
_MODEL_SYMBOLS = frozenset(symbol for family in FAMILIES.values() for symbol in family.sizes)
Subject = Literal["head", "softmax", "layer", "parameters", "model", "counts"]
Bars = Literal["sums", "operations-and-bytes", "blocks-and-widths", "sums-and-growth"]


@dataclass(frozen=True)
class TopicSpec:
    """Everything that is particular to one topic.

    `requires` raises TopicError for a model or a number of tokens that the topic is not true of; `build_table` is only
    called for the others. `subject` is what the sheet is about: one head, the softmax of one head, a whole layer,
    parameters, the whole model, or counts. Of an encoder-decoder, a topic that `uses_decoder` takes the decoder's
    sizes, and one that `reads_two_texts` has M decoder tokens beside N encoder tokens. `masked` topics hide later
    tokens if the model is causal. `runnable_table` is the table that a run in torch is checked against, None if it
    cannot be run. `batched` topics have several inputs at once. `extra_sizes` are symbols that only this topic's table
    uses. `token_step` is what the number of tokens should be a multiple of, so that every row has a whole number.
    `tables` are those it is built from; `counts` and `extra_symbols`, separated by spaces, are the keys and symbols
    that the table of some model also has. A misconception may name these alone. A topic that `adds_token` is about one
    more token than the sheet's number. `inventory` tells what else its sheets state of the model's parameters. `bars`
    are what its counts are drawn as: sums of their parts, or numbers of two kinds, or with a plot of what grows.
    """

    key: str
    subject: Subject
    build_table: Callable[[Architecture, int], TensorTable]
    requires: Requirement
    uses_decoder: bool = False
    reads_two_texts: bool = False
    masked: bool = False
    batched: bool = False
    runnable_table: TensorTable | None = None
    extra_sizes: Callable[[Architecture, int], Mapping[str, int]] = lambda _architecture, _tokens: {}
    token_step: Callable[[Architecture], int] = lambda _architecture: 1
    tables: tuple[TensorTable, ...] = ()
    counts: str = ""
    extra_symbols: str = ""
    adds_token: bool = False
    inventory: Callable[[Architecture], Iterator[Fact]] | None = None
    bars: Bars = "sums"

    @cached_property
    def boxes(self) -> frozenset[str]:
        """The boxes, by name, that the sheet of some model can ask for: 'queries.rows', 'total.count'."""
        entries = (item for table in self.tables for item in table.asked.items())
        sides = (str(Blank(key, field)) for key, entry in entries for field in entry.fields)
        return frozenset((*sides, *(f"{count}.count" for count in self.counts.split())))

    @property
    def rows(self) -> frozenset[str]:
        """The keys of the rows that these boxes are in."""
        return frozenset(box.partition(".")[0] for box in self.boxes)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols that have a size on some model's sheet, and the keys of its counts: what formulas may use."""
        batch = ["B"] if self.batched else []
        return _MODEL_SYMBOLS.union(COMMON_SYMBOLS, batch, self.extra_symbols.split(), self.counts.split())


def topic_for(key: str, architecture: Architecture, tokens: int) -> TensorTable:
    """The table of a topic for this model; raises TopicError if the topic is not true of it, KeyError if unknown."""
    topic = TOPICS[key]
    topic.requires(architecture, tokens)
    return _as_in_the_model(topic.build_table(architecture, tokens), architecture)


def refusal(key: str, architecture: Architecture, tokens: int) -> str | None:
    """Why a topic is not true of this model for so many tokens, and what to choose instead; None if it is true."""
    try:
        TOPICS[key].requires(architecture, tokens)
    except TopicError as error:
        return str(error)
    return None


def sizes_for(key: str, architecture: Architecture, tokens: int, decoder_tokens: int) -> dict[str, int]:
    """A size for every symbol that the topic's table may use.

    N is `tokens`, M is `decoder_tokens`, W the sliding window of a layer (tokens + 1 for a model without one), `d_rot`
    the numbers of a query that RoPE rotates (not without RoPE), and in a batched topic B is how many inputs the batch
    has, which depends on `tokens`, so that another variant has another batch, and equals no other side of its
    tensors; to these come the topic's extra sizes, and the model's own: the decoder's if the topic uses the decoder,
    else the encoder's.
    """
    topic = TOPICS[key]
    model_sizes = architecture.decoder_sizes if topic.uses_decoder else architecture.all_sizes
    runs = [run for stack in architecture.stacks for run in stack.runs]
    window = next((run.window for run in runs if run.window), tokens + 1)
    rotated = architecture.rotary.width if architecture.rotary else 0
    rotary_sizes = {"d_rot": rotated} if rotated else {}
    extra_sizes = topic.extra_sizes(architecture, tokens)
    sides = {tokens, *(model_sizes[symbol] for symbol in ("d", "H", "G", "d_h", "d_v"))}
    batch_size = {"B": _batch_size(tokens, sides)} if topic.batched else {}
    return {**model_sizes, "W": window, **extra_sizes, **rotary_sizes, **batch_size, "N": tokens, "M": decoder_tokens}


def _batch_size(tokens: int, taken: Collection[int]) -> int:
    """The number of inputs in a batch that goes with a number of tokens: of BATCH_SIZES, or the next one not taken."""
    in_order = (BATCH_SIZES[(tokens + step) % len(BATCH_SIZES)] for step in range(len(BATCH_SIZES)))
    return next((size for size in in_order if size not in taken), BATCH_SIZES[tokens % len(BATCH_SIZES)])


def check_topic_tokens(key: str, architecture: Architecture, tokens: int) -> int:
    """The number of tokens, checked for a topic: those of the decoder if the topic is about the decoder alone.

    Raises TokensError for a number that the model, or its decoder, has no positions for.
    """
    if not (_is_about_decoder_alone(key) and architecture.encoder_decoder):
        return architecture.check_tokens(tokens)
    if 1 <= tokens <= architecture.max_decoder_tokens:
        return tokens
    problem = _("Tokens must be a whole number from 1 to {most:,}.")
    raise TokensError(problem.format(most=architecture.max_decoder_tokens))


def possible_tokens(key: str, architecture: Architecture, wanted: int) -> int:
    """The number of tokens nearest to `wanted` that the model can take in a topic; a decode step leaves one position.

    It is the one length of a model that reads no other, and a multiple of the topic's `token_step` where there is one
    that the model can take.
    """
    if _is_about_decoder_alone(key):
        return max(1, min(wanted, architecture.max_decoder_tokens - 1))
    longest, step = min(wanted, architecture.max_tokens), TOPICS[key].token_step(architecture)
    even = max(step, longest - longest % step)
    return architecture.fixed_tokens or (even if even <= architecture.max_tokens else longest)


def _is_about_decoder_alone(key: str) -> bool:
    """Whether the topic's tokens are those of a decoder and of no encoder."""
    return TOPICS[key].uses_decoder and not TOPICS[key].reads_two_texts


def check_decoder_tokens(architecture: Architecture, tokens: int, decoder_tokens: int | None) -> int:
    """The number of decoder tokens, checked; if None, `tokens`, but no more than the decoder has positions.

    Raises TokensError for a number below 1 or above those positions, and for any number, though not for None, if the
    model is no encoder-decoder.
    """
    longest = architecture.max_decoder_tokens
    if decoder_tokens is None:
        return min(tokens, longest)
    if not architecture.encoder_decoder:
        problem = _("{model} is not an encoder-decoder model: leave decoder tokens out.")
        raise TokensError(problem.format(model=architecture.name))
    if 1 <= decoder_tokens <= longest:
        return decoder_tokens
    raise TokensError(_("Decoder tokens must be a whole number from 1 to {most:,}.").format(most=longest))


def decode_step_table(architecture: Architecture, tokens: int) -> TensorTable | None:
    """The table of one more token after `tokens` cached ones; None without a KV cache or a position for the new token.

    None too for a bidirectional model without a decoder, and beyond the first chunk of chunked attention, where the new
    token sees its own chunk alone. If the new token no longer fits into a sliding window beside the cached ones, it is
    the table in which the oldest key is dropped.
    """
    if not architecture.has_kv_cache or tokens + 1 > (architecture.chunk or architecture.max_decoder_tokens):
        return None
    window_is_full = architecture.window is not None and tokens + 1 > architecture.window
    return WINDOWED_DECODE_STEP if window_is_full else DECODE_STEP


def whole_model_table(architecture: Architecture) -> TensorTable:
    """The table from tokens to logits, with a gate in the feed-forward block if the model has one."""
    return WHOLE_MODEL if architecture.gated else PLAIN_WHOLE_MODEL


def _as_in_the_model(table: TensorTable, architecture: Architecture) -> TensorTable:
    """The table with the softmax and the embedding of this model: its scale, softcap, position bias, sink and so on."""

    def own(operation: Operation | None) -> Operation | None:
        if isinstance(operation, Softmax):
            return replace(
                operation,
                masked=operation.masked and architecture.causal,
                scale=architecture.score_scale.kind,
                capped=bool(architecture.score_softcap),
                position_bias=operation.of_one_text and bool(architecture.position_bias),
                sink=architecture.has_sinks,
            )
        if isinstance(operation, Lookup):
            is_scaled, positions = architecture.embedding_scale == "root-d", architecture.has_position_table
            return replace(operation, scaled=is_scaled, position_table=positions)
        return operation

    made_by = {tensor.key: own(tensor.made_by) for tensor in table.tensors}
    if all(made_by[tensor.key] == tensor.made_by for tensor in table.tensors):
        return table
    return replace(table, tensors=tuple(replace(tensor, made_by=made_by[tensor.key]) for tensor in table.tensors))


def _head_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """One head, with a mask if the model is causal, else without."""
    return SINGLE_HEAD if architecture.causal else BIDIRECTIONAL_HEAD


def _softmax_table(architecture: Architecture, tokens: int) -> TensorTable:
    """From the scores of one head to its weights, with a mask if the model is causal; then what there is to count."""
    table = MASKED_SOFTMAX if architecture.causal else UNMASKED_SOFTMAX
    return replace(table, counts=softmax_counts(architecture, tokens))


def _layer_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The layer with latent attention if the model has it: with or without a latent for the queries (r_q)."""
    if not architecture.has_latent_attention:
        return ATTENTION_LAYER
    return LATENT_ATTENTION if architecture.has_latent_queries else DIRECT_LATENT_ATTENTION


def _heads_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """All heads at once, with keys and values repeated if query heads share them."""
    return HEADS_AS_DIMENSION if architecture.G == architecture.H else GROUPED_HEADS


def _batched_heads_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The same with a batch dimension."""
    return BATCHED_HEADS if architecture.G == architecture.H else BATCHED_GROUPED_HEADS


def _decode_table(architecture: Architecture, tokens: int) -> TensorTable:
    """A decode step after `tokens` cached tokens; `requires` has refused models that have none."""
    table = decode_step_table(architecture, tokens)
    assert table is not None  # noqa: S101 - see above
    return table


def _head_parameters_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The matrices of one head and of its layer, two products of them, and the largest ranks that these can have.

    No product of a d × d_h matrix with a d_h × d one has a rank above the smaller of d and d_h.
    """
    widths = {"W_QK": "d_h", "W_VO": "d_v"}
    sizes = architecture.all_sizes
    ranks = {key: width if sizes[width] < architecture.d else "d" for key, width in widths.items()}
    counts = (Count(f"rank_{k}", Expression.symbol(w), f"{{{w}}}", unit="entries") for k, w in ranks.items())
    return replace(HEAD_PARAMETERS, counts=tuple(counts))


def _layer_parameters_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The matrices of one layer, W_gate among them if the feed-forward block is gated."""
    return LAYER_PARAMETERS if architecture.gated else PLAIN_LAYER_PARAMETERS


def _whole_model_with_angles(architecture: Architecture, _tokens: int) -> TensorTable:
    """The whole model, and rotary angles if RoPE rotates at least one pair of numbers."""
    table = whole_model_table(architecture)
    rotates_pairs = (
        architecture.rotary is not None and architecture.rotary.width > 1 and architecture.rotary.width % 2 == 0
    )
    angles = (ROTARY_PAIRS["angles"],) if rotates_pairs else ()
    return replace(table, tensors=(*table.tensors, *angles))


def _parameter_count_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The parameters of the whole model as counts; no matrices."""
    return TensorTable("parameter-count", counts=parameter_rows(architecture))


def _costs_table(architecture: Architecture, tokens: int) -> TensorTable:
    """FLOPs of one layer, then bytes of parameters and, if the model has one, of its KV cache; no matrices."""
    cached = cached_numbers(architecture, tokens) if architecture.has_kv_cache else None
    return TensorTable("costs", counts=(*layer_costs(architecture.gated), *memory_costs(cached)))


def _total_parameters(architecture: Architecture, _tokens: int) -> Mapping[str, int]:
    """The symbol `params`: the number of all parameters of the model."""
    return {"params": parameter_counts(architecture).total}


_PLAIN_LAYERS = all_of(require_one_stack, require_own_projections, require_no_experts, require_layers_of_one_shape)

# In the order in which they are taught.
TOPICS: Mapping[str, TopicSpec] = {
    topic.key: topic
    for topic in (
        TopicSpec(
            "single-head",
            "head",
            _head_table,
            all_of(require_own_projections, require_scores_of_queries_and_keys),
            masked=True,
            runnable_table=SINGLE_HEAD,
            tables=(SINGLE_HEAD, BIDIRECTIONAL_HEAD),
        ),
        TopicSpec(
            "bidirectional-head",
            "head",
            lambda _architecture, _tokens: BIDIRECTIONAL_HEAD,
            all_of(require_no_mask, require_own_projections, require_scores_of_queries_and_keys),
            runnable_table=BIDIRECTIONAL_HEAD,
            tables=(BIDIRECTIONAL_HEAD,),
        ),
        TopicSpec(
            "scale-mask-softmax",
            "softmax",
            _softmax_table,
            all_of(
                require_scores_of_queries_and_keys,
                require_weights_that_sum_to_one,
                require_one_mask_for_all_layers,
            ),
            masked=True,
            extra_sizes=lambda _architecture, tokens: {"i": chosen_token(tokens)},
            tables=(MASKED_SOFTMAX, UNMASKED_SOFTMAX),
            counts="under_root masked first_weights chosen_weights last_weights all_weights row_sum weights_sum",
            extra_symbols="i",
        ),
        TopicSpec(
            "attention-layer",
            "layer",
            _layer_table,
            require_scores_of_queries_and_keys,
            masked=True,
            runnable_table=ATTENTION_LAYER,
            tables=(ATTENTION_LAYER, LATENT_ATTENTION, DIRECT_LATENT_ATTENTION),
        ),
        TopicSpec(
            "three-dimensions",
            "layer",
            _heads_table,
            all_of(require_own_projections, require_scores_of_queries_and_keys),
            masked=True,
            tables=(GROUPED_HEADS, HEADS_AS_DIMENSION),
        ),
        TopicSpec(
            "four-dimensions",
            "layer",
            _batched_heads_table,
            all_of(require_own_projections, require_scores_of_queries_and_keys),
            masked=True,
            batched=True,
            tables=(BATCHED_GROUPED_HEADS, BATCHED_HEADS),
        ),
        TopicSpec(
            "decode-step",
            "head",
            _decode_table,
            all_of(require_kv_cache, require_room_for_one_more),
            uses_decoder=True,
            adds_token=True,
            tables=(DECODE_STEP, WINDOWED_DECODE_STEP),
        ),
        TopicSpec(
            "cross-attention",
            "head",
            lambda _architecture, _tokens: CROSS_ATTENTION,
            require_encoder_and_decoder,
            uses_decoder=True,
            reads_two_texts=True,
            tables=(CROSS_ATTENTION,),
        ),
        TopicSpec(
            "rotary-pairs",
            "layer",
            rotary_table,
            all_of(require_one_stack, require_own_projections, require_rotary_pairs),
            tables=(ROTARY_PAIRS,),
            counts="partner unrotated layer_angles layer_rotated",
        ),
        TopicSpec(
            "head-parameters",
            "parameters",
            _head_parameters_table,
            all_of(require_own_projections, require_attention_of_one_shape),
            tables=(HEAD_PARAMETERS,),
            counts="rank_W_QK rank_W_VO",
        ),
        TopicSpec(
            "layer-parameters",
            "parameters",
            _layer_parameters_table,
            _PLAIN_LAYERS,
            tables=(LAYER_PARAMETERS, PLAIN_LAYER_PARAMETERS),
        ),
        TopicSpec(
            "feed-forward-width",
            "counts",
            lambda architecture, _tokens: TensorTable("feed-forward-width", counts=width_counts(architecture)),
            all_of(require_one_stack, require_no_experts, require_layers_of_one_shape, require_known_width),
            bars="blocks-and-widths",
            extra_sizes=width_sizes,
            counts=(
                "width block_parameters gated_width four_d two_thirds multiplied multiples gated_parameters "
                "ungated_parameters"
            ),
            extra_symbols="m percent g",
        ),
        TopicSpec(
            "whole-model",
            "model",
            _whole_model_with_angles,
            all_of(
                require_next_token,
                require_no_experts,
                require_layers_of_one_shape,
                require_norms_before_blocks,
                require_plain_sums,
            ),
            tables=(WHOLE_MODEL, PLAIN_WHOLE_MODEL, ROTARY_PAIRS),
        ),
        TopicSpec(
            "parameter-count",
            "counts",
            _parameter_count_table,
            all_of(require_one_stack, require_named_parts),
            inventory=parameter_inventory,
            counts=(
                "embedding patch_embedding embedding_norm attention sinks feed_forward router one_expert "
                "experts shared_experts dense_feed_forward norms all_norms dense_layers expert_layers "
                "all_layers final_norm head_transform output_head task_head total used embedding_projection pooler"
            ),
        ),
        TopicSpec(
            "experts",
            "parameters",
            experts_table,
            all_of(require_one_stack, require_experts_alike, require_named_parts),
            extra_sizes=lambda architecture, _tokens: expert_sizes(architecture),
            token_step=even_tokens,
            inventory=experts_inventory,
            tables=(EXPERTS,),
            counts="router one_expert experts shared_experts chosen_experts block_stored block_active total used",
            extra_symbols="L_exp rest",
        ),
        TopicSpec(
            "costs",
            "counts",
            _costs_table,
            all_of(_PLAIN_LAYERS, require_scores_of_queries_and_keys, require_cache_of_known_length),
            bars="operations-and-bytes",
            extra_sizes=_total_parameters,
            counts=(
                "queries_flops keys_flops values_flops scores_flops context_flops output_flops "
                "feed_forward_flops weights_16_bit weights_8_bit weights_4_bit cache_16_bit cache_8_bit"
            ),
            extra_symbols="params",
        ),
        TopicSpec(
            "growth",
            "counts",
            lambda architecture, tokens: TensorTable("growth", counts=tuple(growth_counts(architecture, tokens))),
            all_of(_PLAIN_LAYERS, require_scores_of_queries_and_keys, require_attention_to_all),
            bars="sums-and-growth",
            counts=(
                "projections_flops pairwise_flops prefill_flops crossing crossing_of_layer projections_doubled "
                "pairwise_doubled score_entries_doubled kv_cache_doubled decode_flops cache_of_token"
            ),
        ),
    )
}
