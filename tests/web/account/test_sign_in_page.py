"""Signing in and out, the first account, and what the log says of it."""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Teacher
from app.store.tables import audit_log
from app.web.shared import passwords
from app.web.shared.cookies import KNOWN_COOKIE, TEACHER_COOKIE
from app.web.shared.rate_limits import BUCKETS
from tests.helpers.accounts import ADA, sign_in
from tests.helpers.html_page import Page
from tests.helpers.school import PASSWORD, School
from tests.helpers.sent_form import SentForm

# The first account


def test_the_way_to_the_first_account_leads_through_the_log(
    browser: TestClient, school: School, caplog: pytest.LogCaptureFixture
) -> None:
    assert Page(browser.get("/sign-in").text).find("input", name="password") == []

    def printed() -> list[str]:
        asked = browser.post("/sign-in/first-link", headers={"Host": "evil.example"}, follow_redirects=False)
        assert asked.status_code == 303
        assert "/links/" not in asked.text + browser.get(asked.headers["location"]).text
        return re.findall(r"http://127\.0\.0\.1:80(/links/[\w-]+)", caplog.text)

    caplog.set_level(logging.INFO)
    assert len(printed()) == 1
    assert {record.levelname for record in caplog.records if "/links/" in record.getMessage()} == {"INFO"}
    first, second = printed()
    form = {"email": ADA, "name": "Ada", "password": PASSWORD}
    assert browser.post(first, data=form).status_code == 303
    assert browser.get(second).status_code == 404
    browser.cookies.clear()
    assert Page(browser.get("/sign-in").text).find("input", name="password") != []
    assert len(printed()) == 2


