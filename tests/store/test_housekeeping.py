"""Imported models that nothing uses go after some weeks; everything expired goes, however much it is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.store import PracticeSheetKey, Store, VariantSizes, housekeeping
from app.store.housekeeping import MODEL_RETENTION, PRACTICE_RETENTION, delete_expired
from app.store.limits import STATEMENT_LIMIT_S
from app.store.queries import utc_now
from app.store.tables import drafts, models, runs, sessions
from tests.helpers.stored_class import save


def test_models_go_when_nothing_uses_them(store: Store) -> None:
    """Not while they are opened, and not while a visitor's sheet has their key."""
    forgotten, opened, on_a_sheet, new = (store.keep_model("M", {"n": number}, "pasted").key for number in range(4))
    visitor = store.add_visitor()
    save(store, PracticeSheetKey(visitor.id, f"llama-7b/{on_a_sheet}/100"), {}, sizes=VariantSizes(on_a_sheet, 100))
    old = utc_now() - MODEL_RETENTION - timedelta(days=1)
    with store.engine.begin() as connection:
        connection.execute(sa.update(models).where(models.c.key != new).values(created_at=old, used_at=old))
    assert store.find_model(opened)
    assert delete_expired(store.engine, store.now()) == 1
    assert store.find_model(forgotten) is None
    assert all(store.find_model(key) for key in (opened, on_a_sheet, new))


def test_everything_expired_goes_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows in each transaction, so that saves go on meanwhile."""
    monkeypatch.setattr(housekeeping, "ROWS_AT_A_TIME", 3)
    monkeypatch.setattr(housekeeping, "PAUSE_S", 0)
    expire_runs(store, 10)
    visitor, longer_ago = store.add_visitor(), utc_now() - PRACTICE_RETENTION - timedelta(days=1)
    for number in range(4):
        save(store, PracticeSheetKey(visitor.id, f"sheet {number}"), {})
    with store.engine.begin() as connection:
        old = drafts.c.sheet_key != "sheet 0"
        connection.execute(sa.update(drafts).where(old).values(saved_at=longer_ago))
    counts = list[int]()
    sa.event.listen(store.single_engine, "after_cursor_execute", lambda _c, cursor, statement, *_: (
        counts.append(cursor.rowcount) if statement.startswith("DELETE") else None))  # fmt: skip
    assert delete_expired(store.engine, store.now()) == 13
    assert max(counts) == 3


def test_one_step_that_fails_stops_no_other(store: Store) -> None:
    """Without sessions, the runs, which come before, and the models, which come after, go all the same."""
    expire_runs(store, 1)
    model = store.keep_model("M", {"n": 1}, "pasted").key
    old = utc_now() - MODEL_RETENTION - timedelta(days=1)
    with store.engine.begin() as connection:
        connection.execute(sa.update(models).values(created_at=old, used_at=old))
        sessions.drop(connection)
    with pytest.raises(ExceptionGroup) as raised:
        delete_expired(store.engine, store.now())
    assert len(raised.value.exceptions) == 1
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(runs)) == 0
    assert store.find_model(model) is None


def test_no_statement_is_cut_short(new_postgres_database: str, tmp_path: Path) -> None:
    """Reading all revisions may take longer than a page would wait; afterwards the limit is back."""
    store, limits = Store(new_postgres_database, tmp_path), set[str]()
    expire_runs(store, 1)

    def note_limit(connection: sa.Connection, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith(("SELECT", "DELETE")):
            limits.add(cursor.connection.execute("SHOW statement_timeout").fetchone()[0])

    sa.event.listen(store.single_engine, "before_cursor_execute", note_limit)
    assert delete_expired(store.engine, store.now()) == 1
    assert limits == {"0"}
    limits.clear()
    store.find_visitor("nobody")
    store.close()
    assert limits == {f"{STATEMENT_LIMIT_S}s"}


def expire_runs(store: Store, count: int) -> None:
    """Add runs that were made more than a week ago."""
    for _ in range(count):
        store.add_run(store.new_run({}, {}))
    with store.engine.begin() as connection:
        connection.execute(sa.update(runs).values(created_at=utc_now() - timedelta(days=8)))
