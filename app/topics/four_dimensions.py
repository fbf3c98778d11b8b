"""A layer's heads as a dimension of their tensors, with a batch of inputs: tensors with four dimensions."""

from __future__ import annotations

from dataclasses import replace

from app.algebra.expression import Expression
from app.shapes.table import Tensor, TensorTable
from app.topics.requirements import PLAIN_HEAD
from app.topics.three_dimensions import GROUPED_HEADS_FIGURES, GROUPED_THREE_DIMENSIONS, HEADS_FIGURES, THREE_DIMENSIONS
from app.topics.topic import Topic


def _with_batch(key: str, table: TensorTable) -> TensorTable:
    batch, activations = Expression.symbol("B"), {tensor.key for tensor in table.activations}

    def batched(each: Tensor) -> Tensor:
        made_by = each.made_by.with_axis("b", activations) if each.made_by else None
        return replace(each, shape=(batch, *each.shape), made_by=made_by)

    return replace(table, key=key, tensors=tuple(t if t.parameter else batched(t) for t in table.tensors))


GROUPED_FOUR_DIMENSIONS = _with_batch("grouped-four-dimensions", GROUPED_THREE_DIMENSIONS)
FOUR_DIMENSIONS = _with_batch("four-dimensions", THREE_DIMENSIONS)


TOPIC = Topic(
    "four-dimensions",
    "layer",
    lambda architecture, _tokens: FOUR_DIMENSIONS if architecture.G == architecture.H else GROUPED_FOUR_DIMENSIONS,
    PLAIN_HEAD,
    masked=True,
    batched=True,
    runs=True,
    tables=(GROUPED_FOUR_DIMENSIONS, FOUR_DIMENSIONS),
    figures={FOUR_DIMENSIONS.key: HEADS_FIGURES, GROUPED_FOUR_DIMENSIONS.key: GROUPED_HEADS_FIGURES},
)
