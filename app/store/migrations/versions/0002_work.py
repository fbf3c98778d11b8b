"""One table of drafts and one of attempts, for activities and practice; auto-submission gets its name."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002_work"
down_revision = "0001_tables"

ROWS_AT_A_TIME = 500
# Each index only has rows with a value in its first column.
INDEXES = (
    ("drafts", ("student_id", "activity_id", "sheet_key"), True),
    ("drafts", ("activity_id",), False),
    ("drafts", ("visitor_id", "sheet_key"), True),
    ("attempts", ("student_id", "client_id"), True),
    ("attempts", ("activity_id", "student_id", "sheet_key", "id"), False),
    ("attempts", ("visitor_id", "sheet_key", "id"), False),
)
OF_DRAFT = ("sheet_key", "answers", "version", "saved_at")
OF_ATTEMPT = ("sheet_key", "answers", "score", "out_of", "created_at")
OF_CLASS_ATTEMPT = (
    *("id", "student_id", "activity_id", "revision", "sheet_number", "client_id", "variant", "marks"),
    *("misconceptions", "handed_in", "marked_by", "late"),
)


def upgrade() -> None:
    create_tables()
    connection = op.get_bind()
    rename_settings(connection)
    copy_classes(connection)
    copy_practice(connection)
    if connection.dialect.name == "postgresql":  # pending deferred checks would keep tables from being changed
        op.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for table, columns, unique in INDEXES:
        has_first = sa.text(f"{columns[0]} IS NOT NULL")
        name = op.f(f"ix_{table}_{'_'.join(columns)}")
        op.create_index(name, table, list(columns), unique=unique, sqlite_where=has_first, postgresql_where=has_first)
    with op.batch_alter_table("old_marks") as batch:
        name = op.f("fk_old_marks_attempt_id")
        batch.drop_constraint(name, type_="foreignkey")
        batch.create_foreign_key(name, "attempts", ["attempt_id"], ["id"], ondelete="CASCADE")
    for table in ("practice_drafts", "practice_attempts", "class_drafts", "class_attempts"):
        op.drop_table(table)


def rename_settings(connection: sa.Connection) -> None:
    """Rename the time at which drafts were auto-submitted, and the policy that turns it on."""
    activities = sa.table("activities", sa.column("id"), sa.column("policies", sa.JSON()))
    for row in connection.execute(sa.select(activities)).all():
        policies = {"auto_submit" if name == "take_in_drafts" else name: value for name, value in row.policies.items()}
        connection.execute(sa.update(activities).where(activities.c.id == row.id).values(policies=policies))
    op.execute("ALTER TABLE activities RENAME COLUMN drafts_taken_at TO auto_submitted_at")


def copy_classes(connection: sa.Connection) -> None:
    """Copy drafts and attempts of activities; attempts keep their ids, and ids are never reused."""
    if connection.dialect.name == "postgresql":
        op.execute("SELECT setval('attempts_id_seq', last_value, is_called) FROM class_attempts_id_seq")
    else:
        op.execute(
            "INSERT INTO sqlite_sequence (name, seq)"
            " SELECT 'attempts', seq FROM sqlite_sequence WHERE name = 'class_attempts'"
        )
    of_draft = ("student_id", "activity_id", "variant", *OF_DRAFT)
    former = table("class_drafts", *of_draft, "stamps")
    no_stamps = sa.or_(former.c.stamps.is_(sa.null()), sa.cast(former.c.stamps, sa.Text) == "null")
    versions = sa.case((no_stamps, sa.literal({}, sa.JSON())), else_=former.c.stamps)
    copied, to = sa.select(*former.c[:-1], versions), [*of_draft, "tab_versions"]
    connection.execute(sa.insert(table("drafts", *to)).from_select(to, copied))
    of_attempt = (*OF_CLASS_ATTEMPT, *OF_ATTEMPT)
    copied, to = sa.select(table("class_attempts", *of_attempt, "taken_in")), [*of_attempt, "auto_submitted"]
    connection.execute(sa.insert(table("attempts", *to)).from_select(to, copied))
    # So that a draft is submitted once, even if this is repeated.
    op.execute(
        "UPDATE attempts SET client_id = 'auto-submit' || substr(client_id, 9)"
        " WHERE auto_submitted AND client_id LIKE 'taken-in %'"
    )


def copy_practice(connection: sa.Connection) -> None:
    """Copy drafts and attempts of practice, with the sizes from their sheet's key and without marks by box."""
    in_batches = {"yield_per": ROWS_AT_A_TIME}
    former = table("practice_drafts", "visitor_id", *OF_DRAFT, "stamps")
    copied = sa.select(*former.c[:-1], former.c.stamps.label("tab_versions"))
    target = sa.insert(table("drafts", "visitor_id", *OF_DRAFT, "tab_versions", "variant"))
    for rows in connection.execute(copied, execution_options=in_batches).mappings().partitions():
        connection.execute(target, [
            {**row, "tab_versions": row["tab_versions"] or {}, "variant": sizes(row["sheet_key"])} for row in rows
        ])  # fmt: skip
    plain = {
        "client_id": "",
        "marks": {},
        "misconceptions": [],
        "handed_in": False,
        "auto_submitted": False,
        "late": False,
    }
    copied = sa.select(table("practice_attempts", "visitor_id", *OF_ATTEMPT)).order_by(sa.column("id"))
    target = sa.insert(table("attempts", "visitor_id", *OF_ATTEMPT, "variant", "marked_by", *plain))
    for rows in connection.execute(copied, execution_options=in_batches).mappings().partitions():
        connection.execute(target, [
            {**row, **plain, "variant": sizes(row["sheet_key"]), "marked_by": row["sheet_key"]} for row in rows
        ])  # fmt: skip


