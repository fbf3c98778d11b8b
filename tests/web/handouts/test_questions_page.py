"""/questions: the file of a worksheet for a learning platform, also of one's own, and what can't be exported."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from app.classes.materials import settings_to_copy
from app.classes.student_sheet import ChosenWorksheet, freeze
from app.store import Plan, Policies
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_a_teacher_downloads_versions_of_any_sheet(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    settings = {**settings_to_copy(classroom.school.library, "llama-7b"), "title": "My head"}
    material = classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, settings)
    page = Page(classroom.get(f"/questions?worksheet={material.key}"))
    [(chosen, text)] = [option for option in page.find("option", value=material.key) if "selected" in option[0]]
    assert (chosen["value"], text.strip()) == (material.key, "My head")
    answer = classroom.instructor.get(f"/questions/file?worksheet={material.key}&model=gpt2&versions=3&format=moodle")
    assert answer.headers["content-type"].startswith("application/xml")
    assert 'filename="One-head-of-GPT-2.xml"' in answer.headers["content-disposition"]
    assert answer.text.count('type="cloze"') == 3
    assert classroom.instructor.get("/questions/file?format=qti12&versions=1").content[:2] == b"PK"


@pytest.mark.parametrize(
    "query",
    [
        "worksheet=bug-one-head",
        "worksheet=llama-7b~symbols",
        "worksheet=nothing",
        "model=nobody",
        "versions=0",
        "versions=100000",
        "versions=many",
        "format=gift",
        "worksheet=" + "x" * 5000,
    ],
)
def test_what_cannot_be_exported_is_said_on_the_form(app: FastAPI, query: str) -> None:
    answer = Classroom(app, sheets=None).instructor.get(f"/questions/file?{query}")
    assert 400 <= answer.status_code < 500
    assert Page(answer.text).text("p", role="alert")


def test_an_activity_exports_its_worksheets_with_their_models(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    content = freeze(classroom.school.library, [ChosenWorksheet("llama-7b", "gpt2"), "count-llama-7b"], None)
    activity = classroom.store.activities.add(classroom.course, Plan("Week 3", None, Policies()), content)
    address = f"/activities/{activity.id}/questions"
    offered = [option["value"] for option, _title in Page(classroom.get(address)).find("option")]
    assert offered[:3] == ["llama-7b", "count-llama-7b", ""]  # then the models
    answer = classroom.instructor.get(f"{address}/file?worksheet=llama-7b&versions=2")
    assert answer.text.count("One head of GPT-2 (") == 2
    assert classroom.instructor.get(f"{address}/file?worksheet=nothing").status_code == 404


def test_an_activity_without_worksheets_has_nothing_to_export(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    content = freeze(classroom.school.library, [], classroom.school.services.tickets["classic"])
    activity = classroom.store.activities.add(classroom.course, Plan("Week 3", None, Policies()), content)
    address = f"/activities/{activity.id}/questions"
    assert classroom.instructor.get(address).status_code == 200
    assert classroom.instructor.get(f"{address}/file").status_code == 404


def test_a_sheet_leads_teachers_to_its_questions(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    page = Page(classroom.get("/sheet?worksheet=llama-7b&model=gpt2"))
    assert page.find("a", href="/questions?worksheet=llama-7b&model=gpt2")
    letters = Page(classroom.get("/sheet?worksheet=bug-layer"))
    assert not any("/questions?" in link["href"] for link, _text in letters.find("a") if "href" in link)
