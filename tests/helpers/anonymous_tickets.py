"""Closing an activity in a test, so that its anonymous exit tickets can be read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from app.store import Activity, Store


def close_and_mix(store: Store, activity: Activity) -> None:
    """Close the activity an hour ago, and turn the anonymous tickets that wait into answers."""
    store.activities.change(activity, replace(activity.plan, closes_at=store.now() - timedelta(hours=1)))
    store.activities.note_auto_submitted(activity)  # there are none
    closed = store.activities.find(activity.id)
    assert closed
    store.exit_tickets.mix_closed(closed)
