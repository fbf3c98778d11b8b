"""One more token with a KV cache."""

from __future__ import annotations

from app.models.architecture import Architecture
from app.shapes.operation import Concat, Matmul, Softmax
from app.shapes.table import TensorTable, tensor
from app.topics.requirements import CACHE_OF_KEYS_AND_VALUES, KV_CACHE, ONE_NUMBER_OF_VISIBLE_KEYS, ROOM_FOR_ONE_MORE
from app.topics.single_head import HEAD_PROJECTIONS, HEAD_W_O
from app.topics.topic import FigurePlan, Topic

_NEW_TOKEN = tensor("input", "x", "1, d", "input")
_NEW_QUERY = tensor("queries", "q", "1, d_h", "query", Matmul("input W_Q", "o d, d h -> o h"))

_FROM_CONTEXT = (
    tensor("context", "c", "1, d_v", "value", Matmul("weights values", "o m, m v -> o v")),
    HEAD_W_O,
    tensor("output", "o", "1, d", "output", Matmul("context W_O", "o v, v d -> o d")),
)

# One head while a text is being written: one new token after N whose keys and values are cached (Pope et al.,
# arXiv:2211.05102). The new row joins the N cached ones, so there are N + 1 to look at.
DECODE_STEP = TensorTable(
    "decode-step",
    (
        _NEW_TOKEN,
        *HEAD_PROJECTIONS,
        _NEW_QUERY,
        tensor("new_key", "k", "1, d_h", "key", Matmul("input W_K", "o d, d h -> o h")),
        tensor("new_value", "v", "1, d_v", "value", Matmul("input W_V", "o d, d v -> o v")),
        tensor("cached_keys", "K'", "N, d_h", "key"),
        tensor("cached_values", "V'", "N, d_v", "value"),
        tensor("keys", "K", "N + 1, d_h", "key", Concat("cached_keys new_key", "n h, o h -> m h")),
        tensor("values", "V", "N + 1, d_v", "value", Concat("cached_values new_value", "n v, o v -> m v")),
        tensor("scores", "s", "1, N + 1", "score", Matmul("queries keys", "o h, m h -> o m")),
        tensor("weights", "a", "1, N + 1", "score", Softmax("scores", "o m -> o m")),
        *_FROM_CONTEXT,
    ),
)

# The same step in a layer whose sliding window of W keys, the new one included (Beltagy et al., arXiv:2004.05150), is
# full: older tokens have been dropped.
WINDOWED_DECODE_STEP = TensorTable(
    "windowed-decode-step",
    (
        _NEW_TOKEN,
        HEAD_PROJECTIONS[0],
        _NEW_QUERY,
        tensor("keys", "K", "W, d_h", "key"),
        tensor("values", "V", "W, d_v", "value"),
        tensor("scores", "s", "1, W", "score", Matmul("queries keys", "o h, m h -> o m")),
        tensor("weights", "a", "1, W", "score", Softmax("scores", "o m -> o m")),
        *_FROM_CONTEXT,
    ),
)


def decode_step_table(architecture: Architecture, tokens: int) -> TensorTable | None:
    """The table of one new token after `tokens` cached ones; None if the model can't take this step."""
    if not architecture.has_kv_cache or tokens + 1 > (architecture.chunk or architecture.max_decoder_tokens):
        return None
    window_is_full = architecture.window is not None and tokens + 1 > architecture.window
    return WINDOWED_DECODE_STEP if window_is_full else DECODE_STEP


def _decode_table(architecture: Architecture, tokens: int) -> TensorTable:
    table = decode_step_table(architecture, tokens)
    assert table is not None  # noqa: S101 - see above
    return table


TOPIC = Topic(
    "decode-step",
    "head",
    _decode_table,
    (KV_CACHE, CACHE_OF_KEYS_AND_VALUES, ROOM_FOR_ONE_MORE, ONE_NUMBER_OF_VISIBLE_KEYS),
    uses_decoder=True,
    adds_tokens=1,
    program="one-more-token",
    tables=(DECODE_STEP, WINDOWED_DECODE_STEP),
    figures={
        DECODE_STEP.key: (
            FigurePlan(
                "new-token",
                "input",
                ("new_value", "new_key", "queries", "scores", "weights", "context", "output"),
            ),
        ),
        WINDOWED_DECODE_STEP.key: (
            FigurePlan("new-token", "input", ("queries", "scores", "weights", "context", "output")),
        ),
    },
)
