"""What a room full of students is asked every second, in few and small questions; and what the class is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .classwork import Answers, ClassDraft, VariantSizes
from .questions import Questions, columns
from .tables import class_attempts, class_drafts, regrades, spotlights

AT_ONCE = 500  # values in one question

StudentSheetKey = tuple[int, str]  # a student's id and a sheet


@dataclass(frozen=True)
class LastAttempt:
    """The newest attempt of a student on a sheet, and whether any of theirs on it was handed in."""

    id: int
    handed_in: bool


@dataclass(frozen=True)
class Spotlight:
    """A misconception that is explained to the class, on which worksheet, and whether it is drawn beside the truth."""

    sheet_number: int
    misconception: str
    shows_drawing: bool


@dataclass(frozen=True)
class StoredMarks:
    """What an attempt says about the room: kind of mark by place, and keys of misconceptions."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]


class Live(Questions):
    """What goes on in an activity at this moment."""

    def drafts(self, activity_id: int) -> dict[StudentSheetKey, int]:
        """Who has typed something on which sheet, and the version of it."""
        query = sa.select(class_drafts.c.student_id, class_drafts.c.sheet_key, class_drafts.c.version).where(
            class_drafts.c.activity_id == activity_id
        )
        return {(row.student_id, row.sheet_key): row.version for row in self._all(query)}

    def draft_texts(self, activity_id: int, whose: Collection[int]) -> dict[StudentSheetKey, ClassDraft]:
        """What these students have typed in this activity."""
        found = dict[StudentSheetKey, ClassDraft]()
        for some in _in_pieces(sorted(whose)):
            query = sa.select(class_drafts).where(
                class_drafts.c.activity_id == activity_id, class_drafts.c.student_id.in_(some)
            )
            for row in self._all(query):
                answers: Answers = row.answers
                found[row.student_id, row.sheet_key] = ClassDraft(answers, row.version, VariantSizes(**row.variant))
        return found

    def last_attempts(self, activity_id: int) -> dict[StudentSheetKey, LastAttempt]:
        """The newest attempt of everybody on every sheet."""
        whose = (class_attempts.c.student_id, class_attempts.c.sheet_key)
        handed_in = sa.func.max(sa.case((class_attempts.c.handed_in, 1), else_=0))
        query = (
            sa.select(*whose, sa.func.max(class_attempts.c.id), handed_in)
            .where(class_attempts.c.activity_id == activity_id)
            .group_by(*whose)
        )
        return {(row[0], row[1]): LastAttempt(row[2], bool(row[3])) for row in self._all(query)}

    def stored_marks(self, attempt_ids: Collection[int]) -> dict[int, StoredMarks]:
        """Marks and misconceptions of these attempts."""
        found = dict[int, StoredMarks]()
        for some in _in_pieces(sorted(attempt_ids)):
            query = sa.select(class_attempts.c.id, class_attempts.c.marks, class_attempts.c.misconceptions).where(
                class_attempts.c.id.in_(some)
            )
            found |= {row.id: StoredMarks(row.marks, tuple(row.misconceptions)) for row in self._all(query)}
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
            "sheet_number": spotlight.sheet_number,
            "misconception": spotlight.misconception,
            "shows_drawing": spotlight.shows_drawing,
        }
        insert = self._insert(spotlights).values(activity_id=activity_id, **values)
        self._write(insert.on_conflict_do_update(index_elements=[spotlights.c.activity_id], set_=values))


def _in_pieces(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))
