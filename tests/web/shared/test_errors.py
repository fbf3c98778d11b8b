"""Every failure is one sentence with its status, and has the same headers as every other answer."""

from __future__ import annotations

import errno
import re
from functools import partial

import pytest
from fastapi import FastAPI
from sqlalchemy.exc import DataError, IntegrityError, MultipleResultsFound, OperationalError
from starlette.testclient import TestClient

from app.store.classwork import Classwork
from app.web.shared.cookies import CLASS_COOKIE, TEACHER_COOKIE
from app.web.shared.request_guard import MAX_BODY
from tests.helpers.html_page import Page
from tests.helpers.school import School
from tests.helpers.sheet_form import LLAMA_FORM

HEADERS = ("content-security-policy", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy",
           "cache-control")  # fmt: skip


def broken(client: TestClient, monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    """Make the library fail, whatever it is asked."""

    def fail(*_arguments: object, **_named: object) -> None:
        raise problem

    monkeypatch.setattr("app.sheets.library.Library.variant", fail)


@pytest.mark.parametrize(
    ("operation", "body", "sentence"),
    [
        ("variants", {"worksheet": "llama-7b"}, "seed is missing."),
        ("variants", {"worksheet": "llama-7b", "seed": "7"}, "seed must be a whole number."),
        ("grade", {"worksheet": "llama-7b", "answers": []}, "answers must be an object."),
        ("grade", {"worksheet": "llama-7b", "answers": {"queries.rows": 5}}, "answers.queries.rows must be a text."),
        ("grade", {"worksheet": "llama-7b", "answers": {}, "hint": 9}, "hint must be 1, 2 or 3."),
        ("grade", {"worksheet": "llama-7b", "answers": {}, "token": 9}, "token is not a field of this request."),
        ("grade", [], "The body of this request must be an object."),
        ("grade", None, "The body of this request is missing."),
    ],
)
def test_a_field_that_cannot_be_used_is_named(client: TestClient, operation: str, body: object, sentence: str) -> None:
    answer = client.post(f"/api/v1/{operation}", json=body)
    assert (answer.status_code, answer.json()["detail"]) == (422, sentence)


@pytest.mark.parametrize("kind", [{}, {"content-type": "application/x-www-form-urlencoded"}])
def test_json_that_is_sent_as_something_else_is_said_to_be(client: TestClient, kind: dict[str, str]) -> None:
    body = b'{"worksheet": "llama-7b", "answers": {}}'
    answer = client.post("/api/v1/grade", content=body, headers=kind)
    assert answer.status_code == 422
    assert "content-type: application/json" in answer.json()["detail"]
    assert client.post("/api/v1/grade", content=body, headers={"content-type": "application/json"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "address", "methods"), [("GET", "grade", ": POST."), ("DELETE", "models", ": GET, POST.")]
)
def test_the_api_names_the_methods_of_an_address(client: TestClient, method: str, address: str, methods: str) -> None:
    answer = client.request(method, f"/api/v1/{address}")
    assert answer.status_code == 405
    assert answer.json()["detail"].endswith(methods)


@pytest.mark.parametrize("address", ["/practice", "/api/v1/worksheets"])
def test_an_error_of_ours_is_one_sentence(client: TestClient, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    broken(client, monkeypatch, RuntimeError("secret detail"))
    response = client.get(address)
    assert (response.status_code, response.headers["connection"]) == (500, "close")  # as uvicorn does
    assert "Something went wrong on the server." in response.text
    assert not re.search(r"secret|Traceback|RuntimeError", response.text)


def test_a_database_that_does_not_answer_is_said(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception("secret"))

    for question in ("add_visitor", "check_writable"):
        monkeypatch.setattr(f"app.store.store.Store.{question}", fail)
    response = client.post("/sheet/save", data=LLAMA_FORM)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert "The database isn’t responding right now." in response.text
    assert client.get("/healthz/ready").status_code == 503
    assert "secret" not in response.text + client.get("/healthz/ready").text


@pytest.mark.parametrize("statement", ["SELECT nothing FROM nowhere", "SELECT * FROM students WHERE name = 1 AND"])
def test_a_bug_in_a_statement_is_no_outage(
    app_on_each_database: FastAPI, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    store = app_on_each_database.state.services.store

    def fail(*_arguments: object) -> None:
        with store.engine.connect() as connection:
            connection.exec_driver_sql(statement)

    for question in ("add_visitor", "check_writable"):
        monkeypatch.setattr(f"app.store.store.Store.{question}", fail)
    browser = School(app_on_each_database).browser()
    response = browser.post("/sheet/save", data=LLAMA_FORM)
    assert (response.status_code, "retry-after" in response.headers) == (500, False)
    assert "nowhere" not in response.text
    assert browser.get("/healthz/ready").status_code == 503


def test_two_rows_where_one_may_be_are_a_bug(app_on_each_database: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    school = School(app_on_each_database)
    for error in (MultipleResultsFound(), IntegrityError("INSERT", {}, Exception()), DataError("x", {}, Exception())):
        monkeypatch.setattr("app.store.store.Store.add_visitor", lambda *_a, error=error: raise_(error))
        assert school.browser().post("/sheet/save", data=LLAMA_FORM).status_code == 500


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_an_outage(client: TestClient, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("app.secret_key.tempfile.mkstemp", lambda **_: raise_(OSError(number, "no room")))
    assert client.get("/demonstration").status_code == 503
    broken(client, monkeypatch, OSError(errno.EMFILE, "too many"))
    assert client.get("/practice").status_code == 500


def test_no_free_connection_is_an_outage(app_on_each_database: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    school = School(app_on_each_database)
    pool = school.store.single_engine.pool
    monkeypatch.setattr(pool, "_timeout", 0.01)
    held = [school.store.single_engine.connect() for _ in range(pool.size())]  # type: ignore[attr-defined]
    response = school.browser().get("/join/ABCDEF")
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    for connection in held:
        connection.close()


def test_what_is_added_to_something_deleted_is_refused(app_on_each_database: FastAPI) -> None:
    school = School(app_on_each_database)
    course = school.course("Transformers", school.teacher())
    activity, (kim, visitor) = school.activity(course), school.student(course, "Kim")
    remove = partial(school.store.roster.remove_student, kim)
    with pytest.MonkeyPatch.context() as patch:
        save = Classwork.save
        patch.setattr(Classwork, "save", lambda *arguments: (remove(), save(*arguments))[1])
        form = {"input.rows": "1", "version": "1"}
        answer = school.browser(visitor=visitor).post(f"/class/{activity.id}/1/save", data=form)
    assert answer.status_code == 404


def raise_(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("method", "address", "status", "sentence"),
    [
        ("GET", "/nope", 404, "There is no page at this address."),
        ("GET", "/static/nope.css", 404, "There is no page at this address."),
        ("GET", "/static/../app/main.py", 404, "There is no page at this address."),
        ("PUT", "/sheet/check", 405, "This address doesn’t accept PUT requests"),
        ("DELETE", "/", 405, "This address doesn’t accept DELETE requests"),
    ],
)
def test_addresses_that_are_not_there_get_a_sentence(
    client: TestClient, method: str, address: str, status: int, sentence: str
) -> None:
    response = client.request(method, address)
    assert response.status_code == status
    assert sentence in response.text


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/sheet/check", "/sheet"),
        ("/courses/1/students/preview", "/courses/1"),
        ("/courses/sample", "/courses"),
        ("/activities/2/undo-close", "/activities/2"),
        ("/class/2/1/run", "/class/2/1"),
        ("/mine/3/code", "/mine"),
        ("/marking.csv", "/marking"),
        ("/sign-out", "/"),
    ],
)
def test_an_address_for_forms_leads_to_the_page_above_it(client: TestClient, address: str, page: str) -> None:
    answer = client.get(address, follow_redirects=False)
    assert (answer.status_code, answer.headers.get("location")) == (303, page)
    assert client.get(address, headers={"HX-Request": "true"}).status_code == 405
    assert client.get("/api/v1/grade").status_code == 405


def ways(client: TestClient, address: str, referer: str = "") -> list[str]:
    """Where the page of an error leads."""
    page = Page(client.get(address, headers={"Referer": referer} if referer else {}).text)
    [start] = [index for index, (tag, _, _) in enumerate(page.elements) if tag == "main"]
    [end] = [index for index, (tag, _, _) in enumerate(page.elements) if tag == "footer"]
    return [attrs["href"] for tag, attrs, _ in page.elements[start:end] if tag == "a"]


def test_an_error_leads_back_to_where_one_was(client: TestClient) -> None:
    doors = ["/practice", "/see", "/teach"]
    assert ways(client, "/nope") == ways(client, "/v/NOT-A-CODE") == ways(client, "/models/nope") == doors
    assert ways(client, "/class/999") == ["/join", "/resume"]
    assert ways(client, "/nope", "http://testserver/class/3?sheet=2") == ["/class/3?sheet=2", *doors]
    for elsewhere in ("http://testserver/nope", "https://example.org/class/3", "http://testserver//example.org"):
        assert not [way for way in ways(client, "/nope", elsewhere) if "example" in way or "nope" in way]
    client.cookies[CLASS_COOKIE] = "joined"
    assert ways(client, "/nope") == ["/practice", "/see", "/mine"]
    assert ways(client, "/class/999") == ["/join", "/resume", "/mine"]
    client.cookies[TEACHER_COOKIE] = "a session"
    assert ways(client, "/nope") == ["/practice", "/see", "/mine"]
    client.cookies.clear()
    client.cookies[TEACHER_COOKIE] = "a session"
    assert ways(client, "/nope") == ["/practice", "/see", "/courses"]
    client.cookies.clear()


def test_a_page_that_is_not_there_offers_a_search(client: TestClient) -> None:
    def searches(address: str) -> int:
        return len(Page(client.get(address).text).find("form", role="search", action="/sheets"))

    assert searches("/nope") == searches("/models/nope") == 1
    assert searches("/class/999") == searches("/links/nope") == 0


def test_a_form_that_is_no_form_gets_a_sentence(client: TestClient) -> None:
    response = client.post("/sheet/check", content=b"x", headers={"content-type": "multipart/form-data"})
    assert response.status_code == 400
    assert Page(response.text).find("section", class_="lone")


def test_every_answer_has_the_security_headers(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    other_site = {"Sec-Fetch-Site": "cross-site"}
    answers = [
        client.get("/"),
        client.get("/static/v/css/base.css"),
        client.get("/healthz/ready"),
        client.get("/api/v1/models"),
        client.get("/openapi.json"),
        client.get("/nope"),
        client.get("/api/v1/worksheets/nope"),
        client.post("/api/v1/grade", json={}),
        client.post("/sheet/check", data=LLAMA_FORM),
        client.post("/sheet/check", data={"long": "x" * MAX_BODY}),
        client.post("/sheet/check", data=LLAMA_FORM, headers=other_site),
        client.post("/runs", data={**LLAMA_FORM, "queries.rows": "1"}, follow_redirects=False),
    ]
    broken(client, monkeypatch, RuntimeError())
    answers.append(client.get("/practice"))
    assert {answer.status_code for answer in answers} == {200, 303, 403, 404, 413, 422, 500}
    for answer in answers:
        assert [name for name in HEADERS if name not in answer.headers] == [], (answer.status_code, answer.url)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
