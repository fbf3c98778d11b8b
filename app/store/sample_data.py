"""Writes what simulated students did into a sample course, in one transaction and with past times."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.activities.activity import Activity
from app.activities.work import Answers, ClassSheetKey, Draft, Graded, NewAttempt, VariantSizes

from .classwork import attempt_row, draft_row
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

    `student` is the index of their name in the list of names.
    """

    student: int
    activity: Activity
    arrived_at: datetime
    attempts: Sequence[SimulatedAttempt] = ()
    typed: Sequence[tuple[int, VariantSizes, Answers]] = ()
    ticket: Answers = field(default_factory=dict)


class SampleData(QueryBase):
    def fill(self, course: Course, names: Sequence[str], simulated: Iterable[SimulatedStudent]) -> None:
        """Add students with these names, joined now and without resume codes, and everything they did."""
        at = self.now()
        with self.transaction() as connection:
            rows = [{"course_id": course.id, "name": name, "joined_at": at, "created_at": at} for name in names]
            ids = [insert_row(connection, students, row) for row in rows]
            for student in simulated:
                day = student.arrived_at.astimezone(ZoneInfo(course.time_zone)).date()
                self._insert_classwork(connection, student, ids[student.student], day)

    def _insert_classwork(
        self, connection: sa.Connection, student: SimulatedStudent, student_id: int, day: date
    ) -> None:
        activity, arrived_at = student.activity, student.arrived_at
        keys = {
            number: ClassSheetKey(student_id, activity.id, activity.revision, number, item.sheet_key)
            for number, item in enumerate(activity.content.items, 1)
        }
        arrival = {"activity_id": activity.id, "student_id": student_id, "arrived_at": arrived_at,
                   "ticket_in": bool(student.ticket)}  # fmt: skip
        typed = {number: (sizes, answers, arrived_at) for number, sizes, answers in student.typed}
        typed |= {each.sheet_number: (each.sizes, each.answers, each.at) for each in student.attempts}
        draft_rows = [
            draft_row(keys[number], Draft(answers, 1, sizes), at) for number, (sizes, answers, at) in typed.items()
        ]
        attempt_rows = [
            attempt_row(
                keys[each.sheet_number],
                NewAttempt(each.answers, each.sizes, each.graded, secrets.token_hex(16), each.handed_in),
                each.at,
            )
            for each in student.attempts
        ]
        answer_rows = [
            {"id": secrets.token_hex(32), "activity_id": activity.id, "question": question, "text": text,
             "student_id": None if activity.policies.ticket_anonymous else student_id, "day": day,
             "starred": False, "follow_up": False, "hidden": False}
            for question, text in student.ticket.items()
        ]  # fmt: skip
        connection.execute(sa.insert(attendance).values(arrival))
        for table, rows in ((drafts, draft_rows), (attempts, attempt_rows), (ticket_answers, answer_rows)):
            if rows:
                connection.execute(sa.insert(table), rows)
