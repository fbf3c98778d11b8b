"""Writing to SQLite: one transaction at a time, on the disk before it is acknowledged.

SQLite lets one connection write at a time. This process's threads wait for each other at a lock, since SQLite itself
would sleep and retry, which is neither fair nor quick; other processes are few, and SQLite's way is good enough.

A disk takes milliseconds to flush what was written. With synchronous=FULL, SQLite flushes within each commit, while
all other writers wait: at 5 ms, fewer than 200 saves a second. So connections use synchronous=NORMAL, which flushes
only what keeps the file consistent, and each transaction flushes the write-ahead log after the lock is free. Flushes
of the same file run at once, and the system merges them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import sqlalchemy as sa

from .limits import DatabaseGoneError

WRITE_LIMIT_S = 5.0  # waiting for other threads; SQLite waits as long for other processes

flush = getattr(os, "fdatasync", os.fsync)  # fdatasync is quicker, and only Linux has it


class SqliteWriter:
    """Makes all transactions that write to an SQLite file."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self._lock = engine, threading.Lock()
        self.path = str(engine.url.database)
        self._file_number = os.stat(self.path).st_ino

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """A transaction that commits at the end and is on the disk, where it survives a power cut, after the `with`.

        Raises sqlalchemy.exc.TimeoutError after waiting WRITE_LIMIT_S for other threads.
        """
        with ExitStack() as later:
            with self._turn(), self._engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                self._check_file()
                # Opened before anything is written: a file opened after a failed flush wouldn't report the failure.
                log = later.enter_context(open(f"{self.path}-wal", "rb+", buffering=0))
                yield connection
            flush(log.fileno())

    def _check_file(self) -> None:
        # SQLite would go on writing to a file that was deleted or replaced, and all would be lost at the next start.
        try:
            is_gone = os.stat(self.path).st_ino != self._file_number
        except FileNotFoundError:
            is_gone = True
        if is_gone:
            raise sa.exc.OperationalError(None, None, DatabaseGoneError())

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=WRITE_LIMIT_S):
            raise sa.exc.TimeoutError
        try:
            yield
        finally:
            self._lock.release()
