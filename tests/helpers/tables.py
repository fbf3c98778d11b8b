"""Every table of tensors there is, by its key."""

from __future__ import annotations

from app.shapes import tables
from app.shapes.table import TensorTable

TABLES = {table.key: table for table in vars(tables).values() if isinstance(table, TensorTable)}
