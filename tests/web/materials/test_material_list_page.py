"""The list of worksheets and exit tickets: what it has for whom, and how it is filtered."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI

from app.classes.materials import settings_to_copy
from app.web.shared import forms
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


@pytest.fixture(scope="module")
def classroom(app: FastAPI) -> Classroom:
    """A teacher with two worksheets, one of them a course's, and one that cannot be read any more."""
    classroom = Classroom(app, sheets=None)
    own, add = settings_to_copy(classroom.school.library, "llama-7b"), classroom.store.materials.add
    add("worksheet", classroom.teacher, classroom.teacher, {**own, "title": "Büro: one head"})
    add("worksheet", classroom.course, classroom.teacher, {**own, "title": "Ours", "model": "gpt2"})
    add("worksheet", classroom.course, classroom.teacher, {**own, "title": "Broken", "model": "cfg-" + "0" * 20})
    return classroom


def titles(classroom: Classroom, address: str = "/worksheets") -> list[str]:
    """The titles that the list links to, in order, then the library's exit tickets, which unfold."""
    page = Page(classroom.get(address))
    links = [(attrs["href"], text) for attrs, text in page.find("a") if "aria-label" not in attrs]
    tickets = [text for attrs, text in page.find("summary") if "data-ticket" in attrs]
    return [*(text for address, text in links if re.match(r"/worksheets/\d+$|/sheet\?", address)), *tickets]


def test_ones_own_come_first_then_courses_then_the_library(classroom: Classroom) -> None:
    library = classroom.school.library
    listed = titles(classroom)
    assert listed[:3] == ["Büro: one head", "Broken", "Ours"]
    assert set(listed[3:]) == {sheet.title for sheet in library.worksheets.values()} | {"Before you go"}
    page = Page(classroom.get("/worksheets"))
    assert [text for _, text in page.find("h2")][:3] == ["Mine", classroom.course.title, "Library"]
    assert len(page.find("p", class_="problem")) == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?words=BÜRO+llama&topic=single-head", ["Büro: one head"]),
        ("?words=Bu%CC%88ro", ["Büro: one head"]),
        ("?model=gpt2&topic=single-head", ["Ours"]),
        ("?kind=ticket", ["Before you go"]),
        ("?words=%3Cb%3E", []),
    ],
)
def test_the_list_is_narrowed_down(classroom: Classroom, query: str, expected: list[str]) -> None:
    assert titles(classroom, f"/worksheets{query}") == expected


def test_a_long_list_has_pages(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = titles(classroom)
    monkeypatch.setattr(forms, "PAGE_LENGTH", 20)
    pages = [titles(classroom, f"/worksheets?page={number}") for number in range(1, -(-len(everything) // 20) + 1)]
    assert (len(pages[0]), [title for page in pages for title in page]) == (20, everything)


def test_others_see_none_of_it(classroom: Classroom) -> None:
    school = classroom.school
    bo = school.teacher("", classroom.course, "assistant")
    eve = school.teacher()
    assert "Ours" in school.browser(teacher=bo).get("/worksheets").text
    assert "Büro" not in school.browser(teacher=bo).get("/worksheets").text
    assert "Ours" not in school.browser(teacher=eve).get("/worksheets").text


def test_what_was_removed_can_be_put_back(classroom: Classroom) -> None:
    store = classroom.store
    material = store.materials.add("worksheet", classroom.teacher, classroom.teacher, {"title": "Away"})
    assert classroom.instructor.post(f"/worksheets/{material.id}/remove").headers["location"].startswith("/worksheets?")
    assert classroom.instructor.get(f"/worksheets/{material.id}").status_code == 404
    assert "Away" not in titles(classroom)
    [address] = [
        attrs["action"] for attrs, _ in Page(classroom.get("/worksheets")).find("form") if "put-back" in attrs["action"]
    ]
    classroom.instructor.post(address)
    assert "Away" in titles(classroom)
    store.materials.remove(material)
