"""Databases in trouble: how long a request may wait for one, and what its errors mean."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import sqlalchemy as sa

# enforced by PostgreSQL, also for a pause between two statements of a transaction, which holds locks
STATEMENT_LIMIT_S = 8
POOL_LIMIT_S = 5  # waiting for a connection that others hold
STORED_AGAIN_AFTER_S = (0.5,) * 60  # in which a database may recover; a runner does nothing else meanwhile
# Seconds, but for tcp_user_timeout: a connection to PostgreSQL whose other end has vanished fails after ten.
CONNECTION_LIMITS = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 5}


def limit_statements(engine: sa.Engine) -> None:
    """Limit statements and pauses on all connections to PostgreSQL to STATEMENT_LIMIT_S."""

    @sa.event.listens_for(engine, "connect")
    def _limit(connection: Any, _record: Any) -> None:
        try:
            connection.execute(_set_limits(STATEMENT_LIMIT_S))
            connection.commit()
        except BaseException:
            connection.close()  # the pool forgets it without
            raise


def _set_limits(seconds: float) -> str:
    milliseconds = round(1000 * seconds)
    return f"SET statement_timeout = {milliseconds}; SET idle_in_transaction_session_timeout = {milliseconds}"


@contextmanager
def unlimited_connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection whose statements take as long as they need, such as migrations."""
    with engine.connect() as connection:
        connection.detach()  # so that it is closed at the end, and nobody else gets it without limits
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(_set_limits(0))
            connection.commit()
        yield connection


class DatabaseGoneError(sqlite3.OperationalError):
    """The file of an SQLite database is no longer where it was opened."""


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
