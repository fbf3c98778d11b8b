"""The clock for tests' apps and stores, which a test may stop; and activities that ended long ago."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import sqlalchemy as sa

from app.store import Activity, Store
from app.store.jobs import jobs, workers
from app.store.queries import utc_now


class Clock:
    """A clock that shows the machine's time unless a test stops and moves it."""

    def __init__(self) -> None:
        self._stopped_at: datetime | None = None

    def __call__(self) -> datetime:
        return self._stopped_at or utc_now()

    @property
    def now(self) -> datetime:
        return self()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock except for `pass_seconds` and `pass_minutes`."""
        self._stopped_at = utc_now()
        try:
            yield
        finally:
            self._stopped_at = None

    def pass_seconds(self, seconds: float) -> None:
        self._stopped_at = self() + timedelta(seconds=seconds)

    def pass_minutes(self, minutes: float) -> None:
        self.pass_seconds(60 * minutes)


CLOCK = Clock()  # for all apps and stores, since a file's are made before its tests ask for a clock


def end_activity(store: Store, activity_id: int) -> Activity:
    """Close an activity so long ago that nothing is accepted any more; return it."""
    activity = store.activities.find(activity_id)
    assert activity
    store.activities.close(activity, store.now() - timedelta(hours=1))
    ended = store.activities.find(activity_id)
    assert ended
    return ended


def age_jobs(store: Store, time: timedelta) -> None:
    """Make all jobs and workers older by this time and a second."""
    time += timedelta(seconds=1)
    for table, names in ((jobs, ("created_at", "started_at", "heard_at")), (workers, ("started_at", "heard_at"))):
        [key] = table.primary_key
        with store.transaction() as connection:
            for row in connection.execute(sa.select(table)).mappings().all():
                older = {name: row[name] - time for name in names if row[name]}
                connection.execute(sa.update(table).where(key == row[key.name]).values(older))
