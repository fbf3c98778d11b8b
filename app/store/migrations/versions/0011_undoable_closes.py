"""What the Close button changed, so that it can be undone."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "undoable_closes",
        sa.Column("activity_id", sa.Integer, sa.ForeignKey("activities.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("pressed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closes_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("opens_before", sa.DateTime(timezone=True)),
        sa.Column("closes_before", sa.DateTime(timezone=True)),
    )


def downgrade() -> None:
    op.drop_table("undoable_closes")
