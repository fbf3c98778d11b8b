"""A database opened, and its tables brought from one migration to another by one process at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import make_url

# Several processes may start at once: one of them migrates, the others wait until it is done.
LOCKS = {"postgresql": "SELECT pg_advisory_xact_lock(7302)", "sqlite": "BEGIN IMMEDIATE"}


# None beyond those that are kept: to open one for a moment costs more than to wait for another's. Four workers stay
# below PostgreSQL's usual hundred.
_POOL = {"pool_size": 20, "max_overflow": 0, "pool_recycle": 1800}


def open_engine(url: str) -> sa.Engine:
    """The database of that address as it is; of SQLite, the folder is made if it is missing."""
    _make_folder(url)
    # What people typed stands in parameters, and those in no error message.
    # A connection that the server has dropped is found out by its first use: that request is told to try again, and all
    # connections are renewed. To ask before each use would cost as much as most questions do.
    engine = sa.create_engine(url, hide_parameters=True, **_POOL)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up_sqlite)
    return engine


@contextmanager
def migration_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction in which tables may change, and which stays if nothing is raised; one process at a time."""
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as connection:
        if sqlite:  # a table that is made anew under its old name must not take along the rows that refer to it
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        try:
            connection.exec_driver_sql(LOCKS[engine.dialect.name])
            yield connection
            connection.commit()
        finally:
            connection.rollback()
            if sqlite:
                connection.exec_driver_sql("PRAGMA foreign_keys=ON")


def upgrade(connection: sa.Connection, revision: str = "head") -> None:
    """Bring the tables to a migration; raises CommandError where they are newer than this program."""
    config = _scripts()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def revision_of(connection: sa.Connection) -> str | None:
    """The migration that a database is at, None for one without tables."""
    return MigrationContext.configure(connection).get_current_revision()


def is_known(revision: str) -> bool:
    """Whether this program has that migration."""
    return revision in {script.revision for script in ScriptDirectory.from_config(_scripts()).walk_revisions()}


def _scripts() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _make_folder(url: str) -> None:
    database = make_url(url)
    if database.get_backend_name() == "sqlite" and database.database and database.database != ":memory:":
        Path(database.database).parent.mkdir(parents=True, exist_ok=True)


def _set_up_sqlite(connection: Any, _record: object) -> None:
    # FULL: an answer that was acknowledged survives a power cut, at the price of one flush a commit.
    for pragma in ("busy_timeout=5000", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    _use_wal(connection)


def _use_wal(connection: Any) -> None:
    """WriteLock the write-ahead log on; of several who open a new file at once, SQLite lets only one, and none wait."""
    for wait in (*[0.05] * 100, None):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if wait is None:
                raise
            time.sleep(wait)
        else:
            return
