"""Exit tickets that students handed in. Nobody who reads the database can join anonymous ones to their students.

What is stored in one transaction, or one after the other, can be joined later: by the row versions of PostgreSQL, by
SQLite's write-ahead log, by comparing two backups. So an anonymous ticket is stored encrypted with the note that its
student handed one in, and its answers are written later, in random order together with those of at least four others.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.activities.activity import Activity
from app.activities.work import Answers
from app.secret_key import SecretKey, UnsealError

from .classwork import ARRIVAL
from .courses import Course
from .queries import OpenDatabase, QueryBase, columns, from_row, hash_secret
from .tables import activities, attendance, courses, sealed_tickets, ticket_answers

log = logging.getLogger("attention_shapes")

MIN_MIXED = 5  # anonymous tickets are shown in groups of at least as many students
# So many wait before the first are shown: MIN_MIXED of them always stay behind, so that the last group is no smaller.
MIXED_FROM = 2 * MIN_MIXED


@dataclass(frozen=True)
class TicketAnswer:
    """One answer on an exit ticket; `student_id` is None where the ticket is anonymous. The staff may star an
    answer, mark it for a follow-up, or hide it.
    """

    id: str
    question: str
    text: str
    student_id: int | None
    day: date
    starred: bool
    follow_up: bool
    hidden: bool


@dataclass(frozen=True)
class HeldTickets:
    """The anonymous tickets of an activity that are not shown yet: how many wait, and how many no key here can open."""

    waiting: int
    locked: int
    others_shown: bool = False  # answers of others on the same anonymous ticket

    @property
    def too_few(self) -> bool:
        """Whether closing the activity shows none of those that wait: next to earlier answers, they would stand out."""
        return self.others_shown and self.waiting < MIN_MIXED


class ExitTickets(QueryBase):
    """Queries on exit tickets. Anonymous ones are sealed with the key until they are mixed."""

    def __init__(self, database: OpenDatabase, key: SecretKey) -> None:
        super().__init__(database)
        self._key = key

    def hand_in(self, activity_id: int, student_id: int, client_id: str, answers: Answers, *, anonymous: bool) -> bool:
        """Store a student's answers by question as their exit ticket, durable once this returns; whether that was
        done.
        """
        arrived = (attendance.c.activity_id == activity_id, attendance.c.student_id == student_id)
        first = sa.update(attendance).where(*arrived, attendance.c.ticket_in.is_(False)).values(ticket_in=True)
        with self.transaction() as connection:
            if not connection.execute(first).rowcount:
                return False
            if anonymous:
                sealed = {"id": secrets.token_hex(32), "activity_id": activity_id, "sealed": self._key.seal(answers)}
                connection.execute(sa.insert(sealed_tickets).values(sealed))
            else:
                ids = {question: hash_secret(f"{client_id} {question}") for question in answers}
                today = self._today(connection, activity_id)
                named = [_new_answer(ids[q], q, text, student_id, today) for q, text in answers.items()]
                self._insert_answers(connection, activity_id, named)
        if anonymous and self.held(activity_id).waiting >= MIXED_FROM:
            self._mix(activity_id, leave=MIN_MIXED)
        return True

    def held(self, activity_id: int) -> HeldTickets:
        """How many anonymous tickets are not shown yet: sealed with this key ("waiting"), and with another
        ("locked").
        """
        ours = sa.case((sealed_tickets.c.sealed.like(f"{self._key.mark}.%"), 1), else_=0)
        counts = sa.func.count().label("all"), sa.func.coalesce(sa.func.sum(ours), 0).label("ours")
        shown = sa.exists().where(*_anonymous_in(activity_id)).label("shown")
        row = self._fetch_one(sa.select(*counts, shown).where(sealed_tickets.c.activity_id == activity_id))
        return HeldTickets(row.ours, row.all - row.ours, bool(row.shown))

    def count_held(self, course: Course) -> int:
        """How many anonymous tickets of all activities of a course are not shown yet, locked ones included."""
        held = sealed_tickets.join(activities, activities.c.id == sealed_tickets.c.activity_id)
        query = sa.select(sa.func.count().label("all")).select_from(held)
        return int(self._fetch_one(query.where(activities.c.course_id == course.id)).all)

    def mix_closed(self, activity: Activity) -> None:
        """Turn the anonymous tickets that wait into answers, if the activity is closed; otherwise do nothing."""
        if activity.phase(self.now()) != "closed":
            return
        held = self.held(activity.id)
        if held.waiting and not held.too_few:
            try:
                self._mix(activity.id, leave=0)
            except sa.exc.DBAPIError as error:  # such as a full disk: the answers of earlier groups can still be read
                log.warning("exit tickets: %s", type(error).__name__)

    def _mix(self, activity_id: int, leave: int) -> None:
        """One transaction, so that a ticket is either sealed or open, whenever the process is killed."""
        with self.transaction() as connection:
            # PostgreSQL: only one process mixes an activity at a time. SQLite has its write lock.
            lock = sa.select(activities.c.id).where(activities.c.id == activity_id).with_for_update(key_share=True)
            connection.execute(lock)
            tickets = self._unsealed(connection, activity_id)
            chosen = secrets.SystemRandom().sample(sorted(tickets), max(len(tickets) - leave, 0))
            others_shown = sa.select(sa.exists().where(*_anonymous_in(activity_id)))
            if len(chosen) < MIN_MIXED and (leave or connection.scalar(others_shown)):
                return  # also where another process has just mixed them
            today = self._today(connection, activity_id)
            mixed = [_new_answer("", q, text, None, today) for key in chosen for q, text in tickets[key].items()]
            if not leave:
                earlier = sa.select(*columns(ticket_answers, TicketAnswer)).where(*_anonymous_in(activity_id))
                mixed += [from_row(TicketAnswer, row) for row in connection.execute(earlier)]
                connection.execute(sa.delete(ticket_answers).where(*_anonymous_in(activity_id)))
            secrets.SystemRandom().shuffle(mixed)
            self._insert_answers(connection, activity_id, [replace(each, id=secrets.token_hex(32)) for each in mixed])
            connection.execute(sa.delete(sealed_tickets).where(sealed_tickets.c.id.in_(chosen)))

    def _unsealed(self, connection: sa.Connection, activity_id: int) -> dict[str, Answers]:
        query = sa.select(sealed_tickets.c.id, sealed_tickets.c.sealed)
        tickets = dict[str, Answers]()
        for row in connection.execute(query.where(sealed_tickets.c.activity_id == activity_id)):
            try:
                tickets[row.id] = self._key.unseal(row.sealed)
            except UnsealError:
                continue
        return tickets

    def _insert_answers(self, connection: sa.Connection, activity_id: int, answers: Sequence[TicketAnswer]) -> None:
        if rows := [{**asdict(answer), "activity_id": activity_id} for answer in answers]:
            insert = self._insert_into(ticket_answers)
            connection.execute(insert.on_conflict_do_nothing(index_elements=[ticket_answers.c.id]), rows)

    def _today(self, connection: sa.Connection, activity_id: int) -> date:
        of_course = sa.select(courses.c.time_zone).join(activities, activities.c.course_id == courses.c.id)
        zone = connection.scalar(of_course.where(activities.c.id == activity_id))
        return self.now().astimezone(ZoneInfo(str(zone))).date()

    def is_handed_in(self, activity_id: int, student_id: int) -> bool:
        """Whether a student has handed in the exit ticket of an activity; False if they never opened it."""
        row = self._fetch_one(ARRIVAL, activity_id=activity_id, student_id=student_id)
        return bool(row and row.ticket_in)

    def answers(self, activity_id: int) -> tuple[TicketAnswer, ...]:
        """Every answer on the exit tickets of an activity, hidden ones included, in an order that says nothing."""
        query = sa.select(*columns(ticket_answers, TicketAnswer)).where(ticket_answers.c.activity_id == activity_id)
        return tuple(from_row(TicketAnswer, row) for row in self._fetch_all(query.order_by(ticket_answers.c.id)))

    def mark(self, activity_id: int, *answer_ids: str, **marks: bool) -> bool:
        """Set `starred`, `follow_up` or `hidden` of answers, as `marks` say; False if the activity has none of them."""
        this = (ticket_answers.c.id.in_(answer_ids), ticket_answers.c.activity_id == activity_id)
        return bool(self._execute(sa.update(ticket_answers).where(*this).values(marks)))


def _new_answer(answer_id: str, question: str, text: str, student_id: int | None, day: date) -> TicketAnswer:
    return TicketAnswer(answer_id, question, text, student_id, day, starred=False, follow_up=False, hidden=False)


def _anonymous_in(activity_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return ticket_answers.c.activity_id == activity_id, ticket_answers.c.student_id.is_(None)
