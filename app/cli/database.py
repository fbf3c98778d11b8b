"""Open the database for a command, and write links to pass on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alembic.util import CommandError
from sqlalchemy.exc import SQLAlchemyError

from app.settings import Settings
from app.store import Store

from .terminal import InputError


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """Open the store, its tables brought up to date, and close it at the end; raises InputError."""
    with report_database_errors(settings):
        store = Store(settings.database)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def report_database_errors(settings: Settings) -> Iterator[None]:
    """Turn the errors of opening a database into an InputError of one line."""
    try:
        yield
    except CommandError:
        raise InputError("The database was made by a newer version of this program: update, or name another.") from None
    except SQLAlchemyError as error:
        raise InputError(f"The database cannot be opened: {str(error.args[0]).splitlines()[0]}") from None
    except OSError as error:
        raise InputError(f"The folder {settings.data_dir} cannot be used: {error.strerror}.") from None


def link_to(settings: Settings, token: str, host: str = "", port: int = 0) -> str:
    """Return the URL of an account link, at the address that was set, else at the host and port that are served.

    Example:
        link_to(settings, "abc")  # "http://127.0.0.1:8000/links/abc"
    """
    base_url = settings.public_url(f"http://{host or settings.host}:{port or settings.port}")
    return f"{base_url}/links/{token}"
