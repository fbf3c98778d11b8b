"""Points in the gradebook: the scores of attempts, and the points that teachers gave instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal, NamedTuple, get_args

import sqlalchemy as sa

from app.activities.activity import Counting

from .classwork import counted_ids
from .people import Teacher
from .queries import QueryBase
from .tables import attempts, attendance, grade_changes, teachers

ChangeKind = Literal["points", "excused", "undone"]


class AttemptScore(NamedTuple):
    """What a gradebook needs of an attempt: where it belongs, its score, when it was made, and whether it was late."""

    id: int
    activity_id: int
    student_id: int
    sheet_key: str
    score: float
    out_of: int
    auto_submitted: bool
    late: bool
    handed_in: bool
    created_at: datetime


class AttemptedSheet(NamedTuple):
    """A sheet key with attempts, and the revision and sheet number of its first attempt."""

    sheet_key: str
    revision: int
    sheet_number: int


@dataclass(frozen=True)
class GradeChange:
    """What a teacher let count for a student in an activity instead of what counted before.

    `points` is None if the student is excused, or if an earlier change was undone, so that the attempts count again.
    """

    id: int
    activity_id: int
    student_id: int
    kind: ChangeKind
    points: float | None
    points_before: float | None
    reason: str
    by: str
    at: datetime

    @property
    def excused(self) -> bool:
        return self.kind == "excused"


_CHANGES = (
    sa.select(
        *(grade_changes.c[each.name] for each in fields(GradeChange) if each.name != "by"),
        sa.func.coalesce(teachers.c.name, "").label("by"),
    )
    .join(teachers, teachers.c.id == grade_changes.c.teacher_id, isouter=True)
    .order_by(grade_changes.c.id)
)


class Grades(QueryBase):
    def counted_scores(
        self, countings: Mapping[int, Counting], student_id: int | None = None
    ) -> Sequence[AttemptScore]:
        """The attempt that counts of every student (or this one) on every sheet key of these activities, in any order.

        `countings` has the rule of each activity by its id.
        """
        counted = list[sa.ColumnElement[bool]]()
        for counting in get_args(Counting):
            ids = [activity_id for activity_id, each in countings.items() if each == counting]
            of_student = () if student_id is None else (attempts.c.student_id == student_id,)
            if ids:
                counted.append(attempts.c.id.in_(counted_ids(counting, attempts.c.activity_id.in_(ids), *of_student)))
        scores = sa.select(*(attempts.c[name] for name in AttemptScore._fields)).where(sa.or_(sa.false(), *counted))
        return [AttemptScore._make(row) for row in self._fetch_all(scores)]

    def attempted_sheets(self, activity_id: int) -> list[AttemptedSheet]:
        """Each sheet key of an activity with attempts, and its first attempt's revision and sheet number, in order."""
        first = sa.select(sa.func.min(attempts.c.id)).where(attempts.c.activity_id == activity_id)
        first = first.group_by(attempts.c.sheet_key)
        query = sa.select(*(attempts.c[name] for name in AttemptedSheet._fields))
        rows = self._fetch_all(query.where(attempts.c.id.in_(first)).order_by(attempts.c.id))
        return [AttemptedSheet._make(row) for row in rows]

    def participants(self, activity_id: int) -> set[int]:
        """The ids of students who opened an activity or have an attempt in it; a draft isn't enough."""
        came, tried = (
            sa.select(table.c.student_id).where(table.c.activity_id == activity_id) for table in (attendance, attempts)
        )
        return {row.student_id for row in self._fetch_all(sa.union(came, tried))}

    def count_attempts(self, activity_id: int) -> int:
        """How many attempts all students together made in an activity."""
        count = sa.select(sa.func.count()).select_from(attempts).where(attempts.c.activity_id == activity_id)
        return int(self._fetch_one(count)[0])

    def overrides(self, activity_ids: Collection[int], student_id: int | None = None) -> Sequence[GradeChange]:
        """The newest grade change of each student (or this one) in each of these activities, in order."""
        newest = sa.select(sa.func.max(grade_changes.c.id)).where(grade_changes.c.activity_id.in_(activity_ids))
        if student_id is not None:
            newest = newest.where(grade_changes.c.student_id == student_id)
        newest = newest.group_by(grade_changes.c.activity_id, grade_changes.c.student_id)
        counts = (grade_changes.c.id.in_(newest), grade_changes.c.kind != "undone")
        return self._values(GradeChange, _CHANGES.where(*counts))

    def changes(self, activity_id: int, student_id: int) -> Sequence[GradeChange]:
        """Every change of a student's points in an activity, oldest first."""
        this = (grade_changes.c.activity_id == activity_id, grade_changes.c.student_id == student_id)
        return self._values(GradeChange, _CHANGES.where(*this))

    def change(
        self,
        activity_id: int,
        student_id: int,
        teacher: Teacher,
        kind: ChangeKind,
        points: float | None = None,
        *,
        points_before: float | None = None,
        reason: str = "",
    ) -> None:
        """Add a change of a student's points: other points, excused, or undone. Earlier changes are kept."""
        row = {"activity_id": activity_id, "student_id": student_id, "teacher_id": teacher.id, "kind": kind,
               "points": points, "points_before": points_before, "reason": reason, "at": self.now()}  # fmt: skip
        self._execute(sa.insert(grade_changes).values(row))
