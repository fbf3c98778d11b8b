"""What all groups of queries build on: connections, transactions, and rows read into dataclasses."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

try:
    import fcntl
except ImportError:  # on Windows, where SQLite's own lock has to do
    fcntl = None  # type: ignore[assignment]

WRITE_LOCK_TIMEOUT_S = 5.0  # SQLite waits as long again for other programs
WRITE_LOCK_PAUSE_S = 0.0005


Clock = Callable[[], datetime]  # returns the time, in UTC
Kind = TypeVar("Kind")  # any dataclass
Result = TypeVar("Result")  # whatever some work returns


class WriteLock:
    """A lock for all writers to an SQLite file: this process's threads, and other processes of the app.

    Raises sqlalchemy.exc.TimeoutError after WRITE_LOCK_TIMEOUT_S seconds.
    """

    def __init__(self, database: str | None) -> None:
        self._lock = threading.Lock()
        on_disk = fcntl is not None and database and database != ":memory:"
        self._path = f"{database}-writer" if on_disk else ""
        self._file: int | None = None  # its descriptor

    def __enter__(self) -> None:
        """Wait for the lock among this process's threads, then for the file's; hold both or neither."""
        deadline = time.monotonic() + WRITE_LOCK_TIMEOUT_S
        if not self._lock.acquire(timeout=WRITE_LOCK_TIMEOUT_S):
            raise sa.exc.TimeoutError
        try:
            while not self._try_file():
                if time.monotonic() > deadline:
                    raise sa.exc.TimeoutError
                time.sleep(WRITE_LOCK_PAUSE_S)
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._lock.release()

    def close(self) -> None:
        """Close the file once no thread of this process holds the lock; the next use reopens it."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def _try_file(self) -> bool:
        """Take the lock on the file if it is free; never waits."""
        if not self._path:
            return True
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a full or read-only disk: SQLite's own lock is enough
            self._path = ""
        return True


@dataclass(eq=False)
class _Write:
    """A write waiting for its commit: its work, and its result once `woken` is set.

    A woken write that `leads` has no result yet and must commit everything that waits, itself included.
    """

    work: Callable[[sa.Connection], Any]
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    done: bool = False
    result: Any = None
    error: BaseException | None = None


class SharedCommits:
    """Lets threads that write to SQLite at the same time share a commit, which is one flush of the disk."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self.lock = engine, WriteLock(engine.url.database)
        self._mutex = threading.Lock()  # held for the two fields below, never while the database works
        self._waiting: list[_Write] = []
        self._has_leader = False

    def run(self, work: Callable[[sa.Connection], Any]) -> Any:
        """Do some work in a transaction that other threads may share; return its result once committed."""
        write = _Write(work)
        with self._mutex:
            self._waiting.append(write)
            write.leads, self._has_leader = not self._has_leader, True
        if not write.leads:
            self._wait_for(write)
        if not write.done:
            self._lead(write)
        if write.error:
            raise write.error
        return write.result

    def _wait_for(self, write: _Write) -> None:
        if write.woken.wait(WRITE_LOCK_TIMEOUT_S):
            return
        with self._mutex:
            in_queue = write in self._waiting and not write.leads
            if in_queue:
                self._waiting.remove(write)
        # The commit in progress waits at most as long as SQLite itself does.
        if in_queue or not write.woken.wait(2 * WRITE_LOCK_TIMEOUT_S):
            raise sa.exc.TimeoutError

    def _lead(self, leader: _Write) -> None:
        """Commit everything that waits as soon as the lock is free, and wake its threads."""
        batch = list[_Write]()
        try:
            with self.lock:
                with self._mutex:
                    batch, self._waiting = self._waiting, []
                self._commit(batch)
        finally:
            with self._mutex:
                if leader in self._waiting:  # the lock couldn't be had
                    self._waiting.remove(leader)
                following = next(iter(self._waiting), None)
                self._has_leader = following is not None
                if following:
                    following.leads = True
            for write in filter(None, (*batch, following)):
                write.woken.set()

    def _commit(self, batch: Sequence[_Write]) -> None:
        """All get the same error if the transaction couldn't begin."""
        begun = False
        try:
            with self._engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                begun = True
                results = [write.work(connection) for write in batch]
        except BaseException as error:
            if begun and len(batch) > 1 and isinstance(error, Exception):
                for write in batch:
                    self._commit([write])
                return
            for write in batch:
                write.error, write.done = error, True
        else:
            for write, result in zip(batch, results, strict=True):
                write.result, write.done = result, True


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
    commits: SharedCommits | None
    clock: Clock

    @classmethod
    def of(cls, engine: sa.Engine, clock: Clock) -> OpenDatabase:
        """The database opened by `open_engine`."""
        commits = SharedCommits(engine) if engine.dialect.name == "sqlite" else None
        return cls(transactional(engine), engine, commits, clock)


class QueryBase:
    """A group of queries on one part of the database.

    SQLite lets one connection write at a time: waiting for our own lock is fair and quick, while SQLite itself sleeps
    and retries.
    """

    def __init__(self, database: OpenDatabase) -> None:
        self.engine, self.single_engine, self._commits = database.engine, database.single_engine, database.commits
        self._write_lock = database.commits.lock if database.commits else nullcontext()
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
        with self._write_lock, self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            outer = _CURRENT.set((self.engine, connection))
            try:
                yield connection
            finally:
                _CURRENT.reset(outer)

    def in_transaction(self, work: Callable[[sa.Connection], Result]) -> Result:
        """Do some work inside `transaction()` and return its result; on SQLite threads share their commits.

        Inside `transaction()`, it is called once, in this thread, in a savepoint.
        """
        if self._commits is None or self._current_connection():
            with self.transaction() as connection:
                return work(connection)

        def within(connection: sa.Connection) -> tuple[Result | None, Exception | None]:
            outer = _CURRENT.set((self.engine, connection))
            savepoint = connection.begin_nested()
            try:
                result = work(connection)
            except sa.exc.SQLAlchemyError:  # SQLite may have rolled back everything, including savepoints
                raise
            except Exception as error:
                savepoint.rollback()
                return None, error
            else:
                savepoint.commit()
                return result, None
            finally:
                _CURRENT.reset(outer)

        result, error = self._commits.run(within)
        if error:
            raise error
        return cast(Result, result)

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
        """Committed at once (on SQLite, with other threads' writes) or, inside `transaction()`, when that ends."""
        if current := self._current_connection():
            return current.execute(statement, values).rowcount
        if self._commits:
            return int(self._commits.run(lambda connection: connection.execute(statement, values).rowcount))
        with self.single_engine.begin() as connection:
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
