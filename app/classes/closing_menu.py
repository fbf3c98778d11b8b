"""Closing an activity with a button, now or in a few minutes, and undoing it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from app.activities.activity import Activity, UndoableClose
from app.store import Store


def can_close(activity: Activity, now: datetime) -> bool:
    """Whether to offer a Close button: only if the activity is open or waiting to open, and not about to close."""
    return activity.phase(now) in ("open", "waiting") and not activity.is_about_to_close(now)


def can_undo_close(store: Store, activity: Activity) -> bool:
    return activity.plan.closes_at is not None and _last_press(store, activity) is not None


def close_undoably(store: Store, activity: Activity, minutes: int = 0) -> bool:
    """Close an activity in `minutes`, but not before UNDO_TIME; one that waits to open is closed at once."""
    with store.transaction():
        current = store.activities.locked(activity)
        press = current.close_pressed(store.now(), minutes, _last_press(store, current)) if current else None
        if current is None or press is None:
            return False
        store.activities.close(current, press.closes_at)
        store.activities.keep_close(current, press)
    return True


def undo_last_close(store: Store, activity: Activity) -> bool:
    """Restore the opening and closing times from before the last press of Close, and forget the press."""
    with store.transaction():
        current = store.activities.locked(activity)
        press = _last_press(store, current) if current else None
        if current is None or press is None:
            return False
        plan = replace(current.plan, opens_at=press.opens_before, closes_at=press.closes_before)
        store.activities.change(current, plan)
        store.activities.keep_close(current, None)
    return True


def _last_press(store: Store, activity: Activity) -> UndoableClose | None:
    press = store.activities.last_close(activity)
    return press if press and press.can_be_undone(activity, store.now()) else None
