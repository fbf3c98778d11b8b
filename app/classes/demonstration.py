"""The public demonstration: the sample course of the day, in a separate database that can't be written.

Teachers without an account look at it. Attempts to change something fail in that database, and nothing in the app's own
database can be reached from it.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from app.classes.sample_course import add_sample_course
from app.machine.turn import MachineTurn
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.store import Store
from app.store.queries import Clock

FILE = "attention-shapes.sqlite3"
TEACHER = ("teacher@example.org", "Ada Example")


class Demonstration:
    """The databases of the demonstration, one per day, in folders of `folder`, shared by all processes.

    A day begins at midnight UTC.
    """

    def __init__(self, folder: Path, library: Library, tickets: Mapping[str, Ticket], clock: Clock) -> None:
        self._folder, self._library, self._tickets, self._clock = folder, library, tickets, clock
        self._lock = threading.Lock()
        self._day = ""
        self._store: Store | None = None

    def begin(self) -> Store:
        """Today's store, opened; making its database first takes a second or two."""
        with self._lock, MachineTurn(self._folder / "turn").taken(lambda: None):
            if not self._path().exists():
                self._make()
            return self._open()

    def current(self) -> Store | None:
        """Today's store if its database exists and no other thread is opening or making it."""
        if self._path().exists() and self._lock.acquire(blocking=False):
            try:
                return self._open()
            finally:
                self._lock.release()
        return self._store

    def close(self) -> None:
        if self._store:
            self._store.close()

    def _path(self) -> Path:
        return self._folder / f"{self._clock():%Y-%m-%d}" / FILE

    def _open(self) -> Store:
        path = self._path()
        if self._store is None or self._day != path.parent.name:
            self._day, self._store = path.parent.name, Store(f"sqlite:///{path}", self._folder, clock=self._clock)
            refuse_writes = "PRAGMA query_only=ON"  # with SQLITE_READONLY, on each connection from now on
            sa.event.listen(self._store.engine, "connect", lambda connection, _: connection.execute(refuse_writes))
            self._store.engine.dispose()
        return self._store

    def _make(self) -> None:
        day, new = self._path().parent, self._folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        store = Store(f"sqlite:///{new / FILE}", self._folder, clock=self._clock)
        email, name = TEACHER
        teacher = store.people.add_teacher(email, name)
        assert teacher is not None  # noqa: S101 - the database is new
        add_sample_course(self._library, self._tickets, store, teacher)
        store.close()
        new.rename(day)
        yesterday = f"{self._clock() - timedelta(days=1):%Y-%m-%d}"
        for old in self._folder.glob("????-??-??"):
            if old.name < yesterday:
                with suppress(OSError):
                    shutil.rmtree(old)
