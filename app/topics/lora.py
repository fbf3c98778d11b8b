"""LoRA next to W_Q: a frozen matrix, and two thin ones that are trained (Hu et al., arXiv:2106.09685).

The rank r is that of the update; the trained parameters are the paper's |Θ| (section 5.1) for one matrix.
"""

from __future__ import annotations

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.operation import Add, Matmul
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable, learned, tensor
from app.topics.attention_layer import LAYER_PROJECTIONS
from app.topics.requirements import TopicError, all_of, require_attention_of_one_shape
from app.topics.single_head import INPUT
from app.topics.topic import FigurePlan, LevelSpec, Topic
from app.translation import gettext as _

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
        Count(
            "trained",
            Expression.parse("r*d + r*H*d_h"),
            "{r} · ({d} + {H} · {d_h})",
            FromParts(PARTS_SUM, ("lora_A", "lora_B")),
        ),
    ),
    asks_parameters=True,
)


def _require_plain_queries(architecture: Architecture, tokens: int) -> None:
    """Refuse latent attention: its queries have two parts, and are often projected in two steps."""
    if architecture.has_latent_attention:
        message = _(
            "{model} has latent attention, whose queries have two parts that this sheet does not show: choose a model "
            "with ordinary attention, such as LLaMA 7B."
        )
        raise TopicError(message.format(model=architecture.name))


TOPIC = Topic(
    "lora",
    "parameters",
    lambda _architecture, _tokens: LORA,
    all_of(_require_plain_queries, require_attention_of_one_shape),
    extra_sizes=lambda _architecture, _tokens: {"r": RANK},
    extra_symbols="r",
    tables=(LORA,),
    counts="trained",
    figures={
        LORA.key: (
            FigurePlan("projections", "input", ("frozen_queries", "low_rank")),
            FigurePlan("query-update", "low_rank", ("query_update",)),
            FigurePlan("adapted", "frozen_queries", ("query_update", "queries"), "stack"),
        ),
    },
    levels=(
        LevelSpec(
            "lora",
            "lora",
            after=("attention-layer", "layer-parameters"),
            steps=(("W_Q", "lora_A", "low_rank", "trained"), ("lora_B", "query_update", "queries")),
        ),
        LevelSpec(
            "lora-letters",
            "lora",
            after=("lora", "layer-parameters-letters"),
            steps=(("lora_A", "lora_B", "query_update", "trained"),),
        ),
    ),
)
