"""Exit tickets: what is stored of an anonymous one, and when the staff may read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.store import Activity, Course, Plan, Policies, Store, Student
from app.store.exit_tickets import SHOWN_FROM
from app.store.tables import metadata
from tests.helpers.clock import Clock
from tests.helpers.stored_class import CONTENT, opened, reload, teacher

COLUMNS = {"id", "activity_id", "question", "text", "student_id", "day", "starred", "follow_up", "hidden"}


class TicketClass:
    """An open activity with an anonymous ticket, whose students hand in one after the other."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.course: Course = store.courses.add("Course", "UTC", teacher(store))
        plan = Plan("Week 1", policies=Policies(ticket_anonymous=True))
        self.activity: Activity = store.activities.add(self.course, plan, CONTENT)
        store.activities.set_state(self.activity, "open")
        self.students = list[Student]()

    def hand_in(self, students: int) -> None:
        """So many new students write their own number."""
        for _ in range(students):
            number = len(self.students) + 1
            student, _code = self.store.roster.enrol_new_student(self.course, f"Student {number}")
            self.students.append(student)
            self.store.classwork.arrive(self.activity.id, student.id)
            assert self.again(student, f"text {number:02}")

    def again(self, student: Student, text: str) -> bool:
        """The student sends a ticket, perhaps not the first; whether it was stored."""
        return self.store.exit_tickets.hand_in(self.activity.id, student.id, {"muddiest": text}, anonymous=True)

    def close(self) -> None:
        """Close the activity an hour ago."""
        closes_at = self.store.now() - timedelta(hours=1)
        self.store.activities.change(self.activity, replace(self.activity.plan, closes_at=closes_at))
        self.store.activities.note_auto_submitted(self.activity)

    def reopen(self) -> None:
        """Open the activity again."""
        self.store.activities.change(self.activity, self.activity.plan)

    def seen(self) -> tuple[list[str], int]:
        """What the staff can read, sorted, and how many tickets they are told are in."""
        activity = reload(self.store, self.activity)
        texts = sorted(answer.text for answer in self.store.exit_tickets.answers(activity))
        return texts, self.store.exit_tickets.waiting(activity)


def texts(*numbers: int) -> list[str]:
    return [f"text {number:02}" for number in numbers]


@pytest.fixture
def tickets(store: Store) -> TicketClass:
    return TicketClass(store)


