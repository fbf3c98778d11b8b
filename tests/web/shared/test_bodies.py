"""What one client sends, or takes of anything else that all share, leaves room for everybody."""

from __future__ import annotations

import http.client
import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest
from starlette.testclient import TestClient

from app.exchange import hub
from app.machine.work_queue import Client, QueueFullError
from app.store.jobs import JobKind, JobRefusedError
from app.web.shared import connection_limits
from app.web.shared.bodies import BODIES_OF_NETWORK
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.rate_limits import BYTES_OF_MODEL, BudgetSpentError, TooManyGuessesError
from app.web.shared.request_guard import MAX_BODY, MAX_FORM, body_limit
from app.web.shared.services import Services
from tests.helpers.class_sheet import HALF, press
from tests.helpers.permission_table import TABLE, TwoCourses
from tests.helpers.queued_jobs import add_job
from tests.helpers.running_app import served
from tests.helpers.school import Browser, Classroom

ATTACKER, SOMEBODY = "192.0.2.1", "198.51.100.9"
LARGE = MAX_BODY - 50_000
FORM, JSON = b"application/x-www-form-urlencoded", b"application/json"


class HalfSent:
    """A request of which `size` bytes of the body have come, and then no more."""

    def __init__(self, client: TestClient, network: str, size: int = LARGE, path: str = "/api/v1/models") -> None:
        self.status, self.detail = 0, b""
        self._body, self._has_come = b"x" * size, threading.Event()
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
            "headers": [(b"host", b"testserver"), (b"content-type", JSON if "/api/" in path else FORM)],
            "client": (network, 1), "server": ("testserver", 80),
        }  # fmt: skip
        assert client.portal
        app: Any = client.app
        self._future: Future[Any] = client.portal.start_task_soon(app, scope, self._receive, self._send)
        self._future.add_done_callback(lambda _: self._has_come.set())
        assert self._has_come.wait(60)

    async def _receive(self) -> dict[str, Any]:
        if self._body:
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": True}
        self._has_come.set()
        await anyio.sleep_forever()
        return {}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.detail += message.get("body", b"")

    def wait(self) -> int:
        """The status, once there is one."""
        self._future.result(60)
        return self.status

    def end(self) -> None:
        self._future.cancel()
        with suppress(BaseException):
            self._future.result(60)


@pytest.fixture
def half_sent(client: TestClient) -> Iterator[Callable[..., HalfSent]]:
    """Begin a request that is given up at the end of the test."""
    begun = list[HalfSent]()

    def begin(network: str, *details: Any) -> HalfSent:
        begun.append(HalfSent(client, network, *details))
        return begun[-1]

    yield begin
    for each in begun:
        each.end()


@pytest.fixture
def classroom(client: TestClient) -> Classroom:
    return Classroom(client.app)  # type: ignore[arg-type]


def send_large(client: TestClient, network: str, **cookies: str) -> int:
    """The status of a form of more than MAX_FORM bytes, which the page refuses with 422 if it reads it."""
    browser = Browser(client.app, client=(network, 1), cookies=cookies)
    return browser.post("/models", data={"way": "text", "text": "x" * 10 * MAX_FORM}).status_code