def table(name: str, *columns: str) -> sa.TableClause:
    json = ("answers", "variant", "stamps", "tab_versions", "marks", "misconceptions")
    kinds = dict.fromkeys(json, sa.JSON()) | dict.fromkeys(("saved_at", "created_at"), sa.DateTime(timezone=True))
    return sa.table(name, *(sa.column(each, kinds.get(each)) for each in columns))


def sizes(sheet_key: str) -> dict[str, Any]:
    _worksheet, model, tokens, decoder = (sheet_key.split("/") + [""] * 3)[:4]
    return {"model": model, "tokens": int(tokens or 0), "decoder_tokens": int(decoder) if decoder else None}


def create_tables() -> None:
    op.create_table(
        "drafts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("visitor_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("activity_id", sa.Integer(), nullable=True),
        sa.Column("sheet_key", sa.String(length=200), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("variant", sa.JSON(), nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tab_versions", sa.JSON(), nullable=False),
        sa.CheckConstraint(
            "(student_id IS NULL) = (activity_id IS NULL) AND (student_id IS NULL) = (visitor_id IS NOT NULL)",
            name=op.f("ck_drafts_owner"),
        ),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_drafts_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_drafts_student_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["visitor_id"], ["visitors.id"], name=op.f("fk_drafts_visitor_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drafts")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("visitor_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("activity_id", sa.Integer(), nullable=True),
        sa.Column("sheet_key", sa.String(length=200), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("sheet_number", sa.Integer(), nullable=True),
        sa.Column("client_id", sa.String(length=80), nullable=False),
        sa.Column("variant", sa.JSON(), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("marks", sa.JSON(), nullable=False),
        sa.Column("misconceptions", sa.JSON(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("out_of", sa.Integer(), nullable=False),
        sa.Column("handed_in", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("marked_by", sa.String(length=200), nullable=False),
        sa.Column("auto_submitted", sa.Boolean(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "(student_id IS NULL) = (activity_id IS NULL) AND (student_id IS NULL) = (visitor_id IS NOT NULL)"
            " AND (revision IS NULL) = (activity_id IS NULL) AND (sheet_number IS NULL) = (activity_id IS NULL)",
            name=op.f("ck_attempts_owner"),
        ),
        sa.CheckConstraint("sheet_number > 0 AND score BETWEEN 0 AND out_of", name=op.f("ck_attempts_score")),
        sa.ForeignKeyConstraint(
            ["activity_id", "revision"],
            ["revisions.activity_id", "revisions.number"],
            name=op.f("fk_attempts_activity_id_revision"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_attempts_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_attempts_student_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["visitor_id"], ["visitors.id"], name=op.f("fk_attempts_visitor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sqlite_autoincrement=True,
    )
