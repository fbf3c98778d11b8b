"""The sample course: simulated students of whom the results show what they were made to believe."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app import cli
from app.classes.sample_course import add_sample_course
from app.grading.grade import grade
from app.store import Course, Store
from app.store.tables import metadata
from simulation.misconception_students import misconception_sheets
from tests.helpers.school import School


def rows(store: Store) -> dict[str, list[Any]]:
    """What every table holds, but for those that courses do not own."""
    own = {"log", "teachers", "sessions", "learners", "links"}
    with store.engine.connect() as connection:
        found = {t.name: list(connection.execute(sa.select(t)).all()) for t in metadata.sorted_tables}
    return {name: held for name, held in found.items() if name not in own}


def test_one_press_makes_it_and_another_removes_it(app_on_each_database: FastAPI) -> None:
    """Thirty students, a lesson that is over and one that goes on; a second press makes no second; removed, no row."""
    school = School(app_on_each_database)
    ada = school.teacher("ada@example.org")
    store = school.store
    mine = school.course("Transformers", ada)
    before = rows(store)
    with school.browser(teacher=ada) as browser:
        assert "Make a sample course" in browser.get("/courses").text
        path = browser.post("/courses/sample").headers["location"]
        assert browser.post("/courses/sample").headers["location"] == path
        page = browser.get(path)
        assert page.text.count(" Sample</th>") == 30
        assert "Make a sample course" not in browser.get("/courses").text
        assert browser.post(f"/courses/{mine.id}/remove-sample").status_code == 404
        assert browser.post(f"{path}/remove-sample").status_code == 303
        assert browser.get(path).status_code == 404
    assert rows(store) == before


def sample(school: School) -> Course:
    ada = school.teacher("ada@example.org")
    return add_sample_course(school.library, school.services.tickets, school.store, ada)


def test_each_page_of_it_says_so(new_app: FastAPI) -> None:
    """To the staff and to somebody who joins it, on each page that is about it."""
    school = School(new_app)
    course = sample(school)
    store = school.store
    going_on = store.activities.of_course(course)[0]
    student, learner = school.student(course, "Kim")
    ada = store.people.find_teacher("ada@example.org")
    staff = ["", "/activities/new", "/exports"]
    pages = {f"/courses/{course.id}{page}": ada for page in staff}
    pages |= {f"/activities/{going_on.id}{page}": ada for page in ("", "/edit")}
    pages |= {f"/class/{going_on.id}{page}": None for page in ("", "/1", "/ticket")}
    for path, teacher in {**pages, f"/join/{going_on.join_code}": None}.items():
        with school.browser(teacher=teacher, learner=None if teacher else learner) as browser:
            got = browser.get(path)
        assert got.status_code == 200, path
        assert "its students are simulated" in got.text, path
    assert student.course_id == course.id


def test_simulated_students_write_what_their_misconception_makes_them_write(new_app: FastAPI) -> None:
    """Each first try is the sheet of a believer made by hand, or right; marks, score and diagnosis are the grader's."""
    school = School(new_app)
    course, library = sample(school), school.library
    [going_on, past] = school.store.activities.of_course(course)
    misconceptions = Counter[str]()
    for activity in (going_on, past):
        for tried in school.store.classwork.tries_of_activity(activity.id):
            variant = library.variant(str(activity.content.items[tried.item].worksheet["key"]))
            by_hand = [{box: str(n) for box, n in boxes.items()} for _, boxes in misconception_sheets(variant)]
            right = {str(blank): str(n) for blank, n in variant.key.items()}
            assert tried.answers in [right, *by_hand]
            report = grade(variant, tried.answers)
            assert tried.marks == {str(blank): mark.kind for blank, mark in report.marks.items()}
            assert (tried.score, tried.out_of) == (report.score, report.out_of)
            assert tried.misconceptions[:1] == ((report.diagnosis.key,) if report.diagnosis else ())
            misconceptions.update(tried.misconceptions)
    assert len(misconceptions) >= 6
    assert max(misconceptions.values()) >= 7


def test_there_is_something_to_see_at_once(new_app: FastAPI) -> None:
    """Of the lesson that goes on, some have handed in, some have tried, some type and some are missing; tickets too."""
    school = School(new_app)
    course = sample(school)
    [going_on, past] = school.store.activities.of_course(course)
    work = school.store.classwork
    tries = work.tries_of_activity(going_on.id)
    handed_in = {tried.student_id for tried in tries if tried.handed_in}
    tried = {tried.student_id for tried in tries}
    typing = {draft.student_id for draft in work.drafts_of_activity(going_on.id)}
    assert 0 < len(handed_in) < len(tried) < len(typing) < 30
    assert (going_on.phase(), past.phase()) == ("open", "closed")
    answers = work.tickets(past.id)
    assert len(answers) > 40
    assert {answer.student_id for answer in answers} == {None}
    assert len({answer.question for answer in answers}) == 5
    assert all(re.search(r"[.?]$", answer.text) for answer in answers)


def test_the_terminal_makes_and_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For the only account there is; without one, or with two, one line says what to do."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))

    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 2
        return capsys.readouterr().err

    assert "teacher add" in refused("sample-course")
    cli.main(["teacher", "add", "ada@example.org"])
    cli.main(["sample-course"])
    assert "ada@example.org" in capsys.readouterr().out
    cli.main(["sample-course", "--remove"])
    assert "removed" in capsys.readouterr().out
    cli.main(["sample-course", "--remove"])
    assert "no sample course" in capsys.readouterr().out
    cli.main(["teacher", "add", "bo@example.org"])
    capsys.readouterr()
    assert "sample-course EMAIL" in refused("sample-course")
    assert "teacher add" in refused("sample-course", "eve@example.org")
    cli.main(["sample-course", "bo@example.org"])
    assert "bo@example.org" in capsys.readouterr().out
