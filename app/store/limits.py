"""Databases in trouble: how long one may keep a request waiting, and what an error of one means."""

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
STATEMENT_LIMIT_S = 8  # counted by the server, as is a pause between two statements of a transaction, which has locks
ANSWER_LIMIT_S = 10.0  # counted here: a server that hangs counts nothing
POOL_LIMIT_S = 5  # for a connection that others hold
STORED_AGAIN_AFTER_S = (0.5,) * 60  # in which a database may recover; a runner does nothing else meanwhile
HEALTH_LIMIT_S = 3
HEALTH_TTL_S = 1.0  # an answer is given to all who ask within it: on SQLite each waits for whoever writes
ROOM_NEEDED_BYTES = 8_000_000  # SQLite's log grows to half of it before it is written back
_PARAMETERS = {"connect_timeout": CONNECT_LIMIT_S, "tcp_user_timeout": int(1000 * ANSWER_LIMIT_S)}

Result = TypeVar("Result")


class LimitedConnection(psycopg.Connection[Any]):
    """A PostgreSQL connection that waits `answer_limit_s` for an answer, then closes itself with an
    OperationalError. None waits for any time.
    """

    answer_limit_s: float | None = ANSWER_LIMIT_S

    def wait(self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None) -> Result:
        """Wait for an answer of the server, for `timeout` seconds or, if that is None, for `answer_limit_s`."""
        try:
            return super().wait(gen, interval, self.answer_limit_s if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if timeout is None and error.sqlstate is None:  # it is no answer of the server
                self.close()
            raise


def limit_postgresql(engine: sa.Engine, name: str) -> None:
    """Give every new connection of this engine that name, and limits for connecting, statements and answers."""

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
        # collected: a server that was away would find its connections taken by attempts that were given up.
        gc.collect()
        raise problem


def _set_limits(seconds: float) -> str:
    """The SQL that limits each statement, and each pause in a transaction, to `seconds`; 0 is no limit."""
    milliseconds = round(1000 * seconds)
    return f"SET statement_timeout = {milliseconds}; SET idle_in_transaction_session_timeout = {milliseconds}"


@contextmanager
def without_limits(connection: sa.Connection) -> Iterator[None]:
    """Lift the limits of a PostgreSQL connection for this `with`: migrations take as long as they need."""
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
    """From the engine's first connection on, refuse each use of one once the database's file is gone or replaced."""
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
    """The disk of an SQLite database has hardly any room left."""

    sqlite_errorname = "SQLITE_FULL"


def check_room(engine: sa.Engine) -> None:
    """Raise OperationalError, with NoRoomError as `orig`, if an SQLite file's disk has less than ROOM_NEEDED_BYTES."""
    path = engine.url.database
    on_disk = engine.dialect.name == "sqlite" and path and path != ":memory:"
    if on_disk and shutil.disk_usage(os.path.dirname(str(path)) or ".").free < ROOM_NEEDED_BYTES:
        raise sa.exc.OperationalError(None, None, NoRoomError())


class Failure(Enum):
    """What keeps a database from its work; the value is a sentence for the operator."""

    FULL = "the disk is full: pages can be read, but nothing can be saved"
    READ_ONLY = "the database is read-only: pages can be read, but nothing can be saved"
    GONE = "the database file was deleted or replaced: restart the app"
    DAMAGED = "the database is damaged: restore a backup"
    SILENT = "the database does not answer"


# How the codes begin by which PostgreSQL (SQLSTATE) and SQLite say that they cannot work: connections, locks,
# resources, an operator who stops the server, a statement that took too long, and files.
_FAILURES: tuple[tuple[Failure, tuple[str, ...]], ...] = (
    (Failure.FULL, ("53100", "SQLITE_FULL")),
    (Failure.READ_ONLY, ("25006", "SQLITE_READONLY")),
    (Failure.DAMAGED, ("XX001", "XX002", "SQLITE_CORRUPT", "SQLITE_NOTADB")),
    (Failure.SILENT, ("08", "53", "57", "58", "40001", "40P01", "55P03", "SQLITE_BUSY", "SQLITE_LOCKED",
                      "SQLITE_PROTOCOL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_INTERRUPT")),
)  # fmt: skip
_FAILURES_OF_DISK = {errno.ENOSPC: Failure.FULL, errno.EDQUOT: Failure.FULL, errno.EROFS: Failure.READ_ONLY}


def failure_of(error: BaseException) -> Failure | None:
    """What keeps the database, or the disk, from its work; None for any other error, which is a bug of ours."""
    if isinstance(error, OSError):
        return _FAILURES_OF_DISK.get(error.errno or 0)
    if isinstance(error, sa.exc.TimeoutError):  # of the pool of connections, or of our lock for SQLite
        return Failure.SILENT
    if not isinstance(error, sa.exc.DBAPIError):
        return None
    if isinstance(error.orig, DatabaseGoneError):
        return Failure.GONE
    code = code_of(error)
    for failure, beginnings in _FAILURES:
        if code.startswith(beginnings):
            return failure
    # An error without a code is one of the connection, not of a statement.
    lost = error.connection_invalidated or (not code and isinstance(error, sa.exc.OperationalError))
    return Failure.SILENT if lost else None


def code_of(error: sa.exc.DBAPIError) -> str:
    """The code of an error, such as "23505" (PostgreSQL) or "SQLITE_CONSTRAINT_UNIQUE"; empty where it has none."""
    return getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""


def is_orphan(error: BaseException) -> bool:
    """Whether a row was refused because what it belongs to does not exist, as when somebody has just deleted that."""
    return isinstance(error, sa.exc.IntegrityError) and code_of(error) in ("23503", "SQLITE_CONSTRAINT_FOREIGNKEY")


@contextmanager
def tolerated_failure() -> Iterator[None]:
    """Go on after this `with` if the database could not do its work (`failure_of`), without a log entry."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        if failure_of(error) is None:
            raise


class HealthCheck:
    """Runs one check after the other in a thread that no request shares, so that it works while all others wait."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check, self._lock = check, threading.Lock()
        self._executor = ThreadPoolExecutor(1, "health")
        self._asked_at, self._running = 0.0, Future[None]()

    async def run(self) -> None:
        """Wait for the newest check and raise what it raised; TimeoutError after HEALTH_LIMIT_S, while it goes on."""
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._newest())), HEALTH_LIMIT_S)

    def close(self) -> None:
        """Let go of the thread; a check that hangs ends by its own limits."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _newest(self) -> Future[None]:
        with self._lock:
            at = time.monotonic()
            if not self._asked_at or (self._running.done() and at - self._asked_at > HEALTH_TTL_S):
                self._asked_at, self._running = at, self._executor.submit(self._check)
            return self._running


def insist(store: Callable[[], object]) -> None:
    """Call `store` until it succeeds, with the pauses of STORED_AGAIN_AFTER_S, while the database cannot do its
    work.
    """
    for pause_s in (*STORED_AGAIN_AFTER_S, None):
        try:
            store()
        except Exception as error:
            if pause_s is None or failure_of(error) is None:
                raise
            time.sleep(pause_s)
        else:
            return