def stored(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    with store.engine.connect() as connection:
        return {
            table.name: [dict(row._mapping) for row in connection.execute(sa.select(table))]
            for table in metadata.sorted_tables
        }


def test_an_anonymous_answer_is_stored_without_its_student_and_without_a_time(tickets: TicketClass) -> None:
    tickets.hand_in(2)
    everything = stored(tickets.store)
    answers = everything.pop("ticket_answers")
    assert sorted(row["text"] for row in answers) == texts(1, 2)
    for row in answers:
        assert set(row) == COLUMNS
        assert (row["student_id"], type(row["day"])) == (None, date)
        assert row["id"] not in str(everything)
        assert row["text"] not in str(everything)
    assert len({str({**row, "id": "", "text": ""}) for row in answers}) == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # PostgreSQL keeps the order of insertion
def test_the_rows_of_a_file_are_in_no_order_of_time(tickets: TicketClass) -> None:
    tickets.hand_in(20)
    with tickets.store.engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT id, text FROM ticket_answers")).all()
        with pytest.raises(sa.exc.OperationalError):
            connection.execute(sa.text("SELECT rowid FROM ticket_answers"))
    assert [row.id for row in rows] == sorted(row.id for row in rows)
    assert [row.text for row in rows] != texts(*range(1, 21))


@pytest.mark.parametrize("anonymous", [True, False])
def test_an_answer_has_the_day_of_its_course(store: Store, clock: Clock, anonymous: bool) -> None:
    clock.pass_seconds((datetime(2031, 3, 11, 1, 30, tzinfo=UTC) - clock.now).total_seconds())
    course = store.courses.add("Course", "America/Los_Angeles", teacher(store))
    activity = store.activities.add(course, Plan("Week 1"), CONTENT)
    student, _code = store.roster.enrol_new_student(course, "Kim")
    store.classwork.arrive(activity.id, student.id)
    assert store.exit_tickets.hand_in(activity.id, student.id, {"muddiest": "x"}, anonymous=anonymous)
    assert [row["day"] for row in stored(store)["ticket_answers"]] == [date(2031, 3, 10)]


def test_nothing_is_read_before_five_are_in(tickets: TicketClass) -> None:
    assert tickets.seen() == ([], 0)
    tickets.hand_in(SHOWN_FROM - 1)
    assert tickets.seen() == ([], SHOWN_FROM - 1)
    tickets.hand_in(1)
    assert tickets.seen() == (texts(1, 2, 3, 4, 5), 0)
    tickets.hand_in(1)
    assert tickets.seen() == (texts(1, 2, 3, 4, 5, 6), 0)


def test_three_are_read_once_the_activity_is_closed(tickets: TicketClass) -> None:
    tickets.hand_in(3)
    tickets.close()
    assert tickets.seen() == (texts(1, 2, 3), 0)
    tickets.reopen()
    assert tickets.seen() == ([], 3)


def test_three_are_read_once_the_course_is_archived(tickets: TicketClass) -> None:
    tickets.hand_in(3)
    tickets.store.courses.archive(tickets.course)
    assert tickets.seen() == (texts(1, 2, 3), 0)


def test_a_student_hands_in_one_ticket(tickets: TicketClass) -> None:
    tickets.hand_in(SHOWN_FROM)
    assert not tickets.again(tickets.students[0], "another")
    assert tickets.seen() == (texts(1, 2, 3, 4, 5), 0)


def test_tickets_with_names_do_not_count_as_anonymous(tickets: TicketClass) -> None:
    named, _code = tickets.store.roster.enrol_new_student(tickets.course, "Named")
    tickets.store.classwork.arrive(tickets.activity.id, named.id)
    tickets.store.exit_tickets.hand_in(tickets.activity.id, named.id, {"a": "mine", "b": "too"}, anonymous=False)
    tickets.hand_in(SHOWN_FROM - 1)
    assert tickets.seen() == (["mine", "too"], SHOWN_FROM - 1)


def remove_the_first(tickets: TicketClass) -> None:
    tickets.store.roster.remove_student(tickets.students[0])


def merge_the_first_two(tickets: TicketClass) -> None:
    assert tickets.store.student_merge.merge(*tickets.students[:2])


@pytest.mark.parametrize("change", [remove_the_first, merge_the_first_two])
def test_an_anonymous_answer_stays_when_its_student_goes(
    tickets: TicketClass, change: Callable[[TicketClass], None]
) -> None:
    tickets.hand_in(3)
    change(tickets)
    assert tickets.seen() == ([], 2)
    assert not tickets.again(tickets.store.roster.students(tickets.course)[0], "another")
    tickets.close()
    assert tickets.seen() == (texts(1, 2, 3), 0)


def test_answers_go_with_their_activity(tickets: TicketClass) -> None:
    tickets.hand_in(1)
    tickets.store.activities.delete(tickets.activity)
    assert stored(tickets.store)["ticket_answers"] == []


def test_a_named_ticket_says_whose_it_is(store: Store) -> None:
    activity, kim = opened(store)
    assert store.exit_tickets.hand_in(activity.id, kim.id, {"muddiest": "why √d"}, anonymous=False)
    [answer] = store.exit_tickets.answers(activity)
    assert (answer.student_id, answer.text, answer.starred) == (kim.id, "why √d", False)
    assert store.exit_tickets.mark(activity.id, answer.id, starred=True, follow_up=True)
    assert not store.exit_tickets.mark(activity.id + 1, answer.id, hidden=True)
    [answer] = store.exit_tickets.answers(activity)
    assert (answer.starred, answer.follow_up, answer.hidden) == (True, True, False)
