"""Argon2 hashing of passwords, at most two at a time: each needs about 0.1 s and 64 MB."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from pwdlib import PasswordHash

MIN_PASSWORD, MAX_PASSWORD = 10, 500  # characters
MAX_HASHES_AT_ONCE, MAX_WAITING = 2, 8


class PasswordsBusyError(Exception):
    """Ten passwords are being hashed or wait for it; try again in a moment."""


class Passwords:
    """Hashes and verifies passwords with Argon2, with the parameters that pwdlib recommends."""

    def __init__(self) -> None:
        self._hasher = PasswordHash.recommended()
        self._work = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE)
        # Waiting takes a thread of the pool, so the number of those who wait is limited too.
        self._room = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE + MAX_WAITING)

    def hash(self, password: str) -> str:
        """The hash to store for a password; raises PasswordsBusyError."""
        with self._wait_for_turn():
            return self._hasher.hash(password)

    def verify(self, password: str, stored: str | None) -> bool:
        """Whether a stored hash is that of this password; False where there is none. Raises PasswordsBusyError.

        Both take equally long, so that the time tells nobody whether an account exists.
        """
        with self._wait_for_turn():
            right = self._hasher.verify(password[:MAX_PASSWORD], stored or self._dummy_hash)
        return right and stored is not None

    @cached_property
    def _dummy_hash(self) -> str:
        """A hash that no password has."""
        return self._hasher.hash("nobody signs in with this")

    @contextmanager
    def _wait_for_turn(self) -> Iterator[None]:
        """Run the block once fewer than two others are running; raises PasswordsBusyError where eight wait already."""
        if not self._room.acquire(blocking=False):
            raise PasswordsBusyError
        try:
            with self._work:
                yield
        finally:
            self._room.release()
