"""Transactions on SQLite: on the disk when they return, quickly after each other, and none waits for ever."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.store import Store, queries, sqlite_writer
from app.store.limits import Failure, failure_of
from app.store.tables import visitors


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path / 'a.sqlite3'}", tmp_path)
    yield store
    store.close()


def add(store: Store, token_hash: str) -> int:
    """Add a visitor by one statement of its own."""
    row = {"token_hash": token_hash, "created_at": queries.utc_now()}
    return store._execute(sa.insert(visitors), row)


def test_an_acknowledged_write_survives_a_power_cut(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()

    def flush(_log: int) -> None:
        for file in tmp_path.glob("a.sqlite3*"):
            shutil.copy(file, disk)

    def found_after_power_cut() -> list[str]:
        with closing(sqlite3.connect(disk / "a.sqlite3")) as database:
            return [token_hash for (token_hash,) in database.execute("SELECT token_hash FROM visitors ORDER BY id")]

    monkeypatch.setattr(sqlite_writer, "flush", flush)
    sa.event.listen(sqlite_store.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA wal_autocheckpoint=5"))
    written = list[str]()
    for number in range(20):
        written.append(f"visitor {number}")
        if number % 2:
            add(sqlite_store, written[-1])
        else:
            with sqlite_store.transaction():
                add(sqlite_store, written[-1])
        assert found_after_power_cut() == written


def test_a_write_whose_flush_fails_is_not_acknowledged(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_log: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sqlite_writer, "flush", fail)
    with pytest.raises(OSError, match="Input/output") as raised:
        add(sqlite_store, "a")
    assert failure_of(raised.value) is Failure.SILENT


def test_nobody_waits_for_the_disk_of_another(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    flushing, may_end = threading.Event(), threading.Event()

    def first_takes_long(_log: int) -> None:
        if not flushing.is_set():
            flushing.set()
            may_end.wait(60)

    monkeypatch.setattr(sqlite_writer, "flush", first_takes_long)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(add, sqlite_store, "first")
        assert flushing.wait(60)
        assert add(sqlite_store, "second") == 1
        assert not first.done()
        may_end.set()
        assert first.result(60) == 1


def test_nobody_waits_for_ever(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a transaction that does not end, every write gives up in time; afterwards all goes on."""
    monkeypatch.setattr(sqlite_writer, "WRITE_LIMIT_S", 0.1)
    begin = time.monotonic()

    def write(number: int) -> type[BaseException] | None:
        try:
            add(sqlite_store, f"late {number}")
        except sa.exc.TimeoutError as error:
            return type(error)
        return None

    with sqlite_store.transaction(), ThreadPoolExecutor(6) as threads:
        assert set(threads.map(write, range(6))) == {sa.exc.TimeoutError}
    assert time.monotonic() - begin < 30
    assert add(sqlite_store, "afterwards") == 1
