"""Jobs can be done by runners on several machines, in a fair order. Older processes keep working beside newer ones."""

import sqlalchemy as sa
from alembic import op

revision = "0005_runners"
down_revision = "0004_owners_of_jobs"

HAS_STARTED = sa.text("started_at IS NOT NULL")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("started_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("runner", sa.Text(), server_default="", nullable=False))
    op.add_column("jobs", sa.Column("turn", sa.Integer(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("checkpoint", sa.String(length=100), server_default="", nullable=False))
    op.add_column("jobs", sa.Column("device", sa.String(length=20), server_default="", nullable=False))
    op.add_column("jobs", sa.Column("memory_bytes", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("form", sa.Integer(), server_default="1", nullable=False))
    op.add_column("jobs", sa.Column("reason", sa.String(length=20), server_default="", nullable=False))
    op.create_index(op.f("ix_jobs_client_kind"), "jobs", ["client", "kind"], unique=False)
    op.create_index("ix_jobs_started", "jobs", ["kind", "is_member", "turn"], unique=False,
                    sqlite_where=HAS_STARTED, postgresql_where=HAS_STARTED)  # fmt: skip
    op.create_table(
        "runners",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("is_web", sa.Boolean(), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("device", sa.String(length=20), nullable=False),
        sa.Column("device_name", sa.String(length=200), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("checkpoints", sa.JSON(), nullable=False),
        sa.Column("form", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=20), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("jobs_done", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_runners")),
    )
