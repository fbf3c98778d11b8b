"""Backups: the whole database as one file, the same for SQLite and PostgreSQL, written while the app runs.

The file is a ZIP. `backup.json` lists its contents; `tables/NAME.jsonl` has a line with the column names, then a line
for each row.
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
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import REGCLASS

from .database import is_before_release, is_known, migration_transaction, revision_of, upgrade
from .limits import without_limits
from .queries import utc_now
from .tables import FORMER_TABLES, PASSING_TABLES, metadata

FORMAT, FORMER_FORMAT = "attention-shapes backup 2", "attention-shapes backup 1"
MAX_LISTING_BYTES, MAX_LINE_BYTES = 1_000_000, 50_000_000  # far more than any of ours has
ROWS_PER_BATCH = 500
REVISION_TABLE = "alembic_version"
_IS_ENCRYPTED = 0x1  # the flag of a file in a ZIP that only a password opens
_SEQUENCES = sa.table("sqlite_sequence", sa.column("name", sa.String), sa.column("seq", sa.Integer))
# A database with rows in these tables alone counts as empty: the first start writes a set-up link and logs it.
SETUP_TABLES = frozenset({"account_links", "audit_log"})


BackupProblem = Literal["empty", "older", "newer", "no-backup", "encrypted", "damaged", "not-empty", "misfit"]


class BackupError(ValueError):
    """Why nothing was written or restored, as a key: `reason`."""

    def __init__(self, reason: BackupProblem) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class TableCount:
    """The number of rows of a table in a backup, the SHA-256 of its file in hexadecimal, and the highest id ever
    given.
    """

    rows: int
    sha256: str
    last_id: int


@dataclass(frozen=True)
class Contents:
    """What is in a backup: the revision of the tables, when it was made, and every table by name."""

    revision: str
    made_at: str
    tables: Mapping[str, TableCount]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


def write_backup(engine: sa.Engine, path: Path) -> Contents:
    """Write the database as it is at this moment to a file that only its owner can read."""
    with _snapshot_connection(engine) as connection, _atomic_file(path) as file:
        revision = revision_of(connection)
        if revision is None:
            raise BackupError("empty")
        _require_known(revision)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            tables = {table.name: _write_table(connection, archive, table) for table in _kept_tables(connection)}
            contents = Contents(revision, utc_now().isoformat(), tables)
            archive.writestr("backup.json", json.dumps({"format": FORMAT, **asdict(contents)}, indent=1))
    return contents


def check_backup(path: Path) -> Contents:
    """Read all of a backup and return its contents (revision, time and tables), without a database."""
    with _open_archive(path) as archive:
        contents = _read_contents(archive)
        for name, table in contents.tables.items():
            with archive.open(_member_name(name)) as file:
                rows, digest = -1, hashlib.sha256()  # the first line has the column names
                for line in _lines(file):
                    digest.update(line)
                    rows += 1
            if (rows, digest.hexdigest()) != (table.rows, table.sha256):
                raise BackupError("damaged")
    return contents


def restore_backup(engine: sa.Engine, path: Path, *, replace: bool = False) -> Contents:
    """Replace the whole database by a backup, migrate its tables, and return what the backup held: all or nothing."""
    contents = check_backup(path)
    with _open_archive(path) as archive, migration_transaction(engine) as connection:
        if not replace and _has_data(connection):
            raise BackupError("not-empty")
        _drop_tables(connection)
        upgrade(connection, contents.revision)
        try:
            for table in _kept_tables(connection):
                _restore_table(connection, archive, table, contents)
            _advance_sequences(connection, contents)
            upgrade(connection)
            _advance_sequences(connection, contents)  # of tables that were made anew
        except (BackupError, OSError, sa.exc.OperationalError):
            raise
        except Exception as error:  # rows that the tables and migrations do not expect can cause any
            raise BackupError("misfit") from error
        if engine.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise BackupError("misfit")
    return contents


# Tables


def _our_tables(connection: sa.Connection) -> list[sa.Table]:
    reflected = sa.MetaData()
    reflected.reflect(connection, only=lambda name, _: name in metadata.tables or name in FORMER_TABLES)
    for table in reflected.tables.values():
        for column in table.columns:
            if isinstance(column.type, sa.JSON):
                column.type = sa.JSON(none_as_null=True)
    return reflected.sorted_tables


def _kept_tables(connection: sa.Connection) -> list[sa.Table]:
    return [table for table in _our_tables(connection) if table.name not in PASSING_TABLES]


def _has_data(connection: sa.Connection) -> bool:
    tables = (table for table in _kept_tables(connection) if table.name not in SETUP_TABLES)
    return any(connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first() for table in tables)


def _drop_tables(connection: sa.Connection) -> None:
    for table in reversed(_our_tables(connection)):
        table.drop(connection)
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {REVISION_TABLE}")


def _write_table(connection: sa.Connection, archive: zipfile.ZipFile, table: sa.Table) -> TableCount:
    digest, lines = hashlib.sha256(), 0
    query = sa.select(table).order_by(*table.primary_key.columns).execution_options(yield_per=ROWS_PER_BATCH)
    rows = connection.execute(query)
    with archive.open(_member_name(table.name), "w", force_zip64=True) as file:
        for values in chain([[column.name for column in table.columns]], rows):
            line = json.dumps([_json_value(value) for value in values], separators=(",", ":")).encode() + b"\n"
            file.write(line)
            digest.update(line)
            lines += 1
    return TableCount(lines - 1, digest.hexdigest(), _last_id(connection, table))


def _restore_table(connection: sa.Connection, archive: zipfile.ZipFile, table: sa.Table, contents: Contents) -> None:
    if table.name not in contents.tables:
        raise BackupError("misfit")
    with archive.open(_member_name(table.name)) as file:
        lines_of_rows = _lines(file)
        names = json.loads(next(lines_of_rows, b"[]"))
        if set(names) != {column.name for column in table.columns}:
            raise BackupError("misfit")
        types = [table.c[name].type for name in names]
        while lines := list(islice(lines_of_rows, ROWS_PER_BATCH)):
            values = [json.loads(line) for line in lines]
            rows = [{n: _column_value(v, k) for n, v, k in zip(names, row, types, strict=True)} for row in values]
            connection.execute(sa.insert(table), rows)


def _last_id(connection: sa.Connection, table: sa.Table) -> int:
    if "id" not in table.c:
        return 0
    if connection.dialect.name == "postgresql":
        sequence = sa.cast(sa.func.pg_get_serial_sequence(table.name, "id"), REGCLASS)
        return connection.scalar(sa.select(sa.func.pg_sequence_last_value(sequence))) or 0
    return connection.scalar(sa.select(_SEQUENCES.c.seq).where(_SEQUENCES.c.name == table.name)) or 0


def _advance_sequences(connection: sa.Connection, contents: Contents) -> None:
    for table in _kept_tables(connection):
        if "id" not in table.c:
            continue
        last_id = contents.tables[table.name].last_id if table.name in contents.tables else 0
        if connection.dialect.name == "postgresql":
            sequence = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table.name, "id")))
            highest = max(last_id, connection.scalar(sa.select(sa.func.max(table.c.id))) or 0) if sequence else 0
            if highest:
                connection.execute(sa.select(sa.func.setval(sequence, highest)))
        elif last_id > _last_id(connection, table):  # SQLite itself counts the ids in the table
            connection.execute(sa.delete(_SEQUENCES).where(_SEQUENCES.c.name == table.name))
            connection.execute(sa.insert(_SEQUENCES).values(name=table.name, seq=last_id))


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _column_value(value: Any, column_type: Any) -> Any:
    if value is None or isinstance(column_type, sa.JSON):
        return value
    if isinstance(column_type, sa.DateTime):
        return datetime.fromisoformat(value)
    if isinstance(column_type, sa.Date):
        return date.fromisoformat(value)
    return base64.b64decode(value) if isinstance(column_type, sa.LargeBinary) else value


# Files


@contextmanager
def _snapshot_connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect() as connection, without_limits(connection):
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        else:
            connection.exec_driver_sql("BEGIN")
        yield connection


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
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
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            if any(member.flag_bits & _IS_ENCRYPTED for member in archive.infolist()):
                raise BackupError("encrypted")
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        # Damage can make data look compressed in another way: what unpacks it has errors without a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BackupError("damaged" if zipfile.is_zipfile(path) else "no-backup") from error


def _read_contents(archive: zipfile.ZipFile) -> Contents:
    try:
        with archive.open("backup.json") as file:
            listing = json.loads(file.read(MAX_LISTING_BYTES))
        tables = {
            name: TableCount(int(table["rows"]), str(table["sha256"]), int(table["last_id"]))
            for name, table in listing["tables"].items()
        }
        if listing["format"] == FORMER_FORMAT:
            raise BackupError("older")
        contents = Contents(str(listing["revision"]), datetime.fromisoformat(listing["made_at"]).isoformat(), tables)
        if listing["format"] != FORMAT or not {_member_name(name) for name in tables} <= set(archive.namelist()):
            raise BackupError("no-backup")
    except BackupError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise BackupError("no-backup") from None
    _require_known(contents.revision)
    return contents


def _require_known(revision: str) -> None:
    if not is_known(revision):
        raise BackupError("older" if is_before_release(revision) else "newer")


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE_BYTES):
        if not line.endswith(b"\n"):
            raise BackupError("damaged")
        yield line


def _member_name(table: str) -> str:
    return f"tables/{table}.jsonl"
