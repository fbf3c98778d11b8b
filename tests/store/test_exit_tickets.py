"""Anonymous exit tickets against somebody who has a copy of the database, its log and its backups."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.store import (
    Activity,
    Course,
    Plan,
    Policies,
    Store,
)
from app.store.activities import Activities
from app.store.exit_tickets import MIN_MIXED, MIXED_FROM, HeldTickets
from app.store.housekeeping import delete_expired
from app.store.queries import utc_now
from tests.helpers.anonymous_tickets import close_and_mix
from tests.helpers.clock import Clock
from tests.helpers.stored_class import CONTENT, opened, teacher

LONG_AGO = timedelta(hours=1)


class TicketClass:
    """An open activity with an anonymous ticket, whose students hand in one after the other."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.course: Course = store.courses.add("Course", "UTC", teacher(store))
        plan = Plan("Week 1", policies=Policies(ticket_anonymous=True))
        self.activity: Activity = store.activities.add(self.course, plan, CONTENT)
        store.activities.set_state(self.activity, "open")
        self.count = 0

    def hand_in(self, students: int) -> None:
        """So many new students write their own number."""
        for _ in range(students):
            self.count += 1
            student, _code = self.store.roster.enrol_new_student(self.course, f"Student {self.count}")
            self.store.classwork.arrive(self.activity.id, student.id)
            answers = {"muddiest": f"text {self.count:02}"}
            assert self.store.exit_tickets.hand_in(self.activity.id, student.id, "form", answers, anonymous=True)

    def texts(self) -> list[str]:
        """What the teacher can read, sorted."""
        return sorted(answer.text for answer in self.store.exit_tickets.answers(self.activity.id))

    def close(self) -> None:
        """Close the activity an hour ago, and mix what waits."""
        close_and_mix(self.store, self.activity)

    def reopen(self) -> None:
        """Open the activity again."""
        self.store.activities.change(self.activity, self.activity.plan)


@pytest.fixture
def tickets(store: Store) -> TicketClass:
    return TicketClass(store)


def rows(store: Store, query: str) -> list[Any]:
    with store.engine.connect() as connection:
        return list(connection.execute(sa.text(query)))


@pytest.mark.parametrize("anonymous", [True, False])
def test_an_answer_has_the_day_of_its_course(store: Store, clock: Clock, anonymous: bool) -> None:
    clock.pass_seconds((datetime(2031, 3, 11, 1, 30, tzinfo=UTC) - clock.now).total_seconds())
    course = store.courses.add("Course", "America/Los_Angeles", teacher(store))
    activity = store.activities.add(course, Plan("Week 1"), CONTENT)
    for number in range(MIXED_FROM):
        student, _code = store.roster.enrol_new_student(course, f"Student {number}")
        store.classwork.arrive(activity.id, student.id)
        assert store.exit_tickets.hand_in(activity.id, student.id, "form", {f"q{number}": "x"}, anonymous=anonymous)
    assert {answer.day for answer in store.exit_tickets.answers(activity.id)} == {date(2031, 3, 10)}


def test_groups_of_at_least_five_are_shown_and_the_rest_at_closing(tickets: TicketClass) -> None:
    held = tickets.store.exit_tickets.held
    tickets.hand_in(MIXED_FROM - 1)
    assert (tickets.texts(), held(tickets.activity.id)) == ([], HeldTickets(MIXED_FROM - 1, 0))
    tickets.hand_in(1)
    assert len(tickets.texts()) == MIXED_FROM - MIN_MIXED
    assert held(tickets.activity.id) == HeldTickets(MIN_MIXED, 0, others_shown=True)
    tickets.hand_in(7)
    tickets.store.exit_tickets.mix_closed(tickets.activity)  # it is open
    assert held(tickets.activity.id) == HeldTickets(7, 0, others_shown=True)
    [first, *_] = tickets.store.exit_tickets.answers(tickets.activity.id)
    tickets.store.exit_tickets.mark(tickets.activity.id, first.id, starred=True)
    tickets.close()
    assert (tickets.texts(), held(tickets.activity.id)) == (
        sorted(f"text {number:02}" for number in range(1, 18)),
        HeldTickets(0, 0, others_shown=True),
    )
    answers = tickets.store.exit_tickets.answers(tickets.activity.id)
    assert [answer.text for answer in answers if answer.starred] == [first.text]
    assert first.id not in {answer.id for answer in answers}


def test_a_class_of_three_is_shown_at_closing(tickets: TicketClass) -> None:
    tickets.hand_in(3)
    assert tickets.texts() == []
    tickets.close()
    assert tickets.texts() == ["text 01", "text 02", "text 03"]


def test_after_reopening_fewer_than_five_are_not_added_to_what_has_been_read(tickets: TicketClass) -> None:
    store, activity_id = tickets.store, tickets.activity.id
    tickets.hand_in(6)
    tickets.close()
    read, late = tickets.texts(), MIN_MIXED - 1
    assert len(read) == 6
    for number in range(1, late + 1):
        tickets.reopen()
        tickets.hand_in(1)
        tickets.close()
        store.exit_tickets._mix(activity_id, leave=0)  # as another process does that has just looked
        delete_expired(store.engine, store.now())
        held = store.exit_tickets.held(activity_id)
        assert (tickets.texts(), held, held.too_few) == (read, HeldTickets(number, 0, others_shown=True), True)
    [*_, gone] = store.roster.students(tickets.course)
    store.roster.remove_student(gone)
    assert store.exit_tickets.count_held(tickets.course) == late
    tickets.reopen()
    tickets.hand_in(1)
    assert tickets.texts() == read
    tickets.close()
    assert tickets.texts() == sorted(f"text {number:02}" for number in range(1, 6 + MIN_MIXED + 1))


