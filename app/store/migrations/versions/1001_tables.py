"""Every table of the first release.

A revision's first digit is its series: see "Changing the tables" in docs/contributing.md.
"""

import sqlalchemy as sa
from alembic import op

from app.store.jobs import create_engine_tables

revision = "1001_tables"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor_kind", sa.String(length=20), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("object_kind", sa.String(length=20), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("object_id", sa.Integer(), nullable=True),
        sa.Column("detail", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_log_at"), "audit_log", ["at"])
    op.create_index(op.f("ix_audit_log_object_kind_object_id"), "audit_log", ["object_kind", "object_id"])
    op.create_table(
        "courses",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("sample", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("practice", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_courses")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "models",
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("source", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_models")),
    )
    op.create_table(
        "teachers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("password_hash", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_operator", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teachers")),
        sa.UniqueConstraint("email", name=op.f("uq_teachers_email")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "visitors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_visitors")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_visitors_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "account_links",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=True),
        sa.Column("role", sa.String(length=10), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('setup', 'invite', 'reset', 'connect', 'platform')", name=op.f("ck_account_links_kind")
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_account_links_course_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_links")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_account_links_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_account_links_course_id"), "account_links", ["course_id"])
    op.create_table(
        "activities",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("day", sa.Date(), nullable=True),
        sa.Column("join_code", sa.String(length=12), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("policies", sa.JSON(), nullable=False),
        sa.Column("opens_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closes_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answers_shown_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("projection", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("auto_submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('draft', 'open')", name=op.f("ck_activities_state")),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_activities_course_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_activities")),
        sa.UniqueConstraint("join_code", name=op.f("uq_activities_join_code")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_activities_closes_at"), "activities", ["closes_at"])
    op.create_index(op.f("ix_activities_course_id"), "activities", ["course_id"])
    op.create_table(
        "materials",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=True),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("topic", sa.String(length=80), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("share_hash", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('worksheet', 'ticket')", name=op.f("ck_materials_kind")),
        sa.CheckConstraint("(course_id IS NULL) <> (teacher_id IS NULL)", name=op.f("ck_materials_owner")),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name=op.f("fk_materials_course_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_materials_teacher_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_materials")),
        sa.UniqueConstraint("share_hash", name=op.f("uq_materials_share_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_materials_course_id"), "materials", ["course_id"])
    op.create_index(op.f("ix_materials_teacher_id"), "materials", ["teacher_id"])
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_sessions_teacher_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sessions_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_sessions_teacher_id"), "sessions", ["teacher_id"])
    op.create_table(
        "staff",
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.CheckConstraint("role IN ('instructor', 'assistant')", name=op.f("ck_staff_role")),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name=op.f("fk_staff_course_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["teacher_id"], ["teachers.id"], name=op.f("fk_staff_teacher_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("course_id", "teacher_id", name=op.f("pk_staff")),
    )
    op.create_index(op.f("ix_staff_teacher_id"), "staff", ["teacher_id"])
    op.create_table(
        "students",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("name_key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("roster_key", sa.String(length=100), nullable=True),
        sa.Column("number_title", sa.String(length=100), nullable=True),
        sa.Column("canvas_id", sa.String(length=100), nullable=True),
        sa.Column("resume_hash", sa.String(length=64), nullable=True),
        sa.Column("joined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("import_key", sa.String(length=32), nullable=True),
        sa.Column("practice_record", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name=op.f("fk_students_course_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_students")),
        sa.UniqueConstraint("course_id", "roster_key", name=op.f("uq_students_course_id_roster_key")),
        sa.UniqueConstraint("resume_hash", name=op.f("uq_students_resume_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_students_course_id_name_key"), "students", ["course_id", "name_key"])
    op.create_index(
        "ix_students_unnumbered_name",
        "students",
        ["course_id", "name_key"],
        unique=True,
        sqlite_where=sa.text("roster_key IS NULL"),
        postgresql_where=sa.text("roster_key IS NULL"),
    )
    op.create_table(
        "attendance",
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("student_id", sa.Integer(), nullable=False),
        sa.Column("arrived_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ticket_in", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_attendance_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_attendance_student_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("activity_id", "student_id", name=op.f("pk_attendance")),
    )
    op.create_index(op.f("ix_attendance_student_id"), "attendance", ["student_id"])
    op.create_table(
        "drafts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("visitor_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("activity_id", sa.Integer(), nullable=True),
        sa.Column("sheet_key", sa.String(length=200), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("variant", sa.JSON(), nullable=False),
        sa.Column("model_key", sa.String(length=32), nullable=True),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tab_versions", sa.JSON(), nullable=False),
        sa.CheckConstraint(
            "(student_id IS NULL) = (activity_id IS NULL) AND (student_id IS NULL) = (visitor_id IS NOT NULL)",
            name=op.f("ck_drafts_owner"),
        ),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_drafts_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_drafts_student_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["visitor_id"], ["visitors.id"], name=op.f("fk_drafts_visitor_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drafts")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_drafts_activity_id"),
        "drafts",
        ["activity_id"],
        sqlite_where=sa.text("activity_id IS NOT NULL"),
        postgresql_where=sa.text("activity_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_drafts_model_key"),
        "drafts",
        ["model_key"],
        sqlite_where=sa.text("model_key IS NOT NULL"),
        postgresql_where=sa.text("model_key IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_drafts_student_id_activity_id_sheet_key"),
        "drafts",
        ["student_id", "activity_id", "sheet_key"],
        unique=True,
        sqlite_where=sa.text("student_id IS NOT NULL"),
        postgresql_where=sa.text("student_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_drafts_visitor_id_sheet_key"),
        "drafts",
        ["visitor_id", "sheet_key"],
        unique=True,
        sqlite_where=sa.text("visitor_id IS NOT NULL"),
        postgresql_where=sa.text("visitor_id IS NOT NULL"),
    )
    op.create_table(
        "enrolments",
        sa.Column("visitor_id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("student_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_enrolments_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_enrolments_student_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["visitor_id"], ["visitors.id"], name=op.f("fk_enrolments_visitor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("visitor_id", "course_id", name=op.f("pk_enrolments")),
    )
    op.create_index(op.f("ix_enrolments_course_id"), "enrolments", ["course_id"])
    op.create_index(op.f("ix_enrolments_student_id"), "enrolments", ["student_id"])
    op.create_table(
        "extra_time",
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("student_id", sa.Integer(), nullable=False),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.CheckConstraint("minutes > 0", name=op.f("ck_extra_time_minutes")),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_extra_time_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_extra_time_student_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("activity_id", "student_id", name=op.f("pk_extra_time")),
    )
    op.create_index(op.f("ix_extra_time_student_id"), "extra_time", ["student_id"])
    op.create_table(
        "grade_changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("student_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("points", sa.Float(), nullable=True),
        sa.Column("points_before", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=300), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(kind = 'points') = (points IS NOT NULL)", name=op.f("ck_grade_changes_points")),
        sa.CheckConstraint("kind IN ('points', 'excused', 'undone')", name=op.f("ck_grade_changes_kind")),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_grade_changes_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_grade_changes_student_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_grade_changes_teacher_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grade_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_grade_changes_activity_id_student_id_id"),
        "grade_changes",
        ["activity_id", "student_id", "id"],
    )
    op.create_index(op.f("ix_grade_changes_student_id"), "grade_changes", ["student_id"])
    op.create_index(op.f("ix_grade_changes_teacher_id"), "grade_changes", ["teacher_id"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("queue", sa.String(length=40), nullable=False),
        sa.Column("client", sa.String(length=100), nullable=False),
        sa.Column("is_member", sa.Boolean(), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("visitor_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("about", sa.JSON(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.String(length=20), nullable=False),
        sa.Column("language", sa.String(length=20), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("engine_id", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("problem", sa.String(length=500), nullable=False),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_jobs_student_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["teacher_id"], ["teachers.id"], name=op.f("fk_jobs_teacher_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["visitor_id"], ["visitors.id"], name=op.f("fk_jobs_visitor_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("key", name=op.f("uq_jobs_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_kind_state"), "jobs", ["kind", "state"])
    op.create_index(op.f("ix_jobs_student_id"), "jobs", ["student_id"])
    op.create_index(op.f("ix_jobs_teacher_id"), "jobs", ["teacher_id"])
    op.create_index(op.f("ix_jobs_visitor_id"), "jobs", ["visitor_id"])
    op.create_table(
        "material_versions",
        sa.Column("material_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["material_id"], ["materials.id"], name=op.f("fk_material_versions_material_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_material_versions_teacher_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("material_id", "number", name=op.f("pk_material_versions")),
    )
    op.create_index(op.f("ix_material_versions_teacher_id"), "material_versions", ["teacher_id"])
    op.create_table(
        "regrades",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("definitions", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_regrades_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_regrades_teacher_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_regrades")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_regrades_activity_id"), "regrades", ["activity_id"])
    op.create_index(op.f("ix_regrades_teacher_id"), "regrades", ["teacher_id"])
    op.create_table(
        "given_sheets",
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("sheet", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_given_sheets_activity_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("activity_id", "key", name=op.f("pk_given_sheets")),
    )
    op.create_table(
        "revisions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_revisions_activity_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_revisions")),
        sa.UniqueConstraint("activity_id", "number", name=op.f("uq_revisions_activity_id_number")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("problem", sa.String(length=500), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=True),
        sa.Column("frozen", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_runs_activity_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_activity_id"), "runs", ["activity_id"])
    op.create_table(
        "ticket_answers",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("question", sa.String(length=80), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("starred", sa.Boolean(), nullable=False),
        sa.Column("follow_up", sa.Boolean(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_ticket_answers_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_ticket_answers_student_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ticket_answers")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_ticket_answers_activity_id"), "ticket_answers", ["activity_id"])
    op.create_index(op.f("ix_ticket_answers_student_id"), "ticket_answers", ["student_id"])
    op.create_table(
        "undoable_closes",
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("pressed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closes_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("opens_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closes_before", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_undoable_closes_activity_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("activity_id", name=op.f("pk_undoable_closes")),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("visitor_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("activity_id", sa.Integer(), nullable=True),
        sa.Column("sheet_key", sa.String(length=200), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("sheet_number", sa.Integer(), nullable=True),
        sa.Column("client_id", sa.String(length=80), nullable=False),
        sa.Column("variant", sa.JSON(), nullable=False),
        sa.Column("model_key", sa.String(length=32), nullable=True),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("marks", sa.JSON(), nullable=False),
        sa.Column("misconceptions", sa.JSON(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("out_of", sa.Integer(), nullable=False),
        sa.Column("handed_in", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("marked_by", sa.String(length=200), nullable=False),
        sa.Column("auto_submitted", sa.Boolean(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "(student_id IS NULL) = (activity_id IS NULL) AND (student_id IS NULL) = (visitor_id IS NOT NULL)"
            " AND (revision IS NULL) = (activity_id IS NULL) AND (sheet_number IS NULL) = (activity_id IS NULL)",
            name=op.f("ck_attempts_owner"),
        ),
        sa.CheckConstraint("sheet_number > 0 AND score BETWEEN 0 AND out_of", name=op.f("ck_attempts_score")),
        sa.ForeignKeyConstraint(
            ["activity_id", "revision"],
            ["revisions.activity_id", "revisions.number"],
            name=op.f("fk_attempts_activity_id_revision"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_attempts_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_attempts_student_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["visitor_id"], ["visitors.id"], name=op.f("fk_attempts_visitor_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_attempts_activity_id_student_id_sheet_key_id"),
        "attempts",
        ["activity_id", "student_id", "sheet_key", "id"],
        sqlite_where=sa.text("activity_id IS NOT NULL"),
        postgresql_where=sa.text("activity_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_attempts_model_key"),
        "attempts",
        ["model_key"],
        sqlite_where=sa.text("model_key IS NOT NULL"),
        postgresql_where=sa.text("model_key IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_attempts_student_id_client_id"),
        "attempts",
        ["student_id", "client_id"],
        unique=True,
        sqlite_where=sa.text("student_id IS NOT NULL"),
        postgresql_where=sa.text("student_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_attempts_visitor_id_sheet_key_id"),
        "attempts",
        ["visitor_id", "sheet_key", "id"],
        sqlite_where=sa.text("visitor_id IS NOT NULL"),
        postgresql_where=sa.text("visitor_id IS NOT NULL"),
    )
    op.create_table(
        "version_models",
        sa.Column("material_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("model_key", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["material_id", "number"],
            ["material_versions.material_id", "material_versions.number"],
            name=op.f("fk_version_models_material_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("material_id", "number", "model_key", name=op.f("pk_version_models")),
    )
    op.create_index(op.f("ix_version_models_model_key"), "version_models", ["model_key"])
    op.create_table(
        "old_marks",
        sa.Column("regrade_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("marks", sa.JSON(), nullable=False),
        sa.Column("misconceptions", sa.JSON(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("out_of", sa.Integer(), nullable=False),
        sa.Column("marked_by", sa.String(length=120), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_old_marks_attempt_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["regrade_id"], ["regrades.id"], name=op.f("fk_old_marks_regrade_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("regrade_id", "attempt_id", name=op.f("pk_old_marks")),
    )
    op.create_index(op.f("ix_old_marks_attempt_id"), "old_marks", ["attempt_id"])
    op.create_table(
        "workers",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("queues", sa.JSON(), nullable=False),
        sa.Column("device", sa.String(length=20), nullable=False),
        sa.Column("device_name", sa.String(length=200), nullable=False),
        sa.Column("checkpoints", sa.JSON(), nullable=False),
        sa.Column("version", sa.String(length=20), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heard_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_table(
        "lti_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.String(length=64), nullable=False),
        sa.Column("private_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lti_keys")),
        sa.UniqueConstraint("key_id", name=op.f("uq_lti_keys_key_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lti_platforms",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("client_id", sa.String(length=200), nullable=False),
        sa.Column("authorization_url", sa.String(length=500), nullable=False),
        sa.Column("token_url", sa.String(length=500), nullable=False),
        sa.Column("keys_url", sa.String(length=500), nullable=False),
        sa.Column("token_audience", sa.String(length=500), nullable=False),
        sa.Column("key_set", sa.JSON(), nullable=False),
        sa.Column("key_set_fetched_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lti_platforms")),
        sa.UniqueConstraint("issuer", "client_id", name=op.f("uq_lti_platforms_issuer_client_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lti_courses",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("platform_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.String(length=255), nullable=False),
        sa.Column("context_id", sa.String(length=255), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("memberships_url", sa.String(length=1000), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_lti_courses_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["platform_id"], ["lti_platforms.id"], name=op.f("fk_lti_courses_platform_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lti_courses")),
        sa.UniqueConstraint(
            "platform_id",
            "deployment_id",
            "context_id",
            name=op.f("uq_lti_courses_platform_id_deployment_id_context_id"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_lti_courses_course_id"), "lti_courses", ["course_id"])
    op.create_table(
        "lti_deployments",
        sa.Column("platform_id", sa.Integer(), nullable=False),
        sa.Column("deployment_id", sa.String(length=255), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["platform_id"], ["lti_platforms.id"], name=op.f("fk_lti_deployments_platform_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("platform_id", "deployment_id", name=op.f("pk_lti_deployments")),
    )
    op.create_table(
        "lti_launches",
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("nonce_hash", sa.String(length=64), nullable=False),
        sa.Column("platform_id", sa.Integer(), nullable=False),
        sa.Column("claims", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["platform_id"], ["lti_platforms.id"], name=op.f("fk_lti_launches_platform_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_lti_launches")),
        sa.UniqueConstraint("nonce_hash", name=op.f("uq_lti_launches_nonce_hash")),
    )
    op.create_index(op.f("ix_lti_launches_expires_at"), "lti_launches", ["expires_at"])
    op.create_index(op.f("ix_lti_launches_platform_id"), "lti_launches", ["platform_id"])
    op.create_table(
        "lti_links",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("lti_course_id", sa.Integer(), nullable=False),
        sa.Column("resource_link_id", sa.String(length=255), nullable=False),
        sa.Column("activity_id", sa.Integer(), nullable=False),
        sa.Column("lineitem_url", sa.String(length=1000), nullable=False),
        sa.Column("marker", sa.String(length=64), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("problem", sa.String(length=500), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_lti_links_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["lti_course_id"], ["lti_courses.id"], name=op.f("fk_lti_links_lti_course_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lti_links")),
        sa.UniqueConstraint(
            "lti_course_id", "resource_link_id", name=op.f("uq_lti_links_lti_course_id_resource_link_id")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_lti_links_activity_id"), "lti_links", ["activity_id"])
    op.create_table(
        "lti_people",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("platform_id", sa.Integer(), nullable=False),
        sa.Column("sub", sa.String(length=255), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=True),
        sa.Column("teacher_id", sa.Integer(), nullable=True),
        sa.Column("student_id", sa.Integer(), nullable=True),
        sa.Column("lti_course_id", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "(teacher_id IS NULL) <> (student_id IS NULL) AND (student_id IS NULL) = (course_id IS NULL)",
            name=op.f("ck_lti_people_person"),
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_lti_people_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["lti_course_id"], ["lti_courses.id"], name=op.f("fk_lti_people_lti_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["platform_id"], ["lti_platforms.id"], name=op.f("fk_lti_people_platform_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_lti_people_student_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_lti_people_teacher_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lti_people")),
        sa.UniqueConstraint("platform_id", "sub", "course_id", name=op.f("uq_lti_people_platform_id_sub_course_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_lti_people_course_id"), "lti_people", ["course_id"])
    op.create_index(op.f("ix_lti_people_lti_course_id"), "lti_people", ["lti_course_id"])
    op.create_index(op.f("ix_lti_people_student_id"), "lti_people", ["student_id"])
    op.create_index(
        "ix_lti_people_teacher",
        "lti_people",
        ["platform_id", "sub"],
        unique=True,
        sqlite_where=sa.text("teacher_id IS NOT NULL"),
        postgresql_where=sa.text("teacher_id IS NOT NULL"),
    )
    op.create_index(op.f("ix_lti_people_teacher_id"), "lti_people", ["teacher_id"])
    op.create_table(
        "lti_scores",
        sa.Column("link_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("points", sa.Float(), nullable=True),
        sa.Column("out_of", sa.Integer(), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("problem", sa.String(length=500), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'sent', 'refused')", name=op.f("ck_lti_scores_state")),
        sa.ForeignKeyConstraint(["link_id"], ["lti_links.id"], name=op.f("fk_lti_scores_link_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["lti_people.id"], name=op.f("fk_lti_scores_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("link_id", "person_id", name=op.f("pk_lti_scores")),
    )
    op.create_index(op.f("ix_lti_scores_person_id"), "lti_scores", ["person_id"])
    create_engine_tables(op.get_bind())
