"""Tables and columns get the names that the rest of the app uses: misconceptions, not beliefs."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.alter_column("tries", "beliefs", new_column_name="misconceptions")
    op.alter_column("old_marks", "beliefs", new_column_name="misconceptions")
    op.alter_column("spotlights", "belief", new_column_name="misconception")


def downgrade() -> None:
    op.alter_column("spotlights", "misconception", new_column_name="belief")
    op.alter_column("old_marks", "misconceptions", new_column_name="beliefs")
    op.alter_column("tries", "misconceptions", new_column_name="beliefs")
