"""What the live view polls every second, in few small queries, and the misconception shown to the class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from app.activities.work import Draft

from .queries import QueryBase, batches, columns, from_row
from .tables import activities, attempts, drafts, regrades

MAX_VALUES = 500  # ids per statement

StudentSheetKey = tuple[int, str]  # a student's id and a sheet key


@dataclass(frozen=True)
class LastAttempt:
    """The id of a student's newest attempt on a sheet, and what was done with any of their attempts on it.

    `handed_in`: the student handed one in.
    """

    id: int
    handed_in: bool
    auto_submitted: bool


@dataclass(frozen=True)
class Spotlight:
    """A misconception explained to the class, and the number, from 1, of the sheet that it is explained on.

    `shows_drawing` draws it beside the true shapes, which reveals answers.
    """

    sheet_number: int
    misconception: str
    shows_drawing: bool


@dataclass(frozen=True)
class StoredMarks:
    """What the live view needs of an attempt: the kind of mark by blank, the misconceptions, the answers."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    answers: Mapping[str, str]


class Live(QueryBase):
    """Queries on an ongoing activity."""

    def draft_versions(self, activity_id: int) -> dict[StudentSheetKey, int]:
        """The version of every student's draft on every sheet of an activity."""
        query = sa.select(drafts.c.student_id, drafts.c.sheet_key, drafts.c.version)
        rows = self._fetch_all(query.where(drafts.c.activity_id == activity_id))
        return {(row.student_id, row.sheet_key): row.version for row in rows}

    def draft_texts(self, activity_id: int, student_ids: Collection[int]) -> dict[StudentSheetKey, Draft]:
        """These students' drafts in an activity, by student id and sheet key."""
        found = dict[StudentSheetKey, Draft]()
        query = sa.select(drafts.c.student_id, drafts.c.sheet_key, *columns(drafts, Draft))
        for some in batches(sorted(student_ids), MAX_VALUES):
            theirs = (drafts.c.activity_id == activity_id, drafts.c.student_id.in_(some))
            rows = self._fetch_all(query.where(*theirs))
            found |= {(row.student_id, row.sheet_key): from_row(Draft, row) for row in rows}
        return found

    def last_attempts(self, activity_id: int) -> dict[StudentSheetKey, LastAttempt]:
        """The newest attempt's id, and what happened on the sheet, by student id and sheet key."""
        key = (attempts.c.student_id, attempts.c.sheet_key)
        newest = sa.func.max(attempts.c.id)
        auto_submitted = sa.func.max(sa.case((attempts.c.auto_submitted, 1), else_=0))
        by_student = attempts.c.handed_in & ~attempts.c.auto_submitted
        handed_in = sa.func.max(sa.case((by_student, 1), else_=0))
        query = (
            sa.select(*key, newest.label("id"), handed_in.label("handed_in"), auto_submitted.label("auto_submitted"))
            .where(attempts.c.activity_id == activity_id)
            .group_by(*key)
        )
        rows = self._fetch_all(query)
        return {
            (row.student_id, row.sheet_key): LastAttempt(row.id, bool(row.handed_in), bool(row.auto_submitted))
            for row in rows
        }

    def stored_marks(self, attempt_ids: Collection[int]) -> dict[int, StoredMarks]:
        """By attempt id, the marks by blank, the misconceptions and the answers; unknown ids are left out."""
        stored = dict[int, StoredMarks]()
        for some in batches(sorted(attempt_ids), MAX_VALUES):
            query = sa.select(attempts.c.id, *columns(attempts, StoredMarks)).where(attempts.c.id.in_(some))
            stored |= {row.id: from_row(StoredMarks, row) for row in self._fetch_all(query)}
        return stored

    def last_regrade(self, activity_id: int) -> int:
        """The id of an activity's newest regrade, 0 before the first: marks read earlier may be out of date."""
        row = self._fetch_one(sa.select(sa.func.max(regrades.c.id)).where(regrades.c.activity_id == activity_id))
        return int(row[0] or 0)

    def spotlight(self, activity_id: int) -> Spotlight | None:
        """The misconception explained to the class, or None."""
        row = self._fetch_one(sa.select(activities.c.spotlight).where(activities.c.id == activity_id))
        return Spotlight(**row.spotlight) if row and row.spotlight else None

    def show(self, activity_id: int, spotlight: Spotlight | None) -> None:
        """Store the misconception explained to the class; None removes it."""
        values = {"spotlight": asdict(spotlight) if spotlight else None}
        self._execute(sa.update(activities).where(activities.c.id == activity_id).values(values))
