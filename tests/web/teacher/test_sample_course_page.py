"""The sample course made and removed from the list of courses; its pages say that it is simulated."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI

from app.classes.sample_course import add_sample_course
from app.store import AuditAction, Course, Store
from app.store.tables import metadata
from tests.helpers.school import School


def sample(school: School) -> Course:
    ada = school.teacher("ada@example.org")
    return add_sample_course(school.library, school.services.tickets, school.store, ada)


def rows(store: Store) -> dict[str, list[Any]]:
    """The rows of every table, without those that courses don't own."""
    own = {"audit_log", "teachers", "sessions", "visitors", "account_links", "snapshots"}
    with store.engine.connect() as connection:
        found = {t.name: list(connection.execute(sa.select(t)).all()) for t in metadata.sorted_tables}
    return {name: held for name, held in found.items() if name not in own}


def test_one_press_makes_it_and_another_removes_it(app_on_each_database: FastAPI) -> None:
    school = School(app_on_each_database)
    ada = school.teacher("ada@example.org")
    store = school.store
    mine = school.course("Transformers", ada)
    before = rows(store)
    with school.browser(teacher=ada) as browser:
        assert "Create a sample course" in browser.get("/courses").text
        path = browser.post("/courses/sample").headers["location"]
        assert browser.post("/courses/sample").headers["location"] == path
        sample_id = int(path.rpartition("/")[2])
        entries = store.audit_log.entries({"course": [sample_id]}, store.now() - timedelta(days=1), 10)
        assert [entry.action for entry in entries] == [AuditAction.SAMPLE_COURSE_CREATED]
        page = browser.get(path)
        assert page.text.count(" Sample</a>") == 30
        assert "Create a sample course" not in browser.get("/courses").text
        assert browser.post(f"/courses/{mine.id}/remove-sample").status_code == 404
        assert browser.post(f"{path}/remove-sample").status_code == 303
        assert browser.get(path).status_code == 404
    assert rows(store) == before


def test_each_page_of_it_says_so(new_app: FastAPI) -> None:
    school = School(new_app)
    course = sample(school)
    store = school.store
    going_on = store.activities.of_course(course)[0]
    student, visitor = school.student(course, "Kim")
    ada = store.people.find_teacher("ada@example.org")
    staff = ["", "/activities/new", "/exports"]
    pages = {f"/courses/{course.id}{page}": ada for page in staff}
    pages |= {f"/activities/{going_on.id}{page}": ada for page in ("", "/edit")}
    pages |= {f"/class/{going_on.id}{page}": None for page in ("/1", "/ticket")}
    for path, teacher in {**pages, f"/join/{going_on.join_code}": None}.items():
        with school.browser(teacher=teacher, visitor=None if teacher else visitor) as browser:
            got = browser.get(path)
        assert got.status_code == 200, path
        assert "Students and their work are simulated" in got.text, path
    assert student.course_id == course.id
