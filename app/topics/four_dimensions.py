"""The heads of a layer as a dimension of their tensors, with a batch of inputs: tensors with four dimensions."""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.models.architecture import Architecture
from app.shapes.table import Tensor, TensorTable
from app.topics.requirements import all_of, require_own_projections, require_scores_of_queries_and_keys
from app.topics.three_dimensions import GROUPED_HEADS, GROUPED_HEADS_FIGURES, HEADS_AS_DIMENSION, HEADS_FIGURES
from app.topics.topic import LevelSpec, Topic


def _with_batch(key: str, table: TensorTable) -> TensorTable:
    """The table under `key` with the batch dimension B before all others of each activation; parameters have none.

    Example: queries (N, d) become (B, N, d).
    """
    batch, activations = Expression.symbol("B"), {tensor.key for tensor in table.activations}

    def batched(each: Tensor) -> Tensor:
        made_by = each.made_by.with_axis("b", activations) if each.made_by else None
        return replace(each, shape=(batch, *each.shape), made_by=made_by)

    return replace(table, key=key, tensors=tuple(t if t.parameter else batched(t) for t in table.tensors))


BATCHED_GROUPED_HEADS = _with_batch("batched-grouped-heads", GROUPED_HEADS)

BATCHED_HEADS = _with_batch("batched-heads", HEADS_AS_DIMENSION)


def _batched_heads_table(architecture: Architecture, _tokens: int) -> TensorTable:
    """The table with a batch dimension; the keys of grouped heads are repeated only in a model with G below H."""
    return BATCHED_HEADS if architecture.G == architecture.H else BATCHED_GROUPED_HEADS


TOPIC = Topic(
    "four-dimensions",
    "layer",
    _batched_heads_table,
    all_of(require_own_projections, require_scores_of_queries_and_keys),
    masked=True,
    batched=True,
    tables=(BATCHED_GROUPED_HEADS, BATCHED_HEADS),
    figures={
        BATCHED_HEADS.key: HEADS_FIGURES,
        BATCHED_GROUPED_HEADS.key: GROUPED_HEADS_FIGURES,
    },
    levels=(
        LevelSpec(
            "four-dimensions",
            "four-dimensions",
            after=("three-dimensions",),
            steps=(("queries_by_head", "scores", "joined_context"),),
        ),
        LevelSpec(
            "four-dimensions-letters",
            "four-dimensions",
            after=("four-dimensions", "three-dimensions-letters"),
            steps=(("queries_by_head", "scores", "joined_context"),),
        ),
    ),
)