def test_what_is_held_back_goes_with_its_activity(tickets: TicketClass) -> None:
    tickets.hand_in(1)
    tickets.close()
    tickets.reopen()
    tickets.hand_in(1)
    tickets.close()
    assert tickets.store.exit_tickets.count_held(tickets.course) == 1
    tickets.store.activities.delete(tickets.activity)
    for table in ("sealed_tickets", "ticket_answers"):
        assert [row.n for row in rows(tickets.store, f"SELECT count(*) AS n FROM {table}")] == [0]  # noqa: S608 - ours


def test_no_text_can_be_read_before_it_is_mixed(tickets: TicketClass, tmp_path: Path) -> None:
    tickets.hand_in(3)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if b"text 01" in path.read_bytes()] == []
    sealed = rows(tickets.store, "SELECT sealed FROM sealed_tickets")
    assert len({len(row.sealed) for row in sealed}) == 1
    assert len({row.sealed for row in sealed}) == 3


def test_versions_of_rows_join_no_text_to_a_person(
    new_postgres_database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = Store(new_postgres_database, tmp_path)
    tickets = TicketClass(store)
    tickets.hand_in(MIXED_FROM + 3)
    joined = "SELECT a.student_id, t.text FROM ticket_answers t JOIN attendance a ON a.xmin = t.xmin"
    assert rows(store, joined) == []
    assert [row.n for row in rows(store, "SELECT count(*) AS n FROM ticket_answers GROUP BY xmin")] == [MIN_MIXED]
    tickets.close()
    assert rows(store, joined) == []
    assert [row.n for row in rows(store, "SELECT count(*) AS n FROM ticket_answers GROUP BY xmin")] == [tickets.count]
    in_order = [row.text for row in rows(store, "SELECT text FROM ticket_answers ORDER BY ctid")]
    assert in_order != [f"text {number:02}" for number in range(1, tickets.count + 1)]
    store.close()


def commits(database: Path) -> Iterator[bytes]:
    """The content of a write-ahead log, one piece for each transaction: all pages that it wrote. A frame has a
    header of 24 bytes; the number at its fifth byte is 0 except in the last frame of a transaction.
    """
    log = Path(f"{database}-wal").read_bytes()
    page_size = struct.unpack(">I", log[8:12])[0]
    pages = b""
    for start in range(32, len(log) - page_size, 24 + page_size):
        pages += log[start + 24 : start + 24 + page_size]
        if struct.unpack(">I", log[start + 4 : start + 8])[0]:
            yield pages
            pages = b""


def test_the_write_ahead_log_joins_no_text_to_a_person(tmp_path: Path) -> None:
    path = tmp_path / "tickets.sqlite3"
    store = Store(f"sqlite:///{path}", tmp_path)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("PRAGMA wal_autocheckpoint=0")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM students").fetchone()  # while it reads, nothing leaves the log
        tickets = TicketClass(store)
        tickets.hand_in(MIXED_FROM + 3)
        tickets.close()
        written = list(commits(path))
    new_texts, known = list[int](), set[int]()
    for pages in written:
        here = {number for number in range(1, tickets.count + 1) if f"text {number:02}".encode() in pages}
        new_texts.append(len(here - known))
        known |= here
    assert len(written) > 3 * tickets.count
    assert [new for new in new_texts if new] == [MIN_MIXED, tickets.count - MIN_MIXED]
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("statements", range(3, 7))
def test_a_process_killed_while_it_mixes_loses_and_doubles_nothing(
    database_url: str, tmp_path: Path, statements: int
) -> None:
    store = Store(database_url, tmp_path)
    tickets = TicketClass(store)
    tickets.hand_in(MIXED_FROM + 2)
    store.close()
    child = os.fork()
    if child == 0:
        try:
            _close_and_die(Store(database_url, tmp_path), tickets.activity.id, statements)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9, "the child was to die while mixing"
    again = tickets.store = Store(database_url, tmp_path)
    tickets.close()
    assert tickets.texts() == sorted(f"text {number:02}" for number in range(1, tickets.count + 1))
    again.close()


def _close_and_die(store: Store, activity_id: int, statements: int) -> None:
    """Mix the tickets of an activity, and kill this process after so many statements of the transaction."""
    activities: Activities = store.activities
    activity = activities.find(activity_id)
    assert activity
    plan = replace(activity.plan, closes_at=utc_now() - LONG_AGO)
    closed = replace(activity, plan=plan, auto_submitted_at=utc_now())
    assert store.exit_tickets.held(activity_id).waiting
    left = statements

    def count_down(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(9)

    sa.event.listen(store.single_engine, "after_cursor_execute", count_down)  # hears transactions too
    store.exit_tickets.mix_closed(closed)


def test_a_named_ticket_says_whose_it_is(store: Store) -> None:
    activity, kim = opened(store)
    assert store.exit_tickets.hand_in(activity.id, kim.id, "form", {"muddiest": "why √d"}, anonymous=False)
    [answer] = store.exit_tickets.answers(activity.id)
    assert (answer.student_id, answer.text, answer.starred) == (kim.id, "why √d", False)
    assert store.exit_tickets.mark(activity.id, answer.id, starred=True, follow_up=True)
    assert not store.exit_tickets.mark(activity.id + 1, answer.id, hidden=True)
    [answer] = store.exit_tickets.answers(activity.id)
    assert (answer.starred, answer.follow_up, answer.hidden) == (True, True, False)
