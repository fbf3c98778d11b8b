"""Closing an activity with a button, and undoing it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.classes.closing_menu import can_undo_close, close_undoably, undo_last_close
from app.store import Plan, Policies, Store
from tests.helpers.clock import Clock
from tests.helpers.stored_class import activity, reload

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("closes_at", [None, TEN + timedelta(days=20_000)], ids=["no closing time", "a later one"])
@pytest.mark.parametrize("minutes", [0, 5])
def test_until_it_closes_a_close_is_undone_without_a_trace(
    store: Store, clock: Clock, minutes: int, closes_at: datetime | None
) -> None:
    opens_at = clock.now - timedelta(hours=1)
    made, _kim, token = activity(store, Plan("Week 3", None, Policies(feedback="after_close"), opens_at, closes_at))
    before = reload(store, made)
    assert not undo_last_close(store, before)
    assert close_undoably(store, before, minutes)
    for seconds in (0, 60 * minutes or 9.9):
        clock.pass_seconds(seconds - (0.1 if minutes and seconds else 0))
        found = store.activities.of_visitor(token, made.id)
        assert found
        its = found.activity
        assert (its.phase(clock.now), its.is_writable(clock.now), its.is_late(clock.now)) == ("open", True, False)
        assert can_undo_close(store, reload(store, made))
    assert undo_last_close(store, before)
    assert reload(store, made) == before
    assert not undo_last_close(store, before)


def test_a_close_that_took_effect_or_was_overtaken_is_not_undone(store: Store, clock: Clock) -> None:
    made, _, _ = activity(store, Plan("Week 3"))
    close_undoably(store, made)
    clock.pass_seconds(10)
    closed = reload(store, made)
    assert closed.phase(clock.now) == "closing"
    assert not undo_last_close(store, closed)
    assert reload(store, made) == closed
    assert not close_undoably(store, closed)

    store.activities.change(closed, replace(closed.plan, closes_at=None))
    close_undoably(store, made)
    other = replace(made.plan, closes_at=clock.now + timedelta(hours=1))
    store.activities.change(reload(store, made), other)
    assert not undo_last_close(store, made)
    assert reload(store, made).plan == other


def test_presses_of_close_in_a_row_are_undone_together(store: Store, clock: Clock) -> None:
    made, _, _ = activity(store, Plan("Week 3"))
    close_undoably(store, made)
    clock.pass_seconds(1)
    assert not close_undoably(store, made)
    assert close_undoably(store, made, 5)
    undo_last_close(store, made)
    assert reload(store, made).plan.closes_at is None
    close_undoably(store, made, 5)
    announced = reload(store, made).plan.closes_at
    clock.pass_minutes(1)
    close_undoably(store, made)
    undo_last_close(store, made)
    assert reload(store, made).plan.closes_at == announced


def test_closing_what_has_not_opened_yet_is_undone_too(store: Store, clock: Clock) -> None:
    opens_at = clock.now + timedelta(seconds=20)
    made, _, _ = activity(store, Plan("Week 3", None, Policies(auto_submit=False), opens_at))
    before = reload(store, made)
    close_undoably(store, before, 5)
    assert reload(store, made).phase(clock.now) == "closing"
    clock.pass_seconds(9)
    assert undo_last_close(store, before)
    assert reload(store, made) == before
    close_undoably(store, before)
    clock.pass_seconds(10)
    assert not undo_last_close(store, before)
