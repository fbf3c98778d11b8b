"""The roster of a course: its students, their resume codes, and which student each browser is enrolled as."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from app.names import RosterEntry, name_key
from app.secret_key import SecretKey

from .courses import Course
from .queries import OpenDatabase, QueryBase, batches, columns, from_row
from .tables import (
    attempts,
    attendance,
    courses,
    drafts,
    enrolments,
    extra_time,
    grade_changes,
    students,
    ticket_answers,
)

UNAMBIGUOUS_LETTERS = "ABCDEFGHJKLMNPRSTVWXYZ"  # letters that don't look like another letter or a digit
CODE_LENGTH = 10
MAX_TYPED_CODE = 40  # characters


@dataclass(frozen=True)
class Student:
    """A name on the roster of a course.

    `joined_at` is None until somebody has claimed the name.
    """

    id: int
    course_id: int
    name: str
    roster_key: str | None
    joined_at: datetime | None
    number_title: str | None = None
    canvas_id: str | None = None


@dataclass(frozen=True)
class Enrolment:
    """The student that a browser works as in a course."""

    student: Student
    course: Course


@dataclass(frozen=True)
class RosterImport:
    """Students who were added together, and when."""

    key: str
    at: datetime
    students: int


class NameTakenError(Exception):
    """Another student of the course has this name and no number."""


def _nothing_in(*tables: sa.Table) -> list[sa.ColumnElement[bool]]:
    return [~sa.exists().where(table.c.student_id == students.c.id) for table in tables]


_WORK = (attempts, drafts, ticket_answers, extra_time, grade_changes)
_IDLE_NEWCOMER = (
    students.c.joined_at == students.c.created_at,  # students on a roster join later
    students.c.roster_key.is_(None),
    students.c.practice_record.is_(None),
    ~sa.exists().where(attendance.c.student_id == students.c.id, attendance.c.ticket_in),
    *_nothing_in(*_WORK),
)
_STUDENTS = sa.select(*columns(students, Student))
_ENROLMENTS = (
    sa.select(*columns(students, Student, "student__"), *columns(courses, Course, "course__"))
    .join_from(enrolments, students, enrolments.c.student_id == students.c.id)
    .join(courses, courses.c.id == enrolments.c.course_id)
    .where(enrolments.c.visitor_id == sa.bindparam("visitor_id"))
    .order_by(enrolments.c.created_at.desc())
)


def _enrolment(row: Any) -> Enrolment:
    return Enrolment(from_row(Student, row, "student__"), from_row(Course, row, "course__"))


class Roster(QueryBase):
    """Queries on students and enrolments. Resume codes are stored as hashes made with the key."""

    def __init__(self, database: OpenDatabase, key: SecretKey) -> None:
        super().__init__(database)
        self._key = key

    def add_students(self, course: Course, entries: Iterable[RosterEntry | tuple[str, str | None]]) -> int:
        """Add the students who aren't on the roster yet, by number or else by name; return how many."""
        import_key = secrets.token_hex(16)
        with self.transaction() as connection:
            # Two imports at once would each find nobody on the roster. A student who joins under one of the names
            # doesn't wait for this lock; otherwise both could wait for each other. SQLite lets one thread write at a
            # time anyway.
            connection.execute(sa.select(courses.c.id).where(courses.c.id == course.id).with_for_update(key_share=True))
            on_roster = sa.select(students.c.roster_key, students.c.name_key).where(students.c.course_id == course.id)
            known = connection.execute(on_roster).all()
            keys = {row.roster_key for row in known if row.roster_key}
            names = {row.name_key for row in known if not row.roster_key}
            rows = list[dict[str, object]]()
            for name, key, title, canvas_id, _doubtful in (RosterEntry(*entry) for entry in entries):
                if (key and key in keys) or (not key and name_key(name) in names):
                    continue
                keys.add(key) if key else names.add(name_key(name))
                rows.append({"course_id": course.id, "name": name, "roster_key": key, "number_title": title,
                             "canvas_id": canvas_id, "created_at": self.now(), "import_key": import_key})  # fmt: skip
            if not rows:
                return 0
            # Somebody may join under one of these names at this moment. Counting takes less than returning each id.
            connection.execute(self._insert_into(students).on_conflict_do_nothing(), rows)
            added = sa.select(sa.func.count()).where(students.c.course_id == course.id)
            return connection.scalar(added.where(students.c.import_key == import_key)) or 0

    def last_import(self, course: Course) -> RosterImport | None:
        """The newest import with students still in the course: its key, its time, and how many are left."""
        imported = (students.c.course_id == course.id, students.c.import_key.is_not(None))
        query = sa.select(students.c.import_key, sa.func.max(students.c.created_at), sa.func.count())
        rows = self._fetch_all(query.where(*imported).group_by(students.c.import_key))
        newest = max(rows, key=lambda row: row[1], default=None)
        return RosterImport(*newest) if newest else None

    def undo_import(self, course: Course, import_key: str) -> tuple[int, int]:
        """Remove the students of an import; return how many were removed and how many stay."""
        this = (students.c.course_id == course.id, students.c.import_key == import_key)
        with self.transaction() as connection:
            never_joined = (students.c.joined_at.is_(None), *_nothing_in(*_WORK, attendance, enrolments))
            never_practised = students.c.practice_record.is_(None)  # released names haven't joined either
            removed = connection.execute(sa.delete(students).where(*this, *never_joined, never_practised)).rowcount
            kept = connection.execute(sa.update(students).where(*this).values(import_key=None)).rowcount
        return removed, kept

    def idle_newcomers(self, course: Course) -> tuple[Student, ...]:
        """By name, the students who joined with the code without being on a roster, and have done nothing."""
        return self._select(students.c.course_id == course.id, *_IDLE_NEWCOMER)

    def remove_idle_newcomers(self, course: Course, newest_id: int) -> int:
        """Delete `idle_newcomers` with ids up to `newest_id`, so that nobody goes who has joined since."""
        idle = sa.select(students.c.id).where(
            students.c.course_id == course.id, students.c.id <= newest_id, *_IDLE_NEWCOMER
        )
        with self.transaction() as connection:
            # PostgreSQL: a student's first save is either seen by the DELETE or waits for it.
            locked = connection.scalars(idle.with_for_update()).all()
            return sum(
                connection.execute(sa.delete(students).where(students.c.id.in_(some), *_IDLE_NEWCOMER)).rowcount
                for some in batches(locked, 500)  # statements take a limited number of values
            )

    def students(self, course: Course, offset: int = 0, limit: int | None = None) -> tuple[Student, ...]:
        """The students of a course by name, whether they have joined or not."""
        return self._select(students.c.course_id == course.id, offset=offset, limit=limit)

    def count(self, course: Course) -> tuple[int, int]:
        """How many students a course has, and how many have joined."""
        counts: Any = sa.select(sa.func.count(), sa.func.count(students.c.joined_at))
        everybody, joined = self._fetch_one(counts.where(students.c.course_id == course.id))
        return everybody, joined

    def namesakes(self, course: Course, name: str) -> tuple[Student, ...]:
        """The students of a course with this name, however it is typed."""
        return self._select(students.c.course_id == course.id, students.c.name_key == name_key(name))

    def unclaimed_names(self, course: Course, words: Sequence[str] = (), limit: int | None = None) -> tuple[str, ...]:
        """The names of students who haven't joined, each `name_key` once and in order, at most `limit`."""
        key = students.c.name_key
        fit = [key.startswith(word, autoescape=True) | key.contains(f" {word}", autoescape=True) for word in words]
        query = sa.select(sa.func.max(students.c.name).label("name")).group_by(key).order_by(key).limit(limit)
        unclaimed = (students.c.course_id == course.id, students.c.joined_at.is_(None), *fit)
        return tuple(row.name for row in self._fetch_all(query.where(*unclaimed)))

    def find_student(self, student_id: int) -> Student | None:
        return self._value(Student, _STUDENTS.where(students.c.id == student_id))

    def rename(self, student: Student, entry: RosterEntry | tuple[str, str | None]) -> bool:
        """Change a student's name and number, and return whether that was possible."""
        name, roster_key, title, canvas_id, _doubtful = RosterEntry(*entry)
        if roster_key == student.roster_key:  # otherwise they belonged to another number
            title, canvas_id = title or student.number_title, canvas_id or student.canvas_id
        values = {"name": name, "name_key": name_key(name), "roster_key": roster_key, "number_title": title,
                  "canvas_id": canvas_id}  # fmt: skip
        this = sa.update(students).where(students.c.id == student.id)
        try:
            with self.transaction() as connection:
                connection.execute(this.values(values))
        except IntegrityError:
            return False
        return True

    def remove_student(self, student: Student) -> None:
        """Delete a student with everything they did, except their anonymous exit-ticket answers."""
        self._execute(sa.delete(students).where(students.c.id == student.id))

    def release_student(self, student: Student) -> None:
        """Make a student's name unclaimed again: no browser is enrolled as them, and their resume code is void."""
        with self.transaction() as connection:
            connection.execute(sa.delete(enrolments).where(enrolments.c.student_id == student.id))
            this = sa.update(students).where(students.c.id == student.id)
            connection.execute(this.values(joined_at=None, resume_hash=None))

    # Enrolments

    def lock_name(self, course: Course, name: str) -> None:
        """Inside `transaction()`, wait for and hold the lock on this name in this course until the transaction ends.

        SQLite needs no lock, since `transaction()` lets one thread write at a time.
        """
        if self.engine.dialect.name == "postgresql":
            number = int.from_bytes(hashlib.sha256(name_key(name).encode()).digest()[:4], signed=True)
            self._fetch_one(sa.select(sa.func.pg_advisory_xact_lock(course.id, number)))

    def enrol_new_student(
        self, course: Course, name: str, visitor_id: int | None = None, code: str = ""
    ) -> tuple[Student, str]:
        """Add a joined student without a number, and enrol the visitor's browser, if given, as them.

        Raises NameTakenError, adding nobody, if another student of the course has the same name and no number.
        """
        code, at = code or new_code(), self.now()
        row = {"course_id": course.id, "name": name, "resume_hash": self._key.code_hash(code), "joined_at": at,
               "created_at": at}  # fmt: skip
        with self.transaction() as connection:
            insert = self._insert_into(students).values(row).on_conflict_do_nothing().returning(students.c.id)
            student_id = connection.scalar(insert)
            if student_id is None:
                raise NameTakenError
            student = Student(student_id, course.id, name, None, at)
            if visitor_id is not None:
                self._enrol(connection, student, visitor_id)
        return student, code

    def claim_name(self, student: Student, visitor_id: int, code: str = "") -> str | None:
        """Enrol a browser as a student whose name is unclaimed, and return their resume code."""
        code = code or new_code()
        unclaimed = sa.update(students).where(students.c.id == student.id, students.c.joined_at.is_(None))
        claim = unclaimed.values(joined_at=self.now(), resume_hash=self._key.code_hash(code))
        with self.transaction() as connection:
            if not connection.execute(claim).rowcount:
                return None
            self._enrol(connection, student, visitor_id)
        return code

    def find_by_resume_code(self, code: str) -> Student | None:
        """The student with this resume code, in any course, or None."""
        this = students.c.resume_hash == self._key.code_hash(normalised_code(code))
        return self._value(Student, _STUDENTS.where(this))

    def resume(self, student: Student, visitor_id: int) -> None:
        """Enrol one more browser as a student whose resume code was typed; others stay enrolled."""
        with self.transaction() as connection:
            self._enrol(connection, student, visitor_id)

    def is_resume_code(self, student: Student, code: str) -> bool:
        """Whether this is the student's resume code; case, spaces and hyphens don't matter."""
        this = (students.c.id == student.id, students.c.resume_hash == self._key.code_hash(normalised_code(code)))
        return self._fetch_one(sa.select(students.c.id).where(*this)) is not None

    def renew_code(self, student: Student) -> str:
        """Give a student a new random resume code and return it; the old one is void, but browsers stay enrolled."""
        code = new_code()
        this = sa.update(students).where(students.c.id == student.id)
        self._execute(this.values(resume_hash=self._key.code_hash(code)))
        return code

    def enrolled_student(self, visitor_id: int, course_id: int) -> Student | None:
        """The student that a browser is enrolled as in a course, or None."""
        this = (enrolments.c.visitor_id == visitor_id, enrolments.c.course_id == course_id)
        enrolled = _STUDENTS.join(enrolments, enrolments.c.student_id == students.c.id)
        return self._value(Student, enrolled.where(*this))

    def enrolments(self, visitor_id: int) -> tuple[Enrolment, ...]:
        """A browser's enrolments, latest first: at most one per course, archived courses included."""
        return tuple(_enrolment(row) for row in self._fetch_all(_ENROLMENTS, visitor_id=visitor_id))

    def practising(self, visitor_id: int) -> tuple[Enrolment, Mapping[str, Any], str | None] | None:
        """The enrolment for which a browser practises, the course's practice settings, and the student's record or
        None.
        """
        practises = (courses.c.archived_at.is_(None), courses.c.practice.is_not(sa.null()))
        query = _ENROLMENTS.add_columns(courses.c.practice, students.c.practice_record).where(*practises).limit(1)
        row = self._fetch_one(query, visitor_id=visitor_id)
        return (_enrolment(row), row.practice, row.practice_record) if row else None

    def keep_practice_record(self, student: Student, record: str | None) -> None:
        """Store a student's practice record for the course; None deletes it."""
        self._execute(sa.update(students).where(students.c.id == student.id).values(practice_record=record))

    def practice_records(self, course: Course) -> dict[int, str]:
        """The practice records of a course's students, by student id."""
        this = (students.c.course_id == course.id, students.c.practice_record.is_not(None))
        query = sa.select(students.c.id, students.c.practice_record).where(*this)
        return {row.id: row.practice_record for row in self._fetch_all(query)}

    def leave(self, student: Student, visitor_id: int) -> None:
        """End one browser's enrolment; the student and their work stay."""
        this = (enrolments.c.student_id == student.id, enrolments.c.visitor_id == visitor_id)
        self._execute(sa.delete(enrolments).where(*this))

    def _select(
        self, *conditions: sa.ColumnElement[bool], offset: int = 0, limit: int | None = None
    ) -> tuple[Student, ...]:
        by_name = _STUDENTS.where(*conditions).order_by(students.c.name_key, students.c.id)
        return self._values(Student, by_name.offset(offset or None).limit(limit))

    def _enrol(self, connection: sa.Connection, student: Student, visitor_id: int) -> None:
        row = {"visitor_id": visitor_id, "course_id": student.course_id, "student_id": student.id,
               "created_at": self.now()}  # fmt: skip
        key = [enrolments.c.visitor_id, enrolments.c.course_id]
        moved = {"student_id": student.id, "created_at": row["created_at"]}
        insert = self._insert_into(enrolments).values(row)
        connection.execute(insert.on_conflict_do_update(index_elements=key, set_=moved))


def new_code(length: int = CODE_LENGTH) -> str:
    """A random code of that many UNAMBIGUOUS_LETTERS; ten of them have 44 bits."""
    return "".join(secrets.choice(UNAMBIGUOUS_LETTERS) for _ in range(length))


def resume_code_from(secret: bytes) -> str:
    """A resume code derived from a secret of 256 random bits: always the same, but looking random."""
    number = int.from_bytes(secret)
    return "".join(
        UNAMBIGUOUS_LETTERS[number // len(UNAMBIGUOUS_LETTERS) ** position % len(UNAMBIGUOUS_LETTERS)]
        for position in range(CODE_LENGTH)
    )


def normalised_code(typed: str) -> str:
    """A typed code in upper case, reduced to letters and digits, at most 40.

    Example: normalised_code("abcde-fghjk") == "ABCDEFGHJK"
    """
    return "".join(char for char in typed.upper() if char.isalnum())[:MAX_TYPED_CODE]
