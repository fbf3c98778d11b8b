"""A teacher can be an operator; the oldest account of an existing installation, who set it up, becomes one."""

import sqlalchemy as sa
from alembic import op

revision = "0006_operators"
down_revision = "0005_runners"


def upgrade() -> None:
    op.add_column("teachers", sa.Column("is_operator", sa.Boolean(), nullable=False, server_default=sa.false()))
    teachers = sa.table("teachers", sa.column("id"), sa.column("is_operator"))
    first = sa.select(sa.func.min(teachers.c.id)).scalar_subquery()
    op.execute(sa.update(teachers).where(teachers.c.id == first).values(is_operator=sa.true()))
