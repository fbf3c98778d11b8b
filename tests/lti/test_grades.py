"""Grades reach a platform's gradebook once each: when marks are shown, unrounded, and again when they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.classes.regrade import Regrading
from app.lti import grades
from app.lti.grades import LONGEST_WAIT, ROUND_S, standings
from app.sheets.library import Library
from app.store import Graded, Policies, Store, Student
from simulation.lti_platform import CANVAS, MOODLE, Quirks
from tests.helpers.answer_keys import KEY
from tests.helpers.at_once import all_at_once
from tests.helpers.class_sheet import HALF
from tests.helpers.clock import CLOCK, Clock, end_activity
from tests.helpers.lti_context import LinkedActivity, linked_activity
from tests.helpers.stored_class import key, record

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
AFTER_CLOSE, AFTER_HAND_IN = Policies(feedback="after_close"), Policies(feedback="after_hand_in")


@pytest.fixture
def linked(library: Library, store: Store, clock: Clock) -> Iterator[LinkedActivity]:
    with linked_activity(library, store) as activity:
        yield activity


def state(linked: LinkedActivity, student: Student) -> tuple[str, str]:
    [shown] = linked.store.lti_scores.of_activity(linked.activity.id, student.id)
    return shown.state, shown.problem


def test_a_handed_in_sheet_becomes_a_grade_dated_by_both_clocks(linked: LinkedActivity, clock: Clock) -> None:
    handed_in_at = clock.now
    linked.answer("7", KEY)
    clock.pass_minutes(5)
    linked.sender().sweep()
    grade = linked.column.grades["7"]
    assert (grade.points, grade.out_of) == (14, 14)
    assert datetime.fromisoformat(grade.score["timestamp"]) == clock.now.replace(
        microsecond=clock.now.microsecond // 1000 * 1000
    )
    submitted = grade.score["submission"]["submittedAt"]
    assert submitted.endswith("Z")
    assert abs(datetime.fromisoformat(submitted) - handed_in_at) < timedelta(milliseconds=1)
    requests = linked.platform.requests.total()
    linked.sender().sweep()
    assert linked.platform.requests.total() == requests


@on_one_database
def test_points_are_not_rounded(linked: LinkedActivity) -> None:
    third = Graded({"queries.rows": "right"}, (), 1, 3)
    record(linked.store, key(linked.come("7"), linked.activity), HALF, third)
    linked.sender().sweep()
    assert linked.grades == {"7": 1 / 3 * 14}


@pytest.mark.parametrize("policies", [AFTER_CLOSE, AFTER_HAND_IN], ids=lambda policies: policies.feedback)
def test_no_grade_leaves_before_the_student_sees_marks(
    library: Library, store: Store, clock: Clock, policies: Policies
) -> None:
    with linked_activity(library, store, policies=policies) as linked:
        student = linked.come("7")
        checked = record(store, key(student, linked.activity), HALF, handed_in=False)
        store.grades.change(linked.activity.id, linked.come("8").id, linked.teacher, "points", 3, reason="ill")
        linked.sender().sweep()
        assert linked.platform.requests["scores"] == 0
        assert store.lti_scores.of_activity(linked.activity.id) == ()
        store.classwork.hand_in(checked)
        linked.sender().sweep()
        assert linked.grades == ({} if policies == AFTER_CLOSE else {"7": 7})
        end_activity(store, linked.activity.id)
        linked.sender().sweep()
        assert linked.platform.requests["scores"] == (0 if policies == AFTER_CLOSE else 1)  # drafts aren't settled yet
        store.activities.note_auto_submitted(linked.activity)
        clock.pass_seconds(1)
        linked.sender().sweep()
        assert linked.grades == {"7": 7, "8": 3}


@pytest.mark.parametrize("quirks", [CANVAS, MOODLE], ids=lambda quirks: quirks.product)
def test_what_changes_a_grade_here_changes_it_there(
    library: Library, store: Store, clock: Clock, quirks: Quirks
) -> None:
    with linked_activity(library, store, quirks) as linked:
        student = linked.come("7")

        def swept() -> float | None:
            clock.pass_seconds(2)
            linked.sender().sweep()
            return linked.column.grades["7"].points

        linked.attempt(student, HALF)
        assert swept() == 1
        linked.attempt(student, KEY)
        assert swept() == 14
        change = (linked.activity.id, student.id, linked.teacher)
        store.grades.change(*change, "points", 9.5, reason="late")
        assert swept() == 9.5
        store.grades.change(*change, "excused", reason="ill")
        assert swept() == (None if quirks == MOODLE else 9.5)  # of those that erase what isn't final
        store.grades.change(*change, "undone")
        assert swept() == 14
        assert linked.platform.requests["scores"] == 5


@on_one_database
def test_an_excused_student_without_a_grade_gets_none(linked: LinkedActivity) -> None:
    student = linked.answer("7", KEY) and linked.come("7")
    linked.store.grades.change(linked.activity.id, student.id, linked.teacher, "excused", reason="ill")
    linked.sender().sweep()
    assert linked.platform.requests["scores"] == 0


@on_one_database
def test_points_without_work_are_taken_back_once_they_are_undone(linked: LinkedActivity, clock: Clock) -> None:
    change = (linked.activity.id, linked.come("7").id, linked.teacher)
    linked.store.grades.change(*change, "points", 5, reason="oral answer")
    linked.sender().sweep()
    assert linked.grades == {"7": 5}
    linked.store.grades.change(*change, "undone")
    clock.pass_seconds(2)
    linked.sender().sweep()
    assert linked.grades == {"7": None}


@on_one_database
def test_a_slow_platform_has_one_round_in_a_sweep_and_its_other_links_wait(
    linked: LinkedActivity, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked.platform.add_link(linked.lms_course, "link-2")
    linked.store.lti.link_activity(linked.context, linked.launch_of(linked.lms_course, "link-2"), linked.activity.id)
    linked.answer("7", KEY)
    linked.answer("8", KEY)
    two_thirds_of_a_round = SimpleNamespace(monotonic=count(0, ROUND_S * 2 / 3).__next__)
    monkeypatch.setattr(grades, "time", two_thirds_of_a_round)
    linked.sender().sweep()
    assert linked.platform.requests["scores"] == 1
    monkeypatch.undo()
    linked.sender().sweep()
    assert [set(item.grades) for item in linked.lms_course.line_items] == [{"7", "8"}] * 2


@on_one_database
def test_a_regrade_sends_the_new_grades_only(linked: LinkedActivity, clock: Clock) -> None:
    doubled = {**KEY, "queries.columns": "256", "keys.columns": "256"}
    linked.answer("7", doubled)
    linked.answer("8", KEY)
    linked.sender().sweep()
    before, sent = linked.grades["7"], linked.platform.requests["scores"]
    policies = replace(linked.activity.policies, marking="boxes")
    regrading = Regrading()
    preview = regrading.preview(linked.library, linked.store, linked.activity, policies=policies)
    assert regrading.apply(
        linked.library, linked.store, linked.activity, linked.teacher, preview.fingerprint, policies=policies
    )
    clock.pass_seconds(2)
    linked.sender().sweep()
    assert linked.grades == {"7": 12, "8": 14}
    assert before != 12
    assert linked.platform.requests["scores"] == sent + 1


@on_one_database
def test_during_an_outage_of_an_hour_grades_wait_and_then_each_arrives_once(
    linked: LinkedActivity, clock: Clock
) -> None:
    students = [str(number) for number in range(5)]
    for sub in students:
        linked.answer(sub, KEY)
    linked.platform.is_down = True
    for _ in range(720):  # a sweep every five seconds
        linked.sender().sweep()
        clock.pass_seconds(5)
    tried = linked.platform.requests.total()
    assert tried <= 10
    [stuck] = linked.store.lti_scores.links_of(linked.activity.id)
    assert "503" in stuck.problem
    assert stuck.next_at
    assert clock.now < stuck.next_at <= clock.now + LONGEST_WAIT
    linked.platform.is_down = False
    linked.platform.requests.clear()
    while clock.now <= stuck.next_at:
        linked.sender().sweep()
        clock.pass_seconds(60)
    linked.sender().sweep()
    assert linked.grades == dict.fromkeys(students, 14)
    assert linked.platform.requests["scores"] == len(students)
    assert [link.problem for link in linked.store.lti_scores.links_of(linked.activity.id)] == [""]


@on_one_database
def test_one_score_that_always_fails_holds_up_no_other(linked: LinkedActivity, clock: Clock) -> None:
    first, second = linked.answer("1", KEY).student_id, linked.answer("2", KEY).student_id
    linked.platform.refuse("scores", 500)
    linked.sender().sweep()
    clock.pass_minutes(1)
    linked.platform.troubles.clear()
    linked.sender().sweep()
    assert {shown.student_id: shown.state for shown in linked.store.lti_scores.of_activity(linked.activity.id)} == {
        first: "sent",
        second: "sent",
    }
    assert list(linked.column.grades) == ["2", "1"]


def test_a_refused_score_is_shown_and_only_sent_again_when_asked(linked: LinkedActivity, clock: Clock) -> None:
    student = linked.come("7")
    linked.attempt(student, KEY)
    linked.lms_course.people.pop("7")
    linked.sender().sweep()
    assert state(linked, student)[0] == "refused"
    assert "no gradable role" in state(linked, student)[1]
    clock.pass_minutes(120)
    linked.sender().sweep()
    assert linked.platform.requests["scores"] == 1
    linked.come("7")
    linked.store.lti_scores.send_again(linked.activity.id)
    linked.sender().sweep()
    assert state(linked, student) == ("sent", "")
    assert linked.grades == {"7": 14}


@on_one_database
def test_a_removed_student_keeps_the_grade_there_and_gets_no_other(linked: LinkedActivity, clock: Clock) -> None:
    student = linked.come("7")
    linked.attempt(student, HALF)
    linked.sender().sweep()
    linked.attempt(student, KEY)
    linked.store.roster.remove_student(student)
    clock.pass_seconds(2)
    linked.sender().sweep()
    assert linked.grades == {"7": 1}


def test_a_merged_student_gets_the_grade_of_work_done_with_the_code(linked: LinkedActivity, clock: Clock) -> None:
    bound, joined = linked.come("7"), linked.student("Kim")
    linked.attempt(joined, KEY)
    linked.sender().sweep()
    assert linked.grades == {}
    assert linked.store.student_merge.merge(joined, bound)
    linked.sender().sweep()
    assert linked.grades == {"7": 14}


@on_one_database
def test_a_link_without_a_column_gets_no_grades_and_says_so(linked: LinkedActivity) -> None:
    linked.platform.add_link(linked.lms_course, "link-2", {"title": "Not graded"})
    linked.store.lti.link_activity(linked.context, linked.launch_of(linked.lms_course, "link-2"), linked.activity.id)
    linked.answer("7", KEY)
    linked.sender().sweep()
    assert linked.platform.requests["scores"] == 1
    assert [link.has_column for link in linked.store.lti_scores.links_of(linked.activity.id)] == [True, False]


@on_one_database
def test_two_contexts_of_one_course_get_their_own_people(linked: LinkedActivity) -> None:
    other = linked.platform.add_course()
    seen = linked.launch_of(other)
    context = linked.store.lti.link_course(seen, linked.course.id)
    linked.store.lti.link_activity(context, seen, linked.activity.id)
    linked.answer("7", KEY)
    other.people["8"] = replace(linked.lms_course.people["7"], sub="8")
    linked.attempt(linked.store.lti.add_student(context, "8", linked.course, "Lou"), HALF)
    linked.sender().sweep()
    assert linked.platform.requests["scores"] == 2
    assert list(linked.grades) == ["7"]
    assert list(other.line_items[0].grades) == ["8"]


def test_two_processes_send_each_grade_once(linked: LinkedActivity, database_url: str, tmp_path: Path) -> None:
    for number in range(8):
        linked.answer(str(number), KEY)
    second = Store(database_url, tmp_path, clock=CLOCK)
    senders = [linked.sender(), linked.sender(second)]
    try:
        assert all_at_once(2, lambda number: senders[number].sweep()) == []
    finally:
        second.close()
    assert linked.platform.requests["scores"] == 8
    assert len(linked.grades) == 8


@on_one_database
def test_an_activity_that_has_not_begun_has_no_grades(linked: LinkedActivity) -> None:
    linked.answer("7", KEY)
    linked.store.activities.set_state(linked.activity, "draft")
    assert standings(linked.library, linked.store, linked.activity, CLOCK()) == {}
