"""Points, and what changes them later: regrades, which keep the old marks, and overrides in the gradebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from app.activities.content import Content
from app.activities.work import Graded

from .activities import keep_snapshots
from .courses import Course
from .people import Teacher
from .queries import QueryBase, columns, from_row, insert_row
from .tables import activities, class_attempts, grade_overrides, old_marks, regrades, teachers

_MARK_COLUMNS = ("marks", "misconceptions", "score", "out_of", "marked_by")


@dataclass(frozen=True)
class Regrade:
    """One regrade: when, the name of the teacher ("" if the account is gone), and how many attempts it changed."""

    id: int
    at: datetime
    by: str
    changed: int


@dataclass(frozen=True)
class NewMarks:
    """The marks that an attempt gets in a regrade, and the sheet key of the definition that gives them.

    `marked_by` becomes `ClassAttempt.marked_by`; it is FrozenWorksheet(definition).sheet_key, which equals the
    attempt's own sheet key where the correction left the questions alone.
    """

    graded: Graded
    marked_by: str


@dataclass(frozen=True)
class OldMarks:
    """The marks that an attempt had until a regrade, and when that was."""

    until: datetime
    graded: Graded


class Regrades(QueryBase):
    """Queries on regrades."""

    def apply(
        self,
        activity_id: int,
        teacher_id: int,
        new: Mapping[int, NewMarks],
        definitions: Mapping[str, Content] | None = None,
    ) -> int:
        """Store a regrade by this teacher, and return its id: attempts get the new marks, the old ones are kept.

        `definitions` are the corrected worksheets that gave the marks, by what `marked_by` calls them. `new` has the
        marks by attempt id; ids of other activities' attempts are ignored. On an error nothing changes.
        """
        with self._write_transaction() as connection:
            corrected = {marked_by: content.as_json() for marked_by, content in (definitions or {}).items()}
            row = {"activity_id": activity_id, "teacher_id": teacher_id, "at": self.now(), "definitions": corrected}
            for content in (definitions or {}).values():
                keep_snapshots(connection, self._insert_into, content.snapshots, self.now())
            regrade_id = insert_row(connection, regrades, row)
            if new:  # two statements, each executed for all attempts at once, so that a large class takes no longer
                self._replace_marks(connection, activity_id, regrade_id, new)
        return regrade_id

    def _replace_marks(
        self, connection: sa.Connection, activity_id: int, regrade_id: int, new: Mapping[int, NewMarks]
    ) -> None:
        """Store the present marks of the attempts in `new` as old marks of a regrade, then give the attempts their new
        marks.

        Attempts of another activity are left alone.
        """
        this = (class_attempts.c.id == sa.bindparam("attempt"), class_attempts.c.activity_id == activity_id)
        marks_now = [class_attempts.c[name] for name in _MARK_COLUMNS]
        before = sa.select(sa.literal(regrade_id), class_attempts.c.id, *marks_now).where(*this)
        keep = sa.insert(old_marks).from_select(["regrade_id", "attempt_id", *_MARK_COLUMNS], before)
        update = sa.update(class_attempts).where(*this).values({n: sa.bindparam(f"new_{n}") for n in _MARK_COLUMNS})
        rows = list[dict[str, Any]]()
        for attempt_id, marks in sorted(new.items()):
            values = {**asdict(marks.graded), "marked_by": marks.marked_by}
            rows.append({"attempt": attempt_id, **{f"new_{name}": value for name, value in values.items()}})
        connection.execute(keep, [{"attempt": row["attempt"]} for row in rows])
        connection.execute(update, rows)

    def definitions(self, activity_id: int) -> dict[str, Content]:
        """The corrected worksheets that regrades of an activity marked by, by what `marked_by` calls them."""
        query = sa.select(regrades.c.definitions).where(regrades.c.activity_id == activity_id).order_by(regrades.c.id)
        stored = [definitions for (definitions,) in self._fetch_all(query) if definitions]
        return {marked_by: Content.from_json(json) for each in stored for marked_by, json in each.items()}

    def of_activity(self, activity_id: int) -> tuple[Regrade, ...]:
        """Every regrade of an activity, newest first, with the teacher's name and how many attempts it changed."""
        changed = sa.select(sa.func.count()).where(old_marks.c.regrade_id == regrades.c.id).scalar_subquery()
        query = (
            sa.select(regrades.c.id, regrades.c.at, sa.func.coalesce(teachers.c.name, ""), changed)
            .join(teachers, teachers.c.id == regrades.c.teacher_id, isouter=True)
            .where(regrades.c.activity_id == activity_id)
            .order_by(regrades.c.id.desc())
        )
        return tuple(Regrade(*row) for row in self._fetch_all(query))

    def old_marks(self, activity_id: int, student_id: int) -> dict[int, tuple[OldMarks, ...]]:
        """The marks that a student's attempts in an activity had before each regrade, oldest first, by attempt id.

        Attempts that were never regraded are left out.
        """
        query = (
            sa.select(old_marks, regrades.c.at)
            .join(regrades, regrades.c.id == old_marks.c.regrade_id)
            .join(class_attempts, class_attempts.c.id == old_marks.c.attempt_id)
            .where(class_attempts.c.activity_id == activity_id, class_attempts.c.student_id == student_id)
            .order_by(regrades.c.id)
        )
        earlier = dict[int, tuple[OldMarks, ...]]()
        for row in self._fetch_all(query):
            old = OldMarks(row.at, Graded(row.marks, tuple(row.misconceptions), row.score, row.out_of))
            earlier[row.attempt_id] = (*earlier.get(row.attempt_id, ()), old)
        return earlier


