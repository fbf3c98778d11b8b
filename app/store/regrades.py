"""Regrades: attempts get new marks, and the old ones are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from app.activities.content import Content
from app.activities.work import Graded

from .queries import QueryBase, from_row, insert_row
from .tables import attempts, old_marks, regrades, teachers

_MARK_COLUMNS = ("marks", "misconceptions", "score", "out_of", "marked_by")


@dataclass(frozen=True)
class Regrade:
    """One regrade: when, by which teacher ("" if the account is gone), and how many attempts it changed."""

    id: int
    at: datetime
    by: str
    changed: int


@dataclass(frozen=True)
class NewMarks:
    """An attempt's new marks in a regrade, and the sheet key of the corrected definition.

    `marked_by` becomes `Attempt.marked_by`; it is FrozenWorksheet(definition).sheet_key, which equals the attempt's own
    sheet key if the correction left the questions unchanged.
    """

    graded: Graded
    marked_by: str


@dataclass(frozen=True)
class OldMarks:
    """The marks that an attempt had before a regrade, and when that was."""

    until: datetime
    graded: Graded


class Regrades(QueryBase):
    def apply(
        self,
        activity_id: int,
        teacher_id: int,
        new: Mapping[int, NewMarks],
        definitions: Mapping[str, Content] | None = None,
    ) -> int:
        """Store a teacher's regrade, and return its id: attempts get the new marks, the old ones are kept."""
        with self.transaction() as connection:
            corrected = {marked_by: content.as_json() for marked_by, content in (definitions or {}).items()}
            row = {"activity_id": activity_id, "teacher_id": teacher_id, "at": self.now(), "definitions": corrected}
            regrade_id = insert_row(connection, regrades, row)
            if new:  # two statements, each executed for all attempts at once, so that a large class takes no longer
                self._replace_marks(connection, activity_id, regrade_id, new)
        return regrade_id

    def _replace_marks(
        self, connection: sa.Connection, activity_id: int, regrade_id: int, new: Mapping[int, NewMarks]
    ) -> None:
        this = (attempts.c.id == sa.bindparam("attempt"), attempts.c.activity_id == activity_id)
        marks_now = [attempts.c[name] for name in _MARK_COLUMNS]
        before = sa.select(sa.literal(regrade_id), attempts.c.id, *marks_now).where(*this)
        keep = sa.insert(old_marks).from_select(["regrade_id", "attempt_id", *_MARK_COLUMNS], before)
        update = sa.update(attempts).where(*this).values({n: sa.bindparam(f"new_{n}") for n in _MARK_COLUMNS})
        rows = list[dict[str, Any]]()
        for attempt_id, marks in sorted(new.items()):
            values = {**vars(marks.graded), "marked_by": marks.marked_by}
            rows.append({"attempt": attempt_id, **{f"new_{name}": value for name, value in values.items()}})
        connection.execute(keep, [{"attempt": row["attempt"]} for row in rows])
        connection.execute(update, rows)

    def definitions(self, activity_id: int) -> dict[str, Content]:
        """The corrected worksheets of an activity's regrades, by `marked_by`."""
        query = sa.select(regrades.c.definitions).where(regrades.c.activity_id == activity_id).order_by(regrades.c.id)
        stored = (definitions for (definitions,) in self._fetch_all(query))
        return {marked_by: Content.from_json(json) for each in stored for marked_by, json in each.items()}

    def of_activity(self, activity_id: int) -> tuple[Regrade, ...]:
        """Every regrade of an activity, newest first."""
        changed = sa.select(sa.func.count()).where(old_marks.c.regrade_id == regrades.c.id).scalar_subquery()
        query = (
            sa.select(regrades.c.id, regrades.c.at, sa.func.coalesce(teachers.c.name, ""), changed)
            .join(teachers, teachers.c.id == regrades.c.teacher_id, isouter=True)
            .where(regrades.c.activity_id == activity_id)
            .order_by(regrades.c.id.desc())
        )
        return tuple(Regrade(*row) for row in self._fetch_all(query))

    def last(self, activity_id: int) -> int:
        """The id of an activity's newest regrade, 0 before the first: marks read earlier may be out of date."""
        row = self._fetch_one(sa.select(sa.func.max(regrades.c.id)).where(regrades.c.activity_id == activity_id))
        return int(row[0] or 0)

    def old_marks(self, activity_id: int, student_id: int) -> dict[int, tuple[OldMarks, ...]]:
        """A student's marks in an activity before each regrade, oldest first, by attempt id."""
        query = (
            sa.select(old_marks, regrades.c.at)
            .join(regrades, regrades.c.id == old_marks.c.regrade_id)
            .join(attempts, attempts.c.id == old_marks.c.attempt_id)
            .where(attempts.c.activity_id == activity_id, attempts.c.student_id == student_id)
            .order_by(regrades.c.id)
        )
        earlier = dict[int, tuple[OldMarks, ...]]()
        for row in self._fetch_all(query):
            old = OldMarks(row.at, from_row(Graded, row))
            earlier[row.attempt_id] = (*earlier.get(row.attempt_id, ()), old)
        return earlier
