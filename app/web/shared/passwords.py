"""Password hashes, two at a time: each takes a tenth of a second and 64 MB, and a crowd must not take them all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from pwdlib import PasswordHash

MIN_PASSWORD, MAX_PASSWORD = 10, 500  # characters
MAX_HASHES_AT_ONCE, MAX_WAITING = 2, 8


class PasswordsBusyError(Exception):
    """More people sign in at this moment than can be served."""


class Passwords:
    """Argon2 as pwdlib recommends it."""

    def __init__(self) -> None:
        self._hasher = PasswordHash.recommended()
        self._work = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE)
        # Waiting takes a thread of the pool, so the number of those who wait is limited too.
        self._room = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE + MAX_WAITING)

    def hash(self, password: str) -> str:
        """What is kept of a password; raises PasswordsBusyError."""
        with self._turn():
            return self._hasher.hash(password)

    def verify(self, password: str, kept: str | None) -> bool:
        """Whether it is the password; as much work where nothing is kept. Raises PasswordsBusyError."""
        with self._turn():
            right = self._hasher.verify(password[:MAX_PASSWORD], kept or self._nobodys)
        return right and kept is not None

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash("nobody signs in with this")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._room.acquire(blocking=False):
            raise PasswordsBusyError
        try:
            with self._work:
                yield
        finally:
            self._room.release()
