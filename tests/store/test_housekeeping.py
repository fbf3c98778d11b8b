"""Imported models that nothing uses go after some weeks; everything expired goes, however much it is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.activities.work import NewAttempt
from app.store import Graded, PracticeSheetKey, Store, VariantSizes, housekeeping, limits
from app.store.housekeeping import MODEL_RETENTION, PRACTICE_RETENTION, delete_expired
from app.store.queries import utc_now
from app.store.tables import attempts, drafts, materials, models, runs, sessions
from tests.helpers.stored_class import save


def test_models_go_when_nothing_uses_them(store: Store) -> None:
    names = ("forgotten", "opened", "new", "on a sheet", "attempted", "in a worksheet", "in an old version")
    keys = {name: store.keep_model("M", {"n": name}, "pasted").key for name in names}
    visitor, teacher = store.add_visitor(), store.people.add_teacher("ada@example.org", "Ada")
    assert teacher
    for name in ("on a sheet", "attempted"):
        save(store, PracticeSheetKey(visitor.id, f"llama-7b/{keys[name]}/100"), {}, sizes=VariantSizes(keys[name], 100))
    sheet = PracticeSheetKey(visitor.id, f"llama-7b/{keys['attempted']}/100")
    attempt = NewAttempt({}, VariantSizes(keys["attempted"], 100), Graded({}, (), 0, 1))
    store.classwork.record(sheet, attempt, None)
    material = store.materials.add("worksheet", teacher, teacher, {"model": keys["in an old version"]})
    settings = {"model": "gpt2", "models": ["gpt2", keys["in a worksheet"]]}
    store.materials.save(material, 1, settings, teacher)
    old = utc_now() - MODEL_RETENTION - timedelta(days=1)
    with store.engine.begin() as connection:
        connection.execute(sa.delete(drafts).where(drafts.c.sheet_key == sheet.sheet_key))
        connection.execute(sa.update(models).where(models.c.key != keys["new"]).values(created_at=old, used_at=old))
    assert store.find_model(keys["opened"])

    def left() -> set[str]:
        delete_expired(store.engine, store.now())
        with store.engine.connect() as connection:
            there = set(connection.scalars(sa.select(models.c.key)))
        return {name for name, key in keys.items() if key in there}

    assert left() == set(names) - {"forgotten"}
    with store.engine.begin() as connection:
        for table in (drafts, attempts, materials):
            connection.execute(sa.delete(table))
    assert left() == {"opened", "new"}


def test_everything_expired_goes_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_one_step_that_fails_stops_no_other(bare_database_url: str, tmp_path: Path) -> None:
    store = Store(bare_database_url, tmp_path)
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
    store.close()


def test_no_statement_is_cut_short(new_postgres_database: str, tmp_path: Path) -> None:
    store, seen = Store(new_postgres_database, tmp_path), set[int]()
    expire_runs(store, 1)

    def note_limit(connection: sa.Connection, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith(("SELECT", "DELETE")):
            asked = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
            seen.add(int(cursor.connection.execute(asked).fetchone()[0]))

    sa.event.listen(store.single_engine, "before_cursor_execute", note_limit)
    assert delete_expired(store.engine, store.now()) == 1
    assert seen == {0}
    seen.clear()
    store.find_visitor("nobody")
    store.close()
    assert seen == {1000 * limits.STATEMENT_LIMIT_S}


def expire_runs(store: Store, count: int) -> None:
    """Add runs that were made more than a week ago."""
    for _ in range(count):
        store.add_run(store.new_run({}, {}))
    with store.engine.begin() as connection:
        connection.execute(sa.update(runs).values(created_at=utc_now() - timedelta(days=8)))
