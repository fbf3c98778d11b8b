"""The sample course: simulated students whose results show the misconceptions they were given."""

from __future__ import annotations

import re
from collections import Counter

from fastapi import FastAPI

from app.classes.sample_course import add_sample_course
from app.grading.grade import grade
from app.store import Course
from simulation.misconception_students import misconception_sheets
from tests.helpers.at_once import all_at_once
from tests.helpers.school import School


def sample(school: School) -> Course:
    ada = school.teacher("ada@example.org")
    return add_sample_course(school.library, school.services.tickets, school.store, ada)


def test_simulated_students_write_what_their_misconception_makes_them_write(new_app: FastAPI) -> None:
    school = School(new_app)
    course, library = sample(school), school.library
    [going_on, past] = school.store.activities.of_course(course)
    misconceptions = Counter[str]()
    for activity in (going_on, past):
        for attempt in school.store.classwork.attempts_of_activity(activity.id):
            variant = library.variant(str(activity.content.items[attempt.sheet_number - 1].worksheet["key"]))
            held = [{box: str(n) for box, n in boxes.items()} for _, boxes in misconception_sheets(variant)]
            right = {box: str(n) for box, n in variant.key.items()}
            assert attempt.answers in [right, *held]
            report = grade(variant, attempt.answers)
            assert attempt.marks == {str(blank): mark.kind for blank, mark in report.marks.items()}
            assert (attempt.score, attempt.out_of) == (report.score, report.out_of)
            assert attempt.misconceptions[:1] == ((report.diagnosis.key,) if report.diagnosis else ())
            misconceptions.update(attempt.misconceptions)
    assert len(misconceptions) >= 6
    assert max(misconceptions.values()) >= 7


def test_a_button_pressed_twice_makes_one(app_on_each_database: FastAPI) -> None:
    school, made = School(app_on_each_database), list[Course]()
    ada = school.teacher()

    def press(_number: int) -> None:
        made.append(add_sample_course(school.library, school.services.tickets, school.store, ada))

    assert all_at_once(2, press) == []
    assert made[0] == made[1]
    assert len(school.store.courses.taught_by(ada)) == 1


def test_there_is_something_to_see_at_once(new_app: FastAPI) -> None:
    school = School(new_app)
    course = sample(school)
    [going_on, past] = school.store.activities.of_course(course)
    work = school.store.classwork
    attempts = work.attempts_of_activity(going_on.id)
    handed_in = {attempt.student_id for attempt in attempts if attempt.handed_in}
    attempted = {attempt.student_id for attempt in attempts}
    typing = {draft.student_id for draft in work.drafts_of_activity(going_on.id)}
    assert 0 < len(handed_in) < len(attempted) < len(typing) < 30
    now = school.store.now()
    assert (going_on.phase(now), past.phase(now)) == ("open", "closed")
    answers = school.store.exit_tickets.answers(past)
    assert len(answers) > 40
    assert {answer.student_id for answer in answers} == {None}
    assert len({answer.question for answer in answers}) == 5
    assert all(re.search(r"[.?]$", answer.text) for answer in answers)
