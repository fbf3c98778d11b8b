"""LoRA next to W_Q: a frozen matrix, and two thin ones that are trained (Hu et al., arXiv:2106.09685).

The rank r belongs to the update; the trained parameters are the paper's |Θ| (section 5.1) for one matrix.
"""

from __future__ import annotations

from app.algebra.expression import Expression
from app.shapes.operation import Add, Matmul
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable, learned, tensor
from app.topics.attention_layer import LAYER_PROJECTIONS
from app.topics.requirements import ATTENTION_OF_ONE_SHAPE, Requirement
from app.topics.single_head import INPUT
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

RANK = 8  # the default of peft's LoraConfig, and one of the ranks in the paper's tables

# The paper writes W₀x + BAx (section 4.1). Here tokens are rows, so every matrix is transposed and A comes first.
LORA = TensorTable(
    "lora",
    (
        INPUT,
        LAYER_PROJECTIONS[0],
        learned("lora_A", "d, r", "hidden", letter="A"),
        learned("lora_B", "r, H*d_h", "hidden", letter="B"),
        tensor("frozen_queries", "Q_base", "N, H*d_h", "query", Matmul("input W_Q", "n d, d q -> n q")),
        tensor("low_rank", "Z", "N, r", "hidden", Matmul("input lora_A", "n d, d r -> n r")),
        tensor("query_update", "ΔQ", "N, H*d_h", "query", Matmul("low_rank lora_B", "n r, r q -> n q")),
        tensor("queries", "Q", "N, H*d_h", "query", Add("frozen_queries query_update", "n q, n q -> n q")),
    ),
    counts=(
        Count("trained", Expression.parse("r*d + r*H*d_h"), "{r} · ({d} + {H} · {d_h})",
              FromParts(PARTS_SUM, ("lora_A", "lora_B"))),
    ),
    asks_parameters=True,
)  # fmt: skip

# Latent attention often projects queries in two steps as well.
_PLAIN_QUERIES = Requirement(
    lambda architecture, _tokens: not architecture.has_latent_attention,
    N_(
        "{model} has latent attention, whose queries have two parts that this sheet does not show: choose a model "
        "with ordinary attention, such as LLaMA 7B."
    ),
)


TOPIC = Topic(
    "lora",
    "parameters",
    lambda _architecture, _tokens: LORA,
    (_PLAIN_QUERIES, ATTENTION_OF_ONE_SHAPE),
    extra_sizes=lambda _architecture, _tokens: {"r": RANK},
    extra_symbols="r",
    tables=(LORA,),
    counts="trained",
    figures={
        LORA.key: (
            FigurePlan("projections", "input", ("frozen_queries", "low_rank")),
            FigurePlan("query-update", "low_rank", ("query_update",)),
            FigurePlan("adapted", "frozen_queries", ("queries",)),
        ),
    },
)
