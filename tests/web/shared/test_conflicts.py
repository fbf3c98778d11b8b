"""Two people who change one thing: the second sees both versions, loses nothing that was typed, and chooses."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from fastapi import FastAPI

from app.web.shared.conflicts import Difference, differences, version_of
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom
from tests.helpers.sent_form import SentForm
from tests.helpers.versioned_form import save, version_in

FORMS = ("", "/practice", "/students/")  # the end of its address in the course
Fields = dict[str, list[str]]


@pytest.fixture
def classroom(app_on_each_database: FastAPI) -> Classroom:
    return Classroom(app_on_each_database, sheets=None)


def address_of(classroom: Classroom, end: str) -> str:
    student = classroom.join("Kim")[0].id if end == "/students/" else ""
    return f"/courses/{classroom.course.id}{end}{student}"


def typed_by(classroom: Classroom, who: str, end: str) -> Fields:
    """What somebody types, in which their own name is to be read."""
    if end == "/practice":
        settings = {**classroom.school.library.worksheets["llama-7b"].settings, "title": who}
        own = classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, settings)
        return {"worksheet": [own.key]}
    return {"name": [who], "number": ["7"]} if end else {"title": [who], "zone": ["UTC"]}


def colleague(classroom: Classroom) -> Browser:
    return classroom.school.browser(teacher=classroom.school.teacher(course=classroom.course))


def filled_in(page: str, names: Collection[str]) -> Fields:
    return {name: SentForm(page).values[name] for name in names}


@pytest.mark.parametrize("end", FORMS)
def test_the_second_to_save_sees_both_versions_and_chooses(classroom: Classroom, end: str) -> None:
    address = address_of(classroom, end)
    theirs, mine = (typed_by(classroom, who, end) for who in ("Theirs", "Mine"))
    version = version_in(classroom.instructor, address)
    assert save(colleague(classroom), address, theirs).status_code == 303
    for _ in range(2):
        refused = classroom.instructor.post(address, data={**mine, "version": version})
        assert refused.status_code == 409
        assert filled_in(refused.text, mine) == mine
        assert filled_in(refused.text, ["version"]) == {"version": [version]}
    page = Page(refused.text)
    assert {"Theirs", "Mine"} <= {text for _, text in page.find("td")}
    [(button, _)] = page.find("button", name="overwrite")
    overwritten = {**mine, "version": version, "overwrite": button["value"]}
    assert classroom.instructor.post(address, data=overwritten).status_code == 303
    assert filled_in(classroom.get(address), mine) == mine


@pytest.mark.parametrize("end", FORMS)
def test_two_who_save_the_same_are_in_no_conflict(classroom: Classroom, end: str) -> None:
    address, theirs = address_of(classroom, end), typed_by(classroom, "Theirs", end)
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
