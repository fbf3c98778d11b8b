"""The commands `backup` and `restore`: the whole database in one file, and back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from app.store.backup import BackupError, check_backup, restore_backup, write_backup
from app.store.database import open_engine

from .database import report_database_errors
from .terminal import Commands, InputError, read_settings

BACKUP_PROBLEMS = {
    "empty": "There is nothing to back up: the database has no tables yet.",
    "newer": "{file} or the database was made by a newer version of this program: update.",
    "no-backup": "{file} is no backup, or was cut short.",
    "damaged": "{file} is damaged: what is in it is not what was written. Nothing was changed; take another backup.",
    "not-empty": "There is data in the database already; restore --replace {file} puts the backup in its place.",
    "misfit": "{file} does not fit together with what it says of itself. Nothing was changed; take another backup.",
}


def add_to(commands: Commands) -> None:
    """Add the commands `backup FILE` and `restore FILE [--replace]`."""
    backup = commands.add(
        "backup", _backup, "Write everything in the database into one file; safe while running.", printable=False
    )
    restore = commands.add(
        "restore", _restore, "Put a backup in the place of everything in the database.", printable=False
    )
    for command in (backup, restore):
        command.add_argument("file", metavar="FILE", type=Path)
    restore.add_argument("--replace", action="store_true", help="even where there is data, which is gone then")


def _backup(parsed: argparse.Namespace) -> None:
    """Write the whole database into the file that was named, and print how many rows of how many tables it has.

    Tables without rows are not counted. Raises InputError for a database that is empty or cannot be opened, and for a
    file that cannot be written.
    """
    with _open_database() as engine, _as_input_error(parsed.file):
        try:
            contents = write_backup(engine, parsed.file)
        except OSError as error:
            raise InputError(f"{parsed.file} cannot be written: {error.strerror}.") from None
    tables = sum(1 for table in contents.tables.values() if table.rows)
    print(f"{contents.rows:,} rows of {tables} tables are in {parsed.file}; it holds names and answers: keep it safe.")


def _restore(parsed: argparse.Namespace) -> None:
    """Replace everything in the database by the backup, and print how many rows are back and when it was made.

    The file is checked first, and the database not touched if it is bad. Raises InputError for such a file, and for a
    database with data in it unless --replace was typed.
    """
    with _as_input_error(parsed.file):
        try:
            check_backup(parsed.file)  # before a database is created
        except OSError as error:
            raise InputError(f"{parsed.file} cannot be read: {error.strerror}.") from None
        with _open_database() as engine:
            contents = restore_backup(engine, parsed.file, replace=parsed.replace)
    print(f"{contents.rows:,} rows are restored, as they were on {contents.made_at[:16].replace('T', ' at ')} UTC.")


@contextmanager
def _as_input_error(file: Path) -> Iterator[None]:
    """In its `with` block, turn a BackupError into an InputError: the sentence for its reason, naming `file`."""
    try:
        yield
    except BackupError as error:
        raise InputError(BACKUP_PROBLEMS[error.reason].format(file=file)) from None


@contextmanager
def _open_database() -> Iterator[Engine]:
    """Open the database of the settings for a `with` block, without creating or migrating tables; then close it.

    Raises InputError for bad settings and for database errors, those inside the block included.
    """
    settings = read_settings()
    with report_database_errors(settings):
        engine = open_engine(settings.database)
        try:
            yield engine
        finally:
            engine.dispose()
