"""The clock of activities, which tests put forward, and activities that ended long ago."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.store import Activity, Store
from app.store.queries import utc_now


class Clock:
    """The time by which activities open and close, and work is saved: it stands still, and only the test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = utc_now()
        for module in ("activities", "classwork"):
            monkeypatch.setattr(f"app.store.{module}.utc_now", lambda: self.now)

    def pass_seconds(self, seconds: float) -> None:
        """Let so many seconds go by."""
        self.now += timedelta(seconds=seconds)

    def pass_minutes(self, minutes: float) -> None:
        """Let so many minutes go by."""
        self.pass_seconds(60 * minutes)


def end_activity(store: Store, activity_id: int) -> Activity:
    """Close an activity so long ago that nothing is accepted any more; the activity as it is then."""
    activity = store.activities.find(activity_id)
    assert activity
    store.activities.close(activity, utc_now() - timedelta(hours=1))
    ended = store.activities.find(activity_id)
    assert ended
    return ended
