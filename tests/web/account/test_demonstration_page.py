"""The public demonstration: every page of a teacher's, nothing that changes, and no way to a real class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.settings import Settings
from app.store import Store
from app.web.shared.cookies import DEMONSTRATION_COOKIE
from tests.helpers.html_page import Page
from tests.helpers.permission_table import TABLE
from tests.helpers.running_app import make_app
from tests.helpers.school import School

# Pages that need something which the sample course has not: a worksheet of its own, a link, an address of something.
ABSENT = re.compile(r"material_id|/shared/|/copy|page\.svg")
SHOWN = ("courses", "activities", "worksheets", "tickets")
ROUTES = [route for route in TABLE if route.split("/")[1] in SHOWN and not ABSENT.search(route)]


@pytest.fixture(scope="module")
def visitor(app: FastAPI) -> TestClient:
    """A browser without an account that has entered the demonstration."""
    browser = School(app).browser()
    entered = browser.get("/demonstration")
    assert re.fullmatch(r"/activities/\d+", entered.headers["location"])
    return browser


def demonstrated(app: FastAPI) -> Store:
    """The database of the demonstration."""
    store: Store | None = app.state.services.demonstration.current()
    assert store
    return store


def contents(store: Store) -> list[str]:
    """Every row of an SQLite database."""
    with store.engine.connect() as connection:
        raw: Any = connection.connection.dbapi_connection
        return list(raw.iterdump())


def path(app: FastAPI, route: str) -> str:
    """The path of a route with the demonstration's course, its newest activity, and its first student."""
    store = demonstrated(app)
    teacher = store.people.only_teacher()
    assert teacher
    course = store.courses.taught_by(teacher)[0].course
    activity, student = store.activities.of_course(course)[0], store.roster.students(course)[0]
    values = {
        "{course_id:int}": course.id, "{activity_id:int}": activity.id, "{student_id:int}": student.id,
        "{teacher_id:int}": teacher.id, "{number:int}": 1, "{what}": "check", "{file_name}": "answers.csv",
        "{answer_id}": "0123abcd",
    }  # fmt: skip
    for name, value in values.items():
        route = route.replace(name, str(value))
    return route.split(" ")[1]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.startswith("GET ")])
def test_every_page_of_a_teacher_is_shown(app: FastAPI, visitor: TestClient, route: str) -> None:
    expected = 403 if "{file_name}" in route else 303 if route.endswith("/preview") else 200  # to the first sheet
    assert visitor.get(path(app, route)).status_code == expected


@pytest.mark.parametrize("route", [route for route in ROUTES if route.startswith("POST ")])
def test_nothing_is_changed_by_any_form(app: FastAPI, visitor: TestClient, route: str) -> None:
    stores = (demonstrated(app), app.state.services.store)
    before = [*map(contents, stores)]
    form = {"title": "T", "zone": "UTC", "email": "a@b.example", "name": "N", "text": "Ada: 100", "names": "Ada"}
    answer = visitor.post(path(app, route), data=form)
    assert answer.status_code in (200, 403, 404, 409, 422) or "/courses/sample" in route
    assert [*map(contents, stores)] == before


def test_a_form_that_would_store_something_explains(app: FastAPI, visitor: TestClient) -> None:
    answer = visitor.post("/courses", data={"title": "Mine", "zone": "UTC"})
    assert answer.status_code == 403
    assert Page(answer.text).text("h1")


def test_the_demonstration_leads_to_no_real_class(app: FastAPI, visitor: TestClient) -> None:
    school = School(app)
    teacher = school.teacher()
    real = [school.course(f"Real {number}", teacher) for number in range(3)]
    for course in real:
        assert course.title not in visitor.get(f"/courses/{course.id}").text
    live = path(app, "GET /activities/{activity_id:int}/projector")
    assert visitor.get(live).status_code == 200
    store = demonstrated(app)
    code = store.activities.of_course(store.courses.taught_by(store.people.only_teacher())[0].course)[0].join_code  # type: ignore[arg-type]
    assert visitor.get(f"/join/{code}").status_code == 404
    assert "Sample" not in visitor.get("/mine").text


def test_a_teacher_is_never_in_it(app: FastAPI) -> None:
    school = School(app)
    teacher = school.teacher()
    mine = school.course("My own course", teacher)
    browser = school.browser(teacher=teacher)
    assert browser.get("/demonstration").headers["location"] == "/courses"
    browser.cookies.set(DEMONSTRATION_COOKIE, "yes")
    assert mine.title in browser.get("/courses").text
    assert browser.get(f"/courses/{mine.id}").status_code == 200


def test_it_is_left_by_a_button(app: FastAPI) -> None:
    browser = School(app).browser()
    browser.get("/demonstration")
    assert browser.get("/courses").status_code == 200
    assert browser.post("/demonstration/leave").headers["location"] == "/"
    assert browser.get("/courses").headers["location"].startswith("/sign-in")


def test_it_is_closed_with_practice(data_dir: Path) -> None:
    app = make_app(Settings(data_dir=data_dir, database_url="", practice=False))
    with TestClient(app):
        browser = School(app).browser()
        assert browser.get("/demonstration").status_code == 403
        browser.cookies.set(DEMONSTRATION_COOKIE, "yes")
        assert browser.get("/courses").headers["location"].startswith("/sign-in")
