"""What an error of the database means: it cannot work now, or it is a bug of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.store import Store, limits
from app.store.limits import DatabaseGoneError, Failure, failure_of, is_orphan, tolerated_failure


class CodedError(Exception):
    """An error of a database driver with the code that PostgreSQL or SQLite gives it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.sqlstate = "" if code.startswith("SQLITE") else code
        self.sqlite_errorname = code if code.startswith("SQLITE") else ""


def driver_error(code: str, kind: type[sa.exc.DBAPIError] = sa.exc.DBAPIError) -> sa.exc.DBAPIError:
    """An error as SQLAlchemy passes it on."""
    return kind("SELECT 1", None, CodedError(code))


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("53100", Failure.FULL),  # and not SILENT, as the rest of class 53
        ("53300", Failure.SILENT),
        ("SQLITE_FULL", Failure.FULL),
        ("SQLITE_READONLY_DBMOVED", Failure.READ_ONLY),
        ("25006", Failure.READ_ONLY),
        ("SQLITE_CORRUPT_INDEX", Failure.DAMAGED),
        ("57014", Failure.SILENT),  # a statement that took too long
        ("SQLITE_BUSY_SNAPSHOT", Failure.SILENT),
        ("42703", None),  # a column that does not exist
        ("23505", None),  # a second row with a unique key
        ("SQLITE_CONSTRAINT_UNIQUE", None),
    ],
)
def test_an_error_is_known_by_its_code(code: str, failure: Failure | None) -> None:
    assert failure_of(driver_error(code)) == failure


def test_an_error_without_a_code_is_one_of_the_connection() -> None:
    assert failure_of(driver_error("", sa.exc.OperationalError)) is Failure.SILENT
    assert failure_of(driver_error("", sa.exc.ProgrammingError)) is None
    assert failure_of(sa.exc.TimeoutError()) is Failure.SILENT
    assert failure_of(sa.exc.OperationalError(None, None, DatabaseGoneError())) is Failure.GONE
    assert failure_of(ValueError()) is None


def test_only_a_failure_of_the_database_is_tolerated() -> None:
    with tolerated_failure():
        raise driver_error("SQLITE_BUSY")
    with pytest.raises(sa.exc.DBAPIError), tolerated_failure():
        raise driver_error("42703")


def test_a_row_without_what_it_belongs_to_is_an_orphan() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        for statement in ("PRAGMA foreign_keys = ON", "CREATE TABLE a (id INTEGER PRIMARY KEY)",
                          "CREATE TABLE b (a INTEGER UNIQUE REFERENCES a)", "INSERT INTO a VALUES (1)",
                          "INSERT INTO b VALUES (1)"):  # fmt: skip
            connection.exec_driver_sql(statement)
        for statement, orphan in (("INSERT INTO b VALUES (2)", True), ("INSERT INTO b VALUES (1)", False)):
            with pytest.raises(sa.exc.IntegrityError) as raised:
                connection.exec_driver_sql(statement)
            assert is_orphan(raised.value) == orphan
    assert not is_orphan(sqlite3.IntegrityError())


def test_whoever_stands_still_in_a_transaction_loses_its_locks(
    new_postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STATEMENT_LIMIT_S", 0.2)
    asleep = Store(new_postgres_database, tmp_path)
    monkeypatch.setattr(limits, "STATEMENT_LIMIT_S", 60)
    awake, lock = Store(new_postgres_database, tmp_path), sa.text("SELECT pg_advisory_xact_lock(1)")

    def stand_still() -> None:
        with asleep.transaction() as connection:
            connection.execute(lock)
            with awake.transaction() as other:
                other.execute(lock)  # waits until it is free
            connection.execute(lock)

    with pytest.raises(sa.exc.DBAPIError) as raised:
        stand_still()
    assert failure_of(raised.value) is Failure.SILENT
    with asleep.transaction() as connection:
        connection.execute(lock)
    asleep.close()
    awake.close()
