"""An activity made with the form, opened, closed and changed."""

from __future__ import annotations

import re

from tests.helpers.activity_form import FORM
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_an_activity_is_made_opened_and_closed(classroom: Classroom, clock: Clock) -> None:
    """The form makes a draft; opening lets students in with the code and its picture; closing ends it."""
    made = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=FORM)
    page = Page(classroom.instructor.get(made.headers["location"]).text)
    assert page.text("h1") == "Week 3"
    assert "Draft" in page.text("p", class_="phase")
    code = page.text("p", class_="code")
    assert re.fullmatch(r"[A-Z]{6}", code)
    student = classroom.school.browser()
    assert student.post("/join", data={"code": code}).status_code == 404
    classroom.instructor.post(f"{made.headers['location']}/open")
    assert student.post("/join", data={"code": code.lower()}).headers["location"] == f"/join/{code}"
    picture = classroom.instructor.get(f"{made.headers['location']}/qr.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "<svg" in picture.text
    assert "<script" not in picture.text
    classroom.instructor.post(f"{made.headers['location']}/close")
    assert Page(classroom.instructor.get(made.headers["location"]).text).text("p", class_="phase") == "Closing"
    clock.pass_minutes(1)
    assert Page(classroom.instructor.get(made.headers["location"]).text).text("p", class_="phase") == "Closed"
