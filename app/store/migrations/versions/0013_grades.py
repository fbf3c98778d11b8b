"""Indexes of references, normalised names of students, and points by teachers as a history."""

import sqlalchemy as sa
from alembic import op

from app.names import name_key

revision = "0013_grades"
down_revision = "0012"


def upgrade() -> None:
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
    with op.batch_alter_table("grade_changes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_grade_changes_activity_id_student_id_id"), ["activity_id", "student_id", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_grade_changes_student_id"), ["student_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_grade_changes_teacher_id"), ["teacher_id"], unique=False)

    op.execute(
        "INSERT INTO grade_changes (activity_id, student_id, kind, points, reason, teacher_id, at) "
        "SELECT activity_id, student_id, CASE WHEN excused THEN 'excused' ELSE 'points' END, points, reason, "
        "teacher_id, at FROM grade_overrides"
    )
    op.drop_table("grade_overrides")
    with op.batch_alter_table("account_links", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_account_links_course_id"), ["course_id"], unique=False)

    with op.batch_alter_table("activities", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_activities_closes_at"), ["closes_at"], unique=False)

    with op.batch_alter_table("attendance", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attendance_student_id"), ["student_id"], unique=False)

    with op.batch_alter_table("class_attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_class_attempts_activity_id_student_id"))
        batch_op.create_index(
            batch_op.f("ix_class_attempts_activity_id_student_id_sheet_key_id"),
            ["activity_id", "student_id", "sheet_key", "id"],
            unique=False,
        )

    with op.batch_alter_table("class_drafts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_class_drafts_activity_id"), ["activity_id"], unique=False)

    with op.batch_alter_table("enrolments", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_enrolments_course_id"), ["course_id"], unique=False)

    with op.batch_alter_table("extra_time", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_extra_time_student_id"), ["student_id"], unique=False)

    with op.batch_alter_table("material_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_material_versions_teacher_id"), ["teacher_id"], unique=False)

    with op.batch_alter_table("regrades", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_regrades_teacher_id"), ["teacher_id"], unique=False)

    with op.batch_alter_table("staff", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_staff_teacher_id"), ["teacher_id"], unique=False)

    key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("students", sa.Column("name_key", key, nullable=False, server_default=""))
    students = sa.table("students", sa.column("id"), sa.column("name"), sa.column("name_key"))
    for row in op.get_bind().execute(sa.select(students)).all():
        op.execute(sa.update(students).where(students.c.id == row.id).values(name_key=name_key(row.name)))
    with op.batch_alter_table("students", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_students_course_id"))
        batch_op.create_index(batch_op.f("ix_students_course_id_name_key"), ["course_id", "name_key"], unique=False)
        batch_op.create_index(
            "ix_students_unnumbered_name",
            ["course_id", "name_key"],
            unique=True,
            sqlite_where=sa.text("roster_key IS NULL"),
            postgresql_where=sa.text("roster_key IS NULL"),
        )

    with op.batch_alter_table("ticket_answers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ticket_answers_student_id"), ["student_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("ticket_answers", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ticket_answers_student_id"))

    with op.batch_alter_table("students", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_students_unnumbered_name",
            sqlite_where=sa.text("roster_key IS NULL"),
            postgresql_where=sa.text("roster_key IS NULL"),
        )
        batch_op.drop_index(batch_op.f("ix_students_course_id_name_key"))
        batch_op.create_index(batch_op.f("ix_students_course_id"), ["course_id"], unique=False)
        batch_op.drop_column("name_key")

    with op.batch_alter_table("staff", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_staff_teacher_id"))

    with op.batch_alter_table("regrades", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_regrades_teacher_id"))

    with op.batch_alter_table("material_versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_material_versions_teacher_id"))

    with op.batch_alter_table("extra_time", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_extra_time_student_id"))

    with op.batch_alter_table("enrolments", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_enrolments_course_id"))

    with op.batch_alter_table("class_drafts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_class_drafts_activity_id"))

    with op.batch_alter_table("class_attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_class_attempts_activity_id_student_id_sheet_key_id"))
        batch_op.create_index(
            batch_op.f("ix_class_attempts_activity_id_student_id"), ["activity_id", "student_id"], unique=False
        )

    with op.batch_alter_table("attendance", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attendance_student_id"))

    with op.batch_alter_table("activities", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_activities_closes_at"))

    with op.batch_alter_table("account_links", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_account_links_course_id"))

    op.create_table(
        "grade_overrides",
        sa.Column("activity_id", sa.INTEGER(), nullable=False),
        sa.Column("student_id", sa.INTEGER(), nullable=False),
        sa.Column("points", sa.FLOAT(), nullable=True),
        sa.Column("excused", sa.BOOLEAN(), nullable=False),
        sa.Column("reason", sa.VARCHAR(length=300), nullable=False),
        sa.Column("teacher_id", sa.INTEGER(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["activity_id"], ["activities.id"], name=op.f("fk_grade_overrides_activity_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_grade_overrides_student_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["teacher_id"], ["teachers.id"], name=op.f("fk_grade_overrides_teacher_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("activity_id", "student_id", name=op.f("pk_grade_overrides")),
    )
    with op.batch_alter_table("grade_changes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_grade_changes_teacher_id"))
        batch_op.drop_index(batch_op.f("ix_grade_changes_student_id"))
        batch_op.drop_index(batch_op.f("ix_grade_changes_activity_id_student_id_id"))

    op.drop_table("grade_changes")
