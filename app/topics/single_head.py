"""One head of attention, with the mask of a causal model or without one."""

from __future__ import annotations

from app.shapes.operation import Matmul, Softmax
from app.shapes.table import TensorTable, learned, tensor
from app.topics.requirements import PLAIN_HEAD
from app.topics.topic import FigurePlan, Topic

INPUT = tensor("input", "X", "N, d", "input")
HEAD_PROJECTIONS = (
    learned("W_Q", "d, d_h", "query"),
    learned("W_K", "d, d_h", "key"),
    learned("W_V", "d, d_v", "value"),
)
# This head's own d_v rows of the layer's output projection, so that the heads' outputs add up to the layer's.
HEAD_W_O = learned("W_O", "d_v, d", "output")

# One head: Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), section 3.2.
SINGLE_HEAD = TensorTable(
    "single-head",
    (
        INPUT,
        *HEAD_PROJECTIONS,
        tensor("queries", "Q", "N, d_h", "query", Matmul("input W_Q", "n d, d h -> n h")),
        tensor("keys", "K", "N, d_h", "key", Matmul("input W_K", "n d, d h -> n h")),
        tensor("values", "V", "N, d_v", "value", Matmul("input W_V", "n d, d v -> n v")),
        tensor("scores", "S", "N, N", "score", Matmul("queries keys", "n h, m h -> n m")),
        tensor("weights", "A", "N, N", "score", Softmax("scores", "n m -> n m", masked=True)),
        tensor("context", "C", "N, d_v", "value", Matmul("weights values", "n m, m v -> n v")),
        HEAD_W_O,
        tensor("output", "O", "N, d", "output", Matmul("context W_O", "n v, v d -> n d")),
    ),
)

UNMASKED_WEIGHTS = tensor("weights", "A", "N, N", "score", Softmax("scores", "n m -> n m"))
# The same head without a mask, as in an encoder: every token may attend to every other. The values change; the shapes
# don't.
BIDIRECTIONAL_HEAD = TensorTable(
    "bidirectional-head", tuple(UNMASKED_WEIGHTS if t.key == "weights" else t for t in SINGLE_HEAD.tensors)
)

# The inputs of a head on sheets that don't ask for its projections.
QUERIES_AND_KEYS = (tensor("queries", "Q", "N, d_h", "query"), tensor("keys", "K", "N, d_h", "key"))

HEAD_FIGURES = (FigurePlan("flow", "input", ("queries", "keys", "values", "scores", "weights", "context", "output")),)


TOPIC = Topic(
    "single-head",
    "head",
    lambda architecture, _tokens: SINGLE_HEAD if architecture.causal else BIDIRECTIONAL_HEAD,
    PLAIN_HEAD,
    masked=True,
    runs=True,
    tables=(SINGLE_HEAD, BIDIRECTIONAL_HEAD),
    figures={SINGLE_HEAD.key: HEAD_FIGURES, BIDIRECTIONAL_HEAD.key: HEAD_FIGURES},
)
