"""Writes what simulated students did into a sample course, all in one transaction and with past times."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from app.activities.activity import Activity
from app.activities.work import Answers, Graded, VariantSizes

from .courses import Course
from .queries import QueryBase, insert_row
from .tables import attempts, attendance, drafts, students, ticket_answers


@dataclass(frozen=True)
class SimulatedAttempt:
    """One attempt on the sheet with that number, from 1, and when it was made."""

    sheet_number: int
    sizes: VariantSizes
    answers: Answers
    graded: Graded
    at: datetime
    handed_in: bool


@dataclass(frozen=True)
class SimulatedStudent:
    """A simulated student in one activity.

    `student` is the index of their name in the list of names. `typed` are drafts of sheets without an attempt: sheet
    number, sizes and answers. `ticket` has the exit-ticket answers by question; it is empty if none was handed in.
    """

    student: int
    activity: Activity
    arrived_at: datetime
    attempts: Sequence[SimulatedAttempt] = ()
    typed: Sequence[tuple[int, VariantSizes, Answers]] = ()
    ticket: Answers = field(default_factory=dict)


class SampleData(QueryBase):
    """Fills sample courses."""

    def fill(self, course: Course, names: Sequence[str], simulated: Iterable[SimulatedStudent]) -> None:
        """Add students of these names, joined now and without resume codes, to a course, with everything they did.

        On an error nothing is added.
        """
        at = self.now()
        with self.transaction() as connection:
            rows = [{"course_id": course.id, "name": name, "joined_at": at, "created_at": at} for name in names]
            ids = [insert_row(connection, students, row) for row in rows]
            for student in simulated:
                self._insert_classwork(connection, student, ids[student.student])

    def _insert_classwork(self, connection: sa.Connection, student: SimulatedStudent, student_id: int) -> None:
        """Insert what a student did in one activity: attendance, drafts, attempts and the exit ticket, if any."""
        owner = {"activity_id": student.activity.id, "student_id": student_id}
        arrival = {**owner, "arrived_at": student.arrived_at, "ticket_in": bool(student.ticket)}
        for table, rows in (
            (attendance, [arrival]),
            (drafts, _draft_rows(student, owner)),
            (attempts, _attempt_rows(student, owner)),
            (ticket_answers, _ticket_rows(student, student_id)),
        ):
            if rows:
                connection.execute(sa.insert(table), rows)


def _sheet_keys(student: SimulatedStudent) -> dict[int, str]:
    """The sheet key of each sheet of the student's activity, by the sheet's number from 1."""
    return {number: item.sheet_key for number, item in enumerate(student.activity.content.items, 1)}


def _draft_rows(student: SimulatedStudent, owner: Mapping[str, int]) -> list[dict[str, Any]]:
    """A row of drafts for each sheet that was begun: the last attempt on it, else what is typed so far.

    `owner` has the columns activity_id and student_id of every row. The draft was saved with the attempt, or else on
    arrival.
    """
    keys = _sheet_keys(student)
    typed = {number: (sizes, answers, student.arrived_at) for number, sizes, answers in student.typed}
    attempted = {a.sheet_number: (a.sizes, a.answers, a.at) for a in student.attempts}
    return [
        {**owner, "sheet_key": keys[number], "answers": dict(answers), "version": 1, "variant": asdict(sizes),
         "saved_at": at, "tab_versions": {}}
        for number, (sizes, answers, at) in {**typed, **attempted}.items()
    ]  # fmt: skip


def _attempt_rows(student: SimulatedStudent, owner: Mapping[str, int]) -> list[dict[str, Any]]:
    """A row of attempts for each attempt, with a random client id, and marked by the sheet it was made on.

    `owner` has the columns activity_id and student_id of every row.
    """
    keys = _sheet_keys(student)
    return [
        {**owner, **asdict(attempt.graded), "revision": student.activity.revision,
         "sheet_number": attempt.sheet_number, "sheet_key": keys[attempt.sheet_number],
         "client_id": secrets.token_hex(16), "variant": asdict(attempt.sizes), "answers": dict(attempt.answers),
         "handed_in": attempt.handed_in, "created_at": attempt.at, "marked_by": keys[attempt.sheet_number]}
        for attempt in student.attempts
    ]  # fmt: skip


def _ticket_rows(student: SimulatedStudent, student_id: int) -> list[dict[str, Any]]:
    """A row of ticket_answers for each answered question, of the day of arrival, with a random id and no marks.

    It has no student id where the activity's tickets are anonymous.
    """
    anonymous = student.activity.policies.ticket_anonymous
    return [
        {"id": secrets.token_hex(32), "activity_id": student.activity.id, "question": question, "text": text,
         "student_id": None if anonymous else student_id, "day": student.arrived_at.date(), "starred": False,
         "follow_up": False, "hidden": False}
        for question, text in student.ticket.items()
    ]  # fmt: skip
