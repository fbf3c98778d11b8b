"""Open the database for a command, and write links to give to people."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic.util import CommandError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.addresses import url_here
from app.secret_key import SECRET_BYTES, SecretFileError
from app.settings import Settings
from app.store import Store
from app.store.database import UnreleasedDatabaseError, make_private
from app.translation import gettext as _

from .terminal import InputError


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """Open the store, with its tables migrated, for a `with` block; then close it.

    Raises InputError if it can't be opened; errors inside the block pass through.
    """
    with report_database_errors(settings):
        keep_private(settings)
        store = Store(settings.database, settings.data_dir)
    try:
        yield store
    finally:
        store.close()


def keep_private(settings: Settings) -> None:
    """Let only this user read the data folder and what this process writes from now on; raises OSError."""
    os.umask(0o077)
    make_private(settings.data_dir)


@contextmanager
def report_database_errors(settings: Settings) -> Iterator[None]:
    """Turn database and file errors in its `with` block into a one-line InputError."""
    try:
        yield
    except CommandError:
        problem = _("A newer version of this program made the database: update the program, or use another database.")
        raise InputError(problem) from None
    except UnreleasedDatabaseError:
        problem = _(
            "The database is from before the first release, and this program cannot read it. Start with a new one: "
            "move the file away, or name an empty database in DATABASE_URL."
        )
        raise InputError(problem) from None
    except SQLAlchemyError as error:
        reason = str(error.orig if isinstance(error, DBAPIError) else error.args[0]).splitlines()[0]
        if settings.database.startswith("sqlite"):
            file = Path(str(make_url(settings.database).database))
            if not os.access(file.parent, os.W_OK):
                reason = _("its folder cannot be written to")
            problem = _("The database {file} cannot be opened: {reason}.")
            raise InputError(problem.format(file=file, reason=reason)) from None
        raise InputError(_("The database cannot be opened: {reason}").format(reason=reason)) from None
    except SecretFileError as error:
        problem = _("{file} is damaged: it must have {count} bytes. Put a copy of it back.")
        raise InputError(problem.format(file=error, count=SECRET_BYTES)) from None
    except OSError as error:
        path = error.filename or settings.data_dir
        raise InputError(_("{path} cannot be used: {reason}.").format(path=path, reason=error.strerror)) from None


def link_to(settings: Settings, token: str, here: str = "") -> str:
    """The URL of an account link: under the settings' public URL, or at `here` or their own address.

    Example:
        link_to(settings, "abc")  # "http://127.0.0.1:8000/links/abc"
    """
    return f"{settings.public_url(here or url_here(settings.host, settings.port))}/links/{token}"
