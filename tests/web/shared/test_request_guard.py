"""What a request must be like to be looked at: not too large, whole, and from this site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.web.shared.request_guard import MAX_BODY
from tests.helpers.permission_table import TABLE, TwoCourses
from tests.helpers.sheet_form import filled


def test_a_body_over_the_limit_is_refused(client: TestClient) -> None:
    """413 by the stated length, and 413 as soon as too much has come of a body that states none."""
    assert client.post("/sheet/check", content=b"x" * (MAX_BODY + 1)).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 100_000 + 2):
            yield b"x" * 100_000

    form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/sheet/check", content=pieces(), headers=form).status_code == 413
    assert (
        client.post("/api/v1/grade", content=pieces(), headers={"content-type": "application/json"}).status_code == 413
    )
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
)
def test_a_form_from_another_site_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    """403 before anything is looked at; a page may be opened from anywhere."""
    response = client.post("/sheet/check", data=filled(), headers=headers)
    assert response.status_code == 403
    assert response.text.startswith("This form was sent from another site")
    assert client.get("/", headers=headers).status_code == 200


def test_a_form_of_this_site_is_taken(client: TestClient) -> None:
    """Same origin, as browsers say it, and programs that say nothing."""
    own = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    for headers in (own, {**own, "Host": "app:8000"}, {"Origin": "http://testserver"}, {}):  # some proxies change Host
        assert client.post("/sheet/check", data=filled(), headers=headers).status_code == 200


def test_a_page_can_be_asked_for_without_its_body(client: TestClient) -> None:
    """HEAD, as monitors and link checkers send it, is answered as GET is."""
    assert client.head("/").status_code == 200
    assert client.head("/nope").status_code == 404


def test_half_a_form_is_no_fault_of_ours(client: TestClient) -> None:
    """Cut off in the middle of a save, the app raises nothing, and says 400 to nobody."""
    coming = iter(
        [{"type": "http.request", "body": b"queries.rows=12", "more_body": True}, {"type": "http.disconnect"}]
    )
    sent = list[Any]()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/sheet/save", "raw_path": b"/sheet/save", "query_string": b"", "root_path": "",
        "headers": [(b"host", b"testserver"), (b"content-type", b"application/x-www-form-urlencoded")],
        "client": ("testclient", 1), "server": ("testserver", 80),
    }  # fmt: skip

    async def receive() -> Any:
        return next(coming)

    async def send(message: Any) -> None:
        sent.append(message)

    assert client.portal
    client.portal.call(client.app, scope, receive, send)  # the app itself, as a server calls it
    assert sent[0]["status"] == 400


@pytest.fixture(scope="module")
def courses(app: FastAPI) -> TwoCourses:
    """A school for what is only looked at."""
    return TwoCourses(app)


@pytest.mark.parametrize("route", TABLE)
def test_no_browser_keeps_what_is_not_for_everybody(courses: TwoCourses, route: str) -> None:
    """Whatever a form is answered with, and every page that some of the roles may not see."""
    method, path = route.split(" ")
    browser = courses.school.browser(**courses.people["instructor"])
    answer = browser.request(method, courses.path(path), data={"code": "ABC-DE"} if method == "POST" else None)
    if method == "POST" or len(set(TABLE[route])) > 1:
        assert "no-store" in answer.headers["cache-control"]


@pytest.mark.parametrize("path", ["/marking", "/runs/abc", "/mine", "/join/ABCDEF", "/resume", "/handout/jobs/abc"])
def test_no_browser_keeps_names_answers_or_marks(courses: TwoCourses, path: str) -> None:
    """Also where everybody who has the address, or a cookie, may look."""
    assert courses.school.browser().get(path).headers["cache-control"] == "no-store"


def test_a_fragment_is_not_kept_as_the_page_at_its_address(client: TestClient) -> None:
    """Back asks what the browser has kept of an address; Vary tells it that a script got something else."""
    for headers in ({}, {"HX-Request": "true"}):
        answer = client.get("/handout", headers=headers)
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "HX-Request" in answer.headers["vary"]
