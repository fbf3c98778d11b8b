"""What a request must be like to be looked at: not too large, whole, and from this site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.testclient import TestClient

from app.web.shared import request_guard
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.request_guard import MAX_BODY, MAX_FORM, MAX_HEADERS, MAX_PATH, MAX_TARGET, MAX_WORK, body_limit
from tests.helpers.permission_table import TABLE, TwoCourses
from tests.helpers.processor_time import processor_time_s
from tests.helpers.sheet_form import filled


def test_a_body_over_the_limit_is_refused(client: TestClient) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/sheet/check", content=b"x" * (MAX_BODY + 1), headers=form).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 100_000 + 2):
            yield b"x" * 100_000

    assert client.post("/sheet/check", content=pieces(), headers=form).status_code == 413
    assert (
        client.post("/api/v1/grade", content=pieces(), headers={"content-type": "application/json"}).status_code == 413
    )
    assert client.get("/healthz").status_code == 200


def test_only_routes_that_need_it_may_be_sent_more_than_a_small_form() -> None:
    forms = {route.partition(" ")[2].replace(":int", "") for route in TABLE if route.startswith("POST ")}
    paths = {re.sub(r"{\w+}", "1", form) for form in forms}
    for pattern, most in request_guard._BODY_LIMITS:
        assert [path for path in paths if pattern.fullmatch(path)], pattern
        assert most != MAX_FORM
    small = {path for path in paths if body_limit(path) == MAX_FORM}
    assert {"/join", "/resume", "/sign-in", "/sign-out", "/password", "/forgotten-password", "/courses"} <= small
    assert {body_limit(path) for path in ("/class/1/1/save", "/class/1/1/check", "/sheet/save", "/class/1/ticket")} == {
        MAX_WORK
    }


def test_a_long_form_of_a_small_page_is_refused(client: TestClient) -> None:
    for content in (b"x" * (MAX_FORM + 1), iter([b"x" * 1000] * 65)):
        headers = {"content-type": "application/x-www-form-urlencoded"}
        assert client.post("/join", content=content, headers=headers).status_code == 413
    assert client.post("/join", data={"code": "x" * (MAX_FORM - 100)}).status_code == 404
    assert client.post("/join", content=b"", headers={**headers, "content-length": "9" * 5000}).status_code == 413


def test_long_headers_and_addresses_are_refused(client: TestClient) -> None:
    assert client.get("/", headers={"X-Long": "x" * MAX_HEADERS}).status_code == 431
    assert client.get("/", headers={"X-Long": "x" * (MAX_HEADERS - 500)}).status_code == 200
    assert client.get(f"/courses/{'9' * MAX_PATH}").status_code == 431
    assert client.get(f"/courses/{'9' * (MAX_PATH - 20)}").status_code == 200  # the sign-in form
    assert client.get("/sheet?model=" + "x" * MAX_TARGET).status_code == 431
    assert client.get("/api/v1/models", headers={"X-Long": "x" * MAX_HEADERS}).json()["detail"]


def test_a_quoted_cookie_takes_no_time(client: TestClient) -> None:
    cookies = f'other="{chr(92) * (MAX_HEADERS - 1000)}"; {VISITOR_COOKIE}=token; a="b c"'
    assert processor_time_s(lambda: client.get("/mine", headers={"Cookie": cookies})) < 0.5
    scope = {"headers": [(b"cookie", cookies.encode()), (b"host", b"a")]}
    left = Request({"type": "http", **request_guard._without_escaped_cookies(scope)}).cookies
    assert left == {VISITOR_COOKIE: "token", "a": "b c"}


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
    response = client.post("/sheet/check", data=filled(), headers=headers)
    assert response.status_code == 403
    assert response.text.startswith("This form was sent from another site")
    assert client.get("/", headers=headers).status_code == 200


def test_a_form_of_this_site_is_taken(client: TestClient) -> None:
    own = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    for headers in (own, {**own, "Host": "app:8000"}, {"Origin": "http://testserver"}, {}):  # some proxies change Host
        assert client.post("/sheet/check", data=filled(), headers=headers).status_code == 200


def test_a_page_can_be_asked_for_without_its_body(client: TestClient) -> None:
    assert client.head("/").status_code == 200
    assert client.head("/nope").status_code == 404


def test_half_a_form_is_no_fault_of_ours(client: TestClient) -> None:
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
    method, path = route.split(" ")
    browser = courses.school.browser(**courses.people["instructor"])
    answer = browser.request(method, courses.path(path), data={"code": "ABC-DE"} if method == "POST" else None)
    if method == "POST" or len(set(TABLE[route])) > 1:
        assert "no-store" in answer.headers["cache-control"]


@pytest.mark.parametrize("path", ["/marking", "/runs/abc", "/mine", "/join/ABCDEF", "/resume", "/handout/jobs/abc"])
def test_no_browser_keeps_names_answers_or_marks(courses: TwoCourses, path: str) -> None:
    assert courses.school.browser().get(path).headers["cache-control"] == "no-store"


def test_a_fragment_is_not_kept_as_the_page_at_its_address(client: TestClient) -> None:
    for headers in ({}, {"HX-Request": "true"}):
        answer = client.get("/handout", headers=headers)
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "HX-Request" in answer.headers["vary"]
