"""SQLite no longer reuses the ids of deleted rows (AUTOINCREMENT); PostgreSQL never did.

Every row is kept. New ids are also higher than those of deleted rows that the log still mentions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

TABLES = ("account_links", "activities", "audit_log", "class_attempts", "courses", "materials", "practice_attempts",
          "regrades", "revisions", "sessions", "students", "teachers", "visitors")  # fmt: skip
IN_LOG = {  # the highest ids that the log mentions
    "activities": ("SELECT max(object_id) FROM audit_log WHERE object_kind = 'activity'",),
    "courses": ("SELECT max(object_id) FROM audit_log WHERE object_kind = 'course'",),
    "materials": ("SELECT max(object_id) FROM audit_log WHERE object_kind = 'material'",),
    "students": (
        "SELECT max(object_id) FROM audit_log WHERE object_kind = 'student'",
        "SELECT max(CAST(substr(detail, length('student ') + 1) AS INTEGER)) FROM audit_log"
        " WHERE action IN ('student removed', 'students merged')",
    ),
    "teachers": (
        "SELECT max(object_id) FROM audit_log WHERE object_kind = 'teacher'",
        "SELECT max(actor_id) FROM audit_log WHERE actor_kind = 'teacher'",
    ),
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            _recreate(table, autoincrement=True)
            _advance_sequence(table)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            _recreate(table, autoincrement=False)


def _recreate(table: str, *, autoincrement: bool) -> None:
    """Copy a table into a new one with or without AUTOINCREMENT, which SQLite cannot change in place."""
    shape = sa.Table(table, sa.MetaData(), autoload_with=op.get_bind(), resolve_fks=False)
    shape.primary_key.name = f"pk_{table}"  # it has no name while it has AUTOINCREMENT
    options = {"sqlite_autoincrement": autoincrement}
    with op.batch_alter_table(table, recreate="always", copy_from=shape, table_kwargs=options):
        pass


def _advance_sequence(table: str) -> None:
    """Make a table's next id higher than all ids in the table and in the log."""
    connection = op.get_bind()
    queries = (f"SELECT max(id) FROM {table}", *IN_LOG.get(table, ()))  # noqa: S608 - our own names
    highest = max(connection.scalar(sa.text(query)) or 0 for query in queries)
    row = {"name": table, "seq": highest}
    connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), row)
    connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), row)
