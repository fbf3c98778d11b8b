"""What a line of the log says, and what it never quotes."""

from __future__ import annotations

import logging
from pathlib import Path
from queue import SimpleQueue

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.handout.handout_printer import HandoutPrinter
from app.logs import REQUEST_ID, LogFormatter
from app.main import create_app
from app.settings import Settings
from app.store import Store
from app.store.queries import utc_now
from app.store.tables import courses, students
from app.web.shared import request_log
from app.web.shared.request_log import MAX_SLOW_PER_MINUTE
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.school import School


def logged(error: BaseException) -> str:
    """What the log says of an error."""
    info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("attention_shapes", logging.ERROR, __file__, 1, "it failed", (), info)
    return LogFormatter().format(record)


def test_a_line_has_time_level_request_and_message() -> None:
    REQUEST_ID.set("5f0c2a9b71d4")
    line = LogFormatter().format(logging.LogRecord("attention_shapes", logging.WARNING, __file__, 1, "slow", (), None))
    REQUEST_ID.set("-")
    at, level, request_id, message = line.split(" ")
    assert (at[10], at[-1], level, request_id, message) == ("T", "Z", "WARNING", "5f0c2a9b71d4", "slow")


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/runs", {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100", "queries.rows": "100"}),
        ("/handout/class", {"names": "Kim"}),
    ],
)
def test_what_fails_after_a_request_has_its_id(
    client: TestClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, path: str, form: dict[str, str]
) -> None:
    lines = SimpleQueue[str]()

    class Queued(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.put(self.format(record))

    handler = Queued(logging.ERROR)
    handler.setFormatter(LogFormatter())
    monkeypatch.setattr(logging.getLogger("attention_shapes"), "handlers", [handler])
    runner.problem = ZeroDivisionError()
    monkeypatch.setattr(HandoutPrinter, "print_large", lambda *_: 1 / 0)
    response = client.post(path, data=form, follow_redirects=False)
    assert lines.get(timeout=60).split(" ")[2] == response.headers["x-request-id"]


def test_a_traceback_says_where_and_quotes_no_value() -> None:
    try:
        try:
            int("4711 secret")
        except ValueError as error:
            raise KeyError("Kim Secretname") from error
    except KeyError as error:
        line = logged(error)
    assert all(word in line for word in ("Traceback", "test_logs.py", "ValueError", "KeyError", 'int("4711 secret")'))
    assert "Secretname'" not in line.replace('raise KeyError("Kim Secretname")', "")
    assert "invalid literal" not in line


def test_an_error_of_the_database_has_its_code_and_statement_without_values(store: Store) -> None:
    at = utc_now()
    with store.engine.begin() as connection:
        course = connection.execute(
            sa.insert(courses).values(title="T", time_zone="UTC", sample=False, created_at=at)
        ).inserted_primary_key
    assert course
    row = {"course_id": course[0], "name": "Kim", "roster_key": "a-secret-number", "created_at": at}
    with store.engine.begin() as connection, pytest.raises(sa.exc.IntegrityError) as raised:
        connection.execute(sa.insert(students), [row, row])
    line = logged(raised.value)
    assert "INSERT INTO students" in line
    assert "23505" in line or "SQLITE_CONSTRAINT_UNIQUE" in line
    assert "a-secret-number" not in line


def test_every_answer_has_an_id_and_a_bug_leaves_a_line_with_it(
    new_app: FastAPI, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = School(new_app).browser()
    answers = [browser.get(address) for address in ("/", "/static/v/icon.svg", "/nope", "/healthz")]
    answers.append(browser.post("/sheet/save", headers={"sec-fetch-site": "cross-site"}))
    ids = {answer.headers["x-request-id"] for answer in answers}
    assert len(ids) == len(answers)
    monkeypatch.setattr("app.sheets.library.Library.variant", lambda *_a, **_n: 1 / 0)
    caplog.clear()
    answer = browser.get("/sheet")
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.text
    assert [record.getMessage().startswith("bug: GET /sheet 500 ") for record in caplog.records] == [True]


def test_slow_requests_do_not_fill_the_log(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_log, "SLOW_AFTER_S", 0)
    with TestClient(create_app(Settings(data_dir=data_dir, database_url=""))) as client:
        for _ in range(2 * MAX_SLOW_PER_MINUTE):
            client.get("/nope")
    assert len([record for record in caplog.records if "slow: " in record.getMessage()]) == MAX_SLOW_PER_MINUTE


@pytest.mark.parametrize(("slow_after_s", "access_log", "level"), [(0, False, "WARNING"), (600, True, "INFO")])
def test_slow_requests_and_on_request_all_have_a_line_without_tokens(
    data_dir: Path,
    slow_after_s: float,
    access_log: bool,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(request_log, "SLOW_AFTER_S", slow_after_s)
    caplog.set_level(logging.INFO, "attention_shapes")
    with TestClient(create_app(Settings(data_dir=data_dir, database_url="", access_log=access_log))) as client:
        for address in ("/links/very-secret", "/join/ABCDEF?name=Kim", "/class/12/1"):
            client.get(address)
    lines = [record.getMessage().removeprefix("slow: ") for record in caplog.records if record.levelname == level]
    assert [line.rsplit(" ", 3)[0] for line in lines] == ["GET /links/{token}", "GET /join/{code}", "GET /class/12/1"]
