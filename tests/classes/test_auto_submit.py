"""Drafts are auto-submitted when an activity has ended: once each, with marks, and only what says something new."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from app.classes import auto_submit, sheet_actions
from app.classes.auto_submit import AutoSubmitter
from app.classes.closing_menu import close_undoably, undo_last_close
from app.classes.student_sheet import freeze, stored_marks, student_sheet
from app.grading.grade import grade
from app.sheets.library import Library
from app.store import Activity, Attempt, NewAttempt, Plan, Policies, Store, Student
from app.store.tables import activities
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF
from tests.helpers.clock import Clock, end_activity
from tests.helpers.running_activity import RunningActivity
from tests.helpers.stored_class import save


class Lesson(RunningActivity):
    """An open activity with two sheets, and students who type in it."""

    def __init__(self, library: Library, store: Store, policies: Policies) -> None:
        super().__init__(library, store, ("llama-7b", "qwen2.5-0.5b"), policies)

    def type(self, student: Student, answers: Mapping[str, str], number: int = 1) -> None:
        """Save a draft of the sheet of that number."""
        sheet = student_sheet(self.library, self.store, self.activity, student, number)
        save(self.store, sheet.key, answers, sizes=sheet.sizes)

    def hand_in_on_paper(self, student: Student, answers: Mapping[str, str]) -> None:
        """Hand the first sheet in, which becomes the draft of a student who has none."""
        sheet = student_sheet(self.library, self.store, self.activity, student, 1)
        graded = stored_marks(sheet.variant, grade(sheet.variant, answers))
        new = NewAttempt(answers, sheet.sizes, graded, f"{student.id} on paper", handed_in=True)
        self.store.classwork.hand_in_papers([(sheet.key, new)])

    def attempts(self) -> list[Attempt]:
        """Every attempt, the oldest first."""
        return list(self.store.classwork.attempts_of_activity(self.activity.id))

    def end(self) -> Activity:
        """Close the activity long ago."""
        return end_activity(self.store, self.activity.id)

    def settle(self) -> None:
        """Auto-submit what is due, as a process does that has just started."""
        AutoSubmitter(self.library, self.store).settle_all()


@pytest.fixture
def lesson(library: Library, store: Store) -> Lesson:
    """Marks are shown at the end, and two attempts are allowed."""
    return Lesson(library, store, Policies(feedback="after_close", max_attempts=2))


def test_processes_that_settle_an_activity_together_share_the_work(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_submit, "STUDENTS_AT_A_TIME", 1)
    for number in range(12):
        lesson.type(lesson.student(f"Student {number}"), KEY)
    activity, orders = lesson.end(), list[list[int]]()

    def note(_submitter: AutoSubmitter, _activity: Activity, students: Sequence[int]) -> bool:
        orders[-1] += students
        return True

    with monkeypatch.context() as patch:
        patch.setattr(AutoSubmitter, "_auto_submit", note)
        patch.setattr(type(lesson.store.activities), "note_auto_submitted", lambda *_: None)
        for _process in range(4):
            orders.append([])
            AutoSubmitter(lesson.library, lesson.store).settle(activity)
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    assert len({tuple(order) for order in orders}) > 1
    lesson.settle()
    assert len(lesson.attempts()) == 12


def test_what_is_typed_at_the_end_becomes_an_attempt_once(lesson: Lesson, clock: Clock) -> None:
    kim, lee, max_, ada, bo, eve = map(lesson.student, ("Kim", "Lee", "Max", "Ada", "Bo", "Eve"))
    lesson.type(kim, KEY)
    lesson.type(kim, {"queries.rows": "100"}, number=2)
    lesson.attempt(lee, HALF)
    lesson.type(lee, {**HALF, "output.rows": " ", "queries.columns": f"{HALF['queries.columns']} "})
    lesson.type(max_, {"queries.rows": "what?", "keys.rows": ""})
    lesson.type(ada, HALF)
    lesson.hand_in_on_paper(ada, KEY)
    for answers in ({"queries.rows": "1"}, {"queries.rows": "2"}):
        lesson.attempt(bo, answers)
    lesson.type(bo, KEY)
    lesson.attempt(eve, HALF)
    clock.pass_seconds(1)
    lesson.type(eve, KEY)
    before = len(lesson.attempts())
    lesson.settle()
    assert len(lesson.attempts()) == before
    lesson.store.activities.close(lesson.activity)
    clock.pass_minutes(1)
    lesson.settle()
    lesson.settle()
    taken = lesson.attempts()[before:]
    assert {(a.student_id, a.sheet_number, a.score) for a in taken} == {
        (kim.id, 1, 14),
        (kim.id, 2, 0),
        (eve.id, 1, 14),
    }
    assert {(a.auto_submitted, a.handed_in, a.late, a.marked_by == a.sheet_key) for a in taken} == {
        (True, True, False, True)
    }
    assert not any(attempt.auto_submitted for attempt in lesson.attempts()[:before])
    assert lesson.activity.phase(lesson.store.now()) == "closed"


def test_a_clock_that_was_ahead_takes_nothing_from_anybody(lesson: Lesson, clock: Clock) -> None:
    plan = replace(lesson.activity.plan, closes_at=clock.now + timedelta(hours=1))
    lesson.store.activities.change(lesson.activity, plan)
    kim, lee = lesson.student("Kim"), lesson.student("Lee")
    lesson.type(kim, HALF)
    clock.pass_minutes(120)
    lesson.settle()
    assert [attempt.student_id for attempt in lesson.attempts()] == [kim.id]
    clock.pass_minutes(-119)
    assert lesson.activity.phase(lesson.store.now()) == "open"
    lesson.type(lee, KEY)
    lesson.settle()
    assert len(lesson.attempts()) == 1
    clock.pass_minutes(60)
    lesson.settle()
    assert [(attempt.student_id, attempt.score) for attempt in lesson.attempts()][1:] == [(lee.id, 14)]
    assert lesson.activity.phase(lesson.store.now()) == "closed"
    lesson.settle()
    assert len(lesson.attempts()) == 2


def test_without_the_rule_drafts_stay_drafts(library: Library, store: Store) -> None:
    lesson = Lesson(library, store, Policies(auto_submit=False))
    lesson.type(lesson.student("Kim"), KEY)
    assert lesson.end().phase(lesson.store.now()) == "closed"
    lesson.settle()
    assert lesson.attempts() == []


def test_many_at_the_same_time_take_each_draft_in_once(lesson: Lesson, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_submit, "STUDENTS_AT_A_TIME", 3)
    students = [lesson.student(f"S{number}") for number in range(20)]
    for student in students:
        lesson.type(student, HALF)
        lesson.type(student, {"queries.rows": "100"}, number=2)
    lesson.end()
    with ThreadPoolExecutor(4) as processes:
        for done in [processes.submit(lesson.settle) for _ in range(4)]:
            done.result()
    taken = [(attempt.student_id, attempt.sheet_number) for attempt in lesson.attempts()]
    assert sorted(taken) == [(student.id, number) for student in students for number in (1, 2)]


def test_what_is_typed_after_reopening_is_auto_submitted_at_the_next_end(lesson: Lesson, clock: Clock) -> None:
    kim, lee = lesson.student("Kim"), lesson.student("Lee")
    lesson.store.activities.set_extra_time(lesson.activity, lee.id, 10)
    lesson.type(kim, HALF)

    def close() -> None:
        lesson.store.activities.close(lesson.activity, clock.now)

    close()
    clock.pass_minutes(5)
    lesson.type(lee, HALF)
    lesson.settle()
    assert lesson.attempts() == []
    clock.pass_minutes(6)
    lesson.settle()
    lesson.store.activities.change(lesson.activity, replace(lesson.activity.plan, closes_at=None))
    clock.pass_seconds(1)
    lesson.type(kim, KEY)
    close()
    clock.pass_minutes(12)
    lesson.settle()
    assert [(attempt.student_id, attempt.score, attempt.late) for attempt in lesson.attempts()] == [
        (kim.id, 1, False), (lee.id, 1, False), (kim.id, 14, True),
    ]  # fmt: skip


def test_what_was_handed_in_on_time_is_not_replaced_by_what_was_only_typed_late(
    library: Library, store: Store, clock: Clock
) -> None:
    lesson = Lesson(library, store, Policies(late_minutes=60))
    kim, lee = lesson.student("Kim"), lesson.student("Lee")
    lesson.attempt(kim, KEY)
    lesson.type(lee, HALF)
    lesson.store.activities.close(lesson.activity)
    clock.pass_minutes(10)
    lesson.type(kim, {**KEY, "keys.rows": "7"})
    clock.pass_minutes(60)
    lesson.settle()
    lesson.store.activities.change(lesson.activity, replace(lesson.activity.plan, closes_at=None))
    clock.pass_seconds(1)
    lesson.type(kim, {**KEY, "keys.rows": "8"})
    lesson.type(lee, KEY)
    lesson.store.activities.close(lesson.activity)
    clock.pass_minutes(70)
    lesson.settle()
    assert [(attempt.student_id, attempt.score, attempt.late) for attempt in lesson.attempts()] == [
        (kim.id, 14, False), (lee.id, 1, False), (lee.id, 14, True),
    ]  # fmt: skip


def test_a_draft_that_cannot_be_graded_keeps_nobody_from_their_marks(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kim, lee = lesson.student("Kim"), lesson.student("Lee")
    lesson.type(kim, {"queries.rows": "1"})
    lesson.type(lee, HALF)

    def grade_some(variant: object, answers: Mapping[str, str]) -> object:
        if answers == HALF:
            return grade(variant, answers)  # type: ignore[arg-type]  # it is a Variant
        raise ZeroDivisionError

    monkeypatch.setattr(sheet_actions, "grade", grade_some)
    lesson.end()
    lesson.settle()
    assert [attempt.student_id for attempt in lesson.attempts()] == [lee.id]
    assert "could not be graded" in caplog.text


def test_a_database_that_takes_nothing_in_fills_no_log(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OperationalError("INSERT", {}, Exception("disk full"))

    lesson.type(lesson.student("Kim"), KEY)
    lesson.end()
    taking = AutoSubmitter(lesson.library, lesson.store)
    with monkeypatch.context() as full, caplog.at_level(logging.WARNING):
        full.setattr(lesson.store.classwork, "add_attempts", refuse)
        for _ in range(20):
            taking.settle_all()
    assert len(caplog.records) == 1
    AutoSubmitter(lesson.library, lesson.store).settle_all()
    assert len(lesson.attempts()) == 1


def test_a_thread_takes_drafts_in_without_anybody_looking(lesson: Lesson) -> None:
    lesson.type(lesson.student("Kim"), KEY)
    lesson.end()
    taking = AutoSubmitter(lesson.library, lesson.store, interval_s=0.02)
    taking.start()
    waiting = threading.Event()
    for _ in range(1200):
        if lesson.attempts() or waiting.wait(0.05):
            break
    taking.close()
    assert [attempt.score for attempt in lesson.attempts()] == [14]
    assert "auto-submit" not in {thread.name for thread in threading.enumerate()}


def test_one_activity_that_is_broken_stops_no_other(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kim = lesson.student("Kim")
    lesson.type(kim, KEY)
    content = freeze(lesson.library, ("llama-7b",), None)
    broken = lesson.store.activities.add(lesson.course, Plan("Broken", None, Policies()), content)
    lesson.store.activities.set_state(broken, "open")
    end_activity(lesson.store, broken.id)
    lesson.end()
    with lesson.store.engine.begin() as connection:
        this = sa.update(activities).where(activities.c.id == broken.id)
        connection.execute(this.values(policies=sa.literal({"feedback": "on full moon"}, sa.JSON)))
    submitter = AutoSubmitter(lesson.library, lesson.store)
    submitter.settle_all()
    assert [attempt.score for attempt in lesson.attempts()] == [14]
    assert submitter.unsettled == (broken.id,)
    submitter.settle_all()
    assert [str(broken.id) in record.message for record in caplog.records] == [True]  # not in every round
    with lesson.store.engine.begin() as connection:
        connection.execute(this.values(policies=Policies()))
    monkeypatch.setattr("app.classes.auto_submit.time.monotonic", lambda: float("inf"))
    submitter.settle_all()
    assert not submitter.unsettled


def test_the_thread_survives_whatever_fails(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = threading.Event()

    def fail() -> tuple[int, ...]:
        if caplog.records:
            asked.set()
        raise ZeroDivisionError

    monkeypatch.setattr(lesson.store.activities, "ended", fail)
    thread = AutoSubmitter(lesson.library, lesson.store, interval_s=0.01)
    thread.start()
    assert asked.wait(60)
    assert not thread.is_stuck
    monkeypatch.setattr(auto_submit, "STUCK_AFTER_S", -1)
    assert thread.is_stuck
    thread.close()
    assert not thread.is_stuck
    assert caplog.records[0].exc_info


def test_nothing_is_auto_submitted_before_a_close_can_no_longer_be_undone(lesson: Lesson, clock: Clock) -> None:
    kim = lesson.student("Kim")
    lesson.type(kim, KEY)
    close_undoably(lesson.store, lesson.activity)
    clock.pass_seconds(9.9)
    lesson.settle()
    assert undo_last_close(lesson.store, lesson.activity)
    clock.pass_minutes(5)
    lesson.settle()
    assert lesson.attempts() == []
    close_undoably(lesson.store, lesson.activity)
    clock.pass_minutes(1)
    lesson.settle()
    assert [(attempt.score, attempt.late) for attempt in lesson.attempts()] == [(14, False)]
