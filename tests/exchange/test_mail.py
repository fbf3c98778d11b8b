"""Links for new passwords by mail, through a real mail server on this machine, with and without TLS."""

from __future__ import annotations

import email
import logging
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.testclient import TestClient

from app.cli.serve import _greet
from app.exchange.mail import Mail, MailError, MailServer, Outbox, read_sender, read_server
from app.settings import Settings
from app.store import Store, Teacher
from app.store.tables import audit_log
from app.web.shared.rate_limits import BUCKETS
from tests.helpers.clock import Clock
from tests.helpers.running_app import make_app
from tests.helpers.school import PASSWORD, School

ADA = "ada@example.org"
PUBLIC = "https://shapes.example.org"
SENDER = "Attention Shapes <shapes@example.org>"
USER, SECRET = "shapes@example.org", "p@ss/w:rd ?#%"


@dataclass
class Box:
    """A mail server's handler: what it took, and what it says instead of taking it."""

    refusal: str = ""
    taken: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    came: threading.Event = field(default_factory=threading.Event)

    async def handle_RCPT(self, _server: Any, _session: Session, envelope: Envelope, address: str, _: Any) -> str:
        if self.refusal:
            self.came.set()
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        letter = email.message_from_bytes(envelope.content, policy=SMTP)  # type: ignore[arg-type]  # bytes, by default
        assert isinstance(letter, EmailMessage)
        letter["X-Came"] = ("over TLS" if server.transport.get_extra_info("ssl_object") else "in the open") + (
            " with a password" * bool(session.authenticated)
        )
        self.taken.append((list(envelope.rcpt_tos), letter))
        self.came.set()
        return "250 OK"


def _allowed(_server: Any, _session: Session, _envelope: Envelope, _how: str, given: object) -> AuthResult:
    right = isinstance(given, LoginPassword) and (given.login, given.password) == (USER.encode(), SECRET.encode())
    return AuthResult(success=right, handled=False)


