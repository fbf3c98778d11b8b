"""First steps: one head built up from one token, then for four tokens, then for the whole input.

>>> [str(side) for key in ("token_query", "transposed_key", "token_score") for side in MASKED[key].shape]
['1', 'd_h', 'd_h', '1', '1', '1']
>>> [str(side) for key in ("scores", "all_scores") for side in MASKED[key].shape]
['4', '4', 'N', 'N']
"""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.operation import Matmul, Transpose
from app.shapes.table import Count, TensorTable, tensor
from app.topics.requirements import PLAIN_HEAD, Requirement, visible_keys
from app.topics.scale_mask_softmax import divides_by_root
from app.topics.single_head import SINGLE_HEAD, UNMASKED_WEIGHTS
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

# a number between one and all that can be counted by hand; with 3 tokens, as many entries would be masked as there are
# tokens
FEW = 4

_ONE_TOKEN = (
    tensor("token", "x", "1, d", "input"),
    tensor("token_query", "q", "1, d_h", "query", Matmul("token W_Q", "o d, d h -> o h")),
    tensor("other_token", "x'", "1, d", "input"),  # so that queries and keys may have different numbers of rows
    tensor("token_key", "k", "1, d_h", "key", Matmul("other_token W_K", "o d, d h -> o h")),
    tensor("transposed_key", "kᵀ", "d_h, 1", "key", Transpose("token_key", "o h -> h o")),
    tensor("token_score", "s", "1, 1", "score", Matmul("token_query transposed_key", "o h, h p -> o p")),
)
# The head of the classic sheet, with FEW tokens.
_FEW_TOKENS = tuple(
    replace(each, shape=tuple(side.substitute({"N": Expression.number(FEW)}) for side in each.shape))
    for each in SINGLE_HEAD.tensors
)
_ALL_TOKENS = (
    tensor("all_inputs", "X", "N, d", "input"),
    tensor("all_queries", "Q", "N, d_h", "query", Matmul("all_inputs W_Q", "n d, d h -> n h")),
    tensor("all_keys", "K", "N, d_h", "key", Matmul("all_inputs W_K", "n d, d h -> n h")),
    tensor("all_scores", "S", "N, N", "score", Matmul("all_queries all_keys", "n h, m h -> n m")),
)
MASKED = TensorTable("first-steps", (*_ONE_TOKEN, *_FEW_TOKENS, *_ALL_TOKENS))
UNMASKED = TensorTable(
    "first-steps-unmasked",
    tuple(
        replace(each, made_by=UNMASKED_WEIGHTS.made_by) if each.key == "weights" else each for each in MASKED.tensors
    ),
)
_UNDER_ROOT = Count("under_root", Expression.symbol("d_h"), "{d_h}", unit="entries")
# The first of four tokens has three tokens after it, the last has none.
_MASKED_ENTRIES = Count("masked", Expression.number(FEW * (FEW - 1) // 2), "3 + 2 + 1 + 0", unit="entries")


def _steps_table(architecture: Architecture, _tokens: int) -> TensorTable:
    counts = (_UNDER_ROOT,) if divides_by_root(architecture) else ()
    if not architecture.causal:
        return replace(UNMASKED, counts=counts)
    hides_later_tokens_alone = all(visible_keys(run, FEW - 1) == FEW for run in architecture.stacks[0].attending)
    return replace(MASKED, counts=(*counts, _MASKED_ENTRIES) if hides_later_tokens_alone else counts)


MORE_THAN_A_FEW = Requirement(
    lambda _architecture, tokens: tokens > FEW,
    N_("First steps go from one token to four, and then to all: choose at least 5 tokens."),
)
_FIGURES = (
    FigurePlan("token-query", "token", ("token_query",)),
    FigurePlan("token-score", "token_query", ("token_score",)),
    FigurePlan("few-tokens", "input", ("values", "keys", "queries", "scores", "weights", "context", "output")),
    FigurePlan("all-tokens", "all_inputs", ("all_keys", "all_queries", "all_scores")),
)

TOPIC = Topic(
    "first-steps",
    "head",
    _steps_table,
    (*PLAIN_HEAD, MORE_THAN_A_FEW),
    masked=True,
    tables=(MASKED, UNMASKED),
    counts="under_root masked",
    figures={MASKED.key: _FIGURES, UNMASKED.key: _FIGURES},
    in_steps=True,
)
