"""Signing in and out, links, invitations, and how often somebody may guess."""

from __future__ import annotations

import logging
import re
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app import main
from app.cli import main as command
from app.settings import Settings
from app.store import Store, Teacher
from app.store.tables import log
from app.web.shared.cookies import TEACHER_COOKIE
from app.web.shared.passwords import MAX_HASHES_AT_ONCE, MAX_WAITING, Passwords, PasswordsBusyError
from app.web.shared.rate_limits import BUCKETS, RateLimits, TooManyGuessesError
from tests.helpers.school import PASSWORD, School

ADA = "ada@example.org"


@pytest.fixture
def school(new_app: FastAPI) -> School:
    return School(new_app)


@pytest.fixture
def browser(new_app: FastAPI) -> TestClient:
    return TestClient(new_app, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture(scope="module")
def known_hash() -> str:
    return Passwords().hash(PASSWORD)


@pytest.fixture
def ada(school: School, known_hash: str) -> Teacher:
    """Ada, with a password that is known."""
    people = school.store.people
    link = people.find_link(people.add_link("invite", ADA))
    assert link
    made = people.follow_link(link, ADA, "Ada", known_hash)
    assert made
    return made


def sign_in(browser: TestClient, password: str = PASSWORD, email: str = ADA, after: str = "") -> tuple[int, str]:
    answer = browser.post("/sign-in", data={"email": email, "password": password, "next": after})
    return answer.status_code, answer.headers.get("location", "")


# The first account


def test_the_set_up_link_makes_the_first_account(browser: TestClient, school: School) -> None:
    """Its form asks for address, name and password, refuses a short one with everything else kept, and signs in."""
    token = school.store.people.add_link("setup")
    assert "Make the first account" in browser.get(f"/links/{token}").text
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
    """With a sentence, and the link still works."""
    token = school.store.people.add_link("setup")
    answer = browser.post(f"/links/{token}", data={"email": email, "name": "Ada", "password": PASSWORD})
    assert answer.status_code == 422
    assert "An e-mail address is needed" in answer.text
    assert browser.get(f"/links/{token}").status_code == 200


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
    assert "do not belong together" in wrong.text


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


# Guessing


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
    assert "Too many wrong guesses" in answer.text


def test_a_bucket_fills_by_itself() -> None:
    """By a clock of our own: empty after its size, one more after its seconds, full again and never more than that."""
    at = [0.0]
    limits = RateLimits(clock=lambda: at[0])
    bucket = BUCKETS["join"]
    for _ in range(int(bucket.size)):
        limits.check("join", "here")
        limits.record_failure("join", "here")
    with pytest.raises(TooManyGuessesError) as refused:
        limits.check("join", "here")
    limits.check("join", "elsewhere")
    at[0] += refused.value.seconds
    limits.check("join", "here")
    at[0] += 10_000_000
    for _ in range(int(bucket.size)):
        limits.check("join", "here")
        limits.record_failure("join", "here")
    with pytest.raises(TooManyGuessesError):
        limits.check("join", "here")


def guesses(workers: int, hours: int) -> tuple[int, int]:
    """How many guesses at one account a worker allows at once, and then within so many hours."""
    at, counted = [0.0], list[int]()
    limits = RateLimits(workers, clock=lambda: at[0])
    for moments in (range(1), range(0, hours * 3600, 60)):
        counted.append(0)
        for at[0] in moments:
            with suppress(TooManyGuessesError):
                while True:
                    limits.check("account", ADA)
                    limits.record_failure("account", ADA)
                    counted[-1] += 1
    return counted[0], counted[1]


@pytest.mark.parametrize(("workers", "at_once"), [(1, 10), (2, 5), (4, 5), (64, 5)])
def test_several_workers_allow_together_what_one_allows(workers: int, at_once: int) -> None:
    """One guess a minute and no more over two days; and a few mistakes at once are nobody's harm."""
    first, later = guesses(workers, 48)
    assert first == at_once
    assert 48 * 60 - 2 * workers <= later * workers <= 48 * 60


def test_the_app_counts_for_as_many_workers_as_are_set(tmp_path: Path) -> None:
    """Of four, each refuses the sixth guess at one account."""
    limits = main.create_app(Settings(data_dir=tmp_path, database_url="", workers=4)).state.services.limits
    for _ in range(5):
        limits.check("account", ADA)
        limits.record_failure("account", ADA)
    with pytest.raises(TooManyGuessesError):
        limits.check("account", ADA)


def test_password_hashes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are worked on at once, eight wait, and the next is told to come back."""
    passwords, gate, working, most = Passwords(), threading.Event(), list[int](), list[int]()

    def slow(self: object, password: str) -> str:
        working.append(1)
        most.append(len(working))
        gate.wait(10)
        working.pop()
        return "hash"

    monkeypatch.setattr(type(passwords._hasher), "hash", slow)
    threads = [threading.Thread(target=passwords.hash, args=("x",)) for _ in range(MAX_HASHES_AT_ONCE + MAX_WAITING)]
    for thread in threads:
        thread.start()
    while passwords._room._value:  # how many may still come in
        threading.Event().wait(0.01)
    with pytest.raises(PasswordsBusyError):
        passwords.hash("x")
    gate.set()
    for thread in threads:
        thread.join()
    assert max(most) <= MAX_HASHES_AT_ONCE
    assert passwords.hash("x") == "hash"


# Invitations


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


# In the terminal


def test_the_terminal_adds_and_resets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`teacher add` and `teacher reset` print a link that sets a password once; what cannot be is one line."""
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ATTENTION_SHAPES_ADDRESS", "https://shapes.example.org/")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for arguments, sentence in (
        (("add", "nonsense"), "is no e-mail address"),
        (("reset", ADA), "Nobody has the address"),
        (("add", ADA, "--name", "Ada"), ""),
        (("add", ADA), "has an account already"),
        (("reset", ADA), ""),
    ):
        if sentence:
            with pytest.raises(SystemExit):
                command(("teacher", *arguments))
            assert sentence in capsys.readouterr().err
        else:
            command(("teacher", *arguments))
    found = re.findall(r"https://shapes\.example\.org(/links/[\w-]+)", capsys.readouterr().out)
    app = main.create_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app, follow_redirects=False) as browser:
        assert browser.post(found[-1], data={"password": PASSWORD}).headers["location"] == "/courses"
        assert browser.get(found[-1]).status_code == 404
        assert sign_in(TestClient(app, follow_redirects=False))[0] == 303


