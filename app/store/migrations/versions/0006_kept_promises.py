"""Room for the promises of a class: merged saves, drafts taken in at closing, frozen texts, sealed exit tickets.

Every row is kept. "Closed" stops being a state: an activity is closed from its closing time on, which those that were
closed by hand get here. What closed before this migration counts as taken in, so that no old result changes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

REFERENCES = {"activity_id": "activities", "student_id": "students", "teacher_id": "teachers"}
TABLES = ("snapshots", "sealed_tickets", "extra_time", "grade_overrides")


def upgrade() -> None:
    for table in ("practice_drafts", "class_drafts"):
        op.add_column(table, sa.Column("stamps", sa.JSON))
    op.add_column("models", sa.Column("used_at", sa.DateTime(timezone=True)))
    op.add_column("students", sa.Column("import_key", sa.String(32)))
    op.add_column("regrades", sa.Column("definitions", sa.JSON))
    for column in ("answers_shown_at", "drafts_taken_at"):
        op.add_column("activities", sa.Column(column, sa.DateTime(timezone=True)))
    _close_by_time()
    _add_flags("class_attempts", "taken_in", "late")
    _add_run_columns()
    _create_tables()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    op.drop_index("ix_runs_activity_id", "runs")
    with op.batch_alter_table("runs") as batch:
        for column in ("frozen", "activity_id"):
            batch.drop_column(column)
    with op.batch_alter_table("class_attempts") as batch:
        for column in ("late", "taken_in"):
            batch.drop_column(column)
    for table, columns in {
        "activities": ("drafts_taken_at", "answers_shown_at"),
        "students": ("import_key",),
        "regrades": ("definitions",),
        "models": ("used_at",),
        "class_drafts": ("stamps",),
        "practice_drafts": ("stamps",),
    }.items():
        for column in columns:
            op.drop_column(table, column)


def _close_by_time() -> None:
    """Turn state "closed" into a closing time that has passed, and mark what is closed already as taken in.

    The activities of an archived course count as closed when it was archived.
    """
    op.execute(
        "UPDATE activities SET closes_at = CURRENT_TIMESTAMP "
        "WHERE state = 'closed' AND (closes_at IS NULL OR closes_at > CURRENT_TIMESTAMP)"
    )
    op.execute("UPDATE activities SET state = 'open' WHERE state = 'closed'")
    archived_at = "(SELECT archived_at FROM courses WHERE courses.id = activities.course_id)"
    op.execute(
        f"UPDATE activities SET closes_at = {archived_at} "  # noqa: S608 - nothing of it was typed
        f"WHERE state = 'open' AND {archived_at} IS NOT NULL AND (closes_at IS NULL OR closes_at > {archived_at})"
    )
    op.execute(
        "UPDATE activities SET drafts_taken_at = closes_at, answers_shown_at = closes_at "
        "WHERE state = 'open' AND closes_at <= CURRENT_TIMESTAMP"
    )


def _add_flags(table: str, *columns: str) -> None:
    """Add columns of truth values that may not be null, false in every row."""
    for column in columns:
        op.add_column(table, sa.Column(column, sa.Boolean))
        op.execute(sa.update(sa.table(table, sa.column(column, sa.Boolean))).values({column: False}))
    with op.batch_alter_table(table) as batch:
        for column in columns:
            batch.alter_column(column, existing_type=sa.Boolean, nullable=False)


def _add_run_columns() -> None:
    """Let a run say which activity it belongs to, and keep the worksheet and model that it was run for."""
    with op.batch_alter_table("runs") as batch:
        batch.add_column(sa.Column("activity_id", sa.Integer))
        batch.add_column(sa.Column("frozen", sa.JSON))
        batch.create_foreign_key("fk_runs_activity_id", "activities", ["activity_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_runs_activity_id", "runs", ["activity_id"])


def _create_tables() -> None:
    _create("snapshots", sa.Column("hash", sa.String(64)), sa.Column("kind", sa.String(20), nullable=False),
            sa.Column("content", sa.Text, nullable=False),
            sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False))  # fmt: skip
    _create("sealed_tickets", sa.Column("id", sa.String(64)), sa.Column("activity_id", sa.Integer, nullable=False),
            sa.Column("sealed", sa.Text, nullable=False))  # fmt: skip
    op.create_index("ix_sealed_tickets_activity_id", "sealed_tickets", ["activity_id"])
    of_student = sa.Column("activity_id", sa.Integer), sa.Column("student_id", sa.Integer)
    _create("extra_time", *of_student, sa.Column("minutes", sa.Integer, nullable=False), key_length=2)
    of_student = sa.Column("activity_id", sa.Integer), sa.Column("student_id", sa.Integer)
    _create("grade_overrides", *of_student, sa.Column("points", sa.Float),
            sa.Column("excused", sa.Boolean, nullable=False), sa.Column("reason", sa.String(300), nullable=False),
            sa.Column("teacher_id", sa.Integer), sa.Column("at", sa.DateTime(timezone=True), nullable=False),
            key_length=2)  # fmt: skip


def _create(table: str, *columns: sa.Column[Any], key_length: int = 1) -> None:
    """Create a table whose key is its first columns; a column such as activity_id refers to activities.

    Keys are named as tables.py names them. A row goes with the one it belongs to, except that a teacher may go.
    """
    names = [column.name for column in columns]
    keys = [
        sa.ForeignKeyConstraint(
            [name],
            [f"{other}.id"],
            f"fk_{table}_{name}",
            ondelete="SET NULL" if name == "teacher_id" else "CASCADE",
        )
        for name, other in REFERENCES.items()
        if name in names
    ]
    primary = sa.PrimaryKeyConstraint(*names[:key_length], name=f"pk_{table}")
    op.create_table(table, *columns, primary, *keys, sqlite_with_rowid=table != "sealed_tickets")
