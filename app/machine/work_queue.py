"""The queue for a child process of one worker: visitors leave places to teachers and students, and give way to them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOOK_S = 0.1  # between two questions whether a caller still waits
MEMBER_WAIT_S = 5.0  # after which a visitor's work is ended for the member who waits for it


@dataclass(frozen=True)
class Client:
    """Whose work it is: a visitor, known by their network, or a member, that is a signed-in teacher or an enrolled
    student. Without a key it is the app's own work, of which there may be any amount.
    """

    key: str = ""
    is_member: bool = True


THE_APP = Client()


class QueueFullError(Exception):
    """Everybody, or this client, has as much in the queue as they may; or a member has waited too long for them."""


class WorkQueue:
    """One piece of work at a time, of all threads of this process; members go before visitors.

    `places` is how many may work or wait, `of_visitor` how many of them one network may take, and `reserved` how many
    visitors leave free in all. A member may take half of the places.

    Example:
        queue = WorkQueue(12, reserved=4, of_visitor=3)
        with queue.turn(Client("192.0.2.1", is_member=False)):
            ...  # nobody else works now; the fourth such call of this network raises QueueFullError
    """

    def __init__(self, places: int, *, reserved: int, of_visitor: int) -> None:
        """Visitors as a whole, and each member, get one place at least."""
        self._places, self._for_visitors = places, max(1, places - reserved)
        self._of_visitor, self._of_member = of_visitor, max(1, places // 2)
        self._changed = threading.Condition()
        self._taken = Counter[Client]()
        self._is_working, self._members_since = False, list[float]()  # when each member who waits began to

    def __len__(self) -> int:
        """How many work or wait."""
        with self._changed:
            return self._taken.total()

    @contextmanager
    def turn(self, client: Client, wait: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Hold the turn for this `with`; raises QueueFullError at once if there is no place to wait.

        `wait` is called every LOOK_S while others go first: whoever works and, for a visitor, members who wait. What it
        raises ends the waiting, frees the place and is passed on.
        """
        with self._changed:
            self._take_place(client)
        try:
            with self._changed:
                self._await_turn(client, wait)
            try:
                yield
            finally:
                with self._changed:
                    self._is_working = False
        finally:
            with self._changed:
                self._taken[client] -= 1
                self._taken += Counter()  # which drops those at zero
                self._changed.notify_all()

    def check_patience(self, client: Client) -> None:
        """Raise QueueFullError if a member has waited over MEMBER_WAIT_S for this visitor's work; never for a member's.

        For whoever works, to call now and then.
        """
        with self._changed:
            waits = not client.is_member and self._members_since
            if waits and time.monotonic() - self._members_since[0] > MEMBER_WAIT_S:
                raise QueueFullError

    def _take_place(self, client: Client) -> None:
        """Count a client; raises QueueFullError, and counts nothing, if there is no place.

        There is none if all places, for a visitor all places of visitors, or all of this client's are taken. A client
        with an empty key has no limit of its own.
        """
        of_visitors = sum(count for other, count in self._taken.items() if not other.is_member)
        own_limit = self._of_member if client.is_member else self._of_visitor
        if (
            self._taken.total() >= self._places
            or (not client.is_member and of_visitors >= self._for_visitors)
            or (client.key and self._taken[client] >= own_limit)
        ):
            raise QueueFullError
        self._taken[client] += 1

    def _await_turn(self, client: Client, wait: Callable[[], object]) -> None:
        """Wait until nobody works and, for a visitor, no member waits; then take the turn, by setting `_is_working`.

        `wait` is called at every look, at least every LOOK_S, but not if the turn is free; what it raises ends the
        waiting, and the turn is not taken. Members among themselves, and visitors, go in no certain order. The caller
        holds the condition `_changed`, frees the place and ends the turn.
        """
        since = time.monotonic()
        if client.is_member:
            self._members_since.append(since)
        try:
            while self._is_working or (self._members_since and not client.is_member):
                self._changed.wait(LOOK_S)
                wait()
            self._is_working = True
        finally:
            if client.is_member:
                self._members_since.remove(since)
            self._changed.notify_all()
