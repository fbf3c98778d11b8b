"""The whole database as one file, which SQLite and PostgreSQL write and read alike, safe while the app runs.

A ZIP: `backup.json` says what is in it, `tables/NAME.jsonl` holds a line with the columns and one line a row.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import sqlalchemy as sa

from .database import is_known, migration_transaction, revision_of, upgrade
from .queries import utc_now
from .tables import FORMER_TABLES, metadata

FORMAT = "attention-shapes backup 1"
AT_ONCE = 500
VERSIONS = "alembic_version"
# What is written before anybody has done anything: the first link, and that it was made.
BEFORE_ANYBODY = frozenset({"account_links", "audit_log", "links", "log"})


class BackupError(ValueError):
    """Why nothing was written or restored."""

    def __init__(self, reason: Literal["empty", "newer", "no-backup", "damaged", "not-empty", "misfit"]) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class TableCount:
    """How many rows of a table are in a backup, and the hash of its file."""

    rows: int
    sha256: str


@dataclass(frozen=True)
class Contents:
    """What is in a backup: the migration its tables are at, and each table."""

    revision: str
    made_at: str
    tables: Mapping[str, TableCount]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


def write_backup(engine: sa.Engine, path: Path) -> Contents:
    """Write everything as it is at this moment; whole or not at all, and for the owner's eyes alone.

    Raises BackupError("empty") for a database without tables, "newer" for one of a newer program, OSError.
    """
    with _snapshot(engine) as connection, _written_whole(path) as file:
        revision = revision_of(connection)
        if revision is None:
            raise BackupError("empty")
        if not is_known(revision):
            raise BackupError("newer")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            tables = {table.name: _write_table(connection, archive, table) for table in _there(connection)}
            contents = Contents(revision, utc_now().isoformat(), tables)
            archive.writestr("backup.json", json.dumps({"format": FORMAT, **asdict(contents)}, indent=1))
    return contents


def check_backup(path: Path) -> Contents:
    """What is in a backup, after all of it was read; raises BackupError, OSError."""
    with _opened(path) as archive:
        contents = _contents(archive)
        for name, table in contents.tables.items():
            with archive.open(_member(name)) as file:
                lines, seen = -1, hashlib.sha256()
                for line in file:
                    seen.update(line)
                    lines += 1
            if (lines, seen.hexdigest()) != (table.rows, table.sha256):
                raise BackupError("damaged")
    return contents


def restore_backup(engine: sa.Engine, path: Path, *, replace: bool = False) -> Contents:
    """Put a backup in the place of everything, in one transaction, and bring its tables to the newest migration.

    Raises BackupError, "not-empty" where there is data and `replace` is not said; then nothing was changed.
    """
    contents = check_backup(path)
    with _opened(path) as archive, migration_transaction(engine) as connection:
        if not replace and _has_data(connection):
            raise BackupError("not-empty")
        _drop(connection)
        upgrade(connection, contents.revision)
        for table in _there(connection):
            _read_table(connection, archive, table, contents)
        upgrade(connection)
        if engine.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise BackupError("misfit")
    return contents


# Tables


def _there(connection: sa.Connection) -> list[sa.Table]:
    """Our tables as the database has them, of whatever migration, those first that others refer to."""
    found = sa.MetaData()
    found.reflect(connection, only=lambda name, _: name in metadata.tables or name in FORMER_TABLES)
    for table in found.tables.values():
        for column in table.columns:
            if isinstance(column.type, sa.JSON):
                column.type = sa.JSON(none_as_null=True)
    return found.sorted_tables


def _has_data(connection: sa.Connection) -> bool:
    telling = (table for table in _there(connection) if table.name not in BEFORE_ANYBODY)
    return any(connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first() for table in telling)


def _drop(connection: sa.Connection) -> None:
    for table in reversed(_there(connection)):
        table.drop(connection)
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {VERSIONS}")


def _write_table(connection: sa.Connection, archive: zipfile.ZipFile, table: sa.Table) -> TableCount:
    seen, count = hashlib.sha256(), 0
    query = sa.select(table).order_by(*table.primary_key.columns).execution_options(yield_per=AT_ONCE)
    rows = connection.execute(query)
    with archive.open(_member(table.name), "w", force_zip64=True) as file:
        for line in _lines(table, rows):
            file.write(line)
            seen.update(line)
            count += 1
    return TableCount(count - 1, seen.hexdigest())


def _lines(table: sa.Table, rows: sa.CursorResult[Any]) -> Iterator[bytes]:
    yield _line([column.name for column in table.columns])
    for row in rows:
        yield _line([_plain(value) for value in row])


def _line(values: list[Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _read_table(connection: sa.Connection, archive: zipfile.ZipFile, table: sa.Table, contents: Contents) -> None:
    if table.name not in contents.tables:
        raise BackupError("misfit")
    with archive.open(_member(table.name)) as file:
        names = json.loads(next(file))
        if set(names) != {column.name for column in table.columns}:
            raise BackupError("misfit")
        kinds = [table.c[name].type for name in names]
        while lines := list(islice(file, AT_ONCE)):
            read = [json.loads(line) for line in lines]
            rows = [{n: _typed(v, k) for n, v, k in zip(names, row, kinds, strict=True)} for row in read]
            connection.execute(sa.insert(table), rows)
    _count_on(connection, table)


def _count_on(connection: sa.Connection, table: sa.Table) -> None:
    """Let PostgreSQL give out the number after the highest one; SQLite does so by itself."""
    if connection.dialect.name != "postgresql" or "id" not in table.c:
        return
    sequence = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table.name, "id")))
    if sequence:
        highest = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0) + 1).scalar_subquery()
        connection.execute(sa.select(sa.func.setval(sequence, highest, False)))


def _plain(value: Any) -> Any:
    """A value as JSON has it; times in UTC, which SQLite keeps without saying so."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _typed(value: Any, kind: Any) -> Any:
    """The value of a column that JSON has in its own way."""
    if value is None or isinstance(kind, sa.JSON):
        return value
    if isinstance(kind, sa.DateTime):
        return datetime.fromisoformat(value)
    if isinstance(kind, sa.Date):
        return date.fromisoformat(value)
    return base64.b64decode(value) if isinstance(kind, sa.LargeBinary) else value


# Files


@contextmanager
def _snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection that sees everything as it was at one moment, while others go on writing."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        else:
            connection.exec_driver_sql("BEGIN")
        yield connection


@contextmanager
def _written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name once all of it is on disk; nobody but its owner can read it."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BackupError("damaged" if zipfile.is_zipfile(path) else "no-backup") from error


def _contents(archive: zipfile.ZipFile) -> Contents:
    try:
        said = json.loads(archive.read("backup.json"))
        tables = {name: TableCount(table["rows"], table["sha256"]) for name, table in said["tables"].items()}
        contents = Contents(said["revision"], said["made_at"], tables)
        if said["format"] != FORMAT or not {_member(name) for name in tables} <= set(archive.namelist()):
            raise BackupError("no-backup")
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError):
        raise BackupError("no-backup") from None
    if not is_known(contents.revision):
        raise BackupError("newer")
    return contents


def _member(table: str) -> str:
    return f"tables/{table}.jsonl"
