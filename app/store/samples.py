"""What simulated students did, kept all at once and at times of its own choosing."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from .activities import Activity
from .classwork import Answers, Fixed, Graded
from .courses import Course
from .questions import Questions, added_id, now
from .tables import attendance, students, ticket_answers, tries, work


@dataclass(frozen=True)
class SimulatedTry:
    """One try on one sheet, with the time it was made."""

    item: int
    fixed: Fixed
    answers: Answers
    graded: Graded
    at: datetime
    handed_in: bool


@dataclass(frozen=True)
class Simulated:
    """A simulated student in one activity; `typed` stands in the boxes of a sheet without a try, by its number."""

    student: int
    activity: Activity
    arrived_at: datetime
    tries: Sequence[SimulatedTry] = ()
    typed: Sequence[tuple[int, Fixed, Answers]] = ()
    ticket: Answers = field(default_factory=dict)


class Samples(Questions):
    """Sample courses."""

    def fill(self, course: Course, names: Sequence[str], came: Iterable[Simulated]) -> None:
        """Put students into a course, with all they did; `Simulated.student` is a place among the names."""
        at = now()
        with self._writing() as connection:
            rows = [{"course_id": course.id, "name": name, "joined_at": at, "created_at": at} for name in names]
            ids = [added_id(connection, students, row) for row in rows]
            for one in came:
                self._keep(connection, one, ids[one.student])

    def _keep(self, connection: sa.Connection, one: Simulated, student_id: int) -> None:
        spot = {"activity_id": one.activity.id, "student_id": student_id}
        there = {**spot, "arrived_at": one.arrived_at, "ticket_in": bool(one.ticket)}
        connection.execute(sa.insert(attendance).values(there))
        for table, rows in (
            (work, _drafts(one, spot)),
            (tries, _tries(one, spot)),
            (ticket_answers, _ticket(one, student_id)),
        ):
            if rows:
                connection.execute(sa.insert(table), rows)


def _drafts(one: Simulated, spot: dict[str, int]) -> list[dict[str, Any]]:
    """What stands in the boxes of each sheet: the last try, or what is typed so far."""
    last = {tried.item: (tried.fixed, tried.answers, tried.at) for tried in one.tries}
    begun = {item: (fixed, answers, one.arrived_at) for item, fixed, answers in one.typed}
    return [
        {**spot, "sheet": one.activity.content.items[item].sheet, "answers": dict(answers), "version": 1,
         "variant": asdict(fixed), "saved_at": at}
        for item, (fixed, answers, at) in {**begun, **last}.items()
    ]  # fmt: skip


def _tries(one: Simulated, spot: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {**spot, **asdict(tried.graded), "revision": one.activity.revision, "item": tried.item,
         "sheet": one.activity.content.items[tried.item].sheet, "client_id": secrets.token_hex(16),
         "variant": asdict(tried.fixed), "answers": dict(tried.answers), "handed_in": tried.handed_in,
         "created_at": tried.at}
        for tried in one.tries
    ]  # fmt: skip


def _ticket(one: Simulated, student_id: int) -> list[dict[str, Any]]:
    anonymous = one.activity.policies.ticket_anonymous
    return [
        {"id": secrets.token_hex(32), "activity_id": one.activity.id, "question": question, "text": text,
         "student_id": None if anonymous else student_id, "day": one.arrived_at.date(), "starred": False,
         "follow_up": False, "hidden": False}
        for question, text in one.ticket.items()
    ]  # fmt: skip
