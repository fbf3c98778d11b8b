"""What topics require of a model: each function raises TopicError with a sentence that says why, and what to choose.

Shapes alone are true of many models for which a topic is not: these functions keep a sheet from showing a matrix, a
sum or an order of steps that its model does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.models.architecture import Architecture, LayerKind, LayerRun
from app.translation import gettext as _

Requirement = Callable[[Architecture, int], None]


class TopicError(ValueError):
    """A topic that this model, or this number of tokens, has no table for; one sentence that says why."""


def all_of(*requirements: Requirement) -> Requirement:
    """A requirement that is met if all of these are; the first one that is not raises its error."""

    def require_each(architecture: Architecture, tokens: int) -> None:
        """Raise the TopicError of the first requirement that the model does not meet."""
        for require in requirements:
            require(architecture, tokens)

    return require_each


def require_own_projections(architecture: Architecture, tokens: int) -> None:
    """Refuse latent attention, in which a head has no W_K and W_V."""
    if architecture.has_latent_attention:
        message = _(
            "{model} has latent attention: the keys and values of all heads are computed from one latent vector, so a "
            "head has no W_K and W_V of its own. Choose a sheet about the whole attention layer of {model}, or a model "
            "such as LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_scores_of_queries_and_keys(architecture: Architecture, tokens: int) -> None:
    """Refuse disentangled attention, whose scores are the sum of several products (He et al., arXiv:2006.03654)."""
    if architecture.position_bias == "disentangled":
        message = _(
            "{model} has disentangled attention: its scores add products with embeddings of relative positions to "
            "those of queries and keys. Choose a model such as BERT base."
        )
        raise TopicError(message.format(model=architecture.name))


def require_weights_that_sum_to_one(architecture: Architecture, tokens: int) -> None:
    """Refuse attention sinks: their weight is dropped, so that the others sum to less than 1."""
    if architecture.has_sinks:
        message = _(
            "Each head of {model} has an attention sink, which takes a share of every softmax, so the weights of a "
            "token sum to less than 1. Choose a model without sinks, such as GPT-2."
        )
        raise TopicError(message.format(model=architecture.name))


def require_one_mask_for_all_layers(architecture: Architecture, tokens: int) -> None:
    """Refuse a number of tokens with which layers hide different entries, or a causal mask hides none.

    A causal model needs two tokens. One with the same sliding window in all layers takes any number; every other model
    with windows or chunks no more than the shortest of them reaches, of an encoder-decoder those of the encoder.
    """
    if architecture.causal and tokens < 2:
        message = _("With one token, the causal mask of {model} hides nothing: choose at least 2 tokens.")
        raise TopicError(message.format(model=architecture.name))
    runs = architecture.stacks[0].runs
    reaches = {architecture.reach_of(run.window) for run in runs if run.window}
    is_same_window = architecture.causal and len({run.window for run in runs}) == 1
    limits = [*(() if is_same_window else reaches), *(run.chunk for run in runs if run.chunk)]
    if limits and tokens > min(limits):
        message = _(
            "With more than {most} tokens, attention in some layers of {model} does not reach all of them: choose at "
            "most {most} tokens."
        )
        raise TopicError(message.format(model=architecture.name, most=f"{min(limits):,}"))


def require_no_mask(architecture: Architecture, tokens: int) -> None:
    """Refuse a causal model."""
    if architecture.causal:
        message = _(
            "In {model} a token attends to no later token: choose a model with bidirectional attention, such as BERT "
            "base."
        )
        raise TopicError(message.format(model=architecture.name))


def require_kv_cache(architecture: Architecture, tokens: int) -> None:
    """Refuse a model that does not generate token by token, and one that caches a latent instead of keys and values."""
    if not architecture.has_kv_cache:
        message = _(
            "{model} is used without a KV cache: it processes its whole input at once. Choose a model that caches keys "
            "and values, such as GPT-2."
        )
        raise TopicError(message.format(model=architecture.name))
    if architecture.has_latent_attention:
        message = _(
            "{model} caches a latent vector for each token instead of keys and values: choose a sheet about its whole "
            "attention layer, or a model with an ordinary KV cache, such as LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_room_for_one_more(architecture: Architecture, tokens: int) -> None:
    """Refuse a number of cached tokens that leaves no position for the next, or that not all layers see.

    Refused too is a next token beyond the first chunk of chunked attention. Of an encoder-decoder, the decoder counts.
    """
    most = architecture.max_decoder_tokens
    if tokens + 1 > most:
        message = _(
            "{model} has {most} positions, so none is left for one more token: choose fewer than {most} tokens."
        )
        raise TopicError(message.format(model=architecture.name, most=f"{most:,}"))
    runs = architecture.stacks[-1].runs  # of an encoder-decoder, the decoder's
    in_first_chunk = all(tokens + 1 <= run.chunk for run in runs if run.chunk)
    if len({visible_keys(run, tokens) for run in runs}) > 1 or not in_first_chunk:
        least = min(limit for run in runs for limit in (run.window, run.chunk) if limit)
        message = _(
            "After {tokens} tokens, not all layers of {model} see the same number of keys: some see {least} at most. "
            "Choose fewer than {least} tokens."
        )
        raise TopicError(message.format(model=architecture.name, tokens=f"{tokens:,}", least=f"{least:,}"))


def visible_keys(run: LayerRun, tokens: int) -> int:
    """How many keys the token after `tokens` others sees in these layers, including its key.

    A sliding window shows the latest; a chunk those from its beginning on.
    """
    if run.chunk:
        return tokens % run.chunk + 1
    return min(tokens + 1, run.window or tokens + 1)


def require_cache_of_known_length(architecture: Architecture, tokens: int) -> None:
    """Refuse more tokens than the shortest chunk, or than the shortest window if there are windows of several lengths.

    A model without a KV cache is not refused.
    """
    runs = [run for stack in architecture.stacks for run in stack.runs]
    windows = {run.window for run in runs if run.window}
    limits = [*(windows if len(windows) > 1 else ()), *(run.chunk for run in runs if run.chunk)]
    if architecture.has_kv_cache and limits and tokens > min(limits):
        message = _(
            "Layers of {model} cache different numbers of keys beyond {least} tokens: choose at most {least} tokens."
        )
        raise TopicError(message.format(model=architecture.name, least=f"{min(limits):,}"))


def require_encoder_and_decoder(architecture: Architecture, tokens: int) -> None:
    """Refuse a model that is no encoder-decoder."""
    if not architecture.encoder_decoder:
        message = _("{model} has no cross-attention: choose an encoder-decoder model, such as T5 small.")
        raise TopicError(message.format(model=architecture.name))


def require_one_stack(architecture: Architecture, tokens: int) -> None:
    """Refuse an encoder-decoder, which has two kinds of layers."""
    if architecture.encoder_decoder:
        message = _(
            "{model} has encoder layers and decoder layers, which differ: choose a model with one stack of layers, "
            "such as GPT-2 or BERT base."
        )
        raise TopicError(message.format(model=architecture.name))


def require_no_experts(architecture: Architecture, tokens: int) -> None:
    """Refuse a model with a mixture of experts in any layer."""
    if architecture.has_experts:
        message = _(
            "{model} has a mixture of experts in place of one feed-forward block: choose a sheet that counts its "
            "parameters, or a model without experts, such as LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_layers_of_one_shape(architecture: Architecture, tokens: int) -> None:
    """Refuse a model whose layers differ in their matrices, or have any besides those of attention and feed-forward.

    Vectors do not count: norms, biases and sinks.
    """
    matrices = {
        tuple(spec for spec in kind.parameters if not spec.is_vector)
        for stack in architecture.stacks
        for kind in stack.kinds
    }
    if len(matrices) > 1 or any(not spec.part.row for of_layer in matrices for spec in of_layer):
        message = _(
            "Layers of {model} have other matrices besides those of attention and of the feed-forward block: choose a "
            "model whose layers are all alike, such as LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_attention_of_one_shape(architecture: Architecture, tokens: int) -> None:
    """Refuse a model whose layers differ in the matrices of attention; an encoder-decoder is judged by its encoder."""
    matrices = {
        tuple(spec for spec in kind.rows.get("attention", ()) if not spec.is_vector)
        for kind in architecture.stacks[0].kinds
    }
    if len(matrices) > 1:
        message = _(
            "The layers of {model} differ in their attention: choose a model whose layers are all alike, such as "
            "LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_next_token(architecture: Architecture, tokens: int) -> None:
    """Refuse a model without logits over the vocabulary at each position, or whose tokens see later ones."""
    logits = tuple(str(dim) for dim in architecture.task_head.logits or ())
    if not architecture.causal or architecture.encoder_decoder or logits != ("N", "V"):
        message = _(
            "{model} does not predict a next token at every position: choose a causal language model, such as GPT-2."
        )
        raise TopicError(message.format(model=architecture.name))


def require_norms_before_blocks(architecture: Architecture, tokens: int) -> None:
    """Refuse a model whose layers are not x + attention(norm(x)), then the same with the feed-forward block.

    Refused too are a norm or projection between the token embedding and the first layer, and a missing final norm.
    """
    between = not {"embedding_norm", "embedding_projection"}.isdisjoint(architecture.outside_rows)
    if architecture.norm_placement != "pre" or between or not architecture.has_final_norm:
        message = _(
            "{model} has its norms and residual connections in other places than this sheet: choose a model that "
            "normalizes before attention and before the feed-forward block, such as GPT-2 or LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_plain_sums(architecture: Architecture, tokens: int) -> None:
    """Refuse a config that scales embeddings (XGLM, which also adds sinusoids) or residual connections (Granite)."""
    if architecture.embedding_scale == "stated" or architecture.scales_residuals:
        message = _(
            "{model} multiplies its embeddings or residual connections by constants that this sheet does not show: "
            "choose a model such as GPT-2 or LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def require_named_parts(architecture: Architecture, tokens: int) -> None:
    """Refuse a model whose parameters do not all belong to a row of the parameter-count sheet.

    Its layers may differ in having experts or not, or in their number of norms, but in nothing else.
    """
    kinds = architecture.stacks[0].kinds
    without_row = any("" in rows for rows in (architecture.outside_rows, *(kind.rows for kind in kinds)))
    if without_row or not _differ_in_feed_forward_or_norms(kinds):
        message = _(
            "{model} has parameters that this sheet has no row for: choose a model whose layers consist of attention, "
            "a feed-forward block and norms, such as LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


def _differ_in_feed_forward_or_norms(kinds: Sequence[LayerKind]) -> bool:
    """Whether there are at most two kinds of layers, which differ in one thing alone: having experts, or norms."""
    mixed = any(kind.has_experts for kind in kinds)
    may_differ = {"feed_forward", "router", "experts", "shared_experts"} if mixed else {"norms"}
    rest = {tuple(spec for spec in kind.parameters if spec.part.row not in may_differ) for kind in kinds}
    return len(rest) == 1 and len(kinds) <= 2


PLAIN_LAYERS = all_of(require_one_stack, require_own_projections, require_no_experts, require_layers_of_one_shape)
