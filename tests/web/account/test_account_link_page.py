"""Links that work once: the first account, invitations and new passwords."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Teacher
from tests.helpers.accounts import ADA, sign_in
from tests.helpers.school import PASSWORD, School


def test_the_set_up_link_makes_the_first_account(browser: TestClient, school: School) -> None:
    token = school.store.people.add_link("setup")
    assert "Create the first account" in browser.get(f"/links/{token}").text
    form = {"email": "Ada@Example.org", "name": "Ada", "password": "ninechars"}
    refused = browser.post(f"/links/{token}", data=form)
    assert refused.status_code == 422
    assert "at least 10 characters" in refused.text
    assert 'value="Ada@Example.org"' in refused.text
    assert "ninechars" not in refused.text
    done = browser.post(f"/links/{token}", data={**form, "password": "ten chars!"})
    assert (done.status_code, done.headers["location"]) == (303, "/courses")
    assert browser.get("/courses").status_code == 200
    assert browser.get(f"/links/{token}").status_code == 404
    found = school.store.people.find_teacher(ADA)
    assert found
    assert found.password_hash
    assert found.password_hash.startswith("$argon2id$")


@pytest.mark.parametrize("email", ["", "ada", "a b@c", "@", "a@" + "b" * 254])
def test_what_is_no_e_mail_address_is_refused(browser: TestClient, school: School, email: str) -> None:
    token = school.store.people.add_link("setup")
    answer = browser.post(f"/links/{token}", data={"email": email, "name": "Ada", "password": PASSWORD})
    assert answer.status_code == 422
    assert "Enter an e-mail address" in answer.text
    assert browser.get(f"/links/{token}").status_code == 200


def test_an_assistant_is_invited_by_a_link(new_app: FastAPI, school: School, ada: Teacher, browser: TestClient) -> None:
    course = school.course("Transformers", ada)
    with school.browser(teacher=ada) as instructor:
        form = {"email": "bo@example.org", "role": "assistant"}
        page = instructor.post(f"/courses/{course.id}/staff", data=form, follow_redirects=True)
        link = re.search(r"http://testserver(/links/[\w-]+)", page.text)
        assert link
    assert "as an assistant" in browser.get(link[1]).text
    done = browser.post(link[1], data={"name": "Bo", "password": PASSWORD})
    assert done.headers["location"] == f"/courses/{course.id}"
    assert browser.get(f"/courses/{course.id}").status_code == 200
    assert browser.post(f"/courses/{course.id}", data={"title": "Mine", "zone": "UTC"}).status_code == 403
    assert browser.get(link[1]).status_code == 404


def test_an_invitation_does_not_replace_a_password(school: School, ada: Teacher, browser: TestClient) -> None:
    eve = school.teacher("eve@example.org")
    course = school.course("Transformers", eve)
    token = school.store.people.add_link("invite", ADA, course.id, "instructor")
    assert "Sign in and accept" in browser.get(f"/links/{token}").text
    assert browser.post(f"/links/{token}", data={"name": "X", "password": "another password"}).status_code == 422
    assert sign_in(browser)[0] == 303
    assert browser.post(f"/links/{token}").headers["location"] == f"/courses/{course.id}"
    assert school.store.courses.role(course.id, ada) == "instructor"


def test_whoever_invites_sets_nobodys_password(school: School, ada: Teacher, browser: TestClient) -> None:
    own = school.store.people.add_teacher("bo@example.org", "Bo")
    assert own
    reset = school.store.people.add_link("reset", own.email)
    course = school.course("Transformers", ada)
    invitation = school.store.people.add_link("invite", own.email, course.id, "assistant")
    assert "Sign in and accept" in browser.get(f"/links/{invitation}").text
    assert browser.post(f"/links/{invitation}", data={"name": "X", "password": PASSWORD}).status_code == 422
    teacher = school.store.people.find_teacher(own.email)
    assert teacher
    assert (teacher.password_hash, school.store.courses.role(course.id, own)) == (None, None)
    assert browser.post(f"/links/{reset}", data={"password": PASSWORD}).status_code == 303
    assert browser.post(f"/links/{invitation}").headers["location"] == f"/courses/{course.id}"
