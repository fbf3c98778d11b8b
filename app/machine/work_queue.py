"""A process's clients: no visitor can take everything, and visitors leave some to teachers and students."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOOK_S = 0.1  # between two checks whether a caller still waits
MEMBER_WAIT_S = 5.0  # after which a visitor's work is ended for a waiting member


@dataclass(frozen=True)
class Client:
    """Whose work it is: a visitor, known by their network, or a member (a teacher or an enrolled student).

    Without a key it is the app's own work, which is unlimited.
    """

    key: str = ""
    is_member: bool = True


THE_APP = Client()


class QueueFullError(Exception):
    """Everybody, or this client (`is_own`), has as much as allowed, or a member has waited too long for them."""

    def __init__(self, *, is_own: bool = False) -> None:
        super().__init__()
        self.is_own = is_own


class Places:
    """A budget that clients hold parts of for a while, such as places or bytes.

    `of_visitor` limits one network; visitors leave `reserved` free in total.

    Example:
        places = Places(12, reserved=4, of_visitor=3)
        places.take(Client("192.0.2.1", is_member=False), 3)
        places.take(Client("192.0.2.1", is_member=False))  # raises QueueFullError
    """

    def __init__(self, places: int, *, reserved: int, of_visitor: int) -> None:
        self._places, self._for_visitors = places, max(1, places - reserved)
        self._of_visitor, self._of_member = of_visitor, max(1, places // 2)
        self._lock = threading.Lock()
        self.held = Counter[Client]()

    def take(self, client: Client, count: int = 1) -> None:
        """Raises QueueFullError, taking nothing, if the client or everybody together would hold too much."""
        with self._lock:
            own_limit = self._of_member if client.is_member else self._of_visitor
            if client.key and self.held[client] + count > own_limit:
                raise QueueFullError(is_own=True)
            of_visitors = sum(held for other, held in self.held.items() if not other.is_member)
            if self.held.total() + count > self._places or (
                not client.is_member and of_visitors + count > self._for_visitors
            ):
                raise QueueFullError
            self.held[client] += count

    def give_back(self, client: Client, count: int = 1) -> None:
        with self._lock:
            self.held[client] -= count
            if not self.held[client]:
                del self.held[client]

    @contextmanager
    def taken(self, client: Client) -> Iterator[None]:
        self.take(client)
        try:
            yield
        finally:
            self.give_back(client)


class WorkQueue:
    """One piece of work at a time across all threads of this process; members go before visitors.

    The number working or waiting is limited as in Places.

    Example:
        queue = WorkQueue(12, reserved=4, of_visitor=3)
        with queue.turn(Client("192.0.2.1", is_member=False)):
            ...  # nobody else works now; the fourth such call of this network raises QueueFullError
    """

    def __init__(self, places: int, *, reserved: int, of_visitor: int) -> None:
        self._places = Places(places, reserved=reserved, of_visitor=of_visitor)
        self._changed = threading.Condition()
        self._is_working, self._members_since = False, list[float]()  # when each waiting member began to wait

    def __len__(self) -> int:
        return self._places.held.total()

    @contextmanager
    def turn(self, client: Client, wait: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Hold the turn for this `with`; raises QueueFullError immediately if there is no place to wait."""
        with self._places.taken(client):
            with self._changed:
                self._await_turn(client, wait)
            try:
                yield
            finally:
                with self._changed:
                    self._is_working = False
                    self._changed.notify_all()

    def check_patience(self, client: Client) -> None:
        """Raise QueueFullError if a member has waited over MEMBER_WAIT_S for this visitor's work."""
        with self._changed:
            waits = not client.is_member and self._members_since
            if waits and time.monotonic() - self._members_since[0] > MEMBER_WAIT_S:
                raise QueueFullError

    def _await_turn(self, client: Client, wait: Callable[[], object]) -> None:
        """The caller must hold the condition `_changed`, and ends the turn."""
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
