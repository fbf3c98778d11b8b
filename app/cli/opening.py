"""The database opened for a verb, with one line where it cannot be, and links to pass on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alembic.util import CommandError
from sqlalchemy.exc import SQLAlchemyError

from app.settings import Settings
from app.store import Store

from .terminal import InputError


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """The database, open for as long as a command needs it."""
    with opening(settings):
        store = Store(settings.database)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def opening(settings: Settings) -> Iterator[None]:
    """Whatever keeps the database from being opened is said in one line."""
    try:
        yield
    except CommandError:
        raise InputError("The database was made by a newer version of this program: update, or name another.") from None
    except SQLAlchemyError as error:
        raise InputError(f"The database cannot be opened: {str(error.args[0]).splitlines()[0]}") from None
    except OSError as error:
        raise InputError(f"The folder {settings.data_dir} cannot be used: {error.strerror}.") from None


def link_to(settings: Settings, token: str, host: str = "", port: int = 0) -> str:
    """A link to pass on, at the address that people type."""
    there = settings.address or f"http://{host or settings.host}:{port or settings.port}"
    return f"{there.rstrip('/')}/links/{token}"
