"""A student's number keeps its column's title, and Canvas's own ID is kept, so that gradebooks find students again."""

import sqlalchemy as sa
from alembic import op

revision = "0007_number_titles"
down_revision = "0006_operators"


def upgrade() -> None:
    op.add_column("students", sa.Column("number_title", sa.String(length=100), nullable=True))
    op.add_column("students", sa.Column("canvas_id", sa.String(length=100), nullable=True))
