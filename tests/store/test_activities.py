"""Activities and their revisions, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from sqlalchemy.exc import IntegrityError

from app.store import (
    Activity,
    Content,
    FrozenWorksheet,
    Plan,
    Policies,
    Projection,
    Store,
)
from app.store.activities import Activities
from tests.helpers.clock import Clock
from tests.helpers.stored_class import CONTENT, SHEET, activity, course, enrol_student, opened, reload


def test_an_activity_comes_back_as_it_was_made(store: Store) -> None:
    plan = Plan("Week 3", None, Policies("per_student", "after_close", 2, "rows", "best", False, "before", False),
                datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 1, 10, tzinfo=UTC))  # fmt: skip
    where = course(store)
    made = store.activities.add(where, plan, CONTENT)
    assert store.activities.find(made.id) == made
    assert store.activities.by_code(made.join_code) is None
    store.activities.set_state(made, "open")
    opened = store.activities.by_code(f"{made.join_code[:3].lower()} {made.join_code[3:]}")
    assert opened == (replace(made, state="open"), where)
    found, _ = opened
    assert found.content == CONTENT
    nine = datetime(2026, 3, 1, 9, tzinfo=UTC)
    phases = [found.phase(nine + timedelta(minutes=minutes)) for minutes in (-1, 0, 59, 60)]
    assert phases == ["waiting", "open", "open", "closing"]


def test_what_students_saw_is_never_changed(store: Store) -> None:
    made = store.activities.add(course(store), Plan("Week 3"), CONTENT)
    other = replace(CONTENT, items=(FrozenWorksheet({**SHEET, "tokens": 50}),))
    assert store.activities.revise(made, other) == 1
    store.activities.set_state(made, "open")
    opened = store.activities.find(made.id)
    assert opened
    assert store.activities.revise(opened, other) == 1
    assert store.activities.revise(opened, CONTENT) == 2
    newest = store.activities.find(made.id)
    assert newest
    assert (newest.revision, newest.content) == (2, CONTENT)
    assert store.activities.content(made.id, 1) == other


def test_an_activity_of_a_course_that_is_gone_is_refused_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    teacher = store.people.add_teacher("gone@example.org", "Ada")
    assert teacher
    kept, gone = (store.courses.add("C", "UTC", teacher) for _ in range(2))
    store.courses.delete(gone)
    with pytest.raises(IntegrityError):
        store.activities.add(gone, Plan("Week 3"), Content((), None))
    codes = iter(("AAAAAA", "AAAAAA", "BBBBBB", *["AAAAAA"] * 9))
    monkeypatch.setattr("app.store.activities.new_code", lambda _length: next(codes))
    made = [store.activities.add(kept, Plan("Week 3"), Content((), None)) for _ in range(2)]
    assert [activity.join_code for activity in made] == ["AAAAAA", "BBBBBB"]
    with pytest.raises(RuntimeError):
        store.activities.add(kept, Plan("Week 3"), Content((), None))


TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_extra_time_and_the_late_window_move_a_students_end_and_hide_the_answers_from_all(store: Store) -> None:
    made, kim, token = activity(store, Plan("Week 3", None, Policies(late_minutes=5, auto_submit=False), None, TEN))
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


def test_extra_time_that_two_teachers_give_at_once_counts_for_both(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, kim, _token = activity(store, Plan("Week 3", None, closes_at=TEN))
    where = store.courses.find(made.course_id)
    assert where
    lou = enrol_student(store, where, "Lou")[0]
    store.activities.note_auto_submitted(made)
    extra_times, threads = Activities.extra_times, list[Thread]()

    def read_and_be_overtaken(self: Activities, activity_id: int) -> dict[int, int]:
        read = extra_times(self, activity_id)
        if not threads:
            threads.append(Thread(target=store.activities.set_extra_time, args=(made, lou.id, 60)))
            threads[0].start()
            threads[0].join(0.5)
        return read

    monkeypatch.setattr(Activities, "extra_times", read_and_be_overtaken)
    store.activities.set_extra_time(reload(store, made), kim.id, 0)
    threads[0].join()
    assert reload(store, made).longest_extra == 60
    assert reload(store, made).auto_submitted_at is None


@pytest.mark.parametrize("how", ["without a closing time", "with a later one", "for one student"])
def test_what_is_done_after_the_answers_were_shown_is_late(store: Store, clock: Clock, how: str) -> None:
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
    store.activities.note_auto_submitted(made)
    open_again()
    assert reload(store, made).is_late(clock.now)
    assert reload(store, made).answers_shown_at == clock.now


def test_archiving_a_course_closes_its_activities(store: Store, clock: Clock) -> None:
    rules = Policies(auto_submit=False)
    made, _, _ = activity(store, Plan("Week 3", policies=rules, opens_at=clock.now + timedelta(days=1)))
    course = store.courses.find(made.course_id)
    assert course
    draft = store.activities.add(course, Plan("Week 4"), Content((), None))
    past = store.activities.add(course, Plan("Week 2", policies=rules, closes_at=TEN), Content((), None))
    store.activities.set_state(past, "open")
    store.courses.archive(course)
    clock.pass_minutes(1)
    store.courses.archive(course, archived=False)
    assert [reload(store, its).phase(clock.now) for its in (made, draft, past)] == ["closed", "draft", "closed"]
    assert reload(store, past).plan.closes_at == TEN


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_late_window_goes_on_when_a_course_is_restored(store: Store, clock: Clock, *, is_settled: bool) -> None:
    plan = Plan("Week 3", None, Policies(late_minutes=60), closes_at=clock.now - timedelta(minutes=5))
    made, _, _ = activity(store, plan)
    course = store.courses.find(made.course_id)
    assert course
    past = store.activities.add(course, Plan("Week 2", closes_at=TEN), Content((), None))
    store.activities.set_state(past, "open")
    store.activities.note_auto_submitted(past)
    before = [reload(store, its) for its in (made, past)]
    store.activities.note_restored(course)
    assert [reload(store, its) for its in (made, past)] == before

    store.courses.archive(course)
    clock.pass_minutes(1)
    if is_settled:
        store.activities.note_auto_submitted(made)
        assert reload(store, made).phase(clock.now) == "closed"
    archived = store.courses.find(course.id)
    assert archived
    store.courses.archive(archived, archived=False)
    store.activities.note_restored(archived)
    assert reload(store, made).accepts(clock.now)
    assert reload(store, made).answers_shown_at == (clock.now if is_settled else None)
    assert reload(store, past) == before[1]
    clock.pass_minutes(120)
    assert reload(store, made).auto_submit_due(clock.now)


def test_the_projector_shows_the_join_code_until_something_else_is_chosen(store: Store) -> None:
    activity, _ = opened(store)
    assert store.activities.projection(activity.id) == Projection("join")
    for chosen in (Projection("progress", 2), Projection("explain", 1, "one"), Projection("join", 1, "one")):
        store.activities.set_projection(activity.id, chosen)
        assert store.activities.projection(activity.id) == chosen
