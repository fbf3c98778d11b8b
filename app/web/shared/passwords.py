"""Argon2 hashing of passwords, at most two at a time: each needs about 0.1 s and 64 MB."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from pwdlib import PasswordHash

MIN_PASSWORD, MAX_PASSWORD = 10, 500  # characters
MAX_HASHES_AT_ONCE, MAX_WAITING = 2, 8
SLOW_VERIFY_S = 3.0
MAX_SLOW = 8  # each takes a thread of the pool


class PasswordsBusyError(Exception):
    """Ten passwords are being hashed or wait for it; try again in a moment."""


class Passwords:
    """Hashes and verifies passwords with Argon2, with the parameters that pwdlib recommends."""

    def __init__(self) -> None:
        self._hasher = PasswordHash.recommended()
        self._work = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE)
        # Waiting takes a thread of the pool, so the number of those who wait is limited too.
        self._room = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE + MAX_WAITING)
        self._slow_networks, self._slow_lock = set[str](), threading.Lock()

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

    def verify_slowly(self, password: str, stored: str | None, network: str) -> bool:
        """As `verify`, SLOW_VERIFY_S later: where many guesses were wrong, a right password still passes.

        Raises PasswordsBusyError at once while another of that network is being verified slowly, or MAX_SLOW of any:
        who guesses from one network keeps nobody out who signs in from another.
        """
        with self._slow_lock:
            if network in self._slow_networks or len(self._slow_networks) >= MAX_SLOW:
                raise PasswordsBusyError
            self._slow_networks.add(network)
        try:
            time.sleep(SLOW_VERIFY_S)
            return self.verify(password, stored)
        finally:
            with self._slow_lock:
                self._slow_networks.remove(network)

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
