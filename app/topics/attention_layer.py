"""A whole layer of attention, its heads next to each other; in DeepSeek, with latent attention."""

from __future__ import annotations

from app.models.architecture import Architecture
from app.shapes.operation import Concat, Matmul
from app.shapes.table import Tensor, TensorTable, learned, tensor
from app.topics.requirements import SCORES_OF_QUERIES_AND_KEYS
from app.topics.single_head import INPUT, SINGLE_HEAD
from app.topics.topic import FigurePlan, Topic

LAYER_PROJECTIONS = (
    learned("W_Q", "d, H*d_h", "query"),
    learned("W_K", "d, G*d_h", "key"),
    learned("W_V", "d, G*d_v", "value"),
)

LAYER_W_O = learned("W_O", "H*d_v, d", "output")
LAYER_ATTENTION = (*LAYER_PROJECTIONS, LAYER_W_O)

# A whole layer, with its heads side by side: H query heads read G key/value heads (Ainslie et al., arXiv:2305.13245).
# Scores and weights are one head's. (h e) is H heads side by side of e numbers each, (g e) the same for G.
ATTENTION_LAYER = TensorTable(
    "attention-layer",
    (
        INPUT,
        *LAYER_PROJECTIONS,
        tensor("queries", "Q", "N, H*d_h", "query", Matmul("input W_Q", "n d, d q -> n q")),
        tensor("keys", "K", "N, G*d_h", "key", Matmul("input W_K", "n d, d k -> n k")),
        tensor("values", "V", "N, G*d_v", "value", Matmul("input W_V", "n d, d v -> n v")),
        tensor("scores", "S", "N, N", "score", Matmul("queries keys", "n (h e), m (g e) -> n m")),
        SINGLE_HEAD["weights"],
        tensor("context", "C", "N, H*d_v", "value", Matmul("weights values", "n m, m (g e) -> n (h e)")),
        LAYER_W_O,
        tensor("output", "O", "N, d", "output", Matmul("context W_O", "n c, c d -> n d")),
    ),
)


def _latent_attention(key: str, *queries: Tensor) -> TensorTable:
    return TensorTable(
        key,
        (
            INPUT,
            learned("W_DKV", "d, r_kv", "key"),
            learned("W_KR", "d, d_rope", "key"),
            learned("W_UK", "r_kv, H*d_nope", "key"),
            learned("W_UV", "r_kv, H*d_v", "value"),
            *queries,
            tensor("latent", "C_KV", "N, r_kv", "key", Matmul("input W_DKV", "n d, d r -> n r")),
            tensor("rotary_key", "K_R", "N, d_rope", "key", Matmul("input W_KR", "n d, d p -> n p", rotated=True)),
            tensor("cache", "cache", "N, r_kv + d_rope", "key", Concat("latent rotary_key", "n r, n p -> n a")),
            tensor("plain_keys", "K_C", "N, H*d_nope", "key", Matmul("latent W_UK", "n r, r u -> n u")),
            tensor("keys", "K", "N, H*d_h", "key", Concat("plain_keys rotary_key", "n (h u), n p -> n (h k)")),
            tensor("values", "V", "N, H*d_v", "value", Matmul("latent W_UV", "n r, r c -> n c")),
            ATTENTION_LAYER["scores"],
            ATTENTION_LAYER["weights"],
            tensor("context", "C", "N, H*d_v", "value", Matmul("weights values", "n m, m (h e) -> n (h e)")),
            LAYER_W_O,
            ATTENTION_LAYER["output"],
        ),
    )


LATENT_ATTENTION_LAYER = _latent_attention(
    "latent-attention-layer",
    learned("W_DQ", "d, r_q", "query"),
    learned("W_UQ", "r_q, H*d_h", "query"),
    tensor("latent_queries", "C_Q", "N, r_q", "query", Matmul("input W_DQ", "n d, d q -> n q")),
    tensor("queries", "Q", "N, H*d_h", "query", Matmul("latent_queries W_UQ", "n q, q k -> n k")),
)

# The same without a latent for the queries, as in DeepSeek V2 Lite.
DIRECT_LATENT_ATTENTION_LAYER = _latent_attention(
    "direct-latent-attention-layer", LAYER_PROJECTIONS[0], ATTENTION_LAYER["queries"]
)

ONE_HEAD_OF_LAYER = (
    FigurePlan("head-scores", "queries", ("scores", "weights")),
    FigurePlan("head-context", "weights", ("context",)),
    FigurePlan("layer-output", "context", ("output",)),
)

_LATENT = (
    FigurePlan("latent", "input", ("latent", "rotary_key")),
    FigurePlan("latent-cache", "latent", ("cache",)),
    FigurePlan("latent-keys-values", "latent", ("plain_keys", "values")),
    *ONE_HEAD_OF_LAYER,
)


def _layer_table(architecture: Architecture, _tokens: int) -> TensorTable:
    if not architecture.has_latent_attention:
        return ATTENTION_LAYER
    return LATENT_ATTENTION_LAYER if architecture.has_latent_queries else DIRECT_LATENT_ATTENTION_LAYER


TOPIC = Topic(
    "attention-layer",
    "layer",
    _layer_table,
    (SCORES_OF_QUERIES_AND_KEYS,),
    masked=True,
    program="layer",
    tables=(ATTENTION_LAYER, LATENT_ATTENTION_LAYER, DIRECT_LATENT_ATTENTION_LAYER),
    figures={
        ATTENTION_LAYER.key: (
            FigurePlan("layer-queries", "input", ("queries",)),
            FigurePlan("layer-keys-values", "input", ("keys", "values")),
            *ONE_HEAD_OF_LAYER,
        ),
        LATENT_ATTENTION_LAYER.key: (
            FigurePlan("latent-queries", "input", ("latent_queries",)),
            FigurePlan("layer-queries", "latent_queries", ("queries",)),
            *_LATENT,
        ),
        DIRECT_LATENT_ATTENTION_LAYER.key: (FigurePlan("layer-queries", "input", ("queries",)), *_LATENT),
    },
)
