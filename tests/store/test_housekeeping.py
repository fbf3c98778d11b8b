"""Imported models that nothing uses go after some weeks; everything expired goes, however much it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.store import PracticeDraft, Store
from app.store.queries import utc_now
from app.store.tables import models, runs
from app.store.upkeep import housekeeping
from app.store.upkeep.housekeeping import MODEL_RETENTION, delete_expired


def test_models_go_when_nothing_uses_them(store: Store) -> None:
    """Not while they are opened, and not while a visitor's sheet or a run has their key."""
    forgotten, opened, on_a_sheet, in_a_run, new = (
        store.keep_model("M", {"n": number}, "pasted").key for number in range(5)
    )
    visitor = store.add_visitor()
    store.save_draft(visitor, f"llama-7b/{on_a_sheet}/100", PracticeDraft({}, 0))
    store.add_run(f"llama-7b/{in_a_run}/100", {})
    old = utc_now() - MODEL_RETENTION - timedelta(days=1)
    with store.engine.begin() as connection:
        connection.execute(sa.update(models).where(models.c.key != new).values(created_at=old, used_at=old))
    assert store.find_model(opened)
    assert delete_expired(store.engine) == 1
    assert store.find_model(forgotten) is None
    assert all(store.find_model(key) for key in (opened, on_a_sheet, in_a_run, new))


def test_everything_expired_goes_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start deletes so many; the daily work deletes them all, a part in each transaction."""
    monkeypatch.setattr(housekeeping, "ROWS_AT_A_TIME", 3)
    monkeypatch.setattr(housekeeping, "PAUSE_S", 0)
    for _ in range(10):
        store.add_run("s", {})
    with store.engine.begin() as connection:
        connection.execute(sa.update(runs).values(created_at=utc_now() - timedelta(days=8)))
    assert delete_expired(store.engine, 4) == 4
    assert delete_expired(store.engine, None) == 6
