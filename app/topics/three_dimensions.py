"""All heads of a layer at once, as PyTorch computes them: tensors with three dimensions."""

from __future__ import annotations

from dataclasses import replace

from app.shapes.operation import Matmul, Repeat, Reshape, Softmax, Transpose, View
from app.shapes.table import TensorTable, tensor
from app.topics.attention_layer import ATTENTION_LAYER, LAYER_PROJECTIONS, LAYER_W_O
from app.topics.requirements import PLAIN_HEAD
from app.topics.single_head import INPUT
from app.topics.topic import FigurePlan, Topic

# All heads of a layer at once, as PyTorch code computes them: the heads are split off the features by view, become the
# first dimension by transpose, and are merged into the features again at the end. Each of the G key/value heads is
# copied for the H/G query heads that share it, as in repeat_kv of huggingface/transformers (models/llama).
GROUPED_THREE_DIMENSIONS = TensorTable(
    "grouped-three-dimensions",
    (
        INPUT,
        *LAYER_PROJECTIONS,
        ATTENTION_LAYER["queries"],
        tensor("split_queries", "Q_view", "N, H, d_h", "query", View("queries", "n (h e) -> n h e")),
        tensor("queries_by_head", "Q_head", "H, N, d_h", "query", Transpose("split_queries", "n h e -> h n e")),
        ATTENTION_LAYER["keys"],
        tensor("split_keys", "K_view", "N, G, d_h", "key", View("keys", "n (g e) -> n g e")),
        tensor("keys_by_head", "K_head", "G, N, d_h", "key", Transpose("split_keys", "n g e -> g n e")),
        tensor("repeated_keys", "K_rep", "H, N, d_h", "key", Repeat("keys_by_head", "g n e -> h n e")),
        ATTENTION_LAYER["values"],
        tensor("split_values", "V_view", "N, G, d_v", "value", View("values", "n (g v) -> n g v")),
        tensor("values_by_head", "V_head", "G, N, d_v", "value", Transpose("split_values", "n g v -> g n v")),
        tensor("repeated_values", "V_rep", "H, N, d_v", "value", Repeat("values_by_head", "g n v -> h n v")),
        tensor("scores", "S", "H, N, N", "score", Matmul("queries_by_head repeated_keys", "h n e, h m e -> h n m")),
        tensor("weights", "A", "H, N, N", "score", Softmax("scores", "h n m -> h n m", masked=True)),
        tensor("context", "C", "H, N, d_v", "value", Matmul("weights repeated_values", "h n m, h m v -> h n v")),
        tensor("context_by_token", "C_tok", "N, H, d_v", "value", Transpose("context", "h n v -> n h v")),
        tensor("joined_context", "C_cat", "N, H*d_v", "value", Reshape("context_by_token", "n h v -> n (h v)")),
        LAYER_W_O,
        tensor("output", "O", "N, d", "output", Matmul("joined_context W_O", "n c, c d -> n d")),
    ),
)


def without_repeat(key: str, table: TensorTable) -> TensorTable:
    """The table, under `key`, of a model with as many key/value heads as query heads, which copies none."""
    original = {t.key: t.made_by.of for t in table.tensors if isinstance(t.made_by, Repeat)}
    others = (tensor for tensor in table.tensors if tensor.key not in original)
    tensors = (replace(t, made_by=t.made_by.with_operands(original)) if t.made_by else t for t in others)
    return replace(table, key=key, tensors=tuple(tensors), alike=("G", "H"))


THREE_DIMENSIONS = without_repeat("three-dimensions", GROUPED_THREE_DIMENSIONS)

HEADS_FIGURES = (
    FigurePlan("deck-projection", "input", ("queries",), needs_left=True),
    FigurePlan("deck-queries", "queries", ("split_queries", "queries_by_head")),
    FigurePlan("deck-keys", "keys", ("split_keys", "keys_by_head")),
    FigurePlan("deck-values", "values", ("split_values", "values_by_head")),
    FigurePlan("deck-scores", "queries_by_head", ("scores", "weights")),
    FigurePlan("deck-context", "weights", ("context",)),
    FigurePlan("deck-merged", "context", ("context_by_token", "joined_context")),
    FigurePlan("deck-output", "joined_context", ("output",)),
)

_REPEATED = {"deck-keys": "repeated_keys", "deck-values": "repeated_values"}
GROUPED_HEADS_FIGURES = tuple(
    replace(plan, results=(*plan.results, _REPEATED[plan.key])) if plan.key in _REPEATED else plan
    for plan in HEADS_FIGURES
)


TOPIC = Topic(
    "three-dimensions",
    "layer",
    lambda architecture, _tokens: THREE_DIMENSIONS if architecture.G == architecture.H else GROUPED_THREE_DIMENSIONS,
    PLAIN_HEAD,
    masked=True,
    program="split-heads",
    tables=(GROUPED_THREE_DIMENSIONS, THREE_DIMENSIONS),
    figures={THREE_DIMENSIONS.key: HEADS_FIGURES, GROUPED_THREE_DIMENSIONS.key: GROUPED_HEADS_FIGURES},
)
