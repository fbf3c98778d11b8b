"""The clock of an activity: who may type, what is accepted and when it is all over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.classes.closing_menu import can_undo_close, close_undoably, undo_last_close
from app.store import Activity, Content, Plan, Policies, Store, Student
from simulation.lesson import add_teacher
from tests.helpers.clock import Clock

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def activity(store: Store, plan: Plan) -> tuple[Activity, Student, str]:
    """An open activity, and a student of its course with the token of their browser."""
    course = store.courses.add("Course", "UTC", add_teacher(store, "ada@example.org", "Ada"))
    made = store.activities.add(course, plan, Content((), None, ""))
    store.activities.set_state(made, "open")
    visitor = store.add_visitor()
    student, _ = store.roster.enrol_new_student(course, "Kim", visitor.id)
    return reload(store, made), student, visitor.token


def reload(store: Store, made: Activity) -> Activity:
    current = store.activities.find(made.id)
    assert current
    return current


def test_extra_time_and_the_late_window_move_a_students_end_and_hide_the_answers_from_all(store: Store) -> None:
    """Ten o'clock, a late window of five minutes; Kim has ten minutes more: until 10:15, and 30 s of grace for both."""
    made, kim, token = activity(store, Plan("Week 3", None, Policies(late_minutes=5, take_in_drafts=False), None, TEN))
    store.activities.set_extra_time(made, kim.id, 10)
    found = store.activities.of_visitor(token, made.id)
    assert found
    for_kim, for_all = found.activity, reload(store, made)
    assert [a.extra_minutes for a in (for_kim, for_all, *store.activities.of_student(kim))] == [10, 0, 10]

    def at(minutes: float, its: Activity) -> tuple[str, bool, bool, bool]:
        time = TEN + timedelta(minutes=minutes)
        return its.phase(time), its.is_writable(time), its.accepts(time), its.is_late(time)

    assert at(-0.1, for_all) == ("open", True, True, False)
    assert at(0.4, for_all) == ("closing", True, True, False)
    assert at(0.5, for_all) == ("closing", True, True, True)
    assert at(5.4, for_all) == ("closing", False, True, True)
    assert at(5.5, for_all)[:3] == ("closing", False, False)
    assert at(9.9, for_kim) == ("open", True, True, False)
    assert at(15.4, for_kim) == ("closing", False, True, True)
    assert {at(15.5, its)[0] for its in (for_kim, for_all)} == {"closed"}
    store.activities.set_extra_time(made, kim.id, 0)
    assert at(5.5, reload(store, made))[0] == "closed"


@pytest.mark.parametrize("how", ["without a closing time", "with a later one", "for one student"])
def test_what_is_done_after_the_answers_were_shown_is_late(store: Store, clock: Clock, how: str) -> None:
    """However an activity is opened again; not where it is opened again before its answers were shown."""
    made, kim, _ = activity(store, Plan("Week 3"))

    def open_again() -> None:
        if how == "for one student":
            store.activities.set_extra_time(reload(store, made), kim.id, 60)
        else:
            later = clock.now + timedelta(hours=1) if how == "with a later one" else None
            store.activities.change(reload(store, made), replace(made.plan, closes_at=later))

    store.activities.close(made)
    clock.pass_seconds(5)
    open_again()
    assert not reload(store, made).is_late(clock.now)
    store.activities.set_extra_time(reload(store, made), kim.id, 0)
    store.activities.close(reload(store, made))
    clock.pass_minutes(1)
    store.activities.note_drafts_taken(made)
    open_again()
    assert reload(store, made).is_late(clock.now)
    assert reload(store, made).answers_shown_at == clock.now


