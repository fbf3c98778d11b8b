"""The commands `backup` and `restore`: the whole database in one file, and back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from app.secret_key import secret_path
from app.store.backup import BackupError, check_backup, restore_backup, write_backup
from app.store.database import count_locked, open_engine
from app.translation import N_
from app.translation import gettext as _

from .database import keep_private, open_store, report_database_errors
from .terminal import Commands, InputError, read_settings

BACKUP_PROBLEMS = {
    "empty": N_("There is nothing to back up: the database has no tables yet."),
    "older": N_(
        "{file} or the database was made before the first release, and this program cannot read it: use the program "
        "that made it."
    ),
    "newer": N_("A newer version of this program made {file} or the database: update the program."),
    "no-backup": N_("{file} is not a backup, or is incomplete."),
    "encrypted": N_("{file} is encrypted with a password. Nothing was changed: decrypt it first."),
    "damaged": N_("{file} is damaged. Nothing was changed: use another backup."),
    "not-empty": N_("The database already has data: “restore --replace {file}” replaces it with the backup."),
    "misfit": N_("The contents of {file} do not match its description. Nothing was changed: use another backup."),
}


def add_to(commands: Commands) -> None:
    """Add the commands `backup FILE` and `restore FILE [--replace]`, which have no --json."""
    backup = commands.add(
        "backup", _backup, _("Back up the whole database to one file, even while the app is running."), printable=False
    )
    restore = commands.add("restore", _restore, _("Replace everything in the database with a backup."), printable=False)
    for command in (backup, restore):
        command.add_argument("file", metavar="FILE", type=Path)
    restore.add_argument("--replace", action="store_true", help=_("even if the database has data, which is then lost"))


def _backup(parsed: argparse.Namespace) -> None:
    with _open_database() as engine, _as_input_error(parsed.file):
        try:
            contents = write_backup(engine, parsed.file)
        except OSError as error:
            raise InputError(
                _("{file} cannot be written: {reason}.").format(file=parsed.file, reason=error.strerror)
            ) from None
    tables = sum(1 for table in contents.tables.values() if table.rows)
    done = _("Backed up {rows:,} rows of {tables} tables to {file}. It has names and answers in it: keep it safe.")
    print(done.format(rows=contents.rows, tables=tables, file=parsed.file))
    settings = read_settings()
    key = _("Resume codes in it need {file}: keep a copy of that file in another place.")
    print(key.format(file=secret_path(settings.data_dir, settings.secret_key_file)))


def _restore(parsed: argparse.Namespace) -> None:
    with _as_input_error(parsed.file):
        try:
            check_backup(parsed.file)  # before a database is created
        except OSError as error:
            raise InputError(
                _("{file} cannot be read: {reason}.").format(file=parsed.file, reason=error.strerror)
            ) from None
        with _open_database() as engine:
            contents = restore_backup(engine, parsed.file, replace=parsed.replace)
    settings = read_settings()
    with open_store(settings) as store:
        locked = count_locked(store.engine, store.key)
    made_at = contents.made_at[:16].replace("T", " ")
    print(_("Restored {rows:,} rows from the backup of {time} UTC.").format(rows=contents.rows, time=made_at))
    if locked:
        need = _("{count} resume codes need the secret key they were stored with: copy it to {file}.")
        print(need.format(count=locked, file=secret_path(settings.data_dir, settings.secret_key_file)))


@contextmanager
def _as_input_error(file: Path) -> Iterator[None]:
    try:
        yield
    except BackupError as error:
        raise InputError(_(BACKUP_PROBLEMS[error.reason]).format(file=file)) from None


@contextmanager
def _open_database() -> Iterator[Engine]:
    settings = read_settings()
    with report_database_errors(settings):
        keep_private(settings)
        engine = open_engine(settings.database)
        try:
            yield engine
        finally:
            engine.dispose()
