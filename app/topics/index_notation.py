"""Index notation: the steps of a layer as patterns of einsum and einops, read and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.models.architecture import Architecture
from app.shapes.operation import Einsum, Rearrange, Repeat, Softmax
from app.shapes.table import OneOf, TensorTable, tensor, written_pattern
from app.topics.attention_layer import LAYER_PROJECTIONS, LAYER_W_O
from app.topics.four_dimensions import FOUR_DIMENSIONS, GROUPED_FOUR_DIMENSIONS
from app.topics.requirements import MORE_THAN_ONE_HEAD, PLAIN_HEAD, Requirement
from app.topics.three_dimensions import GROUPED_HEADS_FIGURES, HEADS_FIGURES, without_repeat
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

_PROJECTED, _SPLIT, _MERGED = "b n d, d f -> b n f", "b n (h e) -> b h n e", "b h n e -> b n (h e)"
_SCORES, _OWN, _SUMS = "b h q e, b h k e -> b h q k", "b h n e, b h n e -> b h n", "b h q k, b h k e -> b q h e"
_SUMS_BY_HEAD = "b h q k, b h k e -> b h q e"
_REPEATED = "b g n e -> b (g r) n e"
_GROUPED_SCORES = "g r q e, g k e -> g r q k"

# Keys and shapes of the drawn tensors are the same as in FOUR_DIMENSIONS.
GROUPED_INDEX_NOTATION = TensorTable(
    "grouped-index-notation",
    (
        tensor("input", "X", "B, N, d", "input"),
        *LAYER_PROJECTIONS,
        tensor("queries", "Q", "B, N, H*d_h", "query", Einsum("input W_Q", _PROJECTED)),
        tensor("queries_by_head", "Q_head", "B, H, N, d_h", "query", Rearrange("queries", _SPLIT)),
        tensor("keys", "K", "B, N, G*d_h", "key", Einsum("input W_K", _PROJECTED)),
        tensor("keys_by_head", "K_head", "B, G, N, d_h", "key", Rearrange("keys", "b n (g e) -> b g n e")),
        tensor("repeated_keys", "K_rep", "B, H, N, d_h", "key", Repeat("keys_by_head", _REPEATED)),
        tensor("values", "V", "B, N, G*d_v", "value", Einsum("input W_V", _PROJECTED)),
        tensor("values_by_head", "V_head", "B, G, N, d_v", "value", Rearrange("values", "b n (g e) -> b g n e")),
        tensor("repeated_values", "V_rep", "B, H, N, d_v", "value", Repeat("values_by_head", _REPEATED)),
        tensor("scores", "S", "B, H, N, N", "score", Einsum("queries_by_head repeated_keys", _SCORES)),
        tensor("own_scores", "s", "B, H, N", "score", Einsum("queries_by_head repeated_keys", _OWN)),
        tensor("weights", "A", "B, H, N, N", "score", Softmax("scores", "b h q k -> b h q k", masked=True)),
        tensor("context", "C", "B, H, N, d_v", "value", Einsum("weights repeated_values", _SUMS_BY_HEAD)),
        tensor("context_by_token", "C_tok", "B, N, H, d_v", "value", Einsum("weights repeated_values", _SUMS)),
        tensor("joined_context", "C_cat", "B, N, H*d_v", "value",
               Rearrange("context_by_token", "b q h e -> b q (h e)")),
        # For one input of the batch, since a sheet has boxes for four sides at most.
        tensor("queries_of_input", "Q_in", "H, N, d_h", "query"),
        tensor("grouped_queries", "Q_G", "G, H/G, N, d_h", "query",
               Rearrange("queries_of_input", "(g r) n e -> g r n e")),
        tensor("keys_of_input", "K_in", "G, N, d_h", "key"),
        tensor("grouped_scores", "S_G", "G, H/G, N, N", "score",
               Einsum("grouped_queries keys_of_input", _GROUPED_SCORES)),
        LAYER_W_O,
        tensor("output", "O", "B, N, d", "output", Einsum("joined_context W_O", "b q f, f d -> b q d")),
    ),
)  # fmt: skip

_OF_GROUPS = ("queries_of_input", "grouped_queries", "keys_of_input", "grouped_scores")
_PLAIN = without_repeat("index-notation", GROUPED_INDEX_NOTATION)
INDEX_NOTATION = replace(_PLAIN, tensors=tuple(each for each in _PLAIN.tensors if each.key not in _OF_GROUPS))


def _summed(table: TensorTable, key: str, right: int, *texts: str) -> OneOf:
    made_by = table[key].made_by
    call = made_by.code() if made_by else ""
    return OneOf(f"summed_in_{key}", tuple(range(1, len(texts) + 1)), right, texts=texts, call=call)


def _questions(table: TensorTable) -> Iterator[OneOf]:
    are_repeated = "repeated_keys" in table.by_key
    keys, values = ("repeated_keys", "repeated_values") if are_repeated else ("keys_by_head", "values_by_head")
    yield _summed(table, "scores", 3, "q, k", "b, h, e", "e", "")
    yield _summed(table, "own_scores", 2, "b, h, n, e", "e", "n", "")
    yield _summed(table, "context_by_token", 4, "q", "b, h, k", "q, e", "k", "")
    yield written_pattern(
        "projection_pattern",
        "einsum({input}, {W_Q})",
        _PROJECTED,
        "n d, d f -> n f",
    )
    yield written_pattern("split_pattern", "rearrange({queries})", _SPLIT, "b n (e h) -> b h n e", "n (h e) -> h n e")
    yield written_pattern(
        "scores_pattern",
        f"einsum({{queries_by_head}}, {{{keys}}})",
        _SCORES,
        "b h q e, b h k e -> b h k q",
        "b h n e, b h n e -> b h n n",
        "h q e, h k e -> h q k",
        "b h q e, b h k e -> q k",
    )
    yield written_pattern(
        "sums_pattern",
        f"einsum({{weights}}, {{{values}}})",
        _SUMS_BY_HEAD,
        "b h q k, b h k e -> b h e q",
        "b h n n, b h n e -> b h n e",
        "h q k, h k e -> h q e",
        "b h q k, b h k e -> q e",
    )
    yield written_pattern("merge_pattern", "rearrange({context})", _MERGED, "b h n e -> b n (e h)", "h n e -> n (h e)")
    if "grouped_scores" in table.by_key:
        yield written_pattern("repeat_pattern", "repeat({keys_by_head})", _REPEATED, "b g n e -> b (r g) n e")
        yield written_pattern(
            "grouped_pattern",
            "einsum({grouped_queries}, {keys_of_input})",
            _GROUPED_SCORES,
            "g r q e, g k e -> g r k q",
            "g r n e, g n e -> g r n n",
            "g r q e, g k e -> q k",
            "g r q e, g r k e -> g r q k",
        )


def _index_notation_table(architecture: Architecture, _tokens: int) -> TensorTable:
    table = INDEX_NOTATION if architecture.G == architecture.H else GROUPED_INDEX_NOTATION
    if architecture.G == 1:
        table = replace(table, tensors=tuple(each for each in table.tensors if each.key not in _OF_GROUPS))
    return replace(table, questions=tuple(_questions(table)))


_SEVERAL_TOKENS = Requirement(
    lambda _architecture, tokens: tokens > 1,
    N_("With one token, {model} has a single query and a single key: choose at least {number} tokens."),
    lambda _architecture, _tokens: 2,
)
_DRAWN = ("deck-queries", "deck-keys", "deck-scores", "deck-context", "deck-merged")


def _drawn(plans: Iterable[FigurePlan]) -> tuple[FigurePlan, ...]:
    return tuple(plan for plan in plans if plan.key in _DRAWN)


TOPIC = Topic(
    "index-notation",
    "layer",
    _index_notation_table,
    (*PLAIN_HEAD, MORE_THAN_ONE_HEAD, _SEVERAL_TOKENS),
    masked=True,
    batched=True,
    tables=tuple(replace(t, questions=tuple(_questions(t))) for t in (GROUPED_INDEX_NOTATION, INDEX_NOTATION)),
    figures={INDEX_NOTATION.key: _drawn(HEADS_FIGURES), GROUPED_INDEX_NOTATION.key: _drawn(GROUPED_HEADS_FIGURES)},
    drawn_with={INDEX_NOTATION.key: FOUR_DIMENSIONS, GROUPED_INDEX_NOTATION.key: GROUPED_FOUR_DIMENSIONS},
)
