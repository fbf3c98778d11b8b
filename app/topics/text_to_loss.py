"""From the token ids of a batch to the loss of training: logits at every position, and the tokens that they predict.

A decoder-only model predicts each token from those before it, so the last position of a text and its first token have
no counterpart. An encoder-decoder reads its targets shifted right, with a start token in front (T5, arXiv:1910.10683,
section 3.1), so there every position has one.

>>> sizes = {"B": 2, "N": 5, "d": 4, "V": 9}
>>> [table.shapes(sizes)["flat_logits"] for table in (TEXT_TO_LOSS, TARGET_TEXT_TO_LOSS)]
[(8, 9), (10, 9)]
"""

from __future__ import annotations

from app.shapes.operation import Apply, Lookup, Matmul, Operation, Reshape, Slice
from app.shapes.table import Tensor, TensorTable, tensor
from app.topics.requirements import NEXT_TOKEN, Requirement
from app.topics.topic import FigurePlan, LevelSpec, Topic
from app.topics.whole_model import WHOLE_MODEL
from app.translation import N_


def _ids(key: str, letter: str, shape: str, made_by: Operation | None = None) -> Tensor:
    """Numbers of tokens in the vocabulary: those that the model reads, or those that it should predict."""
    return tensor(key, letter, shape, "input", made_by)


_TO_LOGITS = (
    WHOLE_MODEL["embedding"],
    tensor("embedded", "X", "B, N, d", "input", Lookup("tokens embedding", "b n, v d -> b n d")),
    tensor("final", "Y", "B, N, d", "hidden", Apply("embedded", "b n d -> b n d", "{transformer}")),
    WHOLE_MODEL["output_head"],
    tensor("logits", "Z", "B, N, V", "output", Matmul("final output_head", "b n d, d v -> b n v")),
)

TEXT_TO_LOSS = TensorTable(
    "text-to-loss",
    (
        _ids("tokens", "t", "B, N"),
        *_TO_LOGITS,
        tensor("shifted_logits", "Z_shift", "B, N - 1, V", "output", Slice("logits", "b n v -> b s v", drops="last")),
        _ids("targets", "y", "B, N - 1", Slice("tokens", "b n -> b s", drops="first")),
        tensor("flat_logits", "Z_flat", "B*N - B, V", "output", Reshape("shifted_logits", "b s v -> (b s) v")),
        _ids("flat_targets", "y_flat", "B*N - B", Reshape("targets", "b s -> (b s)")),
    ),
)

TARGET_TEXT_TO_LOSS = TensorTable(
    "target-text-to-loss",
    (
        _ids("targets", "y", "B, N"),
        _ids("tokens", "t", "B, N", Apply("targets", "b n -> b n", "shift_right")),
        *_TO_LOGITS,
        tensor("flat_logits", "Z_flat", "B*N, V", "output", Reshape("logits", "b n v -> (b n) v")),
        _ids("flat_targets", "y_flat", "B*N", Reshape("targets", "b n -> (b n)")),
    ),
)

_PREDICTS_TOKENS = Requirement(
    lambda architecture, tokens: (
        architecture.has_lm_head if architecture.encoder_decoder else NEXT_TOKEN.is_met(architecture, tokens)
    ),
    NEXT_TOKEN.sentence,
)
_NEXT_IN_TEXT = Requirement(
    lambda architecture, tokens: architecture.encoder_decoder or tokens > 1,
    N_("In a text of one token there is no next token for {model} to predict: choose at least 2 tokens."),
)
_ONE_MATRIX_AT_EACH_END = Requirement(
    lambda architecture, _tokens: {"embedding_projection", "head_transform"}.isdisjoint(architecture.outside_rows),
    N_(
        "{model} has further matrices between its embedding table and its layers, or between these and its logits, "
        "that this sheet does not show: choose a model such as GPT-2 or LLaMA 7B."
    ),
)

_LOGITS = FigurePlan("deck-logits", "final", ("logits",), "decks")

TOPIC = Topic(
    "text-to-loss",
    "model",
    lambda architecture, _tokens: TARGET_TEXT_TO_LOSS if architecture.encoder_decoder else TEXT_TO_LOSS,
    (_PREDICTS_TOKENS, _NEXT_IN_TEXT, _ONE_MATRIX_AT_EACH_END),
    uses_decoder=True,
    batched=True,
    tables=(TEXT_TO_LOSS, TARGET_TEXT_TO_LOSS),
    figures={
        TEXT_TO_LOSS.key: (
            _LOGITS,
            FigurePlan("deck-flat-logits", "shifted_logits", ("flat_logits",), "decks"),
            FigurePlan("deck-targets", "tokens", ("targets",), "decks"),
        ),
        TARGET_TEXT_TO_LOSS.key: (
            _LOGITS,
            FigurePlan("deck-flat-logits", "logits", ("flat_logits",), "decks"),
            FigurePlan("deck-targets", "targets", ("tokens",), "decks"),
        ),
    },
    levels=(
        LevelSpec(
            "text-to-loss",
            "text-to-loss",
            after=("whole-model",),
            steps=(("tokens", "embedded", "logits"), ("shifted_logits", "targets", "flat_logits", "flat_targets")),
        ),
    ),
)
