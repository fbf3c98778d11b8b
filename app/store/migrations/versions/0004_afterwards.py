"""What the class is shown, and regrading with the marks as they were before."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "spotlights",
        sa.Column("activity_id", sa.Integer, sa.ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("item", sa.Integer, nullable=False),
        sa.Column("belief", sa.String(80), nullable=False),
        sa.Column("drawn", sa.Boolean, nullable=False),
    )
    op.create_table(
        "regrades",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("activity_id", sa.Integer, sa.ForeignKey("activities.id", ondelete="CASCADE"), nullable=False),
        sa.Column("teacher_id", sa.Integer, sa.ForeignKey("teachers.id", ondelete="SET NULL")),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_regrades_activity_id", "regrades", ["activity_id"])
    op.create_table(
        "old_marks",
        sa.Column("regrade_id", sa.Integer, sa.ForeignKey("regrades.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("try_id", sa.Integer, sa.ForeignKey("tries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("marks", sa.JSON, nullable=False),
        sa.Column("beliefs", sa.JSON, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("out_of", sa.Integer, nullable=False),
    )
    op.create_index("ix_old_marks_try_id", "old_marks", ["try_id"])


def downgrade() -> None:
    for table in ("old_marks", "regrades", "spotlights"):
        op.drop_table(table)
