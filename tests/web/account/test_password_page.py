"""Changing the password while signed in: it asks for the old one and ends every other session."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Teacher
from app.store.tables import audit_log
from app.web.shared.rate_limits import BUCKETS
from tests.helpers.accounts import ADA, sign_in
from tests.helpers.school import PASSWORD, School

NEW = "a longer battery staple"


def test_a_new_password_needs_the_old_one_and_ends_other_sessions(
    browser: TestClient, school: School, ada: Teacher
) -> None:
    token = school.store.people.add_link("reset", ADA)
    sign_in(browser)
    with school.browser(teacher=ada) as other:
        for old, new in (("wrong", NEW), (PASSWORD, "short"), (PASSWORD, "x" * 501)):
            assert browser.post("/password", data={"old": old, "new": new}).status_code == 422
        assert other.get("/courses").status_code == 200
        changed = browser.post("/password", data={"old": PASSWORD, "new": NEW})
        assert (changed.status_code, changed.headers["location"]) == (303, "/courses?done=password")
        assert other.get("/courses").status_code == 303
    assert browser.get("/courses?done=password").status_code == 200
    assert school.store.people.find_link(token) is None
    browser.post("/sign-out")
    assert sign_in(browser)[0] == 422
    assert sign_in(browser, NEW)[0] == 303
    with school.store.engine.connect() as connection:
        actions = list(connection.scalars(sa.select(audit_log.c.action)))
    assert actions.count("password set") == 1


def test_wrong_old_passwords_are_slowed_down_without_locking_the_sign_in(
    new_app: FastAPI, school: School, ada: Teacher
) -> None:
    with school.browser(teacher=ada) as browser:
        for _ in range(int(BUCKETS["known"].size)):
            assert browser.post("/password", data={"old": "wrong", "new": NEW}).status_code == 422
        assert browser.post("/password", data={"old": PASSWORD, "new": NEW}).status_code == 429
    with TestClient(new_app, follow_redirects=False) as other:
        assert sign_in(other)[0] == 303
