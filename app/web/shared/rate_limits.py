"""How often somebody may guess: what was wrong is counted, so that a class behind one address is not held up.

Each process counts for itself, so that a wrong guess costs no write; where several serve, each allows its part.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fastapi import Request

Kind = Literal["account", "sign-in", "join", "resume", "mail"]
LEAST = 5  # at once, however many workers: whoever mistypes meets the same worker again
KEPT = 20_000  # buckets at most; the one that was touched longest ago goes first


@dataclass(frozen=True)
class Bucket:
    """So many wrong guesses at once, and one more every so many seconds."""

    size: float
    seconds: float

    def part(self, workers: int) -> Bucket:
        """What one of several workers allows: all of them together refill as fast as one alone would."""
        return Bucket(max(self.size / workers, min(LEAST, self.size)), self.seconds * workers)


BUCKETS: dict[Kind, Bucket] = {
    "account": Bucket(10, 60),  # one account, from wherever
    "sign-in": Bucket(30, 20),  # one address, whatever account
    "join": Bucket(300, 5),  # one address may be a campus: hundreds who mistype; 22 to the 6th codes bear it
    "resume": Bucket(300, 5),
    "mail": Bucket(20, 60),  # links that one address asks for, right or wrong; the store counts what a mailbox gets
}


class TooManyGuessesError(Exception):
    """Too many wrong guesses; try again after `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Limits:
    """Buckets that fill by themselves and are emptied by wrong guesses."""

    def __init__(self, workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets = {kind: bucket.part(workers) for kind, bucket in BUCKETS.items()}
        self._left: OrderedDict[tuple[Kind, str], tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, kind: Kind, key: str) -> None:
        """Raise TooManyGuessesError where nothing is left."""
        with self._lock:
            left = self._now_left(kind, key)
        if left < 1:
            raise TooManyGuessesError(int((1 - left) * self._buckets[kind].seconds) + 1)

    def wrong(self, kind: Kind, key: str) -> None:
        """Count one wrong guess."""
        with self._lock:
            self._left[kind, key] = (max(self._now_left(kind, key) - 1, 0), self._clock())
            self._left.move_to_end((kind, key))
            while len(self._left) > KEPT:
                self._left.popitem(last=False)

    def _now_left(self, kind: Kind, key: str) -> float:
        bucket = self._buckets[kind]
        left, at = self._left.get((kind, key), (bucket.size, self._clock()))
        return min(bucket.size, left + (self._clock() - at) / bucket.seconds)


def address_of(request: Request) -> str:
    """Where a request comes from; of an IPv6 address, the network that one customer has."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if address.version == 6 else host
