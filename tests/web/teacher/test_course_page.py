"""A course: its settings, its roster and its staff."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.versioned_form import save


@pytest.fixture
def classroom(app: FastAPI) -> Classroom:
    """A course without activities."""
    return Classroom(app, sheets=None)


def test_settings_are_changed_or_refused(classroom: Classroom) -> None:
    path = f"/courses/{classroom.course.id}"
    assert save(classroom.instructor, path, {"title": "Attention", "zone": "UTC"}).status_code == 303
    refused = classroom.instructor.post(path, data={"title": "Heads", "zone": "Nowhere"})
    assert refused.status_code == 422
    page = Page(refused.text)
    assert page.find("p", id="settings-problem")
    assert [page.find("input", name=name)[0][0]["value"] for name in ("title", "zone")] == ["Heads", "Nowhere"]
    course = classroom.store.courses.find(classroom.course.id)
    assert course
    assert (course.title, course.time_zone) == ("Attention", "UTC")


def test_a_long_roster_has_pages(classroom: Classroom) -> None:
    classroom.store.roster.add_students(classroom.course, [(f"Student {n:03}", None) for n in range(101)])
    address = f"/courses/{classroom.course.id}"
    first, second = (Page(classroom.instructor.get(address, params={"page": page}).text) for page in ("", "2"))
    heads = [[text for _, text in page.find("th", scope="row")] for page in (first, second)]
    assert (len(heads[0]), heads[0][0], heads[1]) == (100, "Student 000", ["Student 100"])
    [(details, _)] = second.find("details", id="students")
    assert "open" in details
    assert all("101 students, 0 joined" in page.text("details", id="students") for page in (first, second))
    [(link, _)] = first.find("a", rel="next")
    assert link["href"] == f"{address}?page=2#students"


def test_the_last_instructor_stays(classroom: Classroom) -> None:
    """409 with a sentence; a second instructor can leave, and lands on the list of courses."""
    path = f"/courses/{classroom.course.id}/staff"
    refused = classroom.instructor.post(f"{path}/{classroom.teacher.id}/remove")
    assert refused.status_code == 409
    assert Page(refused.text).find("p", id="staff-problem")
    bo = classroom.school.teacher(f"bo@{classroom.course.id}.example", classroom.course)
    with classroom.school.browser(teacher=bo) as browser:
        assert browser.post(f"{path}/{bo.id}/remove").headers["location"] == "/courses"
    assert classroom.instructor.post(f"{path}/{bo.id}/remove").status_code == 404


def test_an_invitation_needs_an_address(classroom: Classroom) -> None:
    path = f"/courses/{classroom.course.id}/staff"
    refused = classroom.instructor.post(path, data={"email": "nobody", "role": "assistant"})
    assert refused.status_code == 422
    assert Page(refused.text).find("input", name="email")[0][0]["value"] == "nobody"
    address = classroom.instructor.post(path, data={"email": "bo@example.org"}).headers["location"]
    assert address == f"/courses/{classroom.course.id}#staff"
    first, again = (Page(classroom.instructor.get(address).text).text("code", id="invitation") for _ in range(2))
    assert "/links/" in first
    assert again == first
    other = classroom.school.browser(teacher=classroom.teacher)
    assert not Page(other.get(address).text).find("code", id="invitation")
