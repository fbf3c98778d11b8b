"""The parameters of one head, of its layer, and their products."""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.operation import Matmul
from app.shapes.table import Count, TensorTable, learned
from app.topics.attention_layer import LAYER_ATTENTION
from app.topics.requirements import ATTENTION_OF_ONE_SHAPE, OWN_PROJECTIONS
from app.topics.single_head import HEAD_PROJECTIONS, HEAD_W_O
from app.topics.topic import FigurePlan, Topic

# The parameters of one head, and the two products of them that a head is made of: without RoPE, scores are x · W_Q ·
# W_Kᵀ · xᵀ, and what a token passes on is x · W_V · W_O (Elhage et al., "A Mathematical Framework for Transformer
# Circuits", 2021). Beside them the layer's matrices, in which heads are next to each other (in W_O, below each other).
HEAD_PARAMETERS = TensorTable(
    "head-parameters",
    (
        *HEAD_PROJECTIONS,
        HEAD_W_O,
        *(replace(tensor, key=f"layer_{tensor.key}", letter="") for tensor in LAYER_ATTENTION),
        replace(learned("W_QK", "d, d", "score", counted=False), made_by=Matmul("W_Q W_K", "d h, e h -> d e")),
        replace(learned("W_VO", "d, d", "output", counted=False), made_by=Matmul("W_V W_O", "d v, v e -> d e")),
    ),
)


def _head_parameters_table(architecture: Architecture, _tokens: int) -> TensorTable:
    widths = {"W_QK": "d_h", "W_VO": "d_v"}
    sizes = architecture.all_sizes
    ranks = {key: width if sizes[width] < architecture.d else "d" for key, width in widths.items()}
    counts = (Count(f"rank_{k}", Expression.symbol(w), f"{{{w}}}", unit="entries") for k, w in ranks.items())
    return replace(HEAD_PARAMETERS, counts=tuple(counts))


TOPIC = Topic(
    "head-parameters",
    "parameters",
    _head_parameters_table,
    (OWN_PROJECTIONS, ATTENTION_OF_ONE_SHAPE),
    tables=(HEAD_PARAMETERS,),
    counts="rank_W_QK rank_W_VO",
    figures={
        HEAD_PARAMETERS.key: (
            FigurePlan("query-key", "W_Q", ("W_QK",)),
            FigurePlan("value-output", "W_V", ("W_VO",)),
        ),
    },
)
