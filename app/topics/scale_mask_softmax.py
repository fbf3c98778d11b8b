"""What can be counted between one head's scores and weights: masked entries, weights above 0, their sums.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> {count.key: count.total.size({"N": 5, "i": 2, "d_h": 64}) for count in softmax_counts(gpt2, 5)}["masked"]
10
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.algebra.expression import ONE, Expression
from app.models.architecture import Architecture
from app.shapes.operation import Softmax
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable, tensor
from app.topics.requirements import (
    MASK_HIDES_SOMETHING,
    ONE_MASK_FOR_ALL_LAYERS,
    SCORES_OF_QUERIES_AND_KEYS,
    WEIGHTS_THAT_SUM_TO_ONE,
)
from app.topics.single_head import QUERIES_AND_KEYS, SINGLE_HEAD, UNMASKED_WEIGHTS
from app.topics.topic import FigurePlan, Topic

_N, _W = Expression.symbol("N"), Expression.symbol("W")
MASK_OF_ONE_HEAD = ("mask", "masked", "weights", "row_sum")  # what the exhibit of a real head asks for


def chosen_token(tokens: int) -> int:
    """The number of the token, counted from 1, whose weights a sheet asks for: `tokens` // 3 + 1."""
    return tokens // 3 + 1


def softmax_counts(architecture: Architecture, tokens: int) -> tuple[Count, ...]:
    """The size under the root, masked entries, weights above 0 (of three tokens and of all), and sums of weights."""
    counts = [*_masked(architecture, tokens), *_weights_above_zero(architecture, tokens)]
    if divides_by_root(architecture):
        counts.insert(0, _entries("under_root", Expression.symbol("d_h"), "{d_h}"))
    row_sum = _entries("row_sum", ONE, "")
    return (*counts, row_sum, _entries("weights_sum", _N, "{N} · {row_sum}", FromParts(_N * PARTS_SUM, ("row_sum",))))


def divides_by_root(architecture: Architecture) -> bool:
    """Whether the scores are divided by √d_h, perhaps among other factors."""
    return architecture.score_scale.kind in ("inverse-sqrt", "yarn")


def _window(architecture: Architecture, tokens: int) -> int | None:
    window = architecture.window
    return window if architecture.causal and window is not None and window < tokens else None


def _masked(architecture: Architecture, tokens: int) -> Iterator[Count]:
    if not architecture.causal:
        return
    masked, formula = _triangle(_N - 1), "{N} · ({N} − 1)/2"
    if _window(architecture, tokens):
        masked += _triangle(_N - _W)
        formula += " + ({N} − {W}) · ({N} − {W} + 1)/2"
    yield _entries("masked", masked, formula)


def _weights_above_zero(architecture: Architecture, tokens: int) -> Iterator[Count]:
    window, i = _window(architecture, tokens), Expression.symbol("i")
    if not architecture.causal:
        attended = {"first": _N, "chosen": _N, "last": _N}
    else:
        is_cut = window is not None and chosen_token(tokens) > window
        attended = {"first": ONE, "chosen": _W if is_cut else i, "last": _W if window else _N}
    for which, number in attended.items():
        yield _entries(f"{which}_weights", number, f"{{{number}}}" if number.symbols else "")
    if architecture.causal:
        masked = next(_masked(architecture, tokens)).total
        left = FromParts(_N * _N - PARTS_SUM, ("masked",))
        yield _entries("all_weights", _N * _N - masked, "{N} · {N} − {masked}", left)
    else:
        yield _entries("all_weights", _N * _N, "{N} · {N}")


def _triangle(side: Expression) -> Expression:
    return side * (side + 1) / 2


def _entries(key: str, total: Expression, formula: str, made_from: FromParts | None = None) -> Count:
    return Count(key, total, formula, made_from, unit="entries")


# From scores to weights in one head (arXiv:1706.03762, section 3.2): before the softmax, the mask's entry, 0 or −∞, is
# added to each score. All heads of a layer share the mask.
SCALE_MASK_SOFTMAX = TensorTable(
    "scale-mask-softmax",
    (
        *QUERIES_AND_KEYS,
        SINGLE_HEAD["scores"],
        tensor("mask", "M", "N, N", "score"),
        tensor("weights", "A", "N, N", "score", Softmax("scores mask", "n m, n m -> n m", masked=True)),
    ),
)

# The same without a mask, as in an encoder.
UNMASKED_SOFTMAX = TensorTable("unmasked-softmax", (*QUERIES_AND_KEYS, SINGLE_HEAD["scores"], UNMASKED_WEIGHTS))

_PRODUCT_OF_SCORES = FigurePlan("product", "queries", ("scores",))


def _softmax_table(architecture: Architecture, tokens: int) -> TensorTable:
    table = SCALE_MASK_SOFTMAX if architecture.causal else UNMASKED_SOFTMAX
    return replace(table, counts=softmax_counts(architecture, tokens))


TOPIC = Topic(
    "scale-mask-softmax",
    "softmax",
    _softmax_table,
    (SCORES_OF_QUERIES_AND_KEYS, WEIGHTS_THAT_SUM_TO_ONE, MASK_HIDES_SOMETHING, ONE_MASK_FOR_ALL_LAYERS),
    masked=True,
    extra_sizes=lambda _architecture, tokens: {"i": chosen_token(tokens)},
    tables=(SCALE_MASK_SOFTMAX, UNMASKED_SOFTMAX),
    counts="under_root masked first_weights chosen_weights last_weights all_weights row_sum weights_sum",
    extra_symbols="i",
    figures={
        SCALE_MASK_SOFTMAX.key: (_PRODUCT_OF_SCORES, FigurePlan("masking", "scores", ("weights",))),
        UNMASKED_SOFTMAX.key: (_PRODUCT_OF_SCORES, FigurePlan("softmax", "scores", ("weights",))),
    },
)
