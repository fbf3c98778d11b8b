"""Courses, who teaches them, who is on the roster, and which browser sits as whom."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from .people import Role, Teacher
from .questions import Questions, added_id, columns, hashed, now
from .tables import courses, enrolments, staff, students, teachers

LETTERS = "ABCDEFGHJKLMNPRSTVWXYZ"  # none looks like another letter or a digit
CODE_LENGTH = 10


@dataclass(frozen=True)
class Course:
    """A course; `time_zone` is the name its times are written in."""

    id: int
    title: str
    time_zone: str
    sample: bool
    archived_at: datetime | None


@dataclass(frozen=True)
class TaughtCourse:
    """A course in somebody's list: their role, and how many students it has."""

    course: Course
    role: Role
    students: int


@dataclass(frozen=True)
class StaffMember:
    """Somebody who teaches a course."""

    teacher_id: int
    name: str
    email: str
    role: Role


@dataclass(frozen=True)
class Student:
    """Somebody in a course; `joined_at` is None while nobody has taken this name of the roster."""

    id: int
    course_id: int
    name: str
    roster_key: str | None
    joined_at: datetime | None


@dataclass(frozen=True)
class Enrolment:
    """A student of a course, as whom a browser sits there."""

    student: Student
    course: Course


class Courses(Questions):
    """What there is to teach, and to whom."""

    def add(self, title: str, time_zone: str, teacher: Teacher, sample: bool = False) -> Course:
        """A new course with its first instructor."""
        row = {"title": title, "time_zone": time_zone, "sample": sample, "created_at": now()}
        with self._writing() as connection:
            course_id = added_id(connection, courses, row)
            connection.execute(sa.insert(staff).values(course_id=course_id, teacher_id=teacher.id, role="instructor"))
        return Course(course_id, title, time_zone, sample, None)

    def find(self, course_id: int) -> Course | None:
        row = self._one(sa.select(*columns(courses, Course)).where(courses.c.id == course_id))
        return Course(*row) if row else None

    def made_at(self, course: Course) -> datetime:
        """When a course was made."""
        found: datetime = self._one(sa.select(courses.c.created_at).where(courses.c.id == course.id))[0]
        return found

    def change(self, course: Course, title: str, time_zone: str) -> None:
        self._write(sa.update(courses).where(courses.c.id == course.id).values(title=title, time_zone=time_zone))

    def archive(self, course: Course, archived: bool = True) -> None:
        """Put a course away, where it can be read and not changed, or bring it back."""
        at = now() if archived else None
        self._write(sa.update(courses).where(courses.c.id == course.id).values(archived_at=at))

    def delete(self, course: Course) -> None:
        """Delete a course for good, with its staff, students, activities and all that was done in them."""
        self._write(sa.delete(courses).where(courses.c.id == course.id))

    def taught_by(self, teacher: Teacher) -> tuple[TaughtCourse, ...]:
        """The courses somebody teaches or assists, the newest first."""
        counted = sa.select(sa.func.count()).where(students.c.course_id == courses.c.id).scalar_subquery()
        query = (
            sa.select(staff.c.role, counted, *columns(courses, Course))
            .join(staff, staff.c.course_id == courses.c.id)
            .where(staff.c.teacher_id == teacher.id)
            .order_by(courses.c.id.desc())
        )
        return tuple(TaughtCourse(Course(*row[2:]), row[0], row[1]) for row in self._all(query))

    def role(self, course_id: int, teacher: Teacher) -> Role | None:
        """What somebody is in a course, None if it is not theirs."""
        row = self._one(sa.select(staff.c.role).where(staff.c.course_id == course_id, staff.c.teacher_id == teacher.id))
        return row[0] if row else None

    def staff(self, course: Course) -> tuple[StaffMember, ...]:
        """Everybody who teaches a course, instructors first."""
        query = (
            sa.select(staff.c.teacher_id, teachers.c.name, teachers.c.email, staff.c.role)
            .join(teachers, teachers.c.id == staff.c.teacher_id)
            .where(staff.c.course_id == course.id)
            .order_by(staff.c.role.desc(), teachers.c.name)
        )
        return tuple(StaffMember(*row) for row in self._all(query))

    def remove_from_staff(self, course: Course, teacher_id: int) -> bool:
        """Whether they were taken off; the last instructor of a course stays."""
        others = sa.select(staff.c.teacher_id).where(
            staff.c.course_id == course.id, staff.c.teacher_id != teacher_id, staff.c.role == "instructor"
        )
        theirs = (staff.c.course_id == course.id, staff.c.teacher_id == teacher_id)
        return bool(self._write(sa.delete(staff).where(*theirs, sa.exists(others))))

    # The roster

    def add_students(self, course: Course, entries: Iterable[tuple[str, str | None]]) -> int:
        """Add names with their roster numbers; how many were new.

        A number that is there already is the same person, and so is a name where neither has a number.
        """
        there = self.students(course)
        keys = {student.roster_key for student in there if student.roster_key}
        names = {student.name.casefold() for student in there if not student.roster_key}
        rows = list[dict[str, object]]()
        for name, key in entries:
            if (key and key in keys) or (not key and name.casefold() in names):
                continue
            keys.add(key) if key else names.add(name.casefold())
            rows.append({"course_id": course.id, "name": name, "roster_key": key, "created_at": now()})
        if rows:
            with self._writing() as connection:
                connection.execute(sa.insert(students), rows)
        return len(rows)

    def students(self, course: Course) -> tuple[Student, ...]:
        """Everybody of a course, by name."""
        query = sa.select(*columns(students, Student)).where(students.c.course_id == course.id)
        return _by_name(self._all(query))

    def free(self, course: Course) -> tuple[Student, ...]:
        """The names of the roster that nobody has taken yet."""
        free = (students.c.course_id == course.id, students.c.joined_at.is_(None))
        return _by_name(self._all(sa.select(*columns(students, Student)).where(*free)))

    def is_there(self, course: Course, name: str) -> bool:
        """Whether somebody of that name is in a course; small and capital letters are alike, in every script."""
        names = self._all(sa.select(students.c.name).where(students.c.course_id == course.id))
        return name.casefold() in {known.casefold() for (known,) in names}

    def find_student(self, student_id: int) -> Student | None:
        row = self._one(sa.select(*columns(students, Student)).where(students.c.id == student_id))
        return Student(*row) if row else None

    def remove_student(self, student: Student) -> None:
        """Delete a student with all they did, but for what they wrote anonymously."""
        self._write(sa.delete(students).where(students.c.id == student.id))

    def free_student(self, student: Student) -> None:
        """Let a name be taken again: nobody sits as this student any more, and the resume code is void."""
        with self._writing() as connection:
            connection.execute(sa.delete(enrolments).where(enrolments.c.student_id == student.id))
            freed = sa.update(students).where(students.c.id == student.id)
            connection.execute(freed.values(joined_at=None, resume_hash=None))

    # Enrolments

    def queue(self, course: Course, name: str) -> None:
        """Inside `together`, let those who come under one name wait for each other, so that one of them has it."""
        if self.engine.dialect.name == "postgresql":  # SQLite lets one write at a time anyway
            number = int.from_bytes(hashlib.sha256(name.casefold().encode()).digest()[:4], signed=True)
            self._one(sa.select(sa.func.pg_advisory_xact_lock(course.id, number)))

    def enrol(self, course: Course, name: str, visitor_id: int | None = None, code: str = "") -> tuple[Student, str]:
        """Somebody new under a name of their own, sitting in this browser if one is given, and their resume code."""
        code, at = code or new_code(), now()
        row = {"course_id": course.id, "name": name, "resume_hash": hashed(code), "joined_at": at, "created_at": at}
        with self._writing() as connection:
            student = Student(added_id(connection, students, row), course.id, name, None, at)
            if visitor_id is not None:
                self._enrol(connection, student, visitor_id)
        return student, code

    def take(self, student: Student, visitor_id: int, code: str = "") -> str | None:
        """Take a name of the roster: the resume code, None if somebody took it before."""
        code = code or new_code()
        free = (students.c.id == student.id, students.c.joined_at.is_(None))
        with self._writing() as connection:
            taken = sa.update(students).where(*free).values(joined_at=now(), resume_hash=hashed(code))
            if not connection.execute(taken).rowcount:
                return None
            self._enrol(connection, student, visitor_id)
        return code

    def resume(self, code: str, visitor_id: int) -> Student | None:
        """Sit down in this browser with a resume code; None if there is no such code."""
        row = self._one(sa.select(*columns(students, Student)).where(students.c.resume_hash == hashed(as_code(code))))
        if row is None:
            return None
        with self._writing() as connection:
            self._enrol(connection, Student(*row), visitor_id)
        return Student(*row)

    def resumes(self, student: Student, code: str) -> bool:
        """Whether this is the student's resume code."""
        this = (students.c.id == student.id, students.c.resume_hash == hashed(as_code(code)))
        return self._one(sa.select(students.c.id).where(*this)) is not None

    def renew_code(self, student: Student) -> str:
        """A new resume code; the old one is void."""
        code = new_code()
        self._write(sa.update(students).where(students.c.id == student.id).values(resume_hash=hashed(code)))
        return code

    def enrolled_student(self, visitor_id: int, course_id: int) -> Student | None:
        """As whom a browser sits in a course."""
        query = (
            sa.select(*columns(students, Student))
            .join(enrolments, enrolments.c.student_id == students.c.id)
            .where(enrolments.c.visitor_id == visitor_id, enrolments.c.course_id == course_id)
        )
        row = self._one(query)
        return Student(*row) if row else None

    def enrolments(self, visitor_id: int) -> tuple[Enrolment, ...]:
        """Every enrolment of a browser, the newest first."""
        wanted = columns(students, Student)
        query = (
            sa.select(*wanted, *(column.label(f"course_{column.name}") for column in columns(courses, Course)))
            .join_from(enrolments, students, enrolments.c.student_id == students.c.id)
            .join(courses, courses.c.id == enrolments.c.course_id)
            .where(enrolments.c.visitor_id == visitor_id)
            .order_by(enrolments.c.created_at.desc())
        )
        return tuple(Enrolment(Student(*row[: len(wanted)]), Course(*row[len(wanted) :])) for row in self._all(query))

    def leave(self, student: Student, visitor_id: int) -> None:
        """Get up: this browser is nobody in the course any more; the work stays the student's."""
        this = (enrolments.c.student_id == student.id, enrolments.c.visitor_id == visitor_id)
        self._write(sa.delete(enrolments).where(*this))

    def _enrol(self, connection: sa.Connection, student: Student, visitor_id: int) -> None:
        row = {"visitor_id": visitor_id, "course_id": student.course_id, "student_id": student.id, "created_at": now()}
        place = [enrolments.c.visitor_id, enrolments.c.course_id]
        moved = {"student_id": student.id, "created_at": row["created_at"]}
        connection.execute(self._insert(enrolments).values(row).on_conflict_do_update(index_elements=place, set_=moved))


def _by_name(rows: Iterable[Sequence[Any]]) -> tuple[Student, ...]:
    return tuple(sorted((Student(*row) for row in rows), key=lambda student: (student.name.casefold(), student.id)))


def new_code(length: int = CODE_LENGTH) -> str:
    """Random letters that can be read out; ten of them are 44 bits."""
    return "".join(secrets.choice(LETTERS) for _ in range(length))


def code_from(secret: bytes, length: int = CODE_LENGTH) -> str:
    """A code that is always the same for one secret of 256 random bits, and cannot be told from any other."""
    number = int.from_bytes(secret)
    return "".join(LETTERS[number // len(LETTERS) ** at % len(LETTERS)] for at in range(length))


def as_code(typed: str) -> str:
    """A typed code as it was made: upper case, with nothing between the letters."""
    return "".join(char for char in typed.upper() if char.isalnum())[:40]
