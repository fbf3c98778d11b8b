"""Transactions, and writes that share a commit: durable when they return, and none fails for another's sake."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from app.store import (
    Store,
    WorkChangedError,
    queries,
)
from app.store.tables import visitors
from tests.helpers.stored_class import key, opened, record


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Store:
    return Store(f"sqlite:///{tmp_path / 'a.sqlite3'}", tmp_path)


def add(store: Store, token_hash: str) -> int:
    """Add a visitor by one statement of its own."""
    row = {"token_hash": token_hash, "created_at": queries.utc_now()}
    return store._execute(sa.insert(visitors), row)


def test_writes_that_wait_share_one_commit_and_a_bad_one_fails_alone(sqlite_store: Store) -> None:
    commits = list[int]()
    sa.event.listen(sqlite_store.engine, "commit", lambda _connection: commits.append(1))

    def write(number: int) -> str:
        try:
            return str(add(sqlite_store, f"visitor {number % 9}"))
        except IntegrityError:
            return "refused"

    assert sqlite_store._commits
    with ThreadPoolExecutor(12) as threads:
        for together in (range(9), range(9, 18)):
            commits.clear()
            with sqlite_store.transaction():
                results = [threads.submit(write, number) for number in together]
                while len(sqlite_store._commits._waiting) < 9:
                    time.sleep(0.01)
            assert [result.result() for result in results] == (["1"] * 9 if together[0] == 0 else ["refused"] * 9)
            assert len(commits) <= 2
    sqlite_store.close()


def test_a_write_that_returns_is_in_the_file(sqlite_store: Store) -> None:
    other, missing = sa.create_engine(sqlite_store.engine.url), list[str]()

    def write(number: int) -> None:
        for turn in range(20):
            name = f"{number}: {turn}"
            add(sqlite_store, name)
            with other.connect() as connection:
                if not connection.scalar(sa.select(sa.func.count()).where(visitors.c.token_hash == name)):
                    missing.append(name)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert missing == []
    other.dispose()
    sqlite_store.close()


def test_nobody_waits_for_ever(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a transaction that does not end, every write gives up in time; afterwards all goes on."""
    monkeypatch.setattr(queries, "WRITE_LOCK_TIMEOUT_S", 0.1)
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
    assert threading.active_count() < 20
    sqlite_store.close()


def write_and_fail(store: Store, token: str) -> None:
    """A transaction that adds a visitor and then raises ZeroDivisionError."""
    with store.transaction():
        store.add_visitor(token)
        raise ZeroDivisionError


def test_what_an_exception_leaves_is_taken_back(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(store, "alone")
    with store.transaction():
        store.add_visitor("outside")
        with pytest.raises(ZeroDivisionError):
            write_and_fail(store, "inside")
    assert [store.find_visitor(token) is None for token in ("alone", "inside", "outside")] == [True, True, False]


def test_an_attempt_is_recorded_inside_a_transaction(store: Store) -> None:
    activity, kim = opened(store)
    here = key(kim, activity)
    with store.transaction():
        record(store, here, {}, client_id="a", allowed=1)
        with pytest.raises(WorkChangedError):
            record(store, here, {}, client_id="b", allowed=1)
    [attempt] = store.classwork.latest_attempts(here, 5)
    assert (attempt.client_id, attempt.marked_by) == ("a", here.sheet_key)
