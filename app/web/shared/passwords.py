"""Argon2 hashing of passwords, at most two at a time: each needs about 0.1 s and 64 MB."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

from anyio import sleep
from pwdlib import PasswordHash

from app.machine.work_queue import THE_APP, Client, Places, QueueFullError
from app.refusal import Refusal
from app.translation import gettext as _

MIN_PASSWORD, MAX_PASSWORD = 10, 500  # characters
MAX_HASHES_AT_ONCE, MAX_WAITING = 2, 8
SLOW_VERIFY_S, NETWORK_PACE_S, PACE_S = 3.0, 1.0, 0.5  # between turns of an account, of a network, and of all
MAX_SLOW_WAIT_S = 12.0  # four turns of one account
MAX_SLOW, MAX_SLOW_OF_NETWORK = 400, 100  # waiting here takes no thread


def password_problem(password: str) -> str:
    """The sentence about a new password that is too short or too long; "" for any other."""
    if len(password) < MIN_PASSWORD:
        return _("Choose a password of at least {least} characters.").format(least=MIN_PASSWORD)
    if len(password) > MAX_PASSWORD:
        return _("Choose a password of at most {most} characters.").format(most=MAX_PASSWORD)
    return ""


class PasswordsBusyError(Refusal):
    """Too many passwords are being hashed or waiting."""

    status, seconds = 503, 3

    def __init__(self) -> None:
        super().__init__(_("Many people are signing in right now. Try again in a few seconds."))


class _Turn(NamedTuple):
    """When a password for an account from a network is verified slowly."""

    at: float
    network: str
    account: str

    def pace(self, network: str, account: str) -> float:
        """How many seconds must separate this turn from one of that account or network."""
        if network != self.network:
            return PACE_S
        return NETWORK_PACE_S if account != self.account else SLOW_VERIFY_S


class Passwords:
    """Hashes and verifies passwords with Argon2, with pwdlib's recommended parameters."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._hasher = PasswordHash.recommended()
        self._work = threading.BoundedSemaphore(MAX_HASHES_AT_ONCE)
        # Waiting takes a thread of the pool, so the number waiting is limited as well.
        self._room = Places(MAX_HASHES_AT_ONCE + MAX_WAITING, reserved=2, of_visitor=4)
        self._slow, self._slow_lock = Counter[str](), threading.Lock()  # how many wait slowly, by network
        self._turns = list[_Turn]()  # the reserved turns

    def hash(self, password: str) -> str:
        with self._turn(THE_APP):
            return self._hasher.hash(password)

    def verify(self, password: str, stored: str | None, client: Client = THE_APP) -> bool:
        """Whether a stored hash matches this password, cut to MAX_PASSWORD; False if `stored` is None.

        Raises PasswordsBusyError.
        """
        with self._turn(client):
            right = self._hasher.verify(password[:MAX_PASSWORD], stored or self._dummy_hash)
        return right and stored is not None

    async def wait_for_slow_turn(self, network: str, account: str) -> None:
        """Delay verifying a password after many wrong ones: SLOW_VERIFY_S, or longer if other turns come first."""
        with self._slow_lock:
            if self._slow.total() >= MAX_SLOW or self._slow[network] >= MAX_SLOW_OF_NETWORK:
                raise PasswordsBusyError
            self._slow[network] += 1
            wait_s = self._reserve_turn(network, account)
        try:
            await sleep(min(wait_s, MAX_SLOW_WAIT_S))
        finally:
            with self._slow_lock:
                self._slow -= Counter([network])
        if wait_s > MAX_SLOW_WAIT_S:
            raise PasswordsBusyError

    def _reserve_turn(self, network: str, account: str) -> float:
        """The caller must hold the lock."""
        now = self._clock()
        self._turns = sorted(turn for turn in self._turns if turn.at > now)
        at = now + SLOW_VERIFY_S
        for turn in self._turns:
            if abs(turn.at - at) < (pace := turn.pace(network, account)):
                at = turn.at + pace
        if at - now <= MAX_SLOW_WAIT_S:
            self._turns.append(_Turn(at, network, account))
        return at - now

    @cached_property
    def _dummy_hash(self) -> str:
        return self._hasher.hash("nobody signs in with this")

    @contextmanager
    def _turn(self, client: Client) -> Iterator[None]:
        try:
            with self._room.taken(client), self._work:
                yield
        except QueueFullError:
            raise PasswordsBusyError from None
