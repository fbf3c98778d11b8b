"""Every table of tensors, by its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from app.algebra.expression import Expression
from app.shapes.table import TensorTable
from app.topics.registry import TOPICS

TABLES = {table.key: table for topic in TOPICS.values() for table in topic.tables}


def with_shapes(table: TensorTable, shapes: Mapping[str, str]) -> TensorTable:
    """The table with other shapes for some tensors, which a real table can't have: its operations don't make them."""
    tensors = tuple(
        replace(each, shape=tuple(map(Expression.parse, shapes[each.key].split(",")))) if each.key in shapes else each
        for each in table.tensors
    )
    changed = object.__new__(TensorTable)
    given = {field.name: getattr(table, field.name) for field in fields(table)}
    changed.__dict__.update({**given, "tensors": tensors})
    return changed
