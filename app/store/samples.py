"""What simulated students did, kept all at once and at times of its own choosing."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from .activities import Activity
from .classwork import Answers, Graded, VariantSizes
from .courses import Course
from .questions import Questions, added_id, now
from .tables import attendance, class_attempts, class_drafts, students, ticket_answers


@dataclass(frozen=True)
class SimulatedAttempt:
    """One attempt on one sheet, with the time it was made."""

    sheet_number: int
    sizes: VariantSizes
    answers: Answers
    graded: Graded
    at: datetime
    handed_in: bool


@dataclass(frozen=True)
class SimulatedStudent:
    """A simulated student in one activity; `typed` stands in the boxes of a sheet without an attempt, by its number."""

    student: int
    activity: Activity
    arrived_at: datetime
    attempts: Sequence[SimulatedAttempt] = ()
    typed: Sequence[tuple[int, VariantSizes, Answers]] = ()
    ticket: Answers = field(default_factory=dict)


class Samples(Questions):
    """Sample courses."""

    def fill(self, course: Course, names: Sequence[str], came: Iterable[SimulatedStudent]) -> None:
        """Put students into a course, with all they did; `SimulatedStudent.student` is a place among the names."""
        at = now()
        with self._writing() as connection:
            rows = [{"course_id": course.id, "name": name, "joined_at": at, "created_at": at} for name in names]
            ids = [added_id(connection, students, row) for row in rows]
            for one in came:
                self._keep(connection, one, ids[one.student])

    def _keep(self, connection: sa.Connection, one: SimulatedStudent, student_id: int) -> None:
        whose = {"activity_id": one.activity.id, "student_id": student_id}
        there = {**whose, "arrived_at": one.arrived_at, "ticket_in": bool(one.ticket)}
        connection.execute(sa.insert(attendance).values(there))
        for table, rows in (
            (class_drafts, _drafts(one, whose)),
            (class_attempts, _attempts(one, whose)),
            (ticket_answers, _ticket(one, student_id)),
        ):
            if rows:
                connection.execute(sa.insert(table), rows)


def _drafts(one: SimulatedStudent, whose: dict[str, int]) -> list[dict[str, Any]]:
    """What stands in the boxes of each sheet: the last attempt, or what is typed so far."""
    last = {attempt.sheet_number: (attempt.sizes, attempt.answers, attempt.at) for attempt in one.attempts}
    begun = {number: (sizes, answers, one.arrived_at) for number, sizes, answers in one.typed}
    return [
        {**whose, "sheet_key": one.activity.content.items[number - 1].sheet_key, "answers": dict(answers), "version": 1,
         "variant": asdict(sizes), "saved_at": at}
        for number, (sizes, answers, at) in {**begun, **last}.items()
    ]  # fmt: skip


def _attempts(one: SimulatedStudent, whose: dict[str, int]) -> list[dict[str, Any]]:
    keys = [item.sheet_key for item in one.activity.content.items]
    return [
        {**whose, **asdict(attempt.graded), "revision": one.activity.revision, "sheet_number": attempt.sheet_number,
         "sheet_key": keys[attempt.sheet_number - 1], "client_id": secrets.token_hex(16),
         "variant": asdict(attempt.sizes), "answers": dict(attempt.answers), "handed_in": attempt.handed_in,
         "created_at": attempt.at,
         "marked_by": keys[attempt.sheet_number - 1]}
        for attempt in one.attempts
    ]  # fmt: skip


def _ticket(one: SimulatedStudent, student_id: int) -> list[dict[str, Any]]:
    anonymous = one.activity.policies.ticket_anonymous
    return [
        {"id": secrets.token_hex(32), "activity_id": one.activity.id, "question": question, "text": text,
         "student_id": None if anonymous else student_id, "day": one.arrived_at.date(), "starred": False,
         "follow_up": False, "hidden": False}
        for question, text in one.ticket.items()
    ]  # fmt: skip
