"""The page of a worksheet that a teacher wrote: versions, the file, the link, and where it belongs."""

from __future__ import annotations

import tomllib
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI

from app.classes.materials import settings_to_copy
from app.store import Material, MaterialKind
from app.web.worksheets import MAX_CHANGED_LINES, VERSIONS_ON_A_PAGE
from tests.helpers.html_page import Page
from tests.helpers.print_jobs import finished_print_job
from tests.helpers.printed import read_pdf
from tests.helpers.processor_time import processor_time_s
from tests.helpers.school import Classroom

CHANGED = {"tokens": 60, "questions": [{"key": "why", "text": "Why does K have this shape?"}]}


def written(classroom: Classroom, *, mine: bool = False) -> Material:
    """A copy of a sheet of the library, saved a second time with other tokens."""
    settings = settings_to_copy(classroom.school.library, "llama-7b")
    owner = classroom.teacher if mine else classroom.course
    material = classroom.store.materials.add("worksheet", owner, classroom.teacher, settings)
    return classroom.store.materials.save(material, 1, {**settings, **CHANGED}, classroom.teacher).material


def test_the_page_says_what_each_version_changed(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    material = written(classroom)
    page = Page(classroom.get(f"/worksheets/{material.id}"))
    assert (page.text("del"), page.text("ins")) == ("tokens = 100", "tokens = 60")
    assert len(page.boxes()) == 14
    assert page.text("textarea") == ""
    assert page.text("label") == "Why does K have this shape?"
    for _ in range(2):  # the second changes nothing
        classroom.instructor.post(f"/worksheets/{material.id}/restore", data={"version": "1"})
    newest = classroom.store.materials.find(material.id)
    assert newest
    assert (newest.version, newest.content["tokens"]) == (3, 100)
    assert classroom.get(f"/courses/{classroom.course.id}/exports").count("restored 1") == 1


def test_the_file_has_the_settings(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    material = written(classroom)
    response = classroom.instructor.get(f"/worksheets/{material.id}/file.toml")
    assert tomllib.loads(response.text) == material.content
    assert 'filename="one-head-of-llama-7b.toml"' in response.headers["content-disposition"]
    older = classroom.instructor.get(f"/worksheets/{material.id}/file.toml?version=1")
    assert tomllib.loads(older.text) == settings_to_copy(classroom.school.library, "llama-7b")
    for number in ("0", "3", "x", "9" * 30):
        assert classroom.instructor.get(f"/worksheets/{material.id}/file.toml?version={number}").status_code == 404


def test_a_link_shows_it_to_other_teachers_until_it_is_withdrawn(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    material, eve = written(classroom), classroom.school.browser(teacher=classroom.school.teacher())
    path = f"/worksheets/{material.id}"
    classroom.instructor.post(f"{path}/share")
    link = Page(classroom.get(path)).text("code").partition("testserver")[2]
    assert eve.get(path).status_code == 404
    assert "One head of LLaMA 7B" in eve.get(link).text
    assert classroom.school.browser().get(link).status_code == 303
    assert eve.post(f"{link}/copy", data={"title": "Mine now"}).status_code == 303
    assert classroom.instructor.post(f"{path}/stop-sharing").status_code == 303
    assert eve.get(link).status_code == 404


def test_it_is_printed_with_names(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    path = f"/worksheets/{written(classroom).id}/print"
    with classroom.instructor as browser:
        assert browser.get(path).status_code == 200
        assert browser.post(path, data={"sheets": "none"}).status_code == 422
        form = {"names": "Ada Lovelace\nKim Lee\nLou Ray", "layout": "full", "key": "none"}
        address = browser.post(path, data=form).headers["location"]
        finished_print_job(browser, address)
        pages = read_pdf(browser.get(f"{address}.pdf").content)
    names = ("Ada Lovelace", "Kim Lee", "Lou Ray")
    assert [name in page.text for page, name in zip(pages, names, strict=True)] == [True] * 3


def test_ones_own_moves_into_a_course(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    material, school = written(classroom, mine=True), classroom.school
    other = school.course("Not ours", school.teacher())
    path = f"/worksheets/{material.id}/move"
    assert classroom.instructor.post(path, data={"course": str(other.id)}).status_code == 404
    assert classroom.instructor.post(path, data={"course": str(classroom.course.id)}).status_code == 303
    bo = school.browser(teacher=school.teacher("", classroom.course))
    assert bo.get(f"/worksheets/{material.id}").status_code == 200
    classroom.instructor.post(f"/courses/{classroom.course.id}/archive")
    assert bo.post(f"/worksheets/{material.id}/remove").status_code == 409


@pytest.mark.parametrize("kind", ["worksheet", "ticket"])
@pytest.mark.parametrize(
    "content", [{}, {"title": 5, "model": [1], "models": [{}]}, {"topic": "alchemy", "model": "x"}]
)
def test_what_can_no_longer_be_read_breaks_no_page(app: FastAPI, kind: MaterialKind, content: dict[str, Any]) -> None:
    classroom = Classroom(app, sheets=None)
    material = classroom.store.materials.add(kind, classroom.course, classroom.teacher, content)
    path = f"/worksheets/{material.id}"
    assert Page(classroom.get(path)).find("p", class_="problem")
    for address in (f"{path}/file.toml", "/worksheets"):
        assert classroom.instructor.get(address).status_code == 200
    editor = "tickets" if kind == "ticket" else "worksheets"
    edited = classroom.instructor.get(f"/{editor}/{material.id}/edit")
    assert (edited.status_code, edited.headers["location"]) == (303, path)
    assert classroom.instructor.post(f"{path}/remove").status_code == 303


@pytest.mark.slow
def test_a_worksheet_with_many_long_versions_opens(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    materials, ada = classroom.store.materials, classroom.teacher
    material = materials.add("worksheet", classroom.course, ada, long_settings(classroom, 0))
    for number in range(1, 45):
        materials.save(material, number, long_settings(classroom, number), ada)
    for page, versions in ((1, VERSIONS_ON_A_PAGE), (7, 3)):
        address = f"/worksheets/{material.id}?page={page}"
        assert processor_time_s(partial(classroom.get, address)) < 5
        shown = Page(classroom.get(address))
        changes = len(shown.find("ins")) + len(shown.find("del"))
        assert len(shown.find("details", class_="more")) == versions - (page == 7)
        assert 0 < changes <= versions * MAX_CHANGED_LINES


def long_settings(classroom: Classroom, number: int) -> dict[str, Any]:
    """The settings of a worksheet with twelve texts of 1,900 lines, in another order for each number."""
    lines = [f"{(line * (2 * number + 1)) % 97:02}"[-1] for line in range(1900)]
    text = "\n".join(lines)
    own = [
        {"key": f"own-{index}", "name": f"M{index}", "question": "?", "explanation": text, "boxes": {"keys.rows": "d"}}
        for index in range(10)
    ]
    texts = dict.fromkeys(("introduction", "footnote"), text)
    return {**settings_to_copy(classroom.school.library, "llama-7b"), **texts, "misconceptions": own}
