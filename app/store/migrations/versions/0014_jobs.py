"""Jobs are rows, so that every process sees the same queue."""

import sqlalchemy as sa
from alembic import op

revision = "0014_jobs"
down_revision = "0013_grades"


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(32), nullable=False, unique=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("client", sa.String(100), nullable=False),
        sa.Column("is_member", sa.Boolean, nullable=False),
        sa.Column("teacher_id", sa.Integer, sa.ForeignKey("teachers.id", ondelete="CASCADE"), index=True),
        sa.Column("about", sa.JSON, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("request_id", sa.String(20), nullable=False),
        sa.Column("language", sa.String(20), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("is_working", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("ending", sa.String(10)),
        sa.Column("problem", sa.String(500), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_kind_ending", "jobs", ["kind", "ending"])
    op.create_table(
        "job_pieces",
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("job_pieces")
    op.drop_table("jobs")
