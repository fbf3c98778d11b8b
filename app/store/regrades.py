"""Marks that were put right after a worksheet or a share was corrected; the old ones are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from .classwork import Graded
from .questions import Questions, added_id, now
from .tables import old_marks, regrades, teachers, tries

_MARKED = ("marks", "misconceptions", "score", "out_of")


@dataclass(frozen=True)
class Regrade:
    """One regrade: who did it (nothing where they are gone), when, and how many tries it changed."""

    id: int
    at: datetime
    by: str
    changed: int


@dataclass(frozen=True)
class OldMarks:
    """What a try had until a regrade."""

    until: datetime
    graded: Graded


class Regrades(Questions):
    """Every regrade there was."""

    def apply(self, activity_id: int, teacher_id: int, new: Mapping[int, Graded]) -> int:
        """Give tries of an activity other marks, and keep what they had; the number of this regrade."""
        with self._writing() as connection:
            row = {"activity_id": activity_id, "teacher_id": teacher_id, "at": now()}
            regrade_id = added_id(connection, regrades, row)
            for try_id, graded in sorted(new.items()):
                this = (tries.c.id == try_id, tries.c.activity_id == activity_id)
                as_it_was = sa.select(sa.literal(regrade_id), tries.c.id, *(tries.c[name] for name in _MARKED))
                kept = ["regrade_id", "try_id", *_MARKED]
                connection.execute(sa.insert(old_marks).from_select(kept, as_it_was.where(*this)))
                values = {
                    "marks": dict(graded.marks),
                    "misconceptions": list(graded.misconceptions),
                    "score": graded.score,
                }
                connection.execute(sa.update(tries).where(*this).values(**values, out_of=graded.out_of))
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
        """What a student's tries had before, by try, the oldest first."""
        query = (
            sa.select(old_marks, regrades.c.at)
            .join(regrades, regrades.c.id == old_marks.c.regrade_id)
            .join(tries, tries.c.id == old_marks.c.try_id)
            .where(tries.c.activity_id == activity_id, tries.c.student_id == student_id)
            .order_by(regrades.c.id)
        )
        found = dict[int, tuple[OldMarks, ...]]()
        for row in self._all(query):
            old = OldMarks(row.at, Graded(row.marks, tuple(row.misconceptions), row.score, row.out_of))
            found[row.try_id] = (*found.get(row.try_id, ()), old)
        return found