def test_one_network_holds_a_share_of_all_bodies(
    client: TestClient, classroom: Classroom, half_sent: Callable[..., HalfSent]
) -> None:
    sent = [half_sent(ATTACKER) for _ in range(40)]
    assert Counter(each.status for each in sent) == {0: (most := BODIES_OF_NETWORK // LARGE), 503: 40 - most}
    assert b"at once" in sent[-1].detail
    assert [send_large(client, network) for network in (SOMEBODY, ATTACKER)] == [422, 503]
    _, student = classroom.join()
    for browser in (student, classroom.instructor):
        assert send_large(client, ATTACKER, **browser.cookies) == 422
    student._transport.client = (ATTACKER, 1)  # type: ignore[attr-defined]
    assert press(student, classroom.activity, "save", HALF).status_code == 200
    for each in sent:
        each.end()
    until = time.monotonic() + 60  # what was cancelled is still ending
    while send_large(client, ATTACKER) != 422:
        assert time.monotonic() < until


def test_the_network_that_holds_most_makes_room(client: TestClient, half_sent: Callable[..., HalfSent]) -> None:
    sent = [half_sent(f"192.0.2.{number}") for number in range(10) for _ in range(BODIES_OF_NETWORK // LARGE)]
    small = half_sent(SOMEBODY, 5 * MAX_FORM)
    assert send_large(client, SOMEBODY) == 422
    assert {each.wait() for each in sent if each.status} == {503}
    assert small.status == 0


def test_a_server_for_exams_reads_no_large_body_of_a_visitor(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, half_sent: Callable[..., HalfSent]
) -> None:
    settings = Classroom(client.app).school.services.settings  # type: ignore[arg-type]
    monkeypatch.setattr(settings, "practice", False)
    assert half_sent(ATTACKER, MAX_FORM + 1).wait() == 403


def test_a_page_for_teachers_reads_no_body_of_others(client: TestClient, half_sent: Callable[..., HalfSent]) -> None:
    courses = TwoCourses(client.app)  # type: ignore[arg-type]
    forms = [route.partition(" ")[2] for route, row in TABLE.items() if route.startswith("POST") and row[0] == 401]
    paths = [path for path in map(courses.path, forms) if body_limit(path) > MAX_FORM]
    read = [path for path in paths if half_sent(ATTACKER, 2 * MAX_FORM, path).status != 401]
    assert len(paths) > 10
    assert read == []


def take_job(kind: JobKind) -> Callable[[Services, Client], object]:
    """Queue a job that nobody does."""

    def take(services: Services, client: Client) -> object:
        return add_job(services.store, f"{kind} {next(NUMBERS)}", client, kind, services.jobs.kinds[kind].limits)

    return take


def take_guess(services: Services, client: Client) -> None:
    services.limits.check("sign-in", client.key)
    services.limits.record_failure("sign-in", client.key)


NUMBERS = itertools.count(1)
REFUSALS = (JobRefusedError, QueueFullError, BudgetSpentError, TooManyGuessesError)
# All that clients of a process share, besides bodies and connections: how one of them takes some.
SHARED: dict[str, Callable[[Services, Client], object]] = {
    "runs": take_job("run"),
    "handouts": take_job("handout"),
    "heads": take_job("head"),
    "previews": lambda services, client: services.printer._requests._places.take(client),
    "programs": lambda services, client: services.programs.take(client),
    "passwords": lambda services, client: services.passwords._room.take(client),
    "the Hub": lambda _services, client: hub._fetches.take(client),
    "guesses": take_guess,
    "storage": lambda services, client: services.storage.charge(client.key, BYTES_OF_MODEL),
    "new names": lambda services, client: services.storage.charge_new_name(client.key),
}
# What needs some of it, except of the jobs, which the database counts.
NEEDED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "previews": ("GET", "/handout/pages/1.svg", {}),
    "programs": ("POST", "/api/v1/forward", {"json": {"model": "llama-7b", "tokens": 10}}),
    "passwords": ("POST", "/sign-in", {"data": {"email": "ada@school.example", "password": "a guess"}}),
    "the Hub": ("POST", "/api/v1/models", {"json": {"hub": "org/name"}}),
    "guesses": ("POST", "/sign-in", {"data": {"email": "ada@school.example", "password": "a guess"}}),
    "storage": ("POST", "/api/v1/models", {"json": {"config": {}}}),
    "new names": ("POST", "/join/{code}", {"data": {"name": "Kim Lee"}}),
}


@pytest.mark.parametrize("what", SHARED)
def test_one_network_takes_a_share_of_what_all_need(
    client: TestClient, classroom: Classroom, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(hub._fetches, "held", Counter[Client]())
    take, services = SHARED[what], classroom.school.services

    def take_all() -> None:
        for _ in range(10_000):
            take(services, Client(ATTACKER, is_member=False))

    with pytest.raises(REFUSALS):
        take_all()
    if what in NEEDED:
        monkeypatch.setattr(hub, "_fetch_or_cached", lambda *_: "{}")
        method, path, sent = NEEDED[what]
        path = path.format(code=classroom.activity.join_code)
        browsers = [
            Browser(client.app, client=(network, 1), follow_redirects=False) for network in (ATTACKER, SOMEBODY)
        ]
        is_refused = [browser.request(method, path, **sent).status_code in (429, 503) for browser in browsers]
        assert is_refused == [True, False]
    take(services, Client(SOMEBODY, is_member=False))
    with suppress(*REFUSALS):  # until visitors as a whole have what they may
        for number in range(300):
            take(services, Client(f"203.0.113.{number}", is_member=False))
    take(services, Client("teacher 1"))
    _, student = classroom.join()
    assert press(student, classroom.activity, "save", HALF).status_code == 200


MAX_OPEN = 60
BEGIN = b"POST /api/v1/models HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1999000\r\n\r\n"


UNREAD = b"GET /static/v/js/page.js HTTP/1.1\r\nHost: a\r\n\r\n" * 1_000


@pytest.mark.parametrize(("content", "many"), [(BEGIN + b"x" * LARGE, 45), (b"", 100), (UNREAD, 100)])
def test_a_student_saves_while_somebody_holds_connections(
    client: TestClient, classroom: Classroom, monkeypatch: pytest.MonkeyPatch, content: bytes, many: int
) -> None:
    monkeypatch.setattr(connection_limits, "MAX_OPEN_CONNECTIONS", MAX_OPEN)
    _, student = classroom.join()
    form = urlencode({**HALF, "form_id": "a form"})
    head = {"Content-Type": FORM.decode(), "Cookie": f"{VISITOR_COOKIE}={student.cookies[VISITOR_COOKIE]}"}
    with served(client.app) as server, ExitStack() as held:  # type: ignore[arg-type]
        address = server.servers[0].sockets[0].getsockname()
        for _ in range(many):
            connection = held.enter_context(socket.create_connection(address, 120))
            with suppress(OSError):  # refused meanwhile
                connection.sendall(content)
        for own_address in ("127.0.0.2", "127.0.0.1"):
            saving = http.client.HTTPConnection("127.0.0.1", address[1], timeout=120, source_address=(own_address, 0))
            with closing(saving):
                saving.request("POST", f"{classroom.sheet_path}/save", form, head)
                assert saving.getresponse().status == 200
        assert len(server.server_state.connections) <= MAX_OPEN