def test_serve_prints_a_set_up_link_until_there_is_a_teacher(school: School) -> None:
    """A new start voids the link before it; with a teacher there is none to print."""
    people = school.store.people
    first = people.add_link("setup")
    second = people.add_link("setup")
    assert people.find_link(first) is None
    assert people.find_link(second)
    assert not people.has_teacher()
    school.teacher(ADA)
    assert people.has_teacher()
    assert people.find_link(second) is None


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
        rows = [(row.who, row.what) for row in connection.execute(sa.select(log).order_by(log.c.id))]
    teacher = f"teacher {ada.id}"
    assert rows == [("nobody", "sign-in refused"), (teacher, "sign-in"), (teacher, "sign-out")]
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("attention_shapes", "app"))]
    assert not any(word in line for line in ours for word in (ADA, "Ada", PASSWORD))


def test_the_terminal_makes_and_removes_a_sample_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For the only teacher without saying whose it is; without any, one line says what to write."""
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(SystemExit):
        command(("sample-course",))
    assert "sample-course EMAIL" in capsys.readouterr().err
    command(("teacher", "add", ADA))
    command(("sample-course",))
    store = Store(Settings(data_dir=tmp_path, database_url="").database)
    ada = store.people.find_teacher(ADA)
    assert ada
    assert [taught.course.sample for taught in store.courses.taught_by(ada)] == [True]
    command(("sample-course", ADA, "--remove"))
    assert store.courses.taught_by(ada) == ()
    store.close()
