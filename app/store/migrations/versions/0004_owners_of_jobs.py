"""Jobs can belong to a visitor or a student, and are deleted with them. Jobs end within an hour, so none is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0004_owners_of_jobs"
down_revision = "0003_model_keys"


def upgrade() -> None:
    op.drop_table("job_pieces")
    op.drop_table("jobs")
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("client", sa.String(length=100), nullable=False),
        sa.Column("is_member", sa.Boolean(), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("visitor_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("about", sa.JSON(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.String(length=20), nullable=False),
        sa.Column("language", sa.String(length=20), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("is_working", sa.Boolean(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("ending", sa.String(length=10), nullable=True),
        sa.Column("problem", sa.String(length=500), nullable=False),
        sa.ForeignKeyConstraint(["teacher_id"], ["teachers.id"], name=op.f("fk_jobs_teacher_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["visitor_id"], ["visitors.id"], name=op.f("fk_jobs_visitor_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_jobs_student_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("key", name=op.f("uq_jobs_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_kind_ending"), "jobs", ["kind", "ending"], unique=False)
    op.create_index(op.f("ix_jobs_teacher_id"), "jobs", ["teacher_id"], unique=False)
    for owner in ("visitor_id", "student_id"):
        op.create_index(op.f(f"ix_jobs_{owner}"), "jobs", [owner], unique=False)
    op.create_table(
        "job_pieces",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_pieces_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "number", name=op.f("pk_job_pieces")),
    )
