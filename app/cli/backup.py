"""The command `backup`: a consistent copy of the SQLite database, with the secret key, in a new folder."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from app.secret_key import SECRET_FILE, read_or_make_secret
from app.translation import gettext as _

from .database import keep_private, report_database_errors
from .terminal import Commands, InputError, read_settings


def add_to(commands: Commands) -> None:
    """Add the command `backup FOLDER`, which has no --json."""
    about = _("Copy the database and its secret key into a new folder; the server may be running.")
    backup = commands.add("backup", _backup, about, printable=False)
    backup.add_argument("folder", metavar="FOLDER", type=Path)


def _backup(parsed: argparse.Namespace) -> None:
    settings, folder = read_settings(), parsed.folder
    url, key = make_url(settings.database), settings.data_dir / SECRET_FILE
    if url.get_backend_name() != "sqlite":
        # Without the password, which others would see in the list of processes: pg_dump asks for it.
        address = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
        dump = shlex.join(("pg_dump", "--format=custom", f"--file={folder}.dump", address.render_as_string()))
        command = f"(umask 077 && {dump} && {shlex.join(('cp', str(key), f'{folder}.key'))})"
        raise InputError(_("Back up PostgreSQL and its secret key with: {command}").format(command=command))
    database = Path(str(url.database))
    if not database.exists():
        raise InputError(_("There is nothing to back up: {file} doesn’t exist yet.").format(file=database))
    if os.path.lexists(folder):
        raise InputError(_("{folder} exists already: name a new folder.").format(folder=folder))
    with report_database_errors(settings):
        keep_private(settings)
        secret = read_or_make_secret(settings.data_dir)
    try:
        _write_backup(database, secret, folder)
    except (OSError, sqlite3.Error, UnicodeError) as error:  # SQLite takes no path that isn’t UTF-8
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(_("{folder} cannot be written: {reason}.").format(folder=folder, reason=reason)) from None
    print(_("Backed up to {folder}. Keep it safe: it holds names, answers and the secret key.").format(folder=folder))
    print(_("To restore it, stop the server and run:"))
    print(f"  {shlex.join(('rm', '-f', f'{database}-wal', f'{database}-shm'))}")  # they belong to the current database
    for name, place in ((database.name, database), (SECRET_FILE, key)):
        print(f"  {shlex.join(('cp', str(folder / name), str(place)))}")


def _write_backup(database: Path, secret: bytes, folder: Path) -> None:
    # Under another name until it is complete, in a folder that only its owner may enter.
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("VACUUM INTO ?", (str(unfinished / database.name),))
        (unfinished / SECRET_FILE).write_bytes(secret)
        for path in unfinished.iterdir():
            path.chmod(0o600)
            with path.open("rb") as file:
                os.fsync(file.fileno())
        unfinished.rename(folder)  # fails if another backup has just taken that name
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
