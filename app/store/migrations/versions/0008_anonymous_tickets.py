"""Anonymous exit tickets are answers without a student from the start; nothing waits encrypted any more."""

from alembic import op

revision = "0008_anonymous_tickets"
down_revision = "0007_number_titles"


def upgrade() -> None:
    op.drop_table("sealed_tickets")
