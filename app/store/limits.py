"""Databases in trouble: how long a request may wait for one, and what its errors mean."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.abc import PQGen

CONNECT_LIMIT_S = 5
# enforced by the server, also for a pause between two statements of a transaction, which holds locks
STATEMENT_LIMIT_S = 8
ANSWER_LIMIT_S = 10.0  # enforced here, because a hanging server enforces nothing
POOL_LIMIT_S = 5  # waiting for a connection that others hold
STORED_AGAIN_AFTER_S = (0.5,) * 60  # in which a database may recover; a runner does nothing else meanwhile
HEALTH_LIMIT_S = 3
HEALTH_TTL_S = 1.0  # an answer is reused within this time: on SQLite each check waits for writers
ROOM_NEEDED_BYTES = 8_000_000  # SQLite's log grows to half of it before it is written back
_PARAMETERS = {"connect_timeout": CONNECT_LIMIT_S, "tcp_user_timeout": int(1000 * ANSWER_LIMIT_S)}

Result = TypeVar("Result")


class LimitedConnection(psycopg.Connection[Any]):
    """A PostgreSQL connection that waits `answer_limit_s` for an answer, then closes itself with an OperationalError.

    None means no limit.
    """

    answer_limit_s: float | None = ANSWER_LIMIT_S

    def wait(self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None) -> Result:
        """Wait for the server's answer for `timeout` seconds, by default `answer_limit_s`."""
        try:
            return super().wait(gen, interval, self.answer_limit_s if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if timeout is None and error.sqlstate is None:  # it isn't the server's answer
                self.close()
            raise


def limit_postgresql(engine: sa.Engine, name: str) -> None:
    """Give this engine's new connections the name, and limits for connecting, statements and answers."""

    @sa.event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, arguments: list[Any], parameters: dict[str, Any]) -> LimitedConnection:
        settings = {**_PARAMETERS, **parameters, "application_name": name}
        try:
            connection = LimitedConnection.connect(*arguments, **settings)
            with connection.cursor() as cursor:
                cursor.execute(_set_limits(STATEMENT_LIMIT_S))
            connection.commit()
        except psycopg.OperationalError as error:
            problem = error.with_traceback(None)
        else:
            return connection
        # The frames of an attempt that took too long refer to one another, and hold its socket until garbage is
        # collected. A recovered server would find its connections taken by abandoned attempts.
        gc.collect()
        raise problem


def _set_limits(seconds: float) -> str:
    """The SQL that limits each statement, and each pause in a transaction, to `seconds`; 0 means no limit."""
    milliseconds = round(1000 * seconds)
    return f"SET statement_timeout = {milliseconds}; SET idle_in_transaction_session_timeout = {milliseconds}"


@contextmanager
def without_limits(connection: sa.Connection) -> Iterator[None]:
    """Lift a PostgreSQL connection's limits for this `with`: migrations take as long as they need."""
    raw = connection.connection.dbapi_connection
    if not isinstance(raw, LimitedConnection):
        yield
        return
    raw.answer_limit_s = None
    connection.exec_driver_sql(_set_limits(0))
    connection.commit()
    try:
        yield
    finally:
        raw.answer_limit_s = ANSWER_LIMIT_S
        if not raw.closed:
            connection.rollback()
            connection.exec_driver_sql(_set_limits(STATEMENT_LIMIT_S))
            connection.commit()


class DatabaseGoneError(sqlite3.OperationalError):
    """The file of an SQLite database is no longer where it was opened."""


def watch_sqlite_file(engine: sa.Engine) -> None:
    """From the engine's first connection on, refuse to use a database whose file is gone or replaced."""
    path = engine.url.database
    if not path or path == ":memory:":
        return
    opened = list[int]()

    @sa.event.listens_for(engine, "connect")
    def _note_file(_connection: Any, _record: Any) -> None:
        if not opened:
            opened.append(os.stat(path).st_ino)

    @sa.event.listens_for(engine, "checkout")
    def _check_file(_connection: Any, _record: Any, _proxy: Any) -> None:
        try:
            gone = os.stat(path).st_ino not in opened
        except OSError:
            gone = True
        if gone:
            raise sa.exc.OperationalError(None, None, DatabaseGoneError())


class NoRoomError(sqlite3.OperationalError):
    """The disk of an SQLite database is nearly full."""

    sqlite_errorname = "SQLITE_FULL"


