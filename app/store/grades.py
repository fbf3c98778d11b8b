"""Points in the gradebook: the scores of attempts, and what teachers gave in their place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from .courses import Course
from .people import Teacher
from .queries import QueryBase, from_row
from .tables import activities, attendance, class_attempts, grade_overrides, teachers


class AttemptScore(NamedTuple):
    """What a gradebook needs of an attempt: where it belongs, its score, and whether it came in after closing."""

    id: int
    activity_id: int
    student_id: int
    sheet_key: str
    score: float
    out_of: int
    taken_in: bool
    late: bool


class AttemptedSheet(NamedTuple):
    """A sheet key that attempts have, and the revision and sheet number of the first of them."""

    sheet_key: str
    revision: int
    sheet_number: int


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


_OVERRIDES = (
    sa.select(
        *(grade_overrides.c[name] for name in ("activity_id", "student_id", "points", "excused", "reason", "at")),
        sa.func.coalesce(teachers.c.name, "").label("by"),
    )
    .join(teachers, teachers.c.id == grade_overrides.c.teacher_id, isouter=True)
    .order_by(grade_overrides.c.activity_id, grade_overrides.c.student_id)
)


def _override_of(activity_id: int, student_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return grade_overrides.c.activity_id == activity_id, grade_overrides.c.student_id == student_id


class Grades(QueryBase):
    """Queries on the points of a course."""

    def last_scores(self, activity_ids: Collection[int], student_id: int | None = None) -> Sequence[AttemptScore]:
        """The last attempt of every student, or of this one, on every sheet key of these activities.

        A worksheet that was revised has a sheet key for each version.
        """
        key = (class_attempts.c.activity_id, class_attempts.c.student_id, class_attempts.c.sheet_key)
        newest = sa.select(sa.func.max(class_attempts.c.id)).group_by(*key)
        newest = newest.where(class_attempts.c.activity_id.in_(activity_ids))
        if student_id is not None:
            newest = newest.where(class_attempts.c.student_id == student_id)
        last = sa.select(*(class_attempts.c[name] for name in AttemptScore._fields)).where(
            class_attempts.c.id.in_(newest)
        )
        return [AttemptScore._make(row) for row in self._fetch_all(last)]

    def attempted_sheets(self, activity_id: int) -> list[AttemptedSheet]:
        """The sheets of an activity that have attempts, in the order of their first one."""
        first = sa.select(sa.func.min(class_attempts.c.id)).where(class_attempts.c.activity_id == activity_id)
        first = first.group_by(class_attempts.c.sheet_key)
        query = sa.select(*(class_attempts.c[name] for name in AttemptedSheet._fields))
        rows = self._fetch_all(query.where(class_attempts.c.id.in_(first)).order_by(class_attempts.c.id))
        return [AttemptedSheet._make(row) for row in rows]

    def participants(self, activity_id: int) -> set[int]:
        """The ids of the students who came to an activity or made an attempt."""
        came, tried = (
            sa.select(table.c.student_id).where(table.c.activity_id == activity_id)
            for table in (attendance, class_attempts)
        )
        return {row.student_id for row in self._fetch_all(sa.union(came, tried))}

    def count_attempts(self, activity_id: int) -> int:
        """How many attempts all students together have made in an activity."""
        count = (
            sa.select(sa.func.count()).select_from(class_attempts).where(class_attempts.c.activity_id == activity_id)
        )
        return int(self._fetch_one(count)[0])

    def overrides(self, course: Course) -> tuple[GradeOverride, ...]:
        """Every override in a course, by activity and student."""
        query = _OVERRIDES.join(activities, activities.c.id == grade_overrides.c.activity_id)
        return tuple(
            from_row(GradeOverride, row) for row in self._fetch_all(query.where(activities.c.course_id == course.id))
        )

    def find_override(self, activity_id: int, student_id: int) -> GradeOverride | None:
        """A student's override in an activity; None if there is none."""
        row = self._fetch_one(_OVERRIDES.where(*_override_of(activity_id, student_id)))
        return from_row(GradeOverride, row) if row else None

    def override(self, activity_id: int, student_id: int, points: float | None, reason: str, teacher: Teacher) -> None:
        """Give a student these points in an activity, or excuse them (None), in place of any earlier override."""
        values = {"points": points, "excused": points is None, "reason": reason, "teacher_id": teacher.id,
                  "at": self.now()}  # fmt: skip
        insert = self._insert_into(grade_overrides).values(activity_id=activity_id, student_id=student_id, **values)
        key = [grade_overrides.c.activity_id, grade_overrides.c.student_id]
        self._execute(insert.on_conflict_do_update(index_elements=key, set_=values))

    def remove_override(self, activity_id: int, student_id: int) -> bool:
        """Let the attempts count again; False if there was no override."""
        return bool(self._execute(sa.delete(grade_overrides).where(*_override_of(activity_id, student_id))))
