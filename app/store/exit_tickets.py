"""Exit tickets that students handed in: anonymous ones cannot be traced to their students."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

import sqlalchemy as sa

from .classwork import Answers
from .queries import QueryBase, columns, from_row, hash_secret
from .tables import attendance, ticket_answers


@dataclass(frozen=True)
class TicketAnswer:
    """One answer on an exit ticket; `student_id` is None where the ticket is anonymous.

    The staff may star an answer, mark it for a follow-up, or hide it.
    """

    id: str
    question: str
    text: str
    student_id: int | None
    day: date
    starred: bool
    follow_up: bool
    hidden: bool


class ExitTickets(QueryBase):
    """Queries on exit tickets."""

    def hand_in(self, activity_id: int, student_id: int, client_id: str, answers: Answers, *, anonymous: bool) -> bool:
        """Store a student's answers by question as their exit ticket, durable once this returns; whether that was done.

        False, and nothing changes, if they have handed one in already or never opened the activity. Nothing stored
        connects anonymous answers with their student: no key, no time of day, no order of rows. That the student handed
        in a ticket is stored with their attendance.
        """
        arrived = (attendance.c.activity_id == activity_id, attendance.c.student_id == student_id)
        first = sa.update(attendance).where(*arrived, attendance.c.ticket_in.is_(False)).values(ticket_in=True)
        with self._write_transaction() as connection:
            if not connection.execute(first).rowcount:
                return False
            for question, text in answers.items():
                row = {"id": hash_secret(f"{client_id} {question}"), "activity_id": activity_id, "question": question,
                       "text": text, "student_id": None if anonymous else student_id, "day": datetime.now(UTC).date(),
                       "starred": False, "follow_up": False, "hidden": False}  # fmt: skip
                insert = self._insert_into(ticket_answers).values(row)
                connection.execute(insert.on_conflict_do_nothing(index_elements=[ticket_answers.c.id]))
        return True

    def is_handed_in(self, activity_id: int, student_id: int) -> bool:
        """Whether a student has handed in the exit ticket of an activity; False if they never opened it."""
        this = (attendance.c.activity_id == activity_id, attendance.c.student_id == student_id)
        row = self._fetch_one(sa.select(attendance.c.ticket_in).where(*this))
        return bool(row and row.ticket_in)

    def answers(self, activity_id: int) -> tuple[TicketAnswer, ...]:
        """Every answer on the exit tickets of an activity, hidden ones included, in an order that says nothing."""
        query = sa.select(*columns(ticket_answers, TicketAnswer)).where(ticket_answers.c.activity_id == activity_id)
        return tuple(from_row(TicketAnswer, row) for row in self._fetch_all(query.order_by(ticket_answers.c.id)))

    def mark(self, activity_id: int, answer_id: str, **marks: bool) -> bool:
        """Set `starred`, `follow_up` or `hidden` of an answer; False if the activity has no such answer."""
        this = (ticket_answers.c.id == answer_id, ticket_answers.c.activity_id == activity_id)
        return bool(self._execute(sa.update(ticket_answers).where(*this).values(marks)))