def check_room(engine: sa.Engine) -> None:
    """Raise OperationalError, with NoRoomError as `orig`, if an SQLite file's disk has less than ROOM_NEEDED_BYTES."""
    path = engine.url.database
    on_disk = engine.dialect.name == "sqlite" and path and path != ":memory:"
    if on_disk and shutil.disk_usage(os.path.dirname(str(path)) or ".").free < ROOM_NEEDED_BYTES:
        raise sa.exc.OperationalError(None, None, NoRoomError())


class Failure(Enum):
    """Why a database can't work; the value is a sentence for the operator."""

    FULL = "the disk is full: pages can be read, but nothing can be saved"
    READ_ONLY = "the database is read-only: pages can be read, but nothing can be saved"
    GONE = "the database file was deleted or replaced: restart the app"
    DAMAGED = "the database is damaged: restore a backup"
    SILENT = "the database does not answer"


# Prefixes of the codes with which PostgreSQL (SQLSTATE) and SQLite say that they can't work: connections, locks,
# resources, an operator stopping the server, a slow statement, and files.
_FAILURES: tuple[tuple[Failure, tuple[str, ...]], ...] = (
    (Failure.FULL, ("53100", "SQLITE_FULL")),
    (Failure.READ_ONLY, ("25006", "SQLITE_READONLY")),
    (Failure.DAMAGED, ("XX001", "XX002", "SQLITE_CORRUPT", "SQLITE_NOTADB")),
    (Failure.SILENT, ("08", "53", "57", "58", "40001", "40P01", "55P03", "SQLITE_BUSY", "SQLITE_LOCKED",
                      "SQLITE_PROTOCOL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_INTERRUPT")),
)  # fmt: skip
_FAILURES_OF_DISK = {
    errno.ENOSPC: Failure.FULL,
    errno.EDQUOT: Failure.FULL,
    errno.EROFS: Failure.READ_ONLY,
    errno.EIO: Failure.SILENT,
}


def failure_of(error: BaseException) -> Failure | None:
    """Why the database or the disk can't work; None for any other error, which is our bug."""
    if isinstance(error, OSError):
        return _FAILURES_OF_DISK.get(error.errno or 0)
    if isinstance(error, sa.exc.TimeoutError):  # from the pool of connections, or from our lock for SQLite
        return Failure.SILENT
    if not isinstance(error, sa.exc.DBAPIError):
        return None
    if isinstance(error.orig, DatabaseGoneError):
        return Failure.GONE
    code = code_of(error)
    for failure, beginnings in _FAILURES:
        if code.startswith(beginnings):
            return failure
    # An error without a code concerns the connection, not a statement.
    lost = error.connection_invalidated or (not code and isinstance(error, sa.exc.OperationalError))
    return Failure.SILENT if lost else None


def code_of(error: sa.exc.DBAPIError) -> str:
    """An error's code, such as "23505" (PostgreSQL) or "SQLITE_CONSTRAINT_UNIQUE"; "" without one."""
    return getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""


def is_orphan(error: BaseException) -> bool:
    """Whether a row was refused because its parent doesn't exist, perhaps because it has just been deleted."""
    return isinstance(error, sa.exc.IntegrityError) and code_of(error) in ("23503", "SQLITE_CONSTRAINT_FOREIGNKEY")


@contextmanager
def tolerated_failure() -> Iterator[None]:
    """Go on after this `with` if the database couldn't work (`failure_of`), without a log entry."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        if failure_of(error) is None:
            raise


class HealthCheck:
    """Runs checks one after another in a thread that no request shares, so that it works while all others wait."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check, self._lock = check, threading.Lock()
        self._executor = ThreadPoolExecutor(1, "health")
        self._asked_at, self._running = 0.0, Future[None]()

    async def run(self) -> None:
        """Wait for the newest check and raise its error, or TimeoutError after HEALTH_LIMIT_S while it goes on."""
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._newest())), HEALTH_LIMIT_S)

    def close(self) -> None:
        """Release the thread; a hanging check ends by its own limits."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _newest(self) -> Future[None]:
        with self._lock:
            at = time.monotonic()
            if not self._asked_at or (self._running.done() and at - self._asked_at > HEALTH_TTL_S):
                self._asked_at, self._running = at, self._executor.submit(self._check)
            return self._running


def insist(store: Callable[[], object]) -> None:
    """Call `store` until it succeeds, pausing as in STORED_AGAIN_AFTER_S, while the database can't work."""
    for pause_s in (*STORED_AGAIN_AFTER_S, None):
        try:
            store()
        except Exception as error:
            if pause_s is None or failure_of(error) is None:
                raise
            time.sleep(pause_s)
        else:
            return
