"""The clock that apps and stores of tests are given, which a test may stop; and activities that ended long ago."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import sqlalchemy as sa

from app.store import Activity, Store
from app.store.queries import utc_now
from app.store.tables import jobs, runners


class Clock:
    """A clock that shows the machine's time, but for a test that stops it and then moves it."""

    def __init__(self) -> None:
        self._stopped_at: datetime | None = None

    def __call__(self) -> datetime:
        return self._stopped_at or utc_now()

    @property
    def now(self) -> datetime:
        """What it shows."""
        return self()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let no time pass but by `pass_seconds` and `pass_minutes`."""
        self._stopped_at = utc_now()
        try:
            yield
        finally:
            self._stopped_at = None

    def pass_seconds(self, seconds: float) -> None:
        """Let this many seconds go by."""
        self._stopped_at = self() + timedelta(seconds=seconds)

    def pass_minutes(self, minutes: float) -> None:
        """Let this many minutes go by."""
        self.pass_seconds(60 * minutes)


CLOCK = Clock()  # of all apps and stores, since those of a file are made before its tests ask for a clock


def end_activity(store: Store, activity_id: int) -> Activity:
    """Close an activity so long ago that nothing is accepted any more; the activity as it is then."""
    activity = store.activities.find(activity_id)
    assert activity
    store.activities.close(activity, store.now() - timedelta(hours=1))
    ended = store.activities.find(activity_id)
    assert ended
    return ended


def age_jobs(store: Store, time: timedelta) -> None:
    """Let a second more than this time go by for all jobs and runners, by making their rows older."""
    time += timedelta(seconds=1)
    for table, names in ((jobs, ("created_at", "started_at", "heard_at")), (runners, ("started_at", "heard_at"))):
        [key] = table.primary_key
        with store.transaction() as connection:
            for row in connection.execute(sa.select(table)).mappings().all():
                older = {name: row[name] - time for name in names if row[name]}
                connection.execute(sa.update(table).where(key == row[key.name]).values(older))
