"""Backups: of one moment, with the key, and as good as the original."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from sqlalchemy.engine import make_url
from starlette.testclient import TestClient

from app import cli
from app.secret_key import SECRET_FILE
from app.settings import PROJECT, Settings
from app.store import Store
from app.store.database import count_locked
from simulation.postgres import postgres_process, temporary_database
from simulation.server import Server
from tests.helpers.accounts import ADA
from tests.helpers.running_app import make_app
from tests.helpers.school import PASSWORD

DATABASE = "attention-shapes.sqlite3"
# Each transaction adds a visitor and a teacher, so that a copy of one moment has as many of both.
WRITE = """
import sys, pathlib
from app.store import Store
folder = pathlib.Path(sys.argv[1])
store = Store(f"sqlite:///{folder / 'attention-shapes.sqlite3'}", folder)
for number in range(10**9):
    with store.transaction():
        store.add_visitor()
        store.people.add_teacher(f"{number}@example.org", "")
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which Ada has an account."""
    folder = tmp_path / "data"
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(folder))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    cli.main(["teacher", "add", ADA])
    return folder


def counts(database: Path) -> tuple[int, int]:
    """The visitors and the teachers in a database."""
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        visitors, teachers = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - ours
            for table in ("visitors", "teachers")
        )
    return visitors, teachers


@pytest.mark.slow
def test_a_backup_taken_while_another_process_writes_is_whole_and_comes_back(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = make_app(Settings(data_dir=data, database_url=""))
    store: Store = app.state.services.store
    with TestClient(app) as browser:
        browser.post(f"/links/{store.people.add_link('reset', ADA)}", data={"password": PASSWORD})
        ada = store.people.find_teacher(ADA)
        assert ada
        student, code = store.roster.enrol_new_student(store.courses.add("Course", "UTC", ada), "Kim")
    before, _ = counts(data / DATABASE)
    writer = subprocess.Popen([sys.executable, "-c", WRITE, str(data)], cwd=PROJECT)
    try:
        wait_until(lambda: counts(data / DATABASE)[0] > before + 20)
        cli.main(["backup", str(tmp_path / "backup")])
        at_backup, teachers = counts(tmp_path / "backup" / DATABASE)
        wait_until(lambda: counts(data / DATABASE)[0] > at_backup + 20)
    finally:
        writer.kill()
        writer.wait()
    assert at_backup > before + 20
    assert teachers == at_backup - before + 1

    assert (data / f"{DATABASE}-wal").exists()  # a killed process left it
    for line in re.findall(r"(?m)^  (.*)", capsys.readouterr().out):
        subprocess.run(["sh", "-c", line], check=True)
    assert counts(data / DATABASE) == (at_backup, teachers)

    for folder in (tmp_path / "backup", data):
        server = Server(folder)
        server.start()
        try:
            form = {"email": ADA, "password": PASSWORD, "next": ""}
            assert httpx2.post(f"{server.url}/sign-in", data=form).status_code == 303
        finally:
            server.kill()
        store = Store(f"sqlite:///{folder / DATABASE}", folder)
        assert store.roster.find_by_resume_code(code) == student
        assert count_locked(store.engine, store.key) == 0
        store.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Ask until it is so."""
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_only_its_owner_can_read_a_backup_with_the_key(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    cli.main(["backup", str(folder)])
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())} == {
        "backup": 0o700,
        DATABASE: 0o600,
        SECRET_FILE: 0o600,
    }
    assert (folder / SECRET_FILE).read_bytes() == (data / SECRET_FILE).read_bytes()


def test_nothing_is_overwritten(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file, link = tmp_path / "folder", tmp_path / "file", tmp_path / "link"
    folder.mkdir()
    file.write_text("mine")
    link.symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.iterdir())
    for path in (folder, file, link, data):
        assert "exists already" in refusal(capsys, path)
    assert (sorted(tmp_path.iterdir()), list(folder.iterdir()), file.read_text()) == (before, [], "mine")


@pytest.mark.usefixtures("data")
def test_a_place_without_room_keeps_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be written" in refusal(capsys, tmp_path / "no folder" / "backup")
    assert "cannot be written" in refusal(capsys, tmp_path / "in Latin-1: \udce4")
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", "backup", str(tmp_path / "backup")],
        cwd=PROJECT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot be written" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_there_is_nothing_to_back_up_before_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path / "none"))
    assert "nothing to back up" in refusal(capsys, tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_postgresql_is_backed_up_by_the_command_that_is_printed(
    new_postgres_database: str,
    postgres: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = Store(new_postgres_database, data)
    ada = store.people.add_teacher(ADA, "Ada")
    assert ada
    student, code = store.roster.enrol_new_student(store.courses.add("Course", "UTC", ada), "Kim")
    store.close()
    address = make_url(new_postgres_database).set(password="hunter2")  # noqa: S106 - which the server ignores
    monkeypatch.setenv("DATABASE_URL", address.render_as_string(hide_password=False))
    said = refusal(capsys, tmp_path / "backup")
    assert "hunter2" not in said
    of_this_version = Path(postgres_process(postgres).exe()).parent
    programs = {**os.environ, "PATH": f"{of_this_version}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", said.partition("with: ")[2]], env=programs, check=True)
    dump, key = tmp_path / "backup.dump", tmp_path / "backup.key"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (dump, key)] == [0o600, 0o600]
    with temporary_database(postgres, "restored") as url:
        there = f"--dbname={url.replace('+psycopg', '')}"
        subprocess.run(["pg_restore", "--no-owner", there, dump], env=programs, check=True)
        (tmp_path / "there").mkdir()
        shutil.copy(key, tmp_path / "there" / SECRET_FILE)
        restored = Store(url, tmp_path / "there")
        assert restored.roster.find_by_resume_code(code) == student
        assert count_locked(restored.engine, restored.key) == 0
        restored.close()


def refusal(capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    """The one line that `backup` ends with."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(["backup", str(folder)])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    return printed.err
