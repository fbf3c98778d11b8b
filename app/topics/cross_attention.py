"""A decoder's head that reads an encoder."""

from __future__ import annotations

from app.shapes.operation import Matmul, Softmax
from app.shapes.table import TensorTable, tensor
from app.topics.requirements import ENCODER_AND_DECODER
from app.topics.single_head import HEAD_PROJECTIONS, HEAD_W_O
from app.topics.topic import FigurePlan, Topic

# One head of a decoder that reads an encoder: M tokens ask, N tokens answer (arXiv:1706.03762, section 3.2.3).
CROSS_ATTENTION = TensorTable(
    "cross-attention",
    (
        tensor("input", "X", "M, d", "input"),
        tensor("encoded", "E", "N, d", "input"),
        *HEAD_PROJECTIONS,
        tensor("queries", "Q", "M, d_h", "query", Matmul("input W_Q", "m d, d h -> m h")),
        tensor("keys", "K", "N, d_h", "key", Matmul("encoded W_K", "n d, d h -> n h")),
        tensor("values", "V", "N, d_v", "value", Matmul("encoded W_V", "n d, d v -> n v")),
        tensor("scores", "S", "M, N", "score", Matmul("queries keys", "m h, n h -> m n")),
        tensor("weights", "A", "M, N", "score", Softmax("scores", "m n -> m n", of_one_text=False)),
        tensor("context", "C", "M, d_v", "value", Matmul("weights values", "m n, n v -> m v")),
        HEAD_W_O,
        tensor("output", "O", "M, d", "output", Matmul("context W_O", "m v, v d -> m d")),
    ),
)

TOPIC = Topic(
    "cross-attention",
    "head",
    lambda _architecture, _tokens: CROSS_ATTENTION,
    (ENCODER_AND_DECODER,),
    uses_decoder=True,
    reads_two_texts=True,
    runs=True,
    tables=(CROSS_ATTENTION,),
    figures={
        CROSS_ATTENTION.key: (
            FigurePlan(
                "two-texts",
                "input",
                ("queries", "scores", "weights", "context", "output", "values", "keys"),
                second_left="encoded",
            ),
        ),
    },
)
