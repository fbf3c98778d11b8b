"""Marks that were put right after a worksheet or a share was corrected; the old ones are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa

from .classwork import Graded
from .questions import Questions, added_id, now
from .tables import class_attempts, old_marks, regrades, teachers

_MARKED = ("marks", "misconceptions", "score", "out_of", "marked_by")


@dataclass(frozen=True)
class Regrade:
    """One regrade: who did it (nothing where they are gone), when, and how many attempts it changed."""

    id: int
    at: datetime
    by: str
    changed: int


@dataclass(frozen=True)
class OldMarks:
    """What an attempt had until a regrade."""

    until: datetime
    graded: Graded


@dataclass(frozen=True)
class NewMarks:
    """What an attempt gets in a regrade, and the sheet key of the definition that it was marked by."""

    graded: Graded
    marked_by: str


class Regrades(Questions):
    """Every regrade there was."""

    def apply(self, activity_id: int, teacher_id: int, new: Mapping[int, NewMarks]) -> int:
        """Give attempts of an activity other marks, by attempt id, and keep what they had; the number of this regrade.

        An attempt of another activity stays as it is.
        """
        with self._writing() as connection:
            row = {"activity_id": activity_id, "teacher_id": teacher_id, "at": now()}
            regrade_id = added_id(connection, regrades, row)
            for attempt_id, marks in sorted(new.items()):
                this = (class_attempts.c.id == attempt_id, class_attempts.c.activity_id == activity_id)
                before = [class_attempts.c[name] for name in _MARKED]
                as_it_was = sa.select(sa.literal(regrade_id), class_attempts.c.id, *before).where(*this)
                columns = ["regrade_id", "attempt_id", *_MARKED]
                connection.execute(sa.insert(old_marks).from_select(columns, as_it_was))
                values = {**asdict(marks.graded), "marked_by": marks.marked_by}
                connection.execute(sa.update(class_attempts).where(*this).values(values))
        return regrade_id

    def of_activity(self, activity_id: int) -> tuple[Regrade, ...]:
        """Every regrade of an activity, the newest first."""
        counted = sa.select(sa.func.count()).where(old_marks.c.regrade_id == regrades.c.id).scalar_subquery()
        query = (
            sa.select(regrades.c.id, regrades.c.at, sa.func.coalesce(teachers.c.name, ""), counted)
            .join(teachers, teachers.c.id == regrades.c.teacher_id, isouter=True)
            .where(regrades.c.activity_id == activity_id)
            .order_by(regrades.c.id.desc())
        )
        return tuple(Regrade(*row) for row in self._all(query))

    def old_marks(self, activity_id: int, student_id: int) -> dict[int, tuple[OldMarks, ...]]:
        """What a student's attempts had before, by attempt, the oldest first."""
        query = (
            sa.select(old_marks, regrades.c.at)
            .join(regrades, regrades.c.id == old_marks.c.regrade_id)
            .join(class_attempts, class_attempts.c.id == old_marks.c.attempt_id)
            .where(class_attempts.c.activity_id == activity_id, class_attempts.c.student_id == student_id)
            .order_by(regrades.c.id)
        )
        found = dict[int, tuple[OldMarks, ...]]()
        for row in self._all(query):
            old = OldMarks(row.at, Graded(row.marks, tuple(row.misconceptions), row.score, row.out_of))
            found[row.attempt_id] = (*found.get(row.attempt_id, ()), old)
        return found
