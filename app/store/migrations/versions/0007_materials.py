"""Worksheets and exit tickets that teachers write, with every version of them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "materials",
        sa.Column("id", sa.Integer),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("course_id", sa.Integer),
        sa.Column("teacher_id", sa.Integer),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("topic", sa.String(80), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("share_hash", sa.String(64)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_materials"),
        sa.UniqueConstraint("share_hash", name="uq_materials_share_hash"),
        sa.CheckConstraint("(course_id IS NULL) <> (teacher_id IS NULL)", name="ck_materials_owner"),
        *(_reference("materials", column) for column in ("course_id", "teacher_id")),
    )
    op.create_index("ix_materials_course_id", "materials", ["course_id"])
    op.create_index("ix_materials_teacher_id", "materials", ["teacher_id"])
    op.create_table(
        "material_versions",
        sa.Column("material_id", sa.Integer),
        sa.Column("number", sa.Integer),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("teacher_id", sa.Integer),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("material_id", "number", name="pk_material_versions"),
        _reference("material_versions", "material_id"),
        _reference("material_versions", "teacher_id", "SET NULL"),
    )


def downgrade() -> None:
    for table in ("material_versions", "materials"):
        op.drop_table(table)


def _reference(table: str, column: str, ondelete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    """A foreign key named as tables.py names it: course_id refers to the id of courses."""
    other = f"{column.removesuffix('_id')}s.id"
    return sa.ForeignKeyConstraint([column], [other], f"fk_{table}_{column}", ondelete=ondelete)
