"""What a room full of students is asked every second, in few and small questions; and what the class is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .classwork import Answers, Draft, Fixed
from .questions import Questions, columns
from .tables import regrades, spotlights, tries, work

AT_ONCE = 500  # values in one question

Whose = tuple[int, str]  # a student's id and a sheet


@dataclass(frozen=True)
class LastTry:
    """The newest try of a student on a sheet, and whether any of theirs on it was handed in."""

    id: int
    handed_in: bool


@dataclass(frozen=True)
class Spotlight:
    """A misconception that is explained to the class, on which worksheet, and whether it is drawn beside the truth."""

    item: int
    misconception: str
    drawn: bool


@dataclass(frozen=True)
class Held:
    """What a try says about the room: kind of mark by place, and keys of misconceptions."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]


class Live(Questions):
    """What goes on in an activity at this moment."""

    def drafts(self, activity_id: int) -> dict[Whose, int]:
        """Who has typed something on which sheet, and the version of it."""
        query = sa.select(work.c.student_id, work.c.sheet, work.c.version).where(work.c.activity_id == activity_id)
        return {(row.student_id, row.sheet): row.version for row in self._all(query)}

    def draft_texts(self, activity_id: int, whose: Collection[int]) -> dict[Whose, Draft]:
        """What these students have typed in this activity."""
        found = dict[Whose, Draft]()
        for some in _in_pieces(sorted(whose)):
            query = sa.select(work).where(work.c.activity_id == activity_id, work.c.student_id.in_(some))
            for row in self._all(query):
                answers: Answers = row.answers
                found[row.student_id, row.sheet] = Draft(answers, row.version, Fixed(**row.variant))
        return found

    def last_tries(self, activity_id: int) -> dict[Whose, LastTry]:
        """The newest try of everybody on every sheet."""
        handed_in = sa.func.max(sa.case((tries.c.handed_in, 1), else_=0))
        query = (
            sa.select(tries.c.student_id, tries.c.sheet, sa.func.max(tries.c.id), handed_in)
            .where(tries.c.activity_id == activity_id)
            .group_by(tries.c.student_id, tries.c.sheet)
        )
        return {(row[0], row[1]): LastTry(row[2], bool(row[3])) for row in self._all(query)}

    def held(self, try_ids: Collection[int]) -> dict[int, Held]:
        """Marks and misconceptions of these tries."""
        found = dict[int, Held]()
        for some in _in_pieces(sorted(try_ids)):
            query = sa.select(tries.c.id, tries.c.marks, tries.c.misconceptions).where(tries.c.id.in_(some))
            found |= {row.id: Held(row.marks, tuple(row.misconceptions)) for row in self._all(query)}
        return found

    def last_regrade(self, activity_id: int) -> int:
        """The number of the last regrade, 0 before one: marks that were read before it may be old."""
        row = self._one(sa.select(sa.func.max(regrades.c.id)).where(regrades.c.activity_id == activity_id))
        return int(row[0] or 0)

    def spotlight(self, activity_id: int) -> Spotlight | None:
        """What the class is shown, None for nothing."""
        row = self._one(sa.select(*columns(spotlights, Spotlight)).where(spotlights.c.activity_id == activity_id))
        return Spotlight(*row) if row else None

    def show(self, activity_id: int, spotlight: Spotlight | None) -> None:
        """Show the class this misconception in place of any other, or none."""
        if spotlight is None:
            self._write(sa.delete(spotlights).where(spotlights.c.activity_id == activity_id))
            return
        values: dict[str, Any] = {
            "item": spotlight.item,
            "misconception": spotlight.misconception,
            "drawn": spotlight.drawn,
        }
        insert = self._insert(spotlights).values(activity_id=activity_id, **values)
        self._write(insert.on_conflict_do_update(index_elements=[spotlights.c.activity_id], set_=values))


def _in_pieces(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))
