"""Token-bucket rate limits.

Only failures are counted, so that a class behind one address isn't blocked; but each request for names from a roster or
for a link by e-mail counts. A limit slows down wrong guesses and never refuses a right one: a right code passes however
many were wrong, a right password passes a few seconds later, and a browser that has been signed in before has its own
bucket.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from app.refusal import Refusal
from app.translation import gettext as _
from app.translation import ngettext

Limit = Literal["known", "guess", "account", "sign-in", "join", "names", "resume", "mail", "connect"]
MIN_BURST = 5  # failures that every process allows at once: a person's mistakes may all reach the same one
MAX_BUCKETS = 20_000  # beyond that, the least recently used bucket is forgotten

# What one network's visitors may store outside of classes; a student's work in a class counts for that student.
BYTES_PER_HOUR = 40_000_000
# Per process, since all requests of a browser, or by bad luck of a class, may reach the same one:
BYTES_OF_STUDENT_PER_HOUR = 4_000_000  # 400 attempts or 130 runs, with answers of usual length
NEW_NAMES_PER_HOUR = 1_500  # per network, not on a roster: three classes of 500
BYTES_OF_ROW = 300  # besides what was typed, with its place in the indexes
BYTES_OF_RUN = 30_000  # with the picture of its weights
BYTES_OF_MODEL = 16_000
BYTES_OF_ATTEMPT = 10_000  # on a sheet of an activity; most are far smaller, and longer ones count in full
MAX_REMEMBERED = 50_000  # networks, and visitors' sheets; beyond that the least recently used are forgotten


def bytes_of(answers: Mapping[str, str]) -> int:
    """The bytes that answers take in the database, as JSON, with their row.

    Example: bytes_of({"keys.rows": "128"}) == 322
    """
    return BYTES_OF_ROW + len(json.dumps(answers, ensure_ascii=False).encode(errors="replace"))


Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Bucket:
    """A bucket holds up to `size` tokens and gains one every `refill_s` seconds; each failure takes one."""

    size: float
    refill_s: float

    def for_one_of(self, processes: int) -> Bucket:
        """The bucket of one of several processes, which together refill as fast as this bucket.

        Example:
            Bucket(30, 20).for_one_of(2)   Bucket(size=15.0, refill_s=40)
        """
        return Bucket(max(self.size / processes, min(MIN_BURST, self.size)), self.refill_s * processes)


BUCKETS: dict[Limit, Bucket] = {
    "known": Bucket(10, 60),  # one account, in a browser that was signed in to it before
    "guess": Bucket(10, 60),  # one account, from one network
    "account": Bucket(100, 20),  # one account, from any network
    "sign-in": Bucket(30, 20),  # one network, any account
    "join": Bucket(300, 5),  # one network may be a campus, where hundreds mistype; 22 to the 6th codes can bear it
    "names": Bucket(1000, 2),  # names begun in one network for one course, right or wrong: hundreds type a few each
    "resume": Bucket(300, 5),
    "connect": Bucket(30, 20),  # wrong codes for connecting an account with a learning platform
    "mail": Bucket(20, 60),  # links that one network asks for, right or wrong; the store counts a mailbox’s
}


class TooManyGuessesError(Refusal):
    """Too many failures; try again after `seconds`."""

    status = 429

    def __init__(self, seconds: int) -> None:
        super().__init__(_("Too many failed attempts. Try again in {seconds} s.").format(seconds=seconds))
        self.seconds = seconds


class RateLimits:
    """One process's buckets, by what is limited and by account or network."""

    def __init__(self, processes: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets = {limit: bucket.for_one_of(processes) for limit, bucket in BUCKETS.items()}
        self._tokens: OrderedDict[tuple[Limit, str], tuple[float, float]] = OrderedDict()  # tokens, and their time
        self._lock = threading.Lock()

    def check(self, limit: Limit, key: str) -> None:
        """Raise TooManyGuessesError, with the seconds to wait, if less than one token is left."""
        with self._lock:
            tokens = self._tokens_now(limit, key)
        if tokens < 1:
            raise TooManyGuessesError(int((1 - tokens) * self._buckets[limit].refill_s) + 1)

    def record_failure(self, limit: Limit, key: str) -> None:
        """Take up to one token from the bucket of this limit and key."""
        with self._lock:
            self._tokens[limit, key] = (max(self._tokens_now(limit, key) - 1, 0), self._clock())
            self._tokens.move_to_end((limit, key))
            while len(self._tokens) > MAX_BUCKETS:
                self._tokens.popitem(last=False)

    def forget(self) -> None:
        with self._lock:
            self._tokens.clear()

    def _tokens_now(self, limit: Limit, key: str) -> float:
        bucket = self._buckets[limit]
        tokens, counted_at = self._tokens.get((limit, key), (bucket.size, self._clock()))
        return min(bucket.size, tokens + (self._clock() - counted_at) / bucket.refill_s)


class BudgetSpentError(Refusal):
    """A network or a student has stored as much as allowed; there is room again after `seconds`."""

    status = 429

    def __init__(self, seconds: int) -> None:
        minutes = -(-seconds // 60)
        sentence = ngettext(
            "A lot has been stored from here within an hour. Try again in {minutes} minute.",
            "A lot has been stored from here within an hour. Try again in {minutes} minutes.",
            minutes,
        )
        super().__init__(sentence.format(minutes=minutes))
        self.seconds = seconds


class StorageBudget:
    """How much each network and each student has recently stored, limited to this process's share."""

    def __init__(self, processes: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._bytes_per_hour = clock, BYTES_PER_HOUR / processes
        self._taken: OrderedDict[str, tuple[float, float]] = OrderedDict()  # the used part of a budget, and its time
        self._sheets: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def charge(self, network: str, size: int, share: float = 1) -> None:
        """Count bytes about to be stored for a network."""
        self._take(network, size / self._bytes_per_hour, share)

    def charge_student(self, student_id: int, size: int, share: float = 1) -> None:
        """Count bytes that a student is about to store in a class, from any network; `share` as for `charge`.

        Raises BudgetSpentError, counting nothing, if the student has no room for them.
        """
        self._take(f"student {student_id}", size / BYTES_OF_STUDENT_PER_HOUR, share)

    def charge_new_name(self, network: str) -> None:
        """Count a student about to join under a name that isn't on a roster; raises BudgetSpentError."""
        self._take(f"names of {network}", 1 / NEW_NAMES_PER_HOUR)

    def charge_sheet(
        self, network: str, visitor: str, sheet_key: str, answers: Mapping[str, str], *, again: bool
    ) -> None:
        """Charge the network for a visitor's answers on a sheet, once when first stored and each time if `again`.

        Raises BudgetSpentError if too little is left; a new sheet then still counts as not stored.
        """
        with self._lock:
            is_new = (visitor, sheet_key) not in self._sheets or not visitor
        if rows := is_new + again:
            self.charge(network, rows * bytes_of(answers))
        with self._lock:
            self._sheets[visitor, sheet_key] = None
            _keep_newest(self._sheets, (visitor, sheet_key))

    def _take(self, key: str, part: float, share: float = 1) -> None:
        with self._lock:
            taken, taken_at = self._taken.get(key, (0.0, self._clock()))
            taken = max(0.0, taken - (self._clock() - taken_at) / 3600) + part
            if (excess := taken - share) > 0:
                raise BudgetSpentError(int(excess * 3600) + 1)
            self._taken[key] = taken, self._clock()
            _keep_newest(self._taken, key)


def _keep_newest(remembered: OrderedDict[Key, Value], key: Key) -> None:
    remembered.move_to_end(key)
    while len(remembered) > MAX_REMEMBERED:
        remembered.popitem(last=False)