def test_first_links_are_not_printed_without_end(browser: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    asked = [browser.post("/sign-in/first-link").status_code for _ in range(int(BUCKETS["mail"].size) + 1)]
    assert asked == [303] * (len(asked) - 1) + [429]
    assert caplog.text.count("/links/") == len(asked) - 1


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
    with TestClient(new_app, base_url="https://shapes.example.org", follow_redirects=False) as browser:
        answer = browser.post("/sign-in", data={"email": ADA, "password": PASSWORD})
    assert "secure" in answer.headers["set-cookie"].lower()


def test_signing_out_everywhere_ends_other_browsers(new_app: FastAPI, school: School, ada: Teacher) -> None:
    with school.browser(teacher=ada) as one, school.browser(teacher=ada) as other:
        one.post("/sign-out", data={"everywhere": "yes"})
        assert other.get("/courses").status_code == 303


def test_a_wrong_password_and_an_unknown_address_look_alike(browser: TestClient, ada: Teacher) -> None:
    wrong = browser.post("/sign-in", data={"email": ADA, "password": "not the password"})
    unknown = browser.post("/sign-in", data={"email": "eve@example.org", "password": "not the password"})
    assert (wrong.status_code, unknown.status_code) == (422, 422)
    assert wrong.text.replace(ADA, "") == unknown.text.replace("eve@example.org", "")
    assert "Incorrect e-mail address or password" in wrong.text


def test_an_unknown_address_costs_as_much_work(
    browser: TestClient, school: School, ada: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert sign_in(browser, after=after) == (303, there)


@pytest.mark.parametrize(
    "address",
    [
        "/questions?worksheet=llama-7b&model=gpt2",
        "/worksheets?words=one+head%2Bmore%26&topic=costs",
        "/courses",
    ],
)
def test_signing_in_leads_to_the_page_that_was_asked_for(browser: TestClient, ada: Teacher, address: str) -> None:
    [after] = SentForm(browser.get(browser.get(address).headers["location"]).text).values["next"]
    assert sign_in(browser, after=after) == (303, address)
    assert browser.get(address).status_code == 200


def test_another_site_cannot_send_the_forms(browser: TestClient, school: School, ada: Teacher) -> None:
    with school.browser(teacher=ada) as signed:
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            answer = signed.post("/courses", data={"title": "Theirs", "zone": "UTC"}, headers=headers)
            assert answer.status_code == 403
    assert school.store.courses.taught_by(ada) == ()


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of a second for a guess that is slowed down, and the rest to scale, so that a test can guess often."""
    for name in ("SLOW_VERIFY_S", "NETWORK_PACE_S", "PACE_S", "MAX_SLOW_WAIT_S"):
        monkeypatch.setattr(passwords, name, getattr(passwords, name) / 15)


def at(school: School, address: str) -> TestClient:
    """A browser at that address."""
    return TestClient(school.app, client=(address, 1), raise_server_exceptions=False, follow_redirects=False)


@pytest.mark.usefixtures("short_waits")
def test_guessing_at_one_account_is_slowed_down(school: School, ada: Teacher) -> None:
    guesser = at(school, "192.0.2.1")
    for _ in range(int(BUCKETS["guess"].size)):
        assert sign_in(guesser, "wrong")[0] == 422
    answer = guesser.post("/sign-in", data={"email": ADA, "password": "wrong"})
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= BUCKETS["guess"].refill_s + 1
    assert "Too many failed attempts" in answer.text
    began = time.monotonic()
    assert sign_in(guesser)[0] == 303
    assert time.monotonic() - began > 0.2


@pytest.mark.usefixtures("short_waits")
def test_nobody_is_kept_out_of_their_account_by_others(school: School, ada: Teacher) -> None:
    own = at(school, "192.0.2.99")
    assert sign_in(own)[0] == 303
    own.post("/sign-out")
    for number in range(10):
        guesser = at(school, f"192.0.2.{number}")
        for _ in range(10):
            sign_in(guesser, "wrong")
    limits = school.services.limits
    for limit in ("guess", "account", "sign-in"):
        for _ in range(100):
            limits.record_failure(limit, {"guess": f"{ADA} 192.0.2.99", "account": ADA}.get(limit, "192.0.2.99"))
    for _ in range(3):
        assert sign_in(own, "mistyped")[0] == 422
    assert sign_in(own)[0] == 303
    assert sign_in(at(school, "192.0.2.99"))[0] == 303
    assert sign_in(at(school, "198.51.100.1"))[0] == 303


@pytest.mark.slow
@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize(
    ("emails", "count"), [(["nobody@example.org"], 5), ([f"{n}@example.org" for n in range(6)], 5), ([ADA], 2)]
)
def test_a_right_password_passes_beside_those_who_guess(
    school: School, ada: Teacher, emails: list[str], count: int
) -> None:
    for number in range(int(BUCKETS["sign-in"].size)):
        sign_in(at(school, "192.0.2.1"), "wrong", f"{number}@example.net")
    done = threading.Event()

    def guess(browser: TestClient) -> Counter[int]:
        statuses, accounts = Counter[int](), itertools.cycle(emails)
        while not done.is_set():
            statuses[sign_in(browser, "wrong", next(accounts))[0]] += 1
        return statuses

    with ThreadPoolExecutor(count) as pool:
        guessers = [pool.submit(guess, at(school, "192.0.2.1")) for _ in range(count)]
        statuses = [sign_in(at(school, "192.0.2.1"))[0] for _ in range(4)]
        done.set()
    assert statuses == [303] * 4
    assert sum((each.result() for each in guessers), Counter())[429] > 0


@pytest.mark.usefixtures("short_waits")
def test_a_known_browser_is_known_to_its_own_account_alone(school: School, ada: Teacher) -> None:
    own = at(school, "192.0.2.1")
    sign_in(own)
    known = own.cookies[KNOWN_COOKIE]
    for email, cookie in (("bo@example.org", known), (ADA, f"{known}x"), (ADA, "x"), (ADA, "é.é")):
        school.services.limits.forget()
        stranger = at(school, "192.0.2.2")
        headers = {"Cookie": f"{KNOWN_COOKIE}={cookie}".encode()}
        statuses = [
            stranger.post("/sign-in", data={"email": email, "password": "wrong"}, headers=headers).status_code  # type: ignore[arg-type]
            for _ in range(11)
        ]
        assert statuses[-1] == 429
        assert ("guess", f"{email} 192.0.2.2") in school.services.limits._tokens


# The log


def test_sign_ins_are_logged_without_names(
    school: School, browser: TestClient, ada: Teacher, caplog: pytest.LogCaptureFixture
) -> None:
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
