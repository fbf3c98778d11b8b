"""What every group of named questions stands on: one engine, times in UTC, secrets kept as hashes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
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


# The transaction that `together` has opened in this thread, and the database that it is of.
_TOGETHER: ContextVar[tuple[sa.Engine, sa.Connection] | None] = ContextVar("together", default=None)


class Questions:
    """A group of questions about one part of the database.

    `turn` is what those who write wait for: SQLite lets one write at a time, and a queue here is fair and quick, where
    its own way of waiting is to sleep and try again.
    """

    def __init__(self, engine: sa.Engine, turn: AbstractContextManager[Any] | None = None) -> None:
        self.engine = engine
        self._turn = turn or nullcontext()
        # One statement needs no transaction around it, which PostgreSQL would be told to begin and to end.
        alone = engine.dialect.name != "sqlite"
        self._alone = engine.execution_options(isolation_level="AUTOCOMMIT") if alone else engine

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that this thread writes inside, in any group of questions, becomes durable at the end, or none of it."""
        with self._turn, self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":  # so that what is read inside is still so when it is written
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            opened = _TOGETHER.set((self.engine, connection))
            try:
                yield
            finally:
                _TOGETHER.reset(opened)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that is durable once it is left, and as if it had never been where an exception leaves it."""
        if opened := self._opened():
            yield opened
        else:
            with self._turn, self.engine.begin() as connection:
                yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        if opened := self._opened():
            yield opened
        else:
            with self._alone.connect() as connection:
                yield connection

    def _opened(self) -> sa.Connection | None:
        opened = _TOGETHER.get()
        return opened[1] if opened and opened[0] is self.engine else None

    def _one(self, query: sa.Select[Any], **values: Any) -> Any:  # a row, or None
        with self._reading() as connection:
            return connection.execute(query, values).one_or_none()

    def _all(self, query: sa.Select[Any], **values: Any) -> Sequence[Any]:
        with self._reading() as connection:
            return connection.execute(query, values).all()

    def _write(self, statement: sa.UpdateBase, values: Mapping[str, Any] | None = None) -> int:
        """Execute one statement for good; the number of rows it changed."""
        if opened := self._opened():
            return opened.execute(statement, values).rowcount
        with self._turn, self._alone.begin() as connection:
            return connection.execute(statement, values).rowcount

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
