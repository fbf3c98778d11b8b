"""What topics require of a model: each row has a predicate, and the sentence that refuses a model failing it.

Many models have the right shapes for a topic that isn't true of them: these rows keep a sheet from showing a matrix, a
sum or an order of steps that its model doesn't have. A row used by only one topic is in that topic's module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.models.architecture import MAX_TOKENS, Architecture, LayerKind, LayerRun
from app.refusal import Refusal
from app.shapes.parameter_inventory import is_told_whole
from app.translation import N_, gettext

Number = Callable[[Architecture, int], int]


class TopicError(Refusal):
    """A topic without a table for this model or number of tokens.

    `tokens` is a number that would work, if one is known; the message includes it.
    """

    def __init__(self, reason: str, tokens: int | None = None) -> None:
        self.tokens = tokens
        super().__init__(reason)


@dataclass(frozen=True)
class Requirement:
    """A condition on a model and a number of tokens, and the sentence that refuses one failing it.

    The sentence, marked by N_, also says what to choose instead.
    """

    is_met: Callable[[Architecture, int], bool]
    sentence: str
    number: Number = lambda _architecture, tokens: tokens


def unmet(requirements: Iterable[Requirement], architecture: Architecture, tokens: int) -> str | None:
    """The sentence of the first requirement that the model or the tokens fail, or None."""
    for requirement in requirements:
        if not requirement.is_met(architecture, tokens):
            return gettext(requirement.sentence).format(
                model=architecture.name,
                tokens=f"{tokens:,}",
                number=f"{requirement.number(architecture, tokens):,}",
                attention_problem=architecture.attention_problem,
                layer_problem=architecture.layer_problem,
            )
    return None


def require(requirements: Iterable[Requirement], architecture: Architecture, tokens: int) -> None:
    """Raise a TopicError for the first requirement that the model or the tokens fail."""
    if reason := unmet(requirements, architecture, tokens):
        raise TopicError(reason)


def visible_keys(run: LayerRun, tokens: int) -> int:
    """How many keys the token after `tokens` others sees in these layers, including its own."""
    if run.chunk:
        return tokens % run.chunk + 1
    return min(tokens + 1, run.window or tokens + 1)


def _most_with_one_mask(architecture: Architecture, _tokens: int) -> int:
    runs = architecture.stacks[0].attending
    reaches = {architecture.reach_of(run.window) for run in runs if run.window}
    is_same_window = architecture.causal and len({run.window for run in runs}) == 1
    return min([*(() if is_same_window else reaches), *(run.chunk for run in runs if run.chunk)], default=MAX_TOKENS)


def _see_alike(architecture: Architecture, tokens: int) -> bool:
    runs = architecture.stacks[-1].attending
    in_first_chunk = all(tokens + 1 <= run.chunk for run in runs if run.chunk)
    return len({visible_keys(run, tokens) for run in runs}) <= 1 and in_first_chunk


def _most_cached_alike(architecture: Architecture, _tokens: int) -> int:
    windows = {run.window for run in architecture.runs if run.window}
    chunks = (run.chunk for run in architecture.runs if run.chunk)
    return min([*(windows if len(windows) > 1 else ()), *chunks], default=MAX_TOKENS)


def _are_matrices_alike(architecture: Architecture, _tokens: int) -> bool:
    matrices = {tuple(spec for spec in kind.parameters if not spec.is_vector) for kind in architecture.kinds}
    return len(matrices) <= 1 and all(spec.part.row not in ("", "mixer") for of_layer in matrices for spec in of_layer)


def _are_attention_matrices_alike(architecture: Architecture, _tokens: int) -> bool:
    kinds = architecture.stacks[0].kinds
    of_kind = (kind.rows.get("attention", ()) for kind in kinds)
    if architecture.is_hybrid:
        of_kind = (specs for specs in of_kind if specs)
    return len({tuple(spec for spec in specs if not spec.is_vector) for specs in of_kind}) <= 1


def _predicts_next_tokens(architecture: Architecture, _tokens: int) -> bool:
    logits = tuple(str(dim) for dim in architecture.task_head.logits or ())
    return architecture.causal and not architecture.encoder_decoder and logits == ("N", "V")


def _has_norms_before_blocks(architecture: Architecture, _tokens: int) -> bool:
    between = not {"embedding_norm", "embedding_projection"}.isdisjoint(architecture.outside_rows)
    return architecture.norm_placement == "pre" and not between and architecture.has_final_norm


def _have_rows(architecture: Architecture, _tokens: int) -> bool:
    kinds = architecture.stacks[0].kinds
    if architecture.has_mixers:
        return _are_rows_alike(architecture, kinds) and is_told_whole(architecture)
    mixed = any(kind.has_experts for kind in kinds)
    may_differ = {"feed_forward", "router", "experts", "shared_experts"} if mixed else {"norms"}
    rest = {tuple(spec for spec in kind.parameters if spec.part.row not in may_differ) for kind in kinds}
    has_rows = not any("" in rows for rows in (architecture.outside_rows, *(kind.rows for kind in kinds)))
    is_told = not architecture.shapes_only or is_told_whole(architecture)
    return has_rows and len(rest) == 1 and len(kinds) <= 2 and is_told


def _are_rows_alike(architecture: Architecture, kinds: Sequence[LayerKind]) -> bool:
    # Kinds of layers differ in which rows they have, not in what is in a row.
    of_row = {(row, specs) for kind in kinds for row, specs in kind.rows.items()}
    rows = [row for row, _specs in of_row]
    blocks = {len({"feed_forward", "experts"} & kind.rows.keys()) for kind in kinds}
    has_rows = "" not in rows and "" not in architecture.outside_rows
    return has_rows and len(rows) == len(set(rows)) and len(blocks) == 1


ATTENTION = Requirement(lambda architecture, _tokens: not architecture.attention_problem, "{attention_problem}")
ORDINARY_LAYERS = Requirement(lambda architecture, _tokens: not architecture.layer_problem, "{layer_problem}")
KNOWN_COMPUTATION = Requirement(
    lambda architecture, _tokens: not architecture.shapes_only,
    N_(
        "Of {model} only shapes are known here, not where it has its norms or how it encodes positions: choose a sheet "
        "about its attention, or a model such as GPT-2 or LLaMA 7B."
    ),
)
OWN_PROJECTIONS = Requirement(
    lambda architecture, _tokens: not architecture.has_latent_attention,
    N_(
        "{model} has latent attention: the keys and values of all heads are computed from one latent vector, so a "
        "head has no W_K and W_V of its own. Choose a sheet about the whole attention layer of {model}, or a model "
        "such as LLaMA 7B."
    ),
)
MORE_THAN_ONE_HEAD = Requirement(
    lambda architecture, _tokens: architecture.H > 1,
    N_("{model} has one attention head: choose a model with several, such as GPT-2."),
)
# Disentangled attention adds several products (He et al., arXiv:2006.03654).
SCORES_OF_QUERIES_AND_KEYS = Requirement(
    lambda architecture, _tokens: architecture.position_bias != "disentangled",
    N_(
        "{model} has disentangled attention: its scores add products with embeddings of relative positions to "
        "those of queries and keys. Choose a model such as BERT base."
    ),
)
WEIGHTS_THAT_SUM_TO_ONE = Requirement(  # a sink's weight is dropped
    lambda architecture, _tokens: not architecture.has_sinks,
    N_(
        "Each head of {model} has an attention sink, which takes a share of every softmax, so the weights of a "
        "token sum to less than 1. Choose a model without sinks, such as GPT-2."
    ),
)
MASK_HIDES_SOMETHING = Requirement(
    lambda architecture, tokens: not architecture.causal or tokens > 1,
    N_("With one token, the causal mask of {model} hides nothing: choose at least 2 tokens."),
)
ONE_MASK_FOR_ALL_LAYERS = Requirement(
    lambda architecture, tokens: tokens <= _most_with_one_mask(architecture, tokens),
    N_(
        "With more than {number} tokens, attention in some layers of {model} does not reach all of them: choose at "
        "most {number} tokens."
    ),
    _most_with_one_mask,
)
NO_MASK = Requirement(
    lambda architecture, _tokens: not architecture.causal,
    N_("In {model} a token attends to no later token: choose a model with bidirectional attention, such as BERT base."),
)
KV_CACHE = Requirement(
    lambda architecture, _tokens: architecture.has_kv_cache,
    N_(
        "{model} is used without a KV cache: it processes its whole input at once. Choose a model that caches keys "
        "and values, such as GPT-2."
    ),
)
CACHE_IN_ALL_LAYERS = Requirement(
    lambda architecture, _tokens: not architecture.is_hybrid,
    N_(
        "Only the layers of {model} with attention cache keys and values; the others keep a state of fixed size. "
        "Choose a model with attention in all layers, such as LLaMA 7B."
    ),
)
CACHE_OF_KEYS_AND_VALUES = Requirement(
    lambda architecture, _tokens: not architecture.has_latent_attention,
    N_(
        "{model} caches a latent vector for each token instead of keys and values: choose a sheet about its whole "
        "attention layer, or a model with an ordinary KV cache, such as LLaMA 7B."
    ),
)
ROOM_FOR_ONE_MORE = Requirement(
    lambda architecture, tokens: tokens < architecture.max_decoder_tokens,
    N_("{model} has {number} positions, so none is left for one more token: choose fewer than {number} tokens."),
    lambda architecture, _tokens: architecture.max_decoder_tokens,
)
ONE_NUMBER_OF_VISIBLE_KEYS = Requirement(
    _see_alike,
    N_(
        "After {tokens} tokens, not all layers of {model} see the same number of keys: some see {number} at most. "
        "Choose fewer than {number} tokens."
    ),
    lambda architecture, _tokens: min(
        limit for run in architecture.stacks[-1].attending for limit in (run.window, run.chunk) if limit
    ),
)
CACHE_OF_KNOWN_LENGTH = Requirement(
    lambda architecture, tokens: not architecture.has_kv_cache or tokens <= _most_cached_alike(architecture, tokens),
    N_("Layers of {model} cache different numbers of keys beyond {number} tokens: choose at most {number} tokens."),
    _most_cached_alike,
)
ENCODER_AND_DECODER = Requirement(
    lambda architecture, _tokens: architecture.encoder_decoder,
    N_("{model} has no cross-attention: choose an encoder-decoder model, such as T5 small."),
)
ONE_STACK = Requirement(
    lambda architecture, _tokens: len(architecture.stacks) == 1,
    N_(
        "{model} has several stacks of layers, such as encoder layers and decoder layers, which differ: choose a model "
        "with one stack of layers, such as GPT-2."
    ),
)
NO_EXPERTS = Requirement(
    lambda architecture, _tokens: not architecture.has_experts,
    N_(
        "{model} has a mixture of experts in place of one feed-forward block: choose a sheet that counts its "
        "parameters, or a model without experts, such as LLaMA 7B."
    ),
)
NO_MIXERS = Requirement(
    lambda architecture, _tokens: not architecture.has_mixers,
    N_(
        "Besides attention, {model} has blocks that mix tokens in another way, and this sheet does not count their "
        "operations: choose a model such as LLaMA 7B."
    ),
)
LAYERS_OF_ONE_SHAPE = Requirement(
    _are_matrices_alike,
    N_(
        "Layers of {model} have other matrices besides those of attention and of the feed-forward block: choose a "
        "model whose layers are all alike, such as LLaMA 7B."
    ),
)
ATTENTION_OF_ONE_SHAPE = Requirement(
    _are_attention_matrices_alike,
    N_("The layers of {model} differ in their attention: choose a model whose layers are all alike, such as LLaMA 7B."),
)
NEXT_TOKEN = Requirement(
    _predicts_next_tokens,
    N_("{model} does not predict a next token at every position: choose a causal language model, such as GPT-2."),
)
NORMS_BEFORE_BLOCKS = Requirement(
    _has_norms_before_blocks,
    N_(
        "{model} has its norms and residual connections in other places than this sheet: choose a model that "
        "normalizes before attention and before the feed-forward block, such as GPT-2 or LLaMA 7B."
    ),
)
# XGLM, which also adds sinusoids, scales its embeddings; Granite its residual connections.
PLAIN_SUMS = Requirement(
    lambda architecture, _tokens: architecture.embedding_scale != "stated" and not architecture.scales_residuals,
    N_(
        "{model} multiplies its embeddings or residual connections by constants that this sheet does not show: "
        "choose a model such as GPT-2 or LLaMA 7B."
    ),
)
NAMED_PARTS = Requirement(
    _have_rows,
    N_(
        "{model} has parameters that this sheet has no row or no words for: choose a model whose layers consist of "
        "attention, a feed-forward block and norms, such as LLaMA 7B."
    ),
)

PLAIN_HEAD = (OWN_PROJECTIONS, SCORES_OF_QUERIES_AND_KEYS)
PLAIN_LAYERS = (ONE_STACK, OWN_PROJECTIONS, NO_EXPERTS, LAYERS_OF_ONE_SHAPE)
