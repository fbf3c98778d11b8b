"""The address by which a load balancer checks the app, and what still works while the database doesn't."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from app.settings import Settings
from app.store import Activity, Student, limits, people, store
from app.store.queries import utc_now
from app.store.tables import drafts
from app.web.shared import errors
from app.web.shared.readiness import HOLDS_S, Readiness
from tests.helpers.running_app import make_app
from tests.helpers.school import School
from tests.helpers.stored_class import LLAMA


@pytest.fixture
def school(tmp_path: Path) -> Iterator[School]:
    app = make_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app):
        yield School(app)


def ask(client: TestClient) -> tuple[int, str]:
    """The status and the sentence of /healthz/ready, once an earlier answer has expired."""
    time.sleep(HOLDS_S)
    response = client.get("/healthz/ready")
    return response.status_code, response.json()["status"]


def test_health_is_said_when_the_database_answers(client: TestClient) -> None:
    response = client.get("/healthz/ready")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_process_without_its_database_is_alive_but_not_ready(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise sa.exc.OperationalError("", {}, sqlite3.OperationalError("unable to open database file"))

    services = client.app.state.services  # type: ignore[attr-defined]
    monkeypatch.setitem(vars(services), "readiness", Readiness(gone))
    assert client.get("/healthz").status_code == 200
    assert client.get("/healthz/ready").status_code == 503


def test_many_who_ask_are_answered_by_one_check(client: TestClient) -> None:
    checks = list[int]()

    async def ask_often() -> list[str]:
        readiness = Readiness(lambda: checks.append(1))
        return await asyncio.gather(*(readiness.problem() for _ in range(100)))

    assert client.portal
    assert client.portal.call(ask_often) == [""] * 100
    assert len(checks) == 1


@pytest.mark.parametrize(("pragma", "told"), [("query_only=ON", "read-only"), ("max_page_count=1", "full")])
def test_teachers_read_their_pages_while_nothing_can_be_written(
    school: School, pragma: str, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    teacher = school.teacher("ada@example.org")
    course = school.course("Transformers", teacher)
    activity, (kim, visitor) = school.activity(course, sheets=("llama-7b",)), school.student(course, "Kim")
    _, newcomer = school.student(course, "Lou")
    monkeypatch.setattr(people, "SEEN_INTERVAL", people.SEEN_INTERVAL * 0)  # each page would write that it was seen
    errors._last_logged.clear()
    with school.browser(teacher=teacher) as browser, school.browser(visitor=visitor) as student:
        assert student.get(f"/class/{activity.id}/1").status_code == 200
        fill_pages(school, activity, kim)
        sa.event.listen(school.store.engine, "checkout", lambda raw, *_: raw.execute(f"PRAGMA {pragma}"))
        for page in ("/courses", f"/courses/{course.id}", f"/activities/{activity.id}/projector",
                     f"/activities/{activity.id}/results"):  # fmt: skip
            assert browser.get(page).status_code == 200, page
        assert student.get(f"/class/{activity.id}/1").status_code == 200
        with school.browser(visitor=newcomer) as never_here:
            sheet = never_here.get(f"/class/{activity.id}/1")
            assert sheet.status_code == 200
            assert 'name="queries.rows"' in sheet.text
        if told == "read-only":
            assert newcomer_is_absent(school, activity)
        form = {
            "input.rows": "1" * 190,
            "queries.rows": "1" * 190,
            "keys.rows": "1" * 190,
            "version": "9",
            "form_id": "abcdefgh12345678",
        }
        refused = [student.post(f"/class/{activity.id}/1/save", data=form) for _ in range(5)]
        assert {answer.status_code for answer in refused} == {503}
        if told == "full":  # a limit on pages isn't a limit on the disk
            monkeypatch.setattr(store, "ROOM_NEEDED_BYTES", 10**18)
        status, sentence = ask(browser)
        assert (status, told in sentence) == (503, True)
    assert [told in record.message for record in caplog.records if record.name == "attention_shapes"] == [True]


def newcomer_is_absent(school: School, activity: Activity) -> bool:
    """Whether only one student has opened an activity, as far as the database could store."""
    return len(school.store.classwork.attendance(activity.id)) == 1


def fill_pages(school: School, activity: Activity, student: Student) -> None:
    """Leave no room for another draft in the pages that the database has."""
    row = {"activity_id": activity.id, "student_id": student.id, "sheet_key": "filler", "answers": {"a": "1" * 3500},
           "version": 1, "variant": LLAMA, "saved_at": utc_now(), "tab_versions": {}}  # fmt: skip
    with school.store.engine.begin() as connection:
        connection.execute(sa.insert(drafts).values(row))
    with school.store.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")


def test_a_deleted_database_file_is_noticed(school: School, tmp_path: Path) -> None:
    with TestClient(school.app) as browser:
        assert browser.get("/courses").status_code == 200
        (tmp_path / "attention-shapes.sqlite3").rename(tmp_path / "elsewhere")
        assert browser.post("/sheet/save", data={"input.rows": "1", "version": "1"}).status_code == 503
        status, sentence = ask(browser)
    assert (status, "deleted" in sentence) == (503, True)


@pytest.mark.slow
def test_a_database_that_hangs_leaves_the_rest_alive(
    new_postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(limits.CONNECTION_LIMITS, "connect_timeout", 2)
    app = make_app(Settings(data_dir=tmp_path, database_url=new_postgres_database))
    answers = list[int]()
    with TestClient(app) as client:
        with stopped_server(app.state.services.store.engine):
            asking = [
                threading.Thread(target=lambda: answers.append(client.get("/join/ABCDEF").status_code))
                for _ in range(60)
            ]
            for thread in asking:
                thread.start()
            time.sleep(0.5)
            assert seconds_for(lambda: client.get("/static/v/css/base.css"), 200) < 9
            assert seconds_for(lambda: client.get("/healthz/ready"), 503) < 30
        for thread in asking:
            thread.join(300)
        assert set(answers) <= {404, 503}  # those that were asked of the database were answered once it went on
        assert len(answers) == 60
        assert ask(client) == (200, "ok")
        assert client.get("/join/ABCDEF").status_code == 404


def seconds_for(request: Callable[[], object], status: int) -> float:
    began = time.monotonic()
    assert getattr(request(), "status_code", None) == status
    return time.monotonic() - began


@contextmanager
def stopped_server(engine: sa.Engine) -> Iterator[None]:
    """Stop every process of the PostgreSQL server, as a virtual machine that is paused, and let them go on later."""
    with engine.connect() as connection:
        backend = psutil.Process(int(connection.scalar(sa.text("select pg_backend_pid()")) or 0))
    server = backend.parent()
    assert server
    processes = [server.pid, *(child.pid for child in server.children(recursive=True))]
    for process in processes:
        with suppress(ProcessLookupError):  # one that had little to do has ended
            os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def test_answers_that_are_not_collected_are_said(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, closing = school.browser(), school.services.auto_submitter
    monkeypatch.setattr(closing, "_retry_at", {7: 0.0})
    monkeypatch.setattr(closing, "settle_all", lambda: None)
    answer = browser.get("/healthz/ready")
    assert (answer.status_code, answer.json()["status"], "7" in answer.json()["problem"]) == (200, "ok", True)
    monkeypatch.setattr(closing, "_looked_at", time.monotonic() - 3600)
    assert browser.get("/healthz/ready").status_code == 503
