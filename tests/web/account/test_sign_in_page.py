"""Signing in and out, the first account, and what the log says of it."""

from __future__ import annotations

import logging

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Teacher
from app.store.tables import audit_log
from app.web.shared.cookies import TEACHER_COOKIE
from app.web.shared.passwords import Passwords
from app.web.shared.rate_limits import BUCKETS
from tests.helpers.accounts import ADA, sign_in
from tests.helpers.school import PASSWORD, School

# The first account


# Signing in


def test_signing_in_and_out(browser: TestClient, ada: Teacher) -> None:
    """The cookie cannot be read by scripts nor sent by other sites, and after signing out it opens nothing."""
    assert browser.get("/courses").headers["location"] == "/sign-in?next=/courses"
    answer = browser.post("/sign-in", data={"email": "ADA@example.org ", "password": PASSWORD})
    assert answer.headers["location"] == "/courses"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    token = browser.cookies[TEACHER_COOKIE]
    assert browser.get("/courses").status_code == 200
    assert browser.post("/sign-out").headers["location"] == "/sign-in"
    browser.cookies.set(TEACHER_COOKIE, token)
    assert browser.get("/courses").status_code == 303


def test_behind_tls_the_cookie_is_for_tls_alone(new_app: FastAPI, ada: Teacher) -> None:
    """Over https it is marked Secure."""
    with TestClient(new_app, base_url="https://shapes.example.org", follow_redirects=False) as browser:
        answer = browser.post("/sign-in", data={"email": ADA, "password": PASSWORD})
    assert "secure" in answer.headers["set-cookie"].lower()


def test_signing_out_everywhere_ends_other_browsers(new_app: FastAPI, school: School, ada: Teacher) -> None:
    """One press ends the session of another browser too."""
    with school.browser(teacher=ada) as one, school.browser(teacher=ada) as other:
        one.post("/sign-out", data={"everywhere": "yes"})
        assert other.get("/courses").status_code == 303


def test_a_wrong_password_and_an_unknown_address_look_alike(browser: TestClient, ada: Teacher) -> None:
    """Character by character the same answer, but for the address that was typed."""
    wrong = browser.post("/sign-in", data={"email": ADA, "password": "not the password"})
    unknown = browser.post("/sign-in", data={"email": "eve@example.org", "password": "not the password"})
    assert (wrong.status_code, unknown.status_code) == (422, 422)
    assert wrong.text.replace(ADA, "") == unknown.text.replace("eve@example.org", "")
    assert "Incorrect e-mail address or password" in wrong.text


def test_an_unknown_address_costs_as_much_work(
    browser: TestClient, school: School, ada: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash is verified for both, so that the time tells nothing."""
    verified = list[str]()
    hasher = school.services.passwords._hasher
    real = type(hasher).verify

    def counted(self: object, password: str, kept: str) -> bool:
        verified.append(kept)
        return bool(real(hasher, password, kept))

    monkeypatch.setattr(type(hasher), "verify", counted)
    for email in (ADA, "eve@example.org", "nonsense"):
        sign_in(browser, "not the password", email)
    assert len(verified) == 3
    assert all(kept.startswith("$argon2id$") for kept in verified)


def test_an_account_without_a_password_lets_nobody_in(browser: TestClient, school: School) -> None:
    """Made in the terminal and not set yet: no text is its password, nor the one that hides it."""
    school.store.people.add_teacher(ADA, "Ada")
    for password in ("", "nobody signs in with this", PASSWORD):
        assert sign_in(browser, password)[0] == 422


@pytest.mark.parametrize(
    ("after", "there"),
    [
        ("/courses/3", "/courses/3"),
        ("//evil.example", "/courses"),
        ("/\\evil.example", "/courses"),
        ("https://evil.example", "/courses"),
        ("/x\r\nSet-Cookie: a=b", "/courses"),
        ("", "/courses"),
    ],
)
def test_after_signing_in_one_stays_on_this_site(browser: TestClient, ada: Teacher, after: str, there: str) -> None:
    """Only a path of this site is gone on to."""
    assert sign_in(browser, after=after) == (303, there)


def test_another_site_cannot_send_the_forms(browser: TestClient, school: School, ada: Teacher) -> None:
    """A form with the cookie from another site is refused, whatever says so."""
    with school.browser(teacher=ada) as signed:
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            answer = signed.post("/courses", data={"title": "Theirs", "zone": "UTC"}, headers=headers)
            assert answer.status_code == 403
    assert school.store.courses.taught_by(ada) == ()


def test_guessing_at_one_account_is_slowed_down(
    browser: TestClient, ada: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten wrong passwords even the right one has to wait, with the time to wait; others still get in."""
    monkeypatch.setattr(Passwords, "verify", lambda self, password, kept: password == PASSWORD)
    for _ in range(int(BUCKETS["account"].size)):
        assert sign_in(browser, "wrong")[0] == 422
    answer = browser.post("/sign-in", data={"email": ADA, "password": PASSWORD})
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= BUCKETS["account"].refill_s + 1
    assert "Too many failed attempts" in answer.text


# The log


def test_sign_ins_are_logged_without_names(
    school: School, browser: TestClient, ada: Teacher, caplog: pytest.LogCaptureFixture
) -> None:
    """The audit log holds numbers; neither it nor any line that is printed holds an address, a name or a password."""
    with caplog.at_level(logging.DEBUG):
        sign_in(browser, "wrong password")
        sign_in(browser)
        browser.post("/sign-out")
    with school.store.engine.connect() as connection:
        columns = (audit_log.c.actor_kind, audit_log.c.actor_id, audit_log.c.action)
        rows = [tuple(row) for row in connection.execute(sa.select(*columns).order_by(audit_log.c.id))]
    assert rows == [
        ("nobody", None, "sign-in refused"), ("teacher", ada.id, "sign-in"), ("teacher", ada.id, "sign-out"),
    ]  # fmt: skip
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("attention_shapes", "app"))]
    assert not any(word in line for line in ours for word in (ADA, "Ada", PASSWORD))
