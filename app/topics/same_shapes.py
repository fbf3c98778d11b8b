"""What shapes can't show: right and wrong lines with results of the same shape, and where their numbers come from.

A view or softmax over the wrong dimensions, a reversed mask and transposed weights raise no error. Tokens, heads,
features and dimensions are counted from 0.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> sizes = {**gpt2.all_sizes, **chosen(gpt2, 20), "N": 20}
>>> {count.key: count.size("count", sizes) for count in same_shapes(gpt2, 20).counts}["viewed_token"]
8
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from app.algebra.expression import ONE, Expression
from app.models.architecture import MAX_TOKENS, Architecture
from app.shapes.operation import Softmax, WrongView
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable, tensor
from app.topics.requirements import MORE_THAN_ONE_HEAD, WEIGHTS_THAT_SUM_TO_ONE, Requirement
from app.topics.three_dimensions import THREE_DIMENSIONS
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

FEWEST_TOKENS = 5  # with fewer, what a mask hides is the same number in more than one way
_N, _H, _D_H, _I, _J, _F = map(Expression.symbol, ("N", "H", "d_h", "i", "j", "f"))

# The queries of all heads, split correctly and incorrectly, and the softmax of the scores.
SAME_SHAPES = TensorTable(
    "same-shapes",
    (
        tensor("queries", "Q", "N, H*d_h", "query"),
        THREE_DIMENSIONS["split_queries"],
        THREE_DIMENSIONS["queries_by_head"],
        tensor("viewed_queries", "Q_wrong", "H, N, d_h", "query", WrongView("queries", "n (h e) -> h n e")),
        tensor("scores", "S", "H, N, N", "score"),
        tensor("weights", "A", "H, N, N", "score", Softmax("scores", "h n m -> h n m", masked=True)),
    ),
)


def chosen(architecture: Architecture, tokens: int) -> Mapping[str, int]:
    """The token i, the head j and the feature f that a sheet asks about, counted from 0."""
    heads, i = architecture.H, tokens // 3

    def rank(head: int) -> tuple[int, int]:
        token, other_head = divmod(head * tokens + i, heads)
        return ((token == i) + (other_head == head), abs(head - heads // 2))

    return {"i": i, "j": min(range(1, heads), key=rank, default=0), "f": min(3, architecture.d_h - 1)}


def same_shapes(architecture: Architecture, tokens: int) -> TensorTable:
    """The tensors of right and wrong lines, then the counts for this model and this many tokens."""
    return replace(SAME_SHAPES, counts=tuple(_counts(architecture, tokens)))


def _counts(architecture: Architecture, tokens: int) -> Iterator[Count]:
    sizes = chosen(architecture, tokens)
    token = (sizes["j"] * tokens + sizes["i"]) // architecture.H
    place = _J * _N + _I
    yield _index("view_column", _J * _D_H + _F, "{j} · {d_h} + {f}")
    rounded = "({j} · {N} + {i})/{H}, {rounded-down}"
    yield replace(_index("viewed_token", place / _H, rounded), rounds=True, rounded="down")
    left = FromParts(place - _H * PARTS_SUM, ("viewed_token",))
    formula = "{j} · {N} + {i} − {H} · {viewed_token}"
    yield replace(_index("viewed_head", place - _H * token, formula), rounds=True, made_from=left)
    for key, dims in (("softmax_dim", 3), ("softmax_dim_batched", 4)):
        yield replace(_index(key, Expression.number(dims - 1)), hint="dim-of-softmax", dims=dims)
    if architecture.causal:
        yield Count("seen_keys", _I + ONE, "{i} + 1", unit="entries")
        yield Count("reversed_keys", _N - _I - ONE, "{N} − {i} − 1", unit="entries")
        yield Count("turned_weights", _N - _I, "{N} − {i}", unit="entries")


def _index(key: str, total: Expression, formula: str = "") -> Count:
    return Count(key, total, formula, unit="index")


def _most_under_one_mask(architecture: Architecture, _tokens: int) -> int:
    limits = [limit for run in architecture.stacks[0].attending for limit in (run.window, run.chunk) if limit]
    return min(limits, default=MAX_TOKENS) if architecture.causal else MAX_TOKENS


_ENOUGH_TOKENS = Requirement(
    lambda _architecture, tokens: tokens >= FEWEST_TOKENS,
    N_("With {tokens} tokens, several answers about {model} are the same number: choose at least {number} tokens."),
    lambda _architecture, _tokens: FEWEST_TOKENS,
)
_CAUSAL_MASK_ALONE = Requirement(
    lambda architecture, tokens: tokens <= _most_under_one_mask(architecture, tokens),
    N_(
        "With more than {number} tokens, layers of {model} hide more than the causal mask does: choose at most "
        "{number} tokens."
    ),
    _most_under_one_mask,
)


TOPIC = Topic(
    "same-shapes",
    "layer",
    same_shapes,
    (MORE_THAN_ONE_HEAD, WEIGHTS_THAT_SUM_TO_ONE, _ENOUGH_TOKENS, _CAUSAL_MASK_ALONE),
    masked=True,
    extra_sizes=chosen,
    extra_symbols="i j f",
    tables=(SAME_SHAPES,),
    counts="view_column viewed_token viewed_head softmax_dim softmax_dim_batched seen_keys reversed_keys "
    "turned_weights",
    figures={
        SAME_SHAPES.key: (
            FigurePlan("deck-queries", "queries", ("split_queries", "queries_by_head")),
            FigurePlan("deck-wrong-view", "queries", ("viewed_queries",)),
            FigurePlan("deck-softmax", "scores", ("weights",)),
        ),
    },
)
