"""Tables and columns get the names that the rest of the app uses, and an attempt says which definition marked it.

Every row is kept. Three things change in the data: sheets of an activity are counted from 1 (`sheet_number`), the log's
strings such as "teacher 3" become a kind and an id, and two words inside an activity's policies are replaced.
"""

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TABLES = {  # old name: new name
    "learners": "visitors",
    "drafts": "practice_drafts",
    "attempts": "practice_attempts",
    "seats": "enrolments",
    "links": "account_links",
    "work": "class_drafts",
    "tries": "class_attempts",
    "log": "audit_log",
}
COLUMNS = {  # by the table's new name, old column: new column
    "practice_drafts": {"learner_id": "visitor_id", "sheet": "sheet_key"},
    "practice_attempts": {"learner_id": "visitor_id", "sheet": "sheet_key"},
    "runs": {"sheet": "sheet_key"},
    "enrolments": {"learner_id": "visitor_id"},
    "class_drafts": {"sheet": "sheet_key"},
    "class_attempts": {"item": "sheet_number", "sheet": "sheet_key", "beliefs": "misconceptions"},
    "spotlights": {"item": "sheet_number", "belief": "misconception", "drawn": "shows_drawing"},
    "old_marks": {"try_id": "attempt_id", "beliefs": "misconceptions"},
    "audit_log": {"who": "actor_kind", "what": "action", "object": "object_kind"},
}
ACTIONS = {  # old words of the log: new ones
    "activity made": "activity created",
    "course brought back": "course restored",
    "handout printed": "handout created",
    "name freed": "student released",
    "paper typed in": "paper answers entered",
    "sample course made": "sample course created",
    "sample course removed": "sample course deleted",
    "teacher add": "teacher added",
    "teacher reset": "password link created",
}
PREFIXES: dict[type[Any], str] = {
    sa.PrimaryKeyConstraint: "pk",
    sa.UniqueConstraint: "uq",
    sa.ForeignKeyConstraint: "fk",
    sa.Index: "ix",
}
DETAILED = ("exported", "invited", "regraded")  # actions that are followed by a detail, such as "exported answers.csv"

activities = sa.table("activities", sa.column("id", sa.Integer), sa.column("policies", sa.JSON))
log = sa.table(
    "audit_log",
    *(sa.column(name, sa.String) for name in ("actor_kind", "action", "detail", "object_kind")),
    *(sa.column(name, sa.Integer) for name in ("actor_id", "object_id")),
)


def upgrade() -> None:
    for old, new in TABLES.items():
        op.rename_table(old, new)
    for table, columns in COLUMNS.items():
        for old, new in columns.items():
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    _shift_sheet_numbers(+1)
    _replace_in_policies({"tries": "max_attempts"}, {"at_once": "immediate"})
    op.add_column("class_attempts", sa.Column("marked_by", sa.String(120)))
    op.add_column("old_marks", sa.Column("marked_by", sa.String(120)))
    # Marks that were never regraded are those of the sheet as it was answered; of the others it is not known.
    op.execute("UPDATE class_attempts SET marked_by = sheet_key WHERE id NOT IN (SELECT attempt_id FROM old_marks)")
    _split_log()
    for table in (*TABLES.values(), "old_marks"):
        _name_by_convention(table)


def downgrade() -> None:
    _join_log()
    op.drop_column("old_marks", "marked_by")
    op.drop_column("class_attempts", "marked_by")
    _replace_in_policies({"max_attempts": "tries"}, {"immediate": "at_once"})
    _shift_sheet_numbers(-1)
    for table, columns in COLUMNS.items():
        for old, new in columns.items():
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}")
    for old, new in TABLES.items():
        op.rename_table(new, old)
    for table in (*TABLES, "old_marks"):
        _name_by_convention(table)


def _shift_sheet_numbers(by: int) -> None:
    for table in ("class_attempts", "spotlights"):
        op.execute(f"UPDATE {table} SET sheet_number = sheet_number + ({by})")  # noqa: S608 - our own names


