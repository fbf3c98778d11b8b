"""What every group of named questions stands on: one engine, times in UTC, secrets kept as hashes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

PATIENCE = 5.0  # seconds in the queue of writers; as long again may be waited for another process


class Turn:
    """A queue of threads that write, in which nobody waits for ever behind one that is held up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=PATIENCE):
            raise sa.exc.TimeoutError

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Questions:
    """A group of questions about one part of the database.

    `turn` is what those who write wait for: SQLite lets one write at a time, and a queue here is fair and quick, where
    its own way of waiting is to sleep and try again.
    """

    def __init__(self, engine: sa.Engine, turn: AbstractContextManager[Any] | None = None) -> None:
        self.engine = engine
        self._turn = turn or nullcontext()
        # One question needs no transaction around it, which PostgreSQL would be told to begin and to end.
        alone = engine.dialect.name != "sqlite"
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT") if alone else engine

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that is durable once it is left, and as if it had never been where an exception leaves it."""
        with self._turn, self.engine.begin() as connection:
            yield connection

    def _one(self, query: sa.Select[Any]) -> Any:  # a row, or None
        with self._reading.connect() as connection:
            return connection.execute(query).one_or_none()

    def _all(self, query: sa.Select[Any]) -> Sequence[Any]:
        with self._reading.connect() as connection:
            return connection.execute(query).all()

    def _write(self, statement: sa.UpdateBase) -> int:
        """Execute one statement for good; the number of rows it changed."""
        with self._writing() as connection:
            return connection.execute(statement).rowcount

    def _insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        return sqlite.insert(table) if self.engine.dialect.name == "sqlite" else postgresql.insert(table)


def columns(table: sa.Table, kind: type[Any]) -> list[sa.Column[Any]]:
    """The columns that the fields of a dataclass are named after, in their order."""
    return [table.c[field.name] for field in fields(kind)]


def added_id(connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> int:
    """Insert one row; its id."""
    row = connection.execute(sa.insert(table).values(values)).inserted_primary_key
    assert row is not None  # noqa: S101 - one row was inserted
    return int(row[0])


def batches(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Values in groups of a size."""
    return (values[at : at + size] for at in range(0, len(values), size))


def hashed(secret: str) -> str:
    """What is stored of a token or code: whoever reads the database cannot use it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)
