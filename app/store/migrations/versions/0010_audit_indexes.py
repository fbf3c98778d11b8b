"""Indexes by which the audit log is read and expires."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_index("ix_audit_log_object_kind_object_id", "audit_log", ["object_kind", "object_id"])
    op.create_index("ix_audit_log_at", "audit_log", ["at"])


def downgrade() -> None:
    op.drop_index("ix_audit_log_at", "audit_log")
    op.drop_index("ix_audit_log_object_kind_object_id", "audit_log")
