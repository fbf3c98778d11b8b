"""What all groups of queries build on: connections, transactions, and rows read into dataclasses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from .sqlite_writer import SqliteWriter

Clock = Callable[[], datetime]  # returns the time, in UTC
Kind = TypeVar("Kind")  # any dataclass


# The transaction that `transaction()` opened in this thread, with its database.
_CURRENT: ContextVar[tuple[sa.Engine, sa.Connection] | None] = ContextVar("current_transaction", default=None)


def transactional(engine: sa.Engine) -> sa.Engine:
    """An engine that commits at the end of a transaction, on the connections of one that commits each statement."""
    return engine if engine.dialect.name == "sqlite" else engine.execution_options(isolation_level="READ COMMITTED")


@dataclass(frozen=True)
class OpenDatabase:
    """An open database as all groups of queries share it.

    `engine` commits at the end of a transaction, `single_engine` after each statement where the database can; they
    share connections.
    """

    engine: sa.Engine
    single_engine: sa.Engine
    clock: Clock
    writer: SqliteWriter | None  # on SQLite

    @classmethod
    def of(cls, engine: sa.Engine, clock: Clock) -> OpenDatabase:
        """The database opened by `open_engine`."""
        writer = SqliteWriter(engine) if engine.dialect.name == "sqlite" else None
        return cls(transactional(engine), engine, clock, writer)


class QueryBase:
    """A group of queries on one part of the database."""

    def __init__(self, database: OpenDatabase) -> None:
        self.engine, self.single_engine, self._writer = database.engine, database.single_engine, database.writer
        self.now = database.clock

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Put everything that this thread reads and writes, in any group of queries, into one transaction.

        A nested transaction is a savepoint: its exception undoes what it wrote, and the outer one commits.
        """
        if current := self._current_connection():
            with current.begin_nested():
                yield current
            return
        with self._writer.transaction() if self._writer else self.engine.begin() as connection:
            outer = _CURRENT.set((self.engine, connection))
            try:
                yield connection
            finally:
                _CURRENT.reset(outer)

    @contextmanager
    def _read_connection(self) -> Iterator[sa.Connection]:
        """The connection of this thread's transaction, or one for a single statement."""
        if current := self._current_connection():
            yield current
        else:
            with self.single_engine.connect() as connection:
                yield connection

    def _current_connection(self) -> sa.Connection | None:
        """The connection of this thread's `transaction()` on this database, None outside of one."""
        current = _CURRENT.get()
        return current[1] if current and current[0] is self.engine else None

    def _fetch_one(self, query: sa.Select[Any], **values: Any) -> Any:
        with self._read_connection() as connection:
            return connection.execute(query, values).one_or_none()

    def _fetch_all(self, query: sa.Select[Any] | sa.CompoundSelect[Any], **values: Any) -> Sequence[Any]:
        with self._read_connection() as connection:
            return connection.execute(query, values).all()

    def _value(self, kind: type[Kind], query: sa.Select[Any], **values: Any) -> Kind | None:
        """The value in the only row of a query that selects `columns` for this kind, or None."""
        row = self._fetch_one(query, **values)
        return from_row(kind, row) if row else None

    def _values(self, kind: type[Kind], query: sa.Select[Any], **values: Any) -> tuple[Kind, ...]:
        """The values in the rows of a query that selects `columns` for this kind."""
        return tuple(from_row(kind, row) for row in self._fetch_all(query, **values))

    def _execute(self, statement: sa.UpdateBase, values: Mapping[str, Any] | None = None) -> int:
        """Committed at once or, inside `transaction()`, when that ends."""
        if current := self._current_connection():
            return current.execute(statement, values).rowcount
        with self._writer.transaction() if self._writer else self.single_engine.begin() as connection:
            return connection.execute(statement, values).rowcount

    def _insert_into(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        return sqlite.insert(table) if self.engine.dialect.name == "sqlite" else postgresql.insert(table)


def columns(table: sa.FromClause, kind: type[Any], prefix: str = "") -> list[sa.ColumnElement[Any]]:
    """A table's columns for the fields of a dataclass, in order, labelled prefix + field.

    Example: columns(courses, Course, "course__") selects courses.id AS course__id, courses.title AS course__title, …
    """
    own = [table.c[field.name] for field in fields(kind)]
    return [column.label(prefix + column.name) for column in own] if prefix else list(own)


def from_row(kind: type[Kind], row: Any, prefix: str = "") -> Kind:
    """The dataclass in a row's columns, as `columns` selects them."""
    stored = row._mapping
    return kind(*(stored[prefix + name] for name in cast(Any, kind).__dataclass_fields__))


def insert_row(connection: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> int:
    """Insert one row into a table with an integer id, and return that id."""
    key = connection.execute(sa.insert(table).values(values)).inserted_primary_key
    assert key is not None  # noqa: S101 - one row was inserted
    return int(key[0])


def batches(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Values in groups of `size`: databases limit how many one statement takes.

    Example: list(batches([1, 2, 3], 2)) == [[1, 2], [3]]
    """
    return (values[start : start + size] for start in range(0, len(values), size))


def hash_secret(secret: str) -> str:
    """The SHA-256 of a token or code in hex: only this is stored, so that a leaked database opens nothing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def utc_now() -> datetime:
    """The current time in UTC, by this machine's clock."""
    return datetime.now(UTC)
