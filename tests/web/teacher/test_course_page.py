"""A course and its staff."""

from __future__ import annotations

import re

from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Teacher
from tests.helpers.accounts import ADA, sign_in
from tests.helpers.school import PASSWORD, School


def test_an_assistant_is_invited_by_a_link(new_app: FastAPI, school: School, ada: Teacher, browser: TestClient) -> None:
    """The page shows it once; whoever follows it makes an account, sees the course, and may not change it."""
    course = school.course("Transformers", ada)
    with school.browser(teacher=ada) as instructor:
        page = instructor.post(f"/courses/{course.id}/staff", data={"email": "bo@example.org", "role": "assistant"})
        link = re.search(r"http://testserver(/links/[\w-]+)", page.text)
        assert link
        assert link[1] not in instructor.get(f"/courses/{course.id}").text
    assert "as an assistant" in browser.get(link[1]).text
    done = browser.post(link[1], data={"name": "Bo", "password": PASSWORD})
    assert done.headers["location"] == f"/courses/{course.id}"
    assert browser.get(f"/courses/{course.id}").status_code == 200
    assert browser.post(f"/courses/{course.id}", data={"title": "Mine", "zone": "UTC"}).status_code == 403
    assert browser.get(link[1]).status_code == 404


def test_an_invitation_does_not_replace_a_password(school: School, ada: Teacher, browser: TestClient) -> None:
    """For an address that can sign in, the link asks to sign in first; signed in, one press takes part."""
    eve = school.teacher("eve@example.org")
    course = school.course("Transformers", eve)
    token = school.store.people.add_link("invite", ADA, course.id, "instructor")
    assert "Sign in and take part" in browser.get(f"/links/{token}").text
    assert browser.post(f"/links/{token}", data={"name": "X", "password": "another password"}).status_code == 422
    assert sign_in(browser)[0] == 303
    assert browser.post(f"/links/{token}").headers["location"] == f"/courses/{course.id}"
    assert school.store.courses.role(course.id, ada) == "instructor"
