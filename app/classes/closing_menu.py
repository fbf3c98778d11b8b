"""Closing an activity with a button, now or in some minutes, and undoing it: what a teacher can do at the moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.store import Activity, Phase, Store

CLOSING_MINUTES = (0, 2, 5, 10, 15)


@dataclass(frozen=True)
class ClosingMenu:
    """Closing an activity with a button, and undoing that, as templates/teacher/_closing_menu.html shows it."""

    phase: Phase
    working: int  # students who have typed on a sheet and not handed it in
    takes_in: bool  # whether what they typed is taken in
    can_close: bool  # not where it closes within seconds anyway
    can_undo: bool
    closes_at: datetime | None
    seconds: int  # until it has closed; 0 where no closing time lies ahead
    minutes: tuple[int, ...] = CLOSING_MINUTES  # when it can be closed: so many minutes on


def closing_menu(store: Store, activity: Activity, now: datetime, working: int) -> ClosingMenu:
    """Whether an activity can be closed at that time, and whether the last press of Close can be undone."""
    phase, closes_at = activity.phase(now), activity.plan.closes_at
    return ClosingMenu(
        phase=phase,
        working=working,
        takes_in=activity.policies.take_in_drafts,
        can_close=phase in ("open", "waiting") and not activity.is_about_to_close(now),
        can_undo=closes_at is not None and store.activities.can_undo_close(activity),
        closes_at=closes_at,
        seconds=activity.seconds_left(now),
    )
