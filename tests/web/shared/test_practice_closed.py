"""A server for exams: nothing that gives answers away is open to visitors, and classes work as usual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.main import PRACTICE_PAGES, create_app
from app.settings import Settings
from tests.helpers.class_sheet import HALF, press
from tests.helpers.school import Classroom

ANSWERS = {"worksheet": "llama-7b", "answers": {"queries.rows": "100"}}


@pytest.fixture
def exam_app(data_dir: Path) -> Iterator[FastAPI]:
    """An app whose operator has closed practice."""
    app = create_app(Settings(data_dir=data_dir, database_url="", practice=False))
    with TestClient(app):
        yield app


def test_every_page_of_practice_is_closed_to_visitors(exam_app: FastAPI) -> None:
    """403 with the same sentence, for every address and method; also for a student of a class."""
    classroom = Classroom(exam_app)
    _, student = classroom.join()
    routes = [(route, method) for page in PRACTICE_PAGES for route in page.router.routes for method in route.methods]
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
    """A student checks their sheet; a signed-in teacher prints, practises and uses the API."""
    classroom = Classroom(exam_app)
    activity = classroom.open()
    _, student = classroom.join()
    assert student.get(f"/class/{activity.id}/1").status_code == 200
    assert press(student, activity, "check", HALF).status_code == 200
    for path in ("/join", "/sign-in", "/healthz", "/static/icon.svg"):
        assert student.get(path).status_code == 200
    teacher = classroom.instructor
    for path in ("/sheet", "/models", "/handout", "/api/v1/models/gpt2/shapes?tokens=3"):
        assert teacher.get(path).status_code == 200
    assert teacher.post("/api/v1/grade", json=ANSWERS).status_code == 200
