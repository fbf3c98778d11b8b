"""The parameters of a whole model, counted."""

from __future__ import annotations

from app.shapes.parameter_inventory import parameter_inventory
from app.shapes.table import TensorTable
from app.topics.parameter_rows import parameter_rows
from app.topics.requirements import NAMED_PARTS, ONE_STACK
from app.topics.topic import Topic

TOPIC = Topic(
    "parameter-count",
    "counts",
    lambda architecture, _tokens: TensorTable("parameter-count", counts=parameter_rows(architecture)),
    (ONE_STACK, NAMED_PARTS),
    about_attention=False,
    inventory=parameter_inventory,
    counts="embedding patch_embedding embedding_norm attention sinks mixer feed_forward router one_expert "
    "experts shared_experts dense_feed_forward norms all_norms dense_layers expert_layers "
    "all_layers final_norm head_transform output_head task_head total used embedding_projection pooler",
)
