"""What tests share: the library, a database of each kind, the outside reference, and the app without torch."""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI
from hypothesis import is_hypothesis_test, settings
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from starlette.testclient import TestClient

from app.cli import terminal
from app.settings import PROJECT, Settings
from app.sheets.library import Library, load_library
from app.store import Store, database, limits, sqlite_writer
from app.store.tables import metadata
from app.translation import ENGLISH
from simulation.postgres import create_database, postgres_server, temporary_database
from tests.helpers.clock import CLOCK, Clock
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.running_app import make_app, running_app
from tests.helpers.school import Browser, Classroom, School
from tests.helpers.shipped import LIBRARY

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices, and the other cores have tests to run
# A busy machine isn't the code's fault, and with new inputs each time, a change could fail because of an old bug.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=100)


WAIT_FOR_SERVERS = {
    "test_faults",
    "test_campus",
    "test_workers",
    "test_health",
    "test_killed",
    "test_handout_printer",
    "test_backup",
}


def is_slow_run(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "slow")


def pytest_configure(config: pytest.Config) -> None:
    """Try few generated examples in `make test`, and more in `make test-all`."""
    settings.load_profile("thorough" if is_slow_run(config) else "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """If processes share the tests, files that need a browser come first, then those that wait for servers."""
    if is_slow_run(config):  # tests of generated examples are repeated, with more of them
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.slow)
    if config.pluginmanager.hasplugin("xdist"):
        items.sort(key=lambda item: (item.path.parent.name != "browser", item.path.stem not in WAIT_FOR_SERVERS))


def pytest_collection() -> None:
    """Search for no garbage while tests are collected: next to nothing of it goes before the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def library() -> Library:
    """The worksheets, models and wording that are shipped."""
    return LIBRARY


@pytest.fixture(scope="session")
def oracle() -> dict[str, dict[str, Any]]:
    """What the transformers library reports of each model, by name; see tests/data."""
    entries = json.loads((PROJECT / "tests" / "data" / "transformers_shapes.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in entries}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, which forgets everything when the machine stops."""
    with postgres_server(durable=False) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_engine(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """A database on our server with the newest tables, for all tests of this process."""
    url = create_database(postgres, "tests")
    Store(url, tmp_path_factory.mktemp("key")).close()
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)  # some tests kill the server
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def tables_in_a_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the newest tables and nothing in them, to be copied."""
    path = tmp_path_factory.mktemp("tables") / "tables.sqlite3"
    Store(f"sqlite:///{path}", path.parent).close()
    return path


@pytest.fixture
def new_postgres_database(postgres_engine: sa.Engine) -> str:
    """The address of a database on our server with nothing in its tables: the same one for all tests, emptied."""
    with postgres_engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        # In a tenth of the time of TRUNCATE, which makes new files for all tables and indexes.
        emptied = [str(sa.delete(table)) for table in reversed(metadata.sorted_tables)]
        emptied += ["DELETE FROM procrastinate_jobs", "DELETE FROM procrastinate_workers"]
        restarted = "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'"
        connection.exec_driver_sql("; ".join((*emptied, restarted)))
    return postgres_engine.url.render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with nothing in its tables, once of each kind."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("tables_in_a_file"), tmp_path / "store.sqlite3")
        return f"sqlite:///{tmp_path / 'store.sqlite3'}"
    return str(request.getfixturevalue("new_postgres_database"))


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without any tables, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.sqlite3'}"
    else:
        with temporary_database(request.getfixturevalue("postgres"), "bare") as url:
            yield url


def shipped_or_read(folder: Path, language: str) -> Library:
    """The library of a folder, which is read only if it is not the shipped one in English."""
    is_shipped = (folder, language) == (PROJECT / "worksheets", ENGLISH)
    return LIBRARY if is_shipped else load_library(folder, language)


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Argon2 with the least memory and work: a hash as the app makes it takes as long as a hundred requests."""
    with pytest.MonkeyPatch.context() as patch:
        quick = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
        patch.setattr(PasswordHash, "recommended", lambda: quick)
        yield


@pytest.fixture(scope="session", autouse=True)
def patient_databases() -> Iterator[None]:
    """Databases that may take a minute for what takes them milliseconds, as on a busy machine it sometimes does."""
    usual = database._set_up_sqlite

    def set_up(connection: Any, record: object) -> None:
        usual(connection, record)
        connection.execute("PRAGMA busy_timeout=60000")
        connection.execute("PRAGMA synchronous=OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_set_up_sqlite", set_up)
        patch.setattr(sqlite_writer, "WRITE_LIMIT_S", 60.0)
        patch.setattr(sqlite_writer, "flush", lambda _log: None)
        patch.setattr(limits, "STATEMENT_LIMIT_S", 60)
        patch.setitem(limits.CONNECTION_LIMITS, "connect_timeout", 60)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_event_loop() -> Iterator[None]:
    """All browsers of a school send their requests in one event loop, instead of starting one for each request."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Browser, "portal", portal)
        yield


@pytest.fixture(scope="session", autouse=True)
def read_once() -> Iterator[None]:
    """Worksheets, which no app changes, are read once for all commands of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, "load_library", shipped_or_read)
        yield


@pytest.fixture
def store(database_url: str, tmp_path: Path) -> Iterator[Store]:
    """A store on a new database, once of each kind."""
    opened = Store(database_url, tmp_path, clock=CLOCK)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Iterator[Clock]:
    """The clock of all apps and stores, stopped for this test."""
    with CLOCK.stopped():
        yield CLOCK


@pytest.fixture
def data_dir(tmp_path: Path, tables_in_a_file: Path) -> Path:
    """A data folder whose database has nothing in its tables."""
    settings = Settings(data_dir=tmp_path / "data", database_url="")
    settings.data_dir.mkdir()
    shutil.copy(tables_in_a_file, settings.database.removeprefix("sqlite:///"))
    return settings.data_dir


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """An app on SQLite for all tests of a file, which fill the same database."""
    with running_app(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture
def new_app(data_dir: Path) -> Iterator[FastAPI]:
    """An app on SQLite for one test, with nothing in its database."""
    with running_app(data_dir) as running:
        yield running


@pytest.fixture
def app_on_each_database(database_url: str, tmp_path: Path) -> Iterator[FastAPI]:
    """An app for one test, which runs once on SQLite and once on PostgreSQL, with nothing in its database."""
    with running_app(tmp_path, database_url) as running:
        yield running


@pytest.fixture
def runner() -> FakeRunner:
    """The runner of `client`, which loads no torch."""
    return FakeRunner()


@pytest.fixture
def client(data_dir: Path, runner: FakeRunner) -> Iterator[TestClient]:
    """A browser at the app, with its data in a folder of its own."""
    app = make_app(Settings(data_dir=data_dir, database_url=""), runner)
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture
def classroom(app: FastAPI) -> Classroom:
    """A course without an activity, in an app that has counted no wrong guesses yet."""
    School(app).services.limits.forget()
    return Classroom(app, sheets=None)


@pytest.fixture
def school(new_app: FastAPI) -> School:
    """A school without anybody in it, for one test."""
    return School(new_app)
