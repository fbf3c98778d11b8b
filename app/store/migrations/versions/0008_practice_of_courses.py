"""What a course practises, and how far its students are with that."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("courses", sa.Column("practice", sa.JSON))
    op.add_column("students", sa.Column("practice_record", sa.Text))


def downgrade() -> None:
    for table, column in (("students", "practice_record"), ("courses", "practice")):
        with op.batch_alter_table(table) as batch:
            batch.drop_column(column)