class OnAnyPort(Controller):
    """A server that takes a free port, and then says which."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]  # it was started
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server(box: Box, **options: Any) -> Iterator[int]:
    """A mail server on a free port of this machine, until the block is left."""
    controller = OnAnyPort(box, hostname="127.0.0.1", port=0, **options)
    controller.start()
    try:
        yield int(controller.port)
    finally:
        controller.stop()


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def post(box: Box) -> Iterator[int]:
    """The port of a mail server without TLS."""
    with mail_server(box) as port:
        yield port


@pytest.fixture
def school(tmp_path: Path, post: int) -> Iterator[School]:
    """The app with that mail server and a public address, and Ada, who has an account."""
    settings = Settings(
        data_dir=tmp_path, database_url="", address=PUBLIC, smtp=f"smtp://127.0.0.1:{post}", smtp_from=SENDER
    )
    app = make_app(settings)
    with TestClient(app):
        yield School(app)


@pytest.fixture
def ada(school: School) -> Teacher:
    return school.teacher(ADA)


@pytest.fixture
def browser(school: School) -> TestClient:
    return TestClient(school.app, raise_server_exceptions=False, follow_redirects=False)


def ask(browser: TestClient, address: str = ADA, **headers: str) -> Any:
    return browser.post("/forgotten-password", data={"email": address}, headers=headers, follow_redirects=True)


def done(school: School) -> None:
    """Wait until everything that was asked for so far has been seen to."""
    assert school.services.mail
    reached = threading.Event()
    assert school.services.mail.outbox.put(reached.set)
    assert reached.wait(60)


def link_in(letter: EmailMessage) -> str:
    found = re.search(r"^https?://\S+$", letter.get_content().replace("\r\n", "\n"), re.MULTILINE)
    assert found
    return found[0]


# The way to a new password


def test_a_mailed_link_sets_a_password_once_and_ends_every_session(
    school: School, ada: Teacher, browser: TestClient, box: Box
) -> None:
    assert 'href="/forgotten-password"' in browser.get("/sign-in").text
    assert "Send link" in browser.get("/forgotten-password").text
    with school.browser(teacher=ada) as other:
        assert "have sent it a link" in ask(browser, " ADA@example.org ").text
        done(school)
        [(recipients, letter)] = box.taken
        assert (recipients, letter["To"], letter["From"]) == ([ADA], ADA, SENDER)
        assert (letter["Auto-Submitted"], letter["Message-ID"].endswith("@example.org>")) == ("auto-generated", True)
        path = link_in(letter).removeprefix(PUBLIC)
        assert browser.post(path, data={"password": PASSWORD}).headers["location"] == "/courses"
        assert other.get("/courses").status_code == 303
    assert browser.get(path).status_code == 404
    signed = browser.post("/sign-in", data={"email": ADA, "password": PASSWORD})
    assert signed.status_code == 303
    with school.store.engine.connect() as connection:
        columns = [audit_log.c[name] for name in ("actor_kind", "actor_id", "action", "object_kind", "object_id")]
        rows = [tuple(row) for row in connection.execute(sa.select(*columns).order_by(audit_log.c.id))]
    assert rows[0] == ("nobody", None, "password link mailed", "teacher", ada.id)
    assert rows[1] == ("teacher", ada.id, "password set", "teacher", ada.id)


def test_the_host_of_a_request_has_no_part_in_the_link(
    school: School, ada: Teacher, browser: TestClient, box: Box
) -> None:
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    assert ask(browser, **evil).status_code == 200
    done(school)
    assert link_in(box.taken[0][1]).startswith(f"{PUBLIC}/links/")
    assert "evil" not in box.taken[0][1].as_string()


def test_a_link_is_good_for_an_hour(school: School, ada: Teacher, browser: TestClient, box: Box, clock: Clock) -> None:
    ask(browser)
    done(school)
    path = link_in(box.taken[0][1]).removeprefix(PUBLIC)
    for minutes, status in ((59, 200), (2, 404)):
        clock.pass_minutes(minutes)
        assert browser.get(path).status_code == status


def test_asking_voids_no_link_and_a_new_password_voids_all(school: School, ada: Teacher, browser: TestClient) -> None:
    people = school.store.people
    printed = people.add_link("reset", ADA)
    ask(browser)
    done(school)
    assert browser.get(f"/links/{printed}").status_code == 200
    token = people.add_mailed_link(ada)
    assert browser.post(f"/links/{token}", data={"password": PASSWORD}).status_code == 303
    assert people.find_link(printed) is None


def test_mailed_links_are_counted_dropped_and_voided_in_either_database(store: Store) -> None:
    people = store.people
    ada = people.add_teacher(ADA, "Ada")
    assert ada
    tokens = [people.add_mailed_link(ada) for _ in range(4)]
    assert [token is not None for token in tokens] == [True, True, True, False]
    people.drop_link(str(tokens[0]))
    tokens[0] = people.add_mailed_link(ada)
    found = [people.find_link(str(token)) for token in tokens[:3]]
    assert all(found)
    assert people.follow_link(found[1], ADA, "", "hash")  # type: ignore[arg-type]  # all are there
    assert [people.find_link(str(token)) for token in tokens[:3]] == [None] * 3
    assert people.add_mailed_link(ada) is None


# Nobody learns who teaches here


def test_an_unknown_address_gets_the_same_answer_and_no_letter(
    school: School, ada: Teacher, browser: TestClient, box: Box
) -> None:
    known, unknown = ask(browser), ask(browser, "eve@example.org")
    done(school)
    assert (known.status_code, unknown.status_code) == (200, 200)
    assert known.text.replace(ADA, "") == unknown.text.replace("eve@example.org", "")
    assert known.headers.keys() == unknown.headers.keys()
    assert [recipients for recipients, _ in box.taken] == [[ADA]]


def test_nobody_is_looked_up_before_the_answer_is_given(
    school: School, ada: Teacher, browser: TestClient, monkeypatch: pytest.MonkeyPatch, box: Box
) -> None:
    people, gate = school.store.people, threading.Event()
    real = people.find_teacher
    monkeypatch.setattr(people, "find_teacher", lambda address: real(address) if gate.wait(60) else None)
    assert [ask(browser, address).status_code for address in (ADA, "eve@example.org")] == [200, 200]
    assert box.taken == []
    gate.set()
    done(school)
    assert len(box.taken) == 1


# How often


def test_a_mailbox_gets_three_letters_an_hour(school: School, ada: Teacher, browser: TestClient, box: Box) -> None:
    school.teacher("bo@example.org")
    answers = {ask(browser).text for _ in range(4)}
    ask(browser, "bo@example.org")
    done(school)
    assert len(answers) == 1
    assert [recipients[0] for recipients, _ in box.taken] == [ADA, ADA, ADA, "bo@example.org"]


def test_one_place_cannot_ask_for_ever(school: School, browser: TestClient) -> None:
    for _ in range(int(BUCKETS["mail"].size)):
        assert ask(browser, "eve@example.org").status_code == 200
    refused = ask(browser, "eve@example.org")
    assert refused.status_code == 429
    assert "Too many links requested. Try again in" in refused.text
    assert 'value="eve@example.org"' in refused.text


def test_too_many_letters_that_wait_are_refused(school: School, browser: TestClient) -> None:
    assert school.services.mail
    gate, outbox, began = threading.Event(), school.services.mail.outbox, threading.Event()

    def slow() -> None:
        began.set()
        gate.wait(60)

    assert outbox.put(slow)
    assert began.wait(60)
    while outbox.put(lambda: None):
        pass
    refused = ask(browser)
    gate.set()
    assert refused.status_code == 503
    assert "Try again in a minute" in refused.text


def test_what_is_no_address_is_refused(browser: TestClient) -> None:
    for address in ("", "ada", "a b@c", "a@b@c", "a@" + "b" * 254):
        refused = ask(browser, address)
        assert refused.status_code == 422
        assert "Enter an e-mail address" in refused.text
        assert f'value="{address}"' in refused.text


# Without mail


@pytest.mark.parametrize(("address", "said"), [("", True), (PUBLIC, False)])
def test_the_terminal_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, said: bool
) -> None:
    settings = Settings(data_dir=tmp_path, database_url="", address=address, smtp="smtp://127.0.0.1", smtp_from=SENDER)
    store = Store(settings.database, settings.data_dir)
    _greet(settings, store, "127.0.0.1", 8000)
    store.close()
    assert ("No mail will be sent until ATTENTION_SHAPES_ADDRESS" in capsys.readouterr().out) is said


# Mail servers that do not do what they should


@pytest.mark.parametrize("refusal", ["550 No such user ada@example.org here", "451 Try again later"])
def test_a_letter_that_is_refused_is_logged_without_the_address(
    school: School, ada: Teacher, browser: TestClient, box: Box, caplog: pytest.LogCaptureFixture, refusal: str
) -> None:
    box.refusal = refusal
    caplog.set_level(logging.DEBUG)
    answers = [ask(browser).text for _ in range(4)]
    done(school)
    assert all("have sent it a link" in answer for answer in answers)
    said = [record.getMessage() for record in caplog.records if record.name == "attention_shapes"]
    assert said == [f"mail: a link was not sent: SMTPRecipientsRefused {refusal[:3]}"] * 4
    ours = [record for record in caplog.records if not record.name.startswith("mail.")]  # that is the mail server's
    assert not any(ADA in record.getMessage() or "/links/" in record.getMessage() for record in ours)
    box.refusal = ""
    ask(browser)
    done(school)
    assert len(box.taken) == 1


def test_a_mail_server_that_is_away_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with mail_server(Box()) as port:
        pass
    settings = Settings(data_dir=tmp_path, database_url="", address=PUBLIC, smtp=f"smtp://127.0.0.1:{port}",
                        smtp_from=SENDER)  # fmt: skip
    with TestClient(make_app(settings)) as browser:
        school = School(browser.app)  # type: ignore[arg-type]  # it is the app itself
        school.teacher(ADA)
        assert ask(browser).status_code == 200
        done(school)
    assert [record.getMessage() for record in caplog.records] == ["mail: a link was not sent: ConnectionRefusedError"]


def test_a_database_that_fails_stops_no_later_letter(
    school: School, ada: Teacher, browser: TestClient, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(school.store.people, "find_teacher", lambda _: 1 / 0)
        ask(browser)
        done(school)
    ask(browser)
    done(school)
    assert len(box.taken) == 1


# TLS


@dataclass
class Certified:
    """What a server needs to show a certificate, and the file that makes it trusted."""

    context: ssl.SSLContext
    authority: Path


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    authority, file = trustme.CA(), tmp_path_factory.mktemp("tls") / "authority.pem"
    authority.cert_pem.write_to_path(file)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return Certified(context, file)


def sent_over(url: str) -> None:
    Mail(read_server(url), read_sender(SENDER)).send(ADA, "Subject", "Text")


LOGIN = f"{quote(USER, safe='')}:{quote(SECRET, safe='')}"


@pytest.mark.parametrize("how", ["smtps", "smtp"])
def test_letters_go_over_tls_with_user_and_password(
    certified: Certified, box: Box, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    login = {"authenticator": _allowed, "auth_exclude_mechanism": ["LOGIN"]}
    options: dict[str, Any] = (
        {"ssl_context": certified.context, "auth_require_tls": False}
        if how == "smtps"
        else {"tls_context": certified.context, "require_starttls": True, "auth_required": True}
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certified.authority))
    asked = "" if how == "smtps" else "?tls=starttls"
    with mail_server(box, **login, **options) as port:
        sent_over(f"{how}://{LOGIN}@127.0.0.1:{port}{asked}")
        with pytest.raises(MailError, match=r"^SMTPAuthenticationError 535$"):
            sent_over(f"{how}://{LOGIN}x@127.0.0.1:{port}{asked}")
    [(_, letter)] = box.taken
    assert letter["X-Came"] == "over TLS with a password"


def test_a_certificate_that_nobody_vouches_for_is_refused(certified: Certified, box: Box) -> None:
    seen = list[object]()

    def curious(*heard: Any) -> AuthResult:
        seen.append(heard[-1])
        return AuthResult(success=True, handled=False)

    unknown, none = {"tls_context": certified.context}, dict[str, Any]()
    for offered, error in ((unknown, "SSLCertVerificationError"), (none, "SMTPNotSupportedError")):
        with (
            mail_server(box, authenticator=curious, auth_require_tls=False, **offered) as port,
            pytest.raises(MailError, match=f"^{error}$"),
        ):
            sent_over(f"smtp://{LOGIN}@127.0.0.1:{port}?tls=starttls")
    assert (seen, box.taken) == ([], [])


# Settings


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtps://mail.example.org", MailServer("mail.example.org", 465, "tls")),
        ("smtp://mail.example.org", MailServer("mail.example.org", 587, "starttls")),
        ("smtp://mail.example.org:2525/?tls=none", MailServer("mail.example.org", 2525, "none")),
        ("smtp://localhost", MailServer("localhost", 25, "none")),
        ("smtp://[::1]:1025", MailServer("::1", 1025, "none")),
        ("smtp://127.0.0.1?tls=starttls", MailServer("127.0.0.1", 587, "starttls")),
        (f"smtps://{LOGIN}@h", MailServer("h", 465, "tls", USER, SECRET)),
    ],
)
def test_a_mail_server_is_read(url: str, server: MailServer) -> None:
    assert read_server(url) == server
    assert SECRET not in repr(server)


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.org", "http://h", "smtp://", "smtp://user@h", "smtp://u:secret@h:port", "smtp://u:sec/ret@h",
        "smtp://h?tls=maybe", "smtps://h?tls=none", "smtp://h?x=1", "smtp://h#x", "smtp://u:secret@[h", "smtp://h:99999",
    ],
)  # fmt: skip
def test_what_is_no_mail_server_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(smtp=url, smtp_from=SENDER, database_url="")
    [error] = refused.value.errors()
    assert error["loc"] == ("smtp",)
    assert not any(part in str(refused.value) or part in error["msg"] for part in ("secret", "sec/", "'port'"))


def refusal(read: Callable[[str], object], text: str) -> str:
    """Why it cannot be read, or nothing."""
    try:
        read(text)
    except ValueError as error:
        return str(error)
    return ""


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for read in (read_server, read_sender):
        for tried in (text, f"smtp://{text}", f"smtp://{text}@h", f"{text}@example.org"):
            assert refusal(read, tried).startswith(("must", "needs", "allows")) or not refusal(read, tried)


@pytest.mark.parametrize(
    "sender",
    [
        "",
        "shapes",
        "a@b, c@d",
        "a@b\nBcc: eve@evil.example",
        "a@b@c",
        "@",
        "x <>",
        "shapes@localhost",
        "a@b.org <c@d.org>",
    ],
)
def test_a_sender_is_one_address(sender: str) -> None:
    with pytest.raises(ValidationError, match="must be a single e-mail address"):
        Settings(smtp="smtp://h", smtp_from=sender, database_url="")


@pytest.mark.parametrize(
    ("text", "name", "mailbox"),
    [
        ("shapes@example.org", "", "shapes@example.org"),
        ("Attention Shapes <shapes@example.org>", "Attention Shapes", "shapes@example.org"),
        ("shapes@bücher.example", "", "shapes@xn--bcher-kva.example"),
        ("Shapes <shapes@mail.local>", "Shapes", "shapes@mail.local"),
    ],
)
def test_a_sender_may_have_a_name_and_a_domain_in_any_script(text: str, name: str, mailbox: str) -> None:
    sender = read_sender(text)
    assert (sender.display_name, sender.addr_spec) == (name, mailbox)


@pytest.mark.parametrize(
    "address", ["a,eve@evil.example", "<a>@b", "a@b..c", "ü@example.org", "a@" + "ü" * 70 + ".org"]
)
def test_odd_addresses_reach_nobody_else(post: int, box: Box, address: str) -> None:
    mail = Mail(read_server(f"smtp://127.0.0.1:{post}"), read_sender(SENDER))
    try:
        mail.send(address, "Subject", "Text")
    except MailError:
        assert box.taken == []
    else:
        assert [recipients for recipients, _ in box.taken] == [[address]]


def test_a_domain_in_any_script_is_written_as_mail_servers_know_it(post: int, box: Box) -> None:
    Mail(read_server(f"smtp://127.0.0.1:{post}"), read_sender(SENDER)).send("ada@bücher.example", "S", "T")
    assert [recipients for recipients, _ in box.taken] == [["ada@xn--bcher-kva.example"]]


def test_what_waits_is_sent_before_the_app_ends(post: int, box: Box) -> None:
    mail = Mail(read_server(f"smtp://127.0.0.1:{post}"), read_sender(SENDER), Outbox())
    mail.outbox.put(lambda: mail.send(ADA, "Subject", "Text"))
    mail.outbox.close()
    assert len(box.taken) == 1
    assert not mail.outbox.put(lambda: None)  # which nobody would ever do
