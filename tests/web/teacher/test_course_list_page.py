"""The list of courses, and the form that adds one."""

from __future__ import annotations

from fastapi import FastAPI

from tests.helpers.html_page import Page
from tests.helpers.school import Classroom, School


def test_a_new_course_is_in_the_list_of_whoever_added_it(app: FastAPI) -> None:
    school = School(app)
    ada, bo = school.teacher(), school.teacher()
    browser = school.browser(teacher=ada)
    path = browser.post("/courses", data={"title": " Linear\t Algebra ", "zone": "UTC"}).headers["location"]
    assert Page(browser.get(path).text).text("h1") == "Linear Algebra"
    assert "Linear Algebra" in browser.get("/courses").text
    assert "Linear Algebra" not in school.browser(teacher=bo).get("/courses").text
    browser.post(f"{path}/archive")
    assert "Archived" in [text for _, text in Page(browser.get("/courses").text).find("summary")]


def test_a_form_that_cannot_be_used_comes_back_as_typed(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    for form in ({"title": "", "zone": "UTC"}, {"title": "Algebra", "zone": "Europe/Atlantis"}):
        refused = classroom.instructor.post("/courses", data=form)
        assert refused.status_code == 422
        page = Page(refused.text)
        assert page.find("p", id="problem")
        assert [page.find("input", name=name)[0][0]["value"] for name in form] == list(form.values())
    assert len(classroom.store.courses.taught_by(classroom.teacher)) == 1