def _replace_in_policies(keys: dict[str, str], values: dict[str, str]) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(activities.c.id, activities.c.policies)).all():
        policies = {
            keys.get(key, key): values.get(v, v) if isinstance(v, str) else v for key, v in row.policies.items()
        }
        connection.execute(sa.update(activities).where(activities.c.id == row.id).values(policies=policies))


def _split_log() -> None:
    """Take "teacher 3" apart into kind and id, and "exported answers.csv" into action and detail."""
    with op.batch_alter_table("audit_log") as batch:
        batch.add_column(sa.Column("actor_id", sa.Integer))
        batch.add_column(sa.Column("object_id", sa.Integer))
        batch.add_column(sa.Column("detail", sa.String(40)))
    connection = op.get_bind()
    connection.execute(sa.update(log).values(detail=""))
    for kind, number in ((log.c.actor_kind, log.c.actor_id), (log.c.object_kind, log.c.object_id)):
        for text in connection.scalars(sa.select(kind).distinct()).all():
            if parts := re.fullmatch(r"(\D+) (\d+)", text):
                values = {kind.name: parts[1], number.name: int(parts[2])}
                connection.execute(sa.update(log).where(kind == text, number.is_(None)).values(values))
    for text in connection.scalars(sa.select(log.c.action).distinct()).all():
        action, _, detail = text.partition(" ")
        if action in DETAILED:
            connection.execute(sa.update(log).where(log.c.action == text).values(action=action, detail=detail))
        elif text in ACTIONS:
            connection.execute(sa.update(log).where(log.c.action == text).values(action=ACTIONS[text]))
    with op.batch_alter_table("audit_log") as batch:
        batch.alter_column("detail", existing_type=sa.String(40), nullable=False)
        batch.alter_column("actor_kind", existing_type=sa.String(40), type_=sa.String(20))
        batch.alter_column("object_kind", existing_type=sa.String(100), type_=sa.String(20))


def _join_log() -> None:
    with op.batch_alter_table("audit_log") as batch:
        batch.alter_column("actor_kind", existing_type=sa.String(20), type_=sa.String(40))
        batch.alter_column("object_kind", existing_type=sa.String(20), type_=sa.String(100))
    connection = op.get_bind()
    for kind, number in ((log.c.actor_kind, log.c.actor_id), (log.c.object_kind, log.c.object_id)):
        joined = kind + " " + sa.cast(number, sa.String)
        connection.execute(sa.update(log).where(number.is_not(None)).values({kind.name: joined}))
    connection.execute(sa.update(log).where(log.c.detail != "").values(action=log.c.action + " " + log.c.detail))
    for old, new in ACTIONS.items():
        connection.execute(sa.update(log).where(log.c.action == new).values(action=old))
    with op.batch_alter_table("audit_log") as batch:
        for name in ("actor_id", "object_id", "detail"):
            batch.drop_column(name)


def _name_by_convention(table: str) -> None:
    """Name a table's keys, constraints, indexes and sequence after its name and columns of now, as tables.py does.

    PostgreSQL renames them where they are; SQLite keeps their names inside the table, which is made anew.
    """
    connection = op.get_bind()
    shape = sa.Table(table, sa.MetaData(), autoload_with=connection, resolve_fks=False)
    things: list[Any] = [*shape.constraints, *shape.indexes]
    for thing in things:
        columns = "_".join(column.name for column in thing.columns)
        prefix = PREFIXES[type(thing)]
        old, new = thing.name, f"pk_{table}" if prefix == "pk" else f"{prefix}_{table}_{columns}"
        thing.name = new
        if old != new and connection.dialect.name == "postgresql":
            what = f"INDEX {old} RENAME" if prefix == "ix" else f"TABLE {table} RENAME CONSTRAINT {old}"
            op.execute(f"ALTER {what} TO {new}")
    if connection.dialect.name == "sqlite":
        with op.batch_alter_table(table, recreate="always", copy_from=shape):
            pass
    elif "id" in shape.c:
        old_sequence = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table, "id")))
        if old_sequence != f"public.{table}_id_seq":
            op.execute(f"ALTER SEQUENCE {old_sequence} RENAME TO {table}_id_seq")
