"""Verbs that keep the whole database, and put it back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from app.store.backup import BackupError, check_backup, restore_backup, write_backup
from app.store.database import open_engine

from .opening import opening
from .terminal import InputError, Verbs, read_settings

BACKUP_PROBLEMS = {
    "empty": "There is nothing to back up: the database has no tables yet.",
    "newer": "{file} or the database was made by a newer version of this program: update.",
    "no-backup": "{file} is no backup, or was cut short.",
    "damaged": "{file} is damaged: what is in it is not what was written. Nothing was changed; take another backup.",
    "not-empty": "There is data in the database already; restore --replace {file} puts the backup in its place.",
    "misfit": "{file} does not fit together with what it says of itself. Nothing was changed; take another backup.",
}


def add_to(verbs: Verbs) -> None:
    """Add the verbs of this module."""
    backed = verbs.add(
        "backup", _backup, "Write everything in the database into one file; safe while running.", printable=False
    )
    restored = verbs.add(
        "restore", _restore, "Put a backup in the place of everything in the database.", printable=False
    )
    for command in (backed, restored):
        command.add_argument("file", metavar="FILE", type=Path)
    restored.add_argument("--replace", action="store_true", help="even where there is data, which is gone then")


def _backup(parsed: argparse.Namespace) -> None:
    with _database() as engine, _told(parsed.file):
        try:
            contents = write_backup(engine, parsed.file)
        except OSError as error:
            raise InputError(f"{parsed.file} cannot be written: {error.strerror}.") from None
    tables = sum(1 for table in contents.tables.values() if table.rows)
    print(f"{contents.rows:,} rows of {tables} tables are in {parsed.file}; it holds names and answers: keep it safe.")


def _restore(parsed: argparse.Namespace) -> None:
    with _told(parsed.file):
        try:
            check_backup(parsed.file)  # before anything is made
        except OSError as error:
            raise InputError(f"{parsed.file} cannot be read: {error.strerror}.") from None
        with _database() as engine:
            contents = restore_backup(engine, parsed.file, replace=parsed.replace)
    print(f"{contents.rows:,} rows are restored, as they were on {contents.made_at[:16].replace('T', ' at ')} UTC.")


@contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except BackupError as error:
        raise InputError(BACKUP_PROBLEMS[error.reason].format(file=file)) from None


@contextmanager
def _database() -> Iterator[Engine]:
    """The database as it is, whatever its tables."""
    settings = read_settings()
    with opening(settings):
        engine = open_engine(settings.database)
        try:
            yield engine
        finally:
            engine.dispose()
