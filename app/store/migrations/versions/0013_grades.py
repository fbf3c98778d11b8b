"""Indexes by which rows are found, and deleted with what they belong to."""

from alembic import op

revision = "0013_grades"
down_revision = "0012"


def upgrade() -> None:
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

    with op.batch_alter_table("grade_overrides", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_grade_overrides_student_id"), ["student_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_grade_overrides_teacher_id"), ["teacher_id"], unique=False)

    with op.batch_alter_table("material_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_material_versions_teacher_id"), ["teacher_id"], unique=False)

    with op.batch_alter_table("regrades", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_regrades_teacher_id"), ["teacher_id"], unique=False)

    with op.batch_alter_table("staff", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_staff_teacher_id"), ["teacher_id"], unique=False)

    with op.batch_alter_table("ticket_answers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ticket_answers_student_id"), ["student_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("ticket_answers", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ticket_answers_student_id"))

    with op.batch_alter_table("staff", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_staff_teacher_id"))

    with op.batch_alter_table("regrades", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_regrades_teacher_id"))

    with op.batch_alter_table("material_versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_material_versions_teacher_id"))

    with op.batch_alter_table("grade_overrides", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_grade_overrides_teacher_id"))
        batch_op.drop_index(batch_op.f("ix_grade_overrides_student_id"))

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
