"""Learners, their drafts and attempts, and runs of a head."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "learners",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "drafts",
        sa.Column("learner_id", sa.Integer, sa.ForeignKey("learners.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("sheet", sa.String(200), primary_key=True),
        sa.Column("answers", sa.JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("learner_id", sa.Integer, sa.ForeignKey("learners.id", ondelete="CASCADE"), nullable=False),
        sa.Column("sheet", sa.String(200), nullable=False),
        sa.Column("answers", sa.JSON, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("out_of", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_attempts_learner_id_sheet", "attempts", ["learner_id", "sheet"])
    op.create_table(
        "runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("sheet", sa.String(200), nullable=False),
        sa.Column("answers", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("problem", sa.String(500)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    for table in ("runs", "attempts", "drafts", "learners"):
        op.drop_table(table)
