"""A database that can't be written for a while: the student is asked to try again, and nothing is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from app.settings import Settings
from app.store import sqlite_writer
from tests.helpers.answer_keys import KEY
from tests.helpers.running_app import make_app
from tests.helpers.school import School

FORM = {"input.rows": "100", "form_id": "abcdefgh12345678"}


@dataclass
class Sat:
    """A student at a sheet, and the file of the database."""

    school: School
    browser: TestClient
    path: str
    file: Path

    def stored_drafts(self) -> list[tuple[str]]:
        """The first answer of every draft in the file, looked up from outside."""
        with sqlite3.connect(self.file) as database:
            query = "SELECT json_extract(answers, '$.\"input.rows\"') FROM drafts"
            found = database.execute(query).fetchall()
        database.close()
        return found

    def attempts(self) -> int:
        with sqlite3.connect(self.file) as database:
            [count] = database.execute("SELECT count(*) FROM attempts").fetchone()
        database.close()
        return int(count)


@pytest.fixture
def sat(tmp_path: Path) -> Iterator[Sat]:
    app = make_app(Settings(data_dir=tmp_path, database_url=""))
    school = School(app)
    sa.event.listen(school.store.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA busy_timeout=50"))
    course = school.course("Transformers", school.teacher("ada@example.org"))
    activity, (_, visitor) = school.activity(course, sheets=("llama-7b",)), school.student(course, "Kim")
    with TestClient(app), school.browser(visitor=visitor) as browser:
        yield Sat(school, browser, f"/class/{activity.id}/1", tmp_path / "attention-shapes.sqlite3")


@pytest.mark.parametrize("verb", ["save", "hand-in", "check"])
def test_a_locked_database_is_told_and_the_same_request_works_later(sat: Sat, verb: str) -> None:
    other = sqlite3.connect(sat.file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    refused = sat.browser.post(f"{sat.path}/{verb}", data=FORM)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert "Nothing you typed is lost" in refused.text
    other.execute("ROLLBACK")
    other.close()
    assert (sat.stored_drafts(), sat.attempts()) == ([], 0)
    for _ in range(2):
        assert sat.browser.post(f"{sat.path}/{verb}", data=FORM).status_code == (200 if verb == "save" else 303)
    assert sat.stored_drafts() == [("100",)]
    assert sat.attempts() == (verb != "save")


def test_writers_do_not_wait_for_ever_behind_one_that_is_held_up(sat: Sat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "WRITE_LIMIT_S", 0.05)
    writer = sat.school.store._writer
    assert writer
    with writer.transaction():
        assert sat.browser.post(f"{sat.path}/save", data=FORM).status_code == 503
    assert sat.browser.post(f"{sat.path}/save", data=FORM).status_code == 200


@pytest.mark.parametrize("verb", ["save", "hand-in"])
def test_a_full_disk_is_told_and_what_was_kept_stays(sat: Sat, verb: str) -> None:
    assert sat.browser.post(f"{sat.path}/save", data=FORM).status_code == 200
    with sqlite3.connect(sat.file) as database:  # the migrations leave free pages, which would take it in
        database.execute("VACUUM")
    database.close()
    filled = dict.fromkeys(KEY, "\N{MATHEMATICAL DOUBLE-STRUCK DIGIT ONE}" * 200)  # more than a page of the file
    longer = {**FORM, **filled, "input.rows": "2", "form_id": "zyxwvuts87654321"}

    def full(raw: sqlite3.Connection, *_: object) -> None:
        raw.execute("PRAGMA max_page_count=1")  # never fewer than there are

    sa.event.listen(sat.school.store.engine, "checkout", full)
    refused = sat.browser.post(f"{sat.path}/{verb}", data=longer)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
    assert "operator" in refused.text
    assert (sat.stored_drafts(), sat.attempts()) == ([("100",)], 0)
    sa.event.remove(sat.school.store.engine, "checkout", full)
    sa.event.listen(sat.school.store.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA max_page_count=1000000"))
    assert sat.browser.post(f"{sat.path}/{verb}", data=longer).status_code == (200 if verb == "save" else 303)
    assert sat.stored_drafts() == [("2",)]
