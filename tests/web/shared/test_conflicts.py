"""Two people who change one thing: the second sees both versions, loses nothing that was typed, and chooses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from fastapi import FastAPI

from app.web.shared.conflicts import Difference, differences, version_of
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom
from tests.helpers.sent_form import SentForm
from tests.helpers.versioned_form import save, version_in

# Each form with what two people type in it, by the end of its address in the course.
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "": ({"title": ["Theirs"], "zone": ["UTC"]}, {"title": ["Mine"], "zone": ["UTC"]}),
    "/students/": ({"name": ["Theirs"], "number": ["7"]}, {"name": ["Mine"], "number": ["7"]}),
}


@pytest.fixture
def classroom(app_on_each_database: FastAPI) -> Classroom:
    return Classroom(app_on_each_database, sheets=None)


def address_of(classroom: Classroom, end: str) -> str:
    student = classroom.join("Kim")[0].id if end.endswith("/") else ""
    return f"/courses/{classroom.course.id}{end}{student}"


def colleague(classroom: Classroom) -> Browser:
    return classroom.school.browser(teacher=classroom.school.teacher(course=classroom.course))


def filled_in(page: str, names: Collection[str]) -> dict[str, list[str]]:
    return {name: SentForm(page).values[name] for name in names}


@pytest.mark.parametrize("end", FORMS)
def test_the_second_to_save_sees_both_versions_and_chooses(classroom: Classroom, end: str) -> None:
    address, (theirs, mine) = address_of(classroom, end), FORMS[end]
    version = version_in(classroom.instructor, address)
    assert save(colleague(classroom), address, theirs).status_code == 303
    for _ in range(2):
        refused = classroom.instructor.post(address, data={**mine, "version": version})
        assert refused.status_code == 409
        assert filled_in(refused.text, mine) == mine
        assert filled_in(refused.text, ["version"]) == {"version": [version]}
    page = Page(refused.text)
    for form in (theirs, mine):
        [text, *_] = next(iter(form.values()))
        assert text in page.text("section", class_="conflict")
    [(button, _)] = page.find("button", name="overwrite")
    overwritten = {**mine, "version": version, "overwrite": button["value"]}
    assert classroom.instructor.post(address, data=overwritten).status_code == 303
    assert filled_in(classroom.get(address), mine) == mine


@pytest.mark.parametrize("end", FORMS)
def test_two_who_save_the_same_are_in_no_conflict(classroom: Classroom, end: str) -> None:
    address, (theirs, _mine) = address_of(classroom, end), FORMS[end]
    version = version_in(classroom.instructor, address)
    assert save(colleague(classroom), address, theirs).status_code == 303
    assert classroom.instructor.post(address, data={**theirs, "version": version}).status_code == 303


def test_a_form_without_a_version_is_not_saved(classroom: Classroom) -> None:
    address = address_of(classroom, "")
    assert classroom.instructor.post(address, data={"title": "Mine", "zone": "UTC"}).status_code == 409
    assert version_in(classroom.instructor, address) == version_of(classroom.course.title, classroom.course.time_zone)


def test_differences_are_those_fields_that_differ_in_the_order_of_the_form() -> None:
    labels, newest, typed = (
        {"b": "B", "a": "A", "c": "C"},
        {"a": "1", "b": "2", "c": "3"},
        {"a": "x", "b": "y", "c": "3"},
    )
    assert differences(labels, newest, typed) == (Difference("B", "2", "y"), Difference("A", "1", "x"))