@dataclass(frozen=True)
class AttemptScore:
    """What a gradebook needs of an attempt: where it belongs, its score, and whether it came in after closing."""

    id: int
    activity_id: int
    student_id: int
    revision: int
    sheet_number: int
    sheet_key: str
    score: float
    out_of: int
    taken_in: bool
    late: bool


@dataclass(frozen=True)
class GradeOverride:
    """Points that a teacher gave a student in an activity, in place of those of the attempts.

    `points` is None where the student is excused. `by` is the teacher's name, empty if the account is gone.
    """

    activity_id: int
    student_id: int
    points: float | None
    excused: bool
    reason: str
    by: str
    at: datetime


class Grades(QueryBase):
    """Queries on the points of a course."""

    def scores(self, course: Course) -> tuple[AttemptScore, ...]:
        """The score of every attempt of every student in a course, oldest first, in one statement."""
        query = (
            sa.select(*columns(class_attempts, AttemptScore))
            .join(activities, activities.c.id == class_attempts.c.activity_id)
            .where(activities.c.course_id == course.id)
            .order_by(class_attempts.c.id)
        )
        return tuple(from_row(AttemptScore, row) for row in self._fetch_all(query))

    def overrides(self, course: Course) -> tuple[GradeOverride, ...]:
        """Every override in a course, by activity and student."""
        table = grade_overrides.c
        query = (
            sa.select(table.activity_id, table.student_id, table.points, table.excused, table.reason,
                      sa.func.coalesce(teachers.c.name, "").label("by"), table.at)
            .join(activities, activities.c.id == table.activity_id)
            .join(teachers, teachers.c.id == table.teacher_id, isouter=True)
            .where(activities.c.course_id == course.id)
            .order_by(table.activity_id, table.student_id)
        )  # fmt: skip
        return tuple(from_row(GradeOverride, row) for row in self._fetch_all(query))

    def override(self, activity_id: int, student_id: int, points: float | None, reason: str, teacher: Teacher) -> None:
        """Give a student these points in an activity, or excuse them (None), in place of any earlier override."""
        values = {"points": points, "excused": points is None, "reason": reason, "teacher_id": teacher.id,
                  "at": self.now()}  # fmt: skip
        insert = self._insert_into(grade_overrides).values(activity_id=activity_id, student_id=student_id, **values)
        key = [grade_overrides.c.activity_id, grade_overrides.c.student_id]
        self._execute(insert.on_conflict_do_update(index_elements=key, set_=values))

    def remove_override(self, activity_id: int, student_id: int) -> bool:
        """Let the attempts count again; False if there was no override."""
        this = (grade_overrides.c.activity_id == activity_id, grade_overrides.c.student_id == student_id)
        return bool(self._execute(sa.delete(grade_overrides).where(*this)))
