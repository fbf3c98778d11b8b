"""Guesses are counted and slowed down: by account, by client address, and in several processes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from app.settings import Settings
from app.web.shared.rate_limits import BUCKETS, RateLimits, TooManyGuessesError
from tests.helpers.accounts import ADA
from tests.helpers.running_app import make_app


def test_a_bucket_fills_by_itself() -> None:
    at = [0.0]
    limits = RateLimits(clock=lambda: at[0])
    bucket = BUCKETS["join"]
    for _ in range(int(bucket.size)):
        limits.check("join", "here")
        limits.record_failure("join", "here")
    with pytest.raises(TooManyGuessesError) as refused:
        limits.check("join", "here")
    limits.check("join", "elsewhere")
    at[0] += refused.value.seconds
    limits.check("join", "here")
    at[0] += 10_000_000
    for _ in range(int(bucket.size)):
        limits.check("join", "here")
        limits.record_failure("join", "here")
    with pytest.raises(TooManyGuessesError):
        limits.check("join", "here")


def guesses(workers: int, hours: int) -> tuple[int, int]:
    """How many guesses at one account a worker allows at once, and then within so many hours."""
    at, counted = [0.0], list[int]()
    limits = RateLimits(workers, clock=lambda: at[0])
    for moments in (range(1), range(0, hours * 3600, 60)):
        counted.append(0)
        for at[0] in moments:
            with suppress(TooManyGuessesError):
                while True:
                    limits.check("guess", ADA)
                    limits.record_failure("guess", ADA)
                    counted[-1] += 1
    return counted[0], counted[1]


@pytest.mark.parametrize(("workers", "at_once"), [(1, 10), (2, 5), (4, 5), (64, 5)])
def test_several_workers_allow_together_what_one_allows(workers: int, at_once: int) -> None:
    first, later = guesses(workers, 48)
    assert first == at_once
    assert 48 * 60 - 2 * workers <= later * workers <= 48 * 60


def test_the_app_counts_for_as_many_processes_as_are_set(tmp_path: Path) -> None:
    limits = make_app(Settings(data_dir=tmp_path, database_url="", workers=2, machines=2)).state.services.limits
    for _ in range(5):
        limits.check("guess", ADA)
        limits.record_failure("guess", ADA)
    with pytest.raises(TooManyGuessesError):
        limits.check("guess", ADA)
