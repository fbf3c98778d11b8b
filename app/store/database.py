"""Opens a database and runs its migrations, in one process at a time."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import make_url

from app.metrics import Meters, meters
from app.secret_key import SecretKey

from .limits import CONNECTION_LIMITS, POOL_LIMIT_S, limit_statements, unlimited_connection
from .queries import transactional
from .tables import students

LOG_LIMIT_S = 0.2  # how long emptying the write-ahead log may wait for others, and saves for it

# Several processes may start at the same time: one migrates while the others wait for this lock.
MIGRATION_LOCKS = {"postgresql": "SELECT pg_advisory_xact_lock(7302)", "sqlite": "BEGIN IMMEDIATE"}
_OTHERS = stat.S_IRWXG | stat.S_IRWXO  # the rights of group and others

MAX_CONNECTIONS, MIN_CONNECTIONS = 20, 4  # for one process; a worker has the fewest
CONNECTIONS_OF_ALL = 70  # shared by the web processes of all machines: PostgreSQL usually allows 100 in total
# The kind of a process, which names its connections on PostgreSQL: "attention-shapes web 1f0c9a7b".
ProcessRole = Literal["web", "worker", "command"]


def connections_of_each(processes: int) -> int:
    """How many connections each of `processes` may have: 17 of four, 11 of six, 4 of seventeen and more."""
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, CONNECTIONS_OF_ALL // processes))


def connection_name(role: ProcessRole, key: SecretKey) -> str:
    """A process's name on PostgreSQL, as shown in pg_stat_activity."""
    return f"attention-shapes {role} {key.mark}"


def open_engine(url: str, processes: int = 1, name: str = "attention-shapes") -> sa.Engine:
    """An engine for a database URL, with one process's share of connections; nothing is migrated."""
    _make_file(url)
    is_sqlite = make_url(url).get_backend_name() == "sqlite"
    # PostgreSQL commits each statement at once, which saves the round trips of BEGIN and COMMIT. Its connections are
    # set up so from the start, since each change takes time.
    postgresql: dict[str, Any] = {
        "isolation_level": "AUTOCOMMIT",
        "skip_autocommit_rollback": True,
        "pool_pre_ping": True,
        "connect_args": {**CONNECTION_LIMITS, "application_name": name},
    }
    engine = sa.create_engine(
        url,
        hide_parameters=True,  # they hold what people typed, which must not get into error messages
        json_serializer=_json_text,
        pool_size=connections_of_each(processes),
        max_overflow=0,  # opening a connection costs more than waiting for a pooled one
        pool_timeout=POOL_LIMIT_S,
        **({} if is_sqlite else postgresql),
    )
    if is_sqlite:
        sa.event.listen(engine, "connect", _set_up_sqlite)
    else:
        limit_statements(engine)
    if app_meters := meters():
        _measure(engine, app_meters)
    return engine


def _json_text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _measure(engine: sa.Engine, app_meters: Meters) -> None:
    began, commit = perf_counter, engine.dialect.do_commit

    @sa.event.listens_for(engine, "before_cursor_execute")
    def _begin(_connection: Any, _cursor: Any, _statement: str, _values: Any, context: Any, _many: bool) -> None:
        context.began_at = began()

    @sa.event.listens_for(engine, "after_cursor_execute")
    def _end(_connection: Any, _cursor: Any, statement: str, _values: Any, context: Any, _many: bool) -> None:
        kind = "read" if statement.lstrip().startswith("SELECT") else "write"
        app_meters.database_seconds.labels(kind).observe(began() - context.began_at)

    def timed_commit(connection: Any) -> None:
        start = began()
        commit(connection)
        app_meters.database_seconds.labels("commit").observe(began() - start)

    engine.dialect.do_commit = timed_commit  # type: ignore[method-assign, assignment]  # for this engine alone


@contextmanager
def migration_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection for a `with` block in which tables may change: committed at the end, rolled back by an exception."""
    with unlimited_connection(transactional(engine)) as connection:
        if engine.dialect.name == "sqlite":
            # Recreating a table drops the old one, which must not delete the rows that refer to it.
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql(MIGRATION_LOCKS[engine.dialect.name])
        yield connection
        connection.commit()


def empty_log(engine: sa.Engine) -> bool:
    """Copy SQLite's write-ahead log into the database file and truncate it; True if nothing is left in it."""
    if engine.dialect.name != "sqlite":
        return True
    with engine.connect() as connection:
        usual_ms = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
        connection.exec_driver_sql(f"PRAGMA busy_timeout={int(1000 * LOG_LIMIT_S)}")  # saves wait as long
        try:
            is_busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={usual_ms}")
    return not is_busy


