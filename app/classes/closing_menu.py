"""Closing an activity with a button, now or in some minutes, and undoing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from app.activities.activity import Activity, Phase, UndoableClose
from app.store import Store

CLOSING_MINUTES = (0, 2, 5, 10, 15)


@dataclass(frozen=True)
class ClosingMenu:
    """Closing an activity with a button, and undoing that, as templates/teacher/_closing_menu.html shows it."""

    phase: Phase
    working: int  # students who have typed on a sheet and not handed it in
    auto_submits: bool  # whether what they typed is auto-submitted
    can_close: bool  # False if it closes within seconds anyway
    can_undo: bool
    closes_at: datetime | None
    seconds: int  # until it closes; 0 without a future closing time
    minutes: tuple[int, ...] = CLOSING_MINUTES  # the choices for closing later, in minutes


def closing_menu(store: Store, activity: Activity, now: datetime, working: int) -> ClosingMenu:
    """The menu at `now`."""
    phase, closes_at = activity.phase(now), activity.plan.closes_at
    return ClosingMenu(
        phase=phase,
        working=working,
        auto_submits=activity.policies.auto_submit,
        can_close=phase in ("open", "waiting") and not activity.is_about_to_close(now),
        can_undo=closes_at is not None and _last_press(store, activity) is not None,
        closes_at=closes_at,
        seconds=activity.seconds_left(now),
    )


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
