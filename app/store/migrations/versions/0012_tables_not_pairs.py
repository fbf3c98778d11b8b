"""Frozen worksheets and exit tickets are stored as their files have them: tables where there were lists of pairs."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

COLUMNS = {"revisions": "content", "runs": "frozen", "regrades": "definitions"}
PAIRS = ("row_names", "row_hints", "row_points", "boxes")


def upgrade() -> None:
    _rewrite(_as_tables)


def downgrade() -> None:
    _rewrite(_as_pairs)


def _rewrite(change: Callable[[Any], Any]) -> None:
    connection = op.get_bind()
    for name, column in COLUMNS.items():
        table = sa.table(name, sa.column("id"), sa.column(column, sa.JSON(none_as_null=True)))
        for row in connection.execute(sa.select(table)).all():
            if (value := change(row[1])) != row[1]:
                connection.execute(sa.update(table).where(table.c.id == row.id).values({column: value}))


def _as_tables(value: Any) -> Any:
    """The same JSON with {"queries": 2} for [["queries", 2]], and with settings for a question that was a pair."""
    if isinstance(value, list):
        return [_as_tables(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {name: dict(each) if name in PAIRS else _as_tables(each) for name, each in value.items()}
    if isinstance(questions := value.get("questions"), list):
        changed["questions"] = [
            {"key": each[0], "text": each[1]} if isinstance(each, list) else each for each in questions
        ]
    return changed


def _as_pairs(value: Any) -> Any:
    """The same JSON with [["queries", 2]] for {"queries": 2}; a question of a ticket stays a table, which was read."""
    if isinstance(value, list):
        return [_as_pairs(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: [list(pair) for pair in each.items()] if name in PAIRS else _as_pairs(each)
        for name, each in value.items()
    }
