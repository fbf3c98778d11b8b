"""The secret key, what it protects in a copy of the database, and who can read the data folder."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import sqlalchemy as sa

from app import cli
from app.cli.serve import _check_campus, _warn_of_lost_data
from app.cli.terminal import InputError
from app.secret_key import SECRET_FILE, SecretKey, read_or_make_secret
from app.settings import PROJECT, Settings
from app.store import Store
from app.store.database import another_key_signs, count_locked
from app.store.tables import students
from simulation.server import Server

ADA = "ada@example.org"
MAKE = "import sys, pathlib; from app.secret_key import read_or_make_secret as r; print(r(pathlib.Path(sys.argv[1])).hex())"  # noqa: E501 - one line of Python


@pytest.fixture
def umask() -> Iterator[None]:
    """The umask of most users, restored at the end, because commands change the process's."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """The mode of everything in a folder, itself included, that anybody but the owner may do something with."""
    paths = (folder, *folder.rglob("*"))
    return {str(path): oct(path.stat().st_mode) for path in paths if path.stat().st_mode & 0o077}


def test_a_folder_without_room_for_the_key_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / ".secret.key.xyz"))

    monkeypatch.setattr("app.secret_key.tempfile.mkstemp", fail)
    with pytest.raises(OSError, match="No space") as refused:
        read_or_make_secret(tmp_path)
    assert refused.value.filename == str(tmp_path)


def test_data_that_are_gone_are_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(data_dir=tmp_path, database_url="")
    _warn_of_lost_data(settings)
    assert capsys.readouterr().out == ""
    read_or_make_secret(tmp_path)
    for content, is_lost in ((None, True), (b"", True), (b"SQLite format 3", False)):
        if content is not None:
            (tmp_path / "attention-shapes.sqlite3").write_bytes(content)
        _warn_of_lost_data(settings)
        assert ("backup" in capsys.readouterr().out) is is_lost


def test_processes_that_start_together_make_one_secret(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", MAKE, str(tmp_path)], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    printed = {process.communicate(timeout=300)[0].strip() for process in started}
    assert printed == {read_or_make_secret(tmp_path).hex()}
    assert [path.name for path in tmp_path.iterdir()] == [SECRET_FILE]
    assert stat.S_IMODE((tmp_path / SECRET_FILE).stat().st_mode) == 0o600


@pytest.mark.usefixtures("umask")
def test_only_its_owner_can_read_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    (folder / "hub").mkdir(parents=True)
    (folder / "hub" / "config").write_text("{}")
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(folder))
    cli.main(["teacher", "add", ADA])
    assert open_to_others(folder) == {}
    server = Server(folder)
    server.start()
    try:
        assert (folder / "attention-shapes.sqlite3-wal").exists()
        assert open_to_others(folder) == {}
        if os.getuid() == 0:
            tmp_path.chmod(0o755)
            shown = subprocess.run(["ls", folder], user="nobody", capture_output=True, check=False)
            assert shown.returncode != 0
    finally:
        server.kill()


def test_a_copy_of_the_database_gives_no_resume_code_away(store: Store, tmp_path: Path) -> None:
    teacher = store.people.add_teacher(ADA, "Ada")
    assert teacher
    course = store.courses.add("Course", "UTC", teacher)
    student, code = store.roster.enrol_new_student(course, "Kim")
    with store.engine.connect() as connection:
        [stored] = connection.scalars(sa.select(students.c.resume_hash))
    assert sha256(code.encode()).hexdigest() not in stored
    assert SecretKey(read_or_make_secret(tmp_path / "another")).code_hash(code) != stored
    assert store.key.code_hash(code) == stored
    elsewhere = Store(store.engine.url.render_as_string(hide_password=False), tmp_path / "another")
    assert not elsewhere.roster.is_resume_code(student, code)
    assert [count_locked(one.engine, one.key) for one in (elsewhere, store)] == [1, 0]
    elsewhere.close()


def test_a_machine_with_another_key_does_not_serve_the_same_database(
    new_postgres_database: str, tmp_path: Path
) -> None:
    def web(folder: Path) -> Store:
        return Store(new_postgres_database, folder, role="web")

    command = Store(new_postgres_database, tmp_path / "laptop")
    here, elsewhere = web(tmp_path / "here"), web(tmp_path / "elsewhere")
    shutil.copytree(tmp_path / "here", tmp_path / "third")
    with_its_key = web(tmp_path / "third")
    assert with_its_key.key.mark == here.key.mark
    for store in (here, elsewhere, with_its_key):
        store.check_writable()  # which leaves a connection open, as any page does
    settings = Settings(data_dir=tmp_path / "elsewhere", database_url=new_postgres_database)
    with pytest.raises(InputError, match=SECRET_FILE):
        _check_campus(settings, elsewhere)
    elsewhere.close()
    for store in (here, with_its_key):
        wait_until(lambda store=store: not another_key_signs(store.engine, store.key))  # type: ignore[misc]
        _check_campus(settings, store)
        store.close()
    command.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Ask until it is so: a connection that was closed is still there for some milliseconds."""
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_damaged_secret_stops_the_start_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    (tmp_path / SECRET_FILE).write_bytes(b"short")
    with pytest.raises(SystemExit, match="2"):
        cli.main(["teacher", "add", ADA])
    assert str(tmp_path / SECRET_FILE) in capsys.readouterr().err
    assert (tmp_path / SECRET_FILE).read_bytes() == b"short"