def test_archiving_a_course_closes_its_activities(store: Store, clock: Clock) -> None:
    """Drafts stay drafts, what closed before keeps its time, and they stay closed when the course is restored."""
    rules = Policies(take_in_drafts=False)
    made, _, _ = activity(store, Plan("Week 3", policies=rules, opens_at=clock.now + timedelta(days=1)))
    course = store.courses.find(made.course_id)
    assert course
    draft = store.activities.add(course, Plan("Week 4"), Content((), None, ""))
    past = store.activities.add(course, Plan("Week 2", policies=rules, closes_at=TEN), Content((), None, ""))
    store.activities.set_state(past, "open")
    store.courses.archive(course)
    clock.pass_minutes(1)
    store.courses.archive(course, archived=False)
    assert [reload(store, its).phase(clock.now) for its in (made, draft, past)] == ["closed", "draft", "closed"]
    assert reload(store, past).plan.closes_at == TEN


@pytest.mark.parametrize("closes_at", [None, TEN + timedelta(days=20_000)], ids=["no closing time", "a later one"])
@pytest.mark.parametrize("minutes", [0, 5])
def test_until_it_closes_a_close_is_undone_without_a_trace(
    store: Store, clock: Clock, minutes: int, closes_at: datetime | None
) -> None:
    """Ten seconds for "now", else until the time that was set: till then it is open, and then as it was before."""
    opens_at = clock.now - timedelta(hours=1)
    made, _kim, token = activity(store, Plan("Week 3", None, Policies(feedback="after_close"), opens_at, closes_at))
    before = reload(store, made)
    assert not undo_last_close(store, before)
    assert close_undoably(store, before, minutes)
    for seconds in (0, 60 * minutes or 9.9):
        clock.pass_seconds(seconds - (0.1 if minutes and seconds else 0))
        found = store.activities.of_visitor(token, made.id)
        assert found
        its = found.activity
        assert (its.phase(clock.now), its.is_writable(clock.now), its.is_late(clock.now)) == ("open", True, False)
        assert can_undo_close(store, reload(store, made))
    assert undo_last_close(store, before)
    assert reload(store, made) == before
    assert not undo_last_close(store, before)


def test_a_close_that_took_effect_or_was_overtaken_is_not_undone(store: Store, clock: Clock) -> None:
    """Ten seconds later it is closing; nor does Undo put back what another teacher has changed meanwhile."""
    made, _, _ = activity(store, Plan("Week 3"))
    close_undoably(store, made)
    clock.pass_seconds(10)
    closed = reload(store, made)
    assert closed.phase(clock.now) == "closing"
    assert not undo_last_close(store, closed)
    assert reload(store, made) == closed
    assert not close_undoably(store, closed)

    store.activities.change(closed, replace(closed.plan, closes_at=None))
    close_undoably(store, made)
    other = replace(made.plan, closes_at=clock.now + timedelta(hours=1))
    store.activities.change(reload(store, made), other)
    assert not undo_last_close(store, made)
    assert reload(store, made).plan == other


def test_presses_of_close_in_a_row_are_undone_together(store: Store, clock: Clock) -> None:
    """A second press does not hide the first; a later one, in place of an announced time, brings that time back."""
    made, _, _ = activity(store, Plan("Week 3"))
    close_undoably(store, made)
    clock.pass_seconds(1)
    assert not close_undoably(store, made)
    assert close_undoably(store, made, 5)
    undo_last_close(store, made)
    assert reload(store, made).plan.closes_at is None
    close_undoably(store, made, 5)
    announced = reload(store, made).plan.closes_at
    clock.pass_minutes(1)
    close_undoably(store, made)
    undo_last_close(store, made)
    assert reload(store, made).plan.closes_at == announced


def test_closing_what_has_not_opened_yet_is_undone_too(store: Store, clock: Clock) -> None:
    """It closes at once, since students would come in otherwise, and is waiting again for the same time."""
    opens_at = clock.now + timedelta(seconds=20)
    made, _, _ = activity(store, Plan("Week 3", None, Policies(take_in_drafts=False), opens_at))
    before = reload(store, made)
    close_undoably(store, before, 5)
    assert reload(store, made).phase(clock.now) == "closing"
    clock.pass_seconds(9)
    assert undo_last_close(store, before)
    assert reload(store, made) == before
    close_undoably(store, before)
    clock.pass_seconds(10)
    assert not undo_last_close(store, before)
