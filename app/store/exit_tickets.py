"""Exit tickets that students handed in, at most one each; anonymous ones are stored without their student.

An anonymous answer has the day but no time. Its id is random, and SQLite sorts the rows by it, so that no order reveals
the order of handing in. The database's administrator could still find its student: PostgreSQL, for example, notes in
each row which transaction wrote it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.activities.activity import Activity
from app.activities.work import Answers

from .classwork import ARRIVAL
from .queries import QueryBase, columns
from .tables import activities, attendance, courses, ticket_answers

SHOWN_FROM = 5  # anonymous tickets that must be in before any is shown, unless the activity is closed


@dataclass(frozen=True)
class TicketAnswer:
    """One answer on an exit ticket; `student_id` is None if the ticket is anonymous."""

    id: str
    question: str
    text: str
    student_id: int | None
    day: date
    starred: bool
    follow_up: bool
    hidden: bool


class ExitTickets(QueryBase):
    def hand_in(self, activity_id: int, student_id: int, answers: Answers, *, anonymous: bool) -> bool:
        """Store an arrived student's answers by question; False if their ticket is already in."""
        arrived = (attendance.c.activity_id == activity_id, attendance.c.student_id == student_id)
        first = sa.update(attendance).where(*arrived, attendance.c.ticket_in.is_(False)).values(ticket_in=True)
        with self.transaction() as connection:
            if not connection.execute(first).rowcount:
                return False
            common = {
                "activity_id": activity_id,
                "student_id": None if anonymous else student_id,
                "day": self._today(connection, activity_id),
                "starred": False,
                "follow_up": False,
                "hidden": False,
            }
            rows = [
                {**common, "id": secrets.token_hex(32), "question": question, "text": text}
                for question, text in answers.items()
            ]
            connection.execute(sa.insert(ticket_answers), rows)
        return True

    def answers(self, activity: Activity) -> tuple[TicketAnswer, ...]:
        """The answers that the staff may read, including hidden ones, in random order."""
        query = sa.select(*columns(ticket_answers, TicketAnswer)).where(ticket_answers.c.activity_id == activity.id)
        if not self._are_shown(activity, self._count_anonymous(activity)):
            query = query.where(ticket_answers.c.student_id.is_not(None))
        return self._values(TicketAnswer, query.order_by(ticket_answers.c.id))

    def waiting(self, activity: Activity) -> int:
        """How many anonymous tickets are in whose answers nobody may read yet."""
        count = self._count_anonymous(activity)
        return 0 if self._are_shown(activity, count) else count

    def _are_shown(self, activity: Activity, count: int) -> bool:
        return count >= SHOWN_FROM or activity.is_archived or activity.phase(self.now()) == "closed"

    def _count_anonymous(self, activity: Activity) -> int:
        # No answer says which ticket it was on. So these are the students whose ticket is in without a name on it.
        # After a student was removed or merged, they are fewer than the tickets, never more.
        named = sa.exists().where(
            ticket_answers.c.activity_id == activity.id, ticket_answers.c.student_id == attendance.c.student_id
        )
        handed_in = (attendance.c.activity_id == activity.id, attendance.c.ticket_in)
        query = sa.select(sa.func.count().label("tickets")).select_from(attendance).where(*handed_in, ~named)
        return int(self._fetch_one(query).tickets)

    def is_handed_in(self, activity_id: int, student_id: int) -> bool:
        row = self._fetch_one(ARRIVAL, activity_id=activity_id, student_id=student_id)
        return bool(row and row.ticket_in)

    def mark(self, activity_id: int, *answer_ids: str, **marks: bool) -> bool:
        """Set `starred`, `follow_up` or `hidden`; False if the activity has no such answers."""
        this = (ticket_answers.c.id.in_(answer_ids), ticket_answers.c.activity_id == activity_id)
        return bool(self._execute(sa.update(ticket_answers).where(*this).values(marks)))

    def _today(self, connection: sa.Connection, activity_id: int) -> date:
        of_course = sa.select(courses.c.time_zone).join(activities, activities.c.course_id == courses.c.id)
        zone = connection.scalar(of_course.where(activities.c.id == activity_id))
        return self.now().astimezone(ZoneInfo(str(zone))).date()
