"""A server for exams: nothing that gives answers away is open to visitors, and classes work as usual."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from starlette.testclient import TestClient

from app.main import find_routers
from app.settings import Settings
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, press
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.html_page import Page
from tests.helpers.printed import read_pdf
from tests.helpers.running_app import make_app
from tests.helpers.runs import run_and_wait
from tests.helpers.school import Browser, Classroom

# What gives answers away: every page of these folders and modules of app/web but one.
CLOSED = {"catalogue", "practice", "glossary", "exhibits", "models", "handouts", "api"}
OPEN = {"app.web.health"}
ANSWERS = {"worksheet": "llama-7b", "answers": {"queries.rows": "100"}}


@pytest.fixture
def exam_app(data_dir: Path, runner: FakeRunner) -> Iterator[FastAPI]:
    """An app whose operator has closed practice, without torch."""
    app = make_app(Settings(data_dir=data_dir, database_url="", practice=False), runner)
    with TestClient(app):
        yield app


def test_every_page_of_practice_is_closed_to_visitors(exam_app: FastAPI) -> None:
    classroom = Classroom(exam_app)
    _, student = classroom.join()
    pages = [route for router in find_routers() for route in router.routes if isinstance(route, Route)]
    homes = [(route, route.endpoint.__module__) for route in pages]
    closed = [route for route, home in homes if home.split(".")[2] in CLOSED and home not in OPEN]
    routes = [(route, method) for route in closed for method in route.methods or ()]
    assert len(routes) > 30
    for browser in (classroom.school.browser(), student):
        for route, method in routes:
            path = route.path.replace("{number:int}", "1")
            answer = browser.request(method, path)
            assert (path, answer.status_code) == (path, 403)
            assert method == "HEAD" or "closed while this server is used for exams" in answer.text
        assert browser.post("/runs", data={"worksheet": "llama-7b"}).status_code == 403
        assert browser.post("/api/v1/grade", json=ANSWERS).json().keys() == {"detail"}


def test_classes_and_teachers_work_on_a_server_for_exams(exam_app: FastAPI) -> None:
    classroom = Classroom(exam_app)
    activity = classroom.open()
    _, student = classroom.join()
    assert student.get(f"/class/{activity.id}/1").status_code == 200
    assert press(student, activity, "check", HALF).status_code == 200
    for path in ("/join", "/sign-in", "/healthz", "/static/v/icon.svg"):
        assert student.get(path).status_code == 200
    teacher = classroom.instructor
    for path in ("/sheet", "/models", "/handout", "/api/v1/models/gpt2/shapes?tokens=3"):
        assert teacher.get(path).status_code == 200
    assert teacher.post("/api/v1/grade", json=ANSWERS).status_code == 200
    assert "in Practice" not in teacher.get(f"/activities/{activity.id}/edit").text


def test_a_teachers_run_is_shown_to_no_student(exam_app: FastAPI) -> None:
    classroom = Classroom(exam_app)
    _, student = classroom.join()
    form = {"worksheet": "llama-7b", "queries.rows": "100"}
    address = classroom.instructor.post("/runs", data=form).headers["location"]
    assert classroom.instructor.get(address).status_code == 200
    for browser in (student, classroom.school.browser()):
        parts = ("", "/agreement", "/notebook.ipynb")
        assert {browser.get(f"{address}{part}").status_code for part in parts} == {403}


def test_no_handout_leads_students_to_what_is_closed(exam_app: FastAPI) -> None:
    teacher = Classroom(exam_app).instructor
    host = {"host": "shapes.example.org"}
    [paper] = read_pdf(teacher.get("/handout.pdf", headers=host).content)
    assert (paper.codes, "/v/" in paper.text, "Sheet " in paper.text) == ([], False, True)
    assert "no QR code, since practice is closed" in teacher.get("/handout", headers=host).text


def reached_from(browser: Browser, *addresses: str) -> dict[str, int]:
    """The status of every address that these pages lead to by links, pictures and fragments, and so on from there."""
    found, left = dict[str, int](), list(addresses)
    while left:
        address = left.pop().partition("#")[0].replace("http://testserver", "")
        address = re.sub(r"\bseed=\d+", "seed=1", address)
        if address in found or not address.startswith("/"):
            continue
        answer = browser.get(address)
        found[address] = answer.status_code
        left.append(answer.headers.get("location", ""))
        if answer.headers.get("content-type", "").startswith("text/html"):
            elements = Page(answer.text).elements
            left += [attrs[name] for _, attrs, _ in elements for name in ("href", "src", "hx-get") if name in attrs]
            left += [attrs["action"] for tag, attrs, _ in elements if tag == "form" and "method" not in attrs]
    return found


def test_no_page_of_a_class_leads_to_what_is_closed(exam_app: FastAPI) -> None:
    classroom = Classroom(exam_app, sheets=None)
    sheets = ("llama-7b", "decode-gpt2", "four-dimensions-gpt2")
    activity = classroom.school.activity(classroom.course, sheets=sheets)
    browser, visited = classroom.school.browser(), set[str]()
    join, path = f"/join/{activity.join_code}", f"/class/{activity.id}"

    def look_around(*more: str) -> None:
        reached = reached_from(browser, "/", join, "/mine", *more)
        assert [address for address, status in reached.items() if status not in (200, 303)] == []
        visited.update(reached)

    look_around()
    assert browser.post(join, data={"name": "Kim"}).status_code == 303
    look_around()
    press(browser, activity, "check", HALF)
    again = Page(run_and_wait(browser, HALF, f"{path}/1/run")).find("form")[0][0]["action"]
    look_around(again.removesuffix("/again"))
    press(browser, activity, "hand-in", KEY)
    browser.post(f"{path}/ticket", data={"answer-muddiest": "why?"})
    look_around()
    classroom.school.end(activity)
    look_around()
    assert {path, *(f"{path}/{part}" for part in ("1", "2", "3", "ticket"))} <= visited
