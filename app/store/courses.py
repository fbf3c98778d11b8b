"""Courses, their staff, and what they practise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from .people import Role, Teacher
from .queries import QueryBase, columns, from_row, insert_row
from .tables import activities, courses, staff, students, teachers


@dataclass(frozen=True)
class Course:
    """A course.

    `time_zone` is a name such as Europe/Berlin; `archived_at` is None while the course is active.
    """

    id: int
    title: str
    time_zone: str
    sample: bool  # its students are simulated
    created_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True)
class TaughtCourse:
    """A course in a teacher's list, with the teacher's role and the number of students."""

    course: Course
    role: Role
    students: int

    @property
    def can_edit(self) -> bool:
        """Whether the teacher may change it: instructors can, until it is archived."""
        return self.role == "instructor" and self.course.archived_at is None


@dataclass(frozen=True)
class StaffMember:
    teacher_id: int
    name: str
    email: str
    role: Role


class Courses(QueryBase):
    def add(self, title: str, time_zone: str, teacher: Teacher, sample: bool = False) -> Course:
        """Create a course with the teacher as its only instructor; a sample's students are simulated."""
        row: dict[str, Any] = {"title": title, "time_zone": time_zone, "sample": sample, "created_at": self.now()}
        with self.transaction() as connection:
            course_id = insert_row(connection, courses, row)
            connection.execute(sa.insert(staff).values(course_id=course_id, teacher_id=teacher.id, role="instructor"))
        return Course(course_id, **row, archived_at=None)

    def find(self, course_id: int) -> Course | None:
        """The course with that id, archived or not, or None."""
        return self._value(Course, sa.select(*columns(courses, Course)).where(courses.c.id == course_id))

    def locked(self, course: Course) -> Course | None:
        """The course as it is now, locked until this thread's `transaction()` ends; None if it is gone."""
        self._fetch_one(sa.select(courses.c.id).where(courses.c.id == course.id).with_for_update(key_share=True))
        return self.find(course.id)  # a separate statement, which sees what was stored while it waited for the lock

    def change(self, course: Course, title: str, time_zone: str) -> None:
        self._execute(sa.update(courses).where(courses.c.id == course.id).values(title=title, time_zone=time_zone))

    def archive(self, course: Course, archived: bool = True) -> None:
        """Archive a course, so that it is read-only, or restore it if `archived` is False."""
        at = self.now()
        in_course = (activities.c.course_id == course.id, activities.c.state == "open")
        unclosed = sa.or_(activities.c.closes_at.is_(None), activities.c.closes_at > at)
        never_opened = sa.update(activities).where(*in_course, activities.c.opens_at > at)
        with self.transaction():
            this = sa.update(courses).where(courses.c.id == course.id)
            self._execute(this.values(archived_at=at if archived else None))
            if archived:
                self._execute(never_opened.values(opens_at=None))
                self._execute(sa.update(activities).where(*in_course, unclosed).values(closes_at=at))

    def delete(self, course: Course) -> None:
        """Delete a course for good with its staff list, students, activities and everything students did in them."""
        self._execute(sa.delete(courses).where(courses.c.id == course.id))

    def practice(self, course: Course) -> Mapping[str, Any] | None:
        """A course's practice settings, as `set_practice` stored them, or None."""
        row = self._fetch_one(sa.select(courses.c.practice).where(courses.c.id == course.id))
        return row.practice if row else None

    def set_practice(self, course: Course, practice: Mapping[str, Any] | None) -> None:
        """Store a course's practice settings, unchecked; None ends practice and deletes its students' records."""
        with self.transaction():
            self._execute(sa.update(courses).where(courses.c.id == course.id).values(practice=practice))
            if practice is None:
                of_course = students.c.course_id == course.id
                self._execute(sa.update(students).where(of_course).values(practice_record=None))

    def taught_by(self, teacher: Teacher) -> tuple[TaughtCourse, ...]:
        """A teacher's courses, newest first, with role and number of students."""
        count = sa.select(sa.func.count()).where(students.c.course_id == courses.c.id).scalar_subquery()
        query = (
            sa.select(staff.c.role, count.label("students"), *columns(courses, Course))
            .join(staff, staff.c.course_id == courses.c.id)
            .where(staff.c.teacher_id == teacher.id)
            .order_by(courses.c.id.desc())
        )
        return tuple(TaughtCourse(from_row(Course, row), row.role, row.students) for row in self._fetch_all(query))

    def role(self, course_id: int, teacher: Teacher) -> Role | None:
        """The teacher's role in a course, None if they aren't on its staff."""
        this = (staff.c.course_id == course_id, staff.c.teacher_id == teacher.id)
        row = self._fetch_one(sa.select(staff.c.role).where(*this))
        return row.role if row else None

    def staff(self, course: Course) -> tuple[StaffMember, ...]:
        """The staff of a course: instructors first, then assistants, each by name as the database sorts it."""
        query = (
            sa.select(staff.c.teacher_id, teachers.c.name, teachers.c.email, staff.c.role)
            .join(teachers, teachers.c.id == staff.c.teacher_id)
            .where(staff.c.course_id == course.id)
            .order_by(staff.c.role.desc(), teachers.c.name)
        )
        return self._values(StaffMember, query)

    def add_to_staff(self, course_id: int, teacher: Teacher, role: Role) -> None:
        """Add a teacher to a course's staff; somebody who is on it keeps their role."""
        row = {"course_id": course_id, "teacher_id": teacher.id, "role": role}
        self._execute(self._insert_into(staff).values(row).on_conflict_do_nothing())

    def remove_from_staff(self, course: Course, teacher_id: int) -> bool:
        """Take a teacher off a course's staff, unless no instructor would be left; return whether that was done."""
        other_instructors = sa.select(staff.c.teacher_id).where(
            staff.c.course_id == course.id, staff.c.teacher_id != teacher_id, staff.c.role == "instructor"
        )
        this = (staff.c.course_id == course.id, staff.c.teacher_id == teacher_id)
        with self.transaction():
            # PostgreSQL: two instructors removing each other would each still find the other one.
            self._fetch_all(sa.select(courses.c.id).where(courses.c.id == course.id).with_for_update(key_share=True))
            return bool(self._execute(sa.delete(staff).where(*this, sa.exists(other_instructors))))