class UnreleasedDatabaseError(Exception):
    """The tables are from before the first release, and can't be migrated."""


def upgrade(connection: sa.Connection, revision: str = "head") -> None:
    """Run the missing migrations up to a revision, such as "1001_tables", without a commit."""
    current = revision_of(connection) or ""
    if current.startswith("0"):  # released series begin with 1
        raise UnreleasedDatabaseError
    if is_newer(current) or (revision == "head" and current == _newest_revision()):
        return
    command.upgrade(_scripts(connection), revision)


def revision_of(connection: sa.Connection) -> str | None:
    """A database's revision, such as "1001_tables"; None without tables."""
    return MigrationContext.configure(connection).get_current_revision()


def count_locked(engine: sa.Engine, key: SecretKey) -> int:
    """How many resume codes were stored with another key."""
    query = sa.select(sa.func.count(students.c.resume_hash))
    with engine.connect() as connection:
        return connection.scalar(query.where(students.c.resume_hash.not_like(f"{key.mark}.%"))) or 0


def another_key_signs(engine: sa.Engine, key: SecretKey) -> bool:
    """Whether a web process with another secret key is connected to this database now; False for SQLite."""
    if engine.dialect.name == "sqlite":
        return False
    query = sa.text(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE :web AND application_name <> :own"
        " AND coalesce(state_change > clock_timestamp() - interval '1 minute', true))"
    )
    with engine.connect() as connection:
        return bool(connection.scalar(query, {"web": "attention-shapes web %", "own": connection_name("web", key)}))


def clock_ahead_s(engine: sa.Engine) -> float:
    """How many seconds this machine's clock is ahead of PostgreSQL's (negative: behind); 0 for SQLite."""
    if engine.dialect.name == "sqlite":
        return 0
    with engine.connect() as connection:
        before = time.time()
        at = connection.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())::float"))
        return (before + time.time()) / 2 - float(at)


def connections_allowed(engine: sa.Engine) -> int | None:
    """How many connections a PostgreSQL server allows to ordinary users, including other programs; None for SQLite."""
    if engine.dialect.name == "sqlite":
        return None
    reserved = "current_setting('superuser_reserved_connections')::int"
    reserved += " + coalesce(current_setting('reserved_connections', true), '0')::int"
    with engine.connect() as connection:
        return connection.exec_driver_sql(f"SELECT current_setting('max_connections')::int - ({reserved})").scalar()


def is_newer(revision: str) -> bool:
    """Whether a revision belongs to our series and is newer than this code: see docs/contributing.md.

    Example: to code that ends with "1004_groups", "1007_later" is newer; "2001_fewer_tables" is not.
    """
    newest, numbered = _newest_revision(), re.fullmatch(r"\d{4}_\w+", revision)
    return bool(numbered) and revision[:1] == newest[:1] and revision[:4] > newest[:4]


@lru_cache
def _newest_revision() -> str:
    return ScriptDirectory.from_config(_scripts()).get_current_head() or ""


@lru_cache
def is_known(revision: str) -> bool:
    return revision in {script.revision for script in ScriptDirectory.from_config(_scripts()).walk_revisions()}


def _scripts(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.attributes["connection"] = connection
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def make_private(folder: Path) -> None:
    """Remove group's and others' rights on a folder and its contents; links aren't followed.

    Raises OSError if the folder can't be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for inside, _folders, files in os.walk(folder):
        for path in (Path(inside), *(Path(inside) / name for name in files)):
            with suppress(OSError):  # it is gone by now, isn't ours, or the disk is read-only
                mode = path.lstat().st_mode
                if mode & _OTHERS and not stat.S_ISLNK(mode):
                    path.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def _make_file(url: str) -> None:
    database = make_url(url)
    if database.get_backend_name() == "sqlite" and database.database and database.database != ":memory:":
        path = Path(database.database)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)


def _set_up_sqlite(connection: Any, _record: object) -> None:
    """Set up a connection: wait 5 s for locks, enforce foreign keys, zero deleted data, use WAL."""
    # NORMAL: transactions flush the log themselves, see sqlite_writer.py. secure_delete: Debian builds SQLite with it,
    # others without.
    for pragma in ("busy_timeout=5000", "synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
    _use_wal(connection)


def _use_wal(connection: Any) -> None:
    """While another connection turns on WAL, SQLite refuses at once instead of waiting for the lock."""
    for pause_s in (*[0.05] * 100, None):
        try:
            [mode] = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError:
            if pause_s is None:
                raise
            time.sleep(pause_s)
        else:
            if mode != "wal":  # as on some network disks; without a log, nothing would be flushed before it is answered
                raise sqlite3.OperationalError("this disk cannot hold SQLite's write-ahead log: use a local one")
            return
