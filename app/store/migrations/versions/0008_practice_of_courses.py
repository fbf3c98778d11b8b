"""What a course practises, and how far its students are with that."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("courses", sa.Column("practice", sa.JSON))
    op.add_column("students", sa.Column("practice_record", sa.Text))


def downgrade() -> None:
    op.drop_column(
        "students", "practice_record"
    )  # without a copy of the table, whose removal would take attempts along
    op.drop_column("courses", "practice")
