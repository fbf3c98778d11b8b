"""Visitors, practice, runs, models and migrations, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.settings import PROJECT, Settings
from app.store import PracticeSheetKey, Store
from app.store.database import clock_ahead_s, connections_of_each
from app.store.jobs import is_ours
from app.store.tables import metadata, runs, visitors
from tests.helpers.stored_class import save

SHEET = "llama-7b/llama-7b/100"
ODD = {"queries.rows": "4 096 × 2\u2009", "keys.rows": "\x00", "values.rows": "\ud800", "scores.rows": "🙂" * 500}


def test_the_store_stands_on_the_database_it_was_given(store: Store, database_url: str) -> None:
    assert store.engine.dialect.name == database_url.partition(":")[0].partition("+")[0]


def test_whether_it_can_be_written_to_is_found_without_writing(store: Store) -> None:
    is_sqlite = store.engine.dialect.name == "sqlite"
    asked = "PRAGMA data_version" if is_sqlite else "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    with store.single_engine.connect() as other:
        before = other.exec_driver_sql(asked).scalar()
        store.check_writable()
        assert other.exec_driver_sql(asked).scalar() == before
        store.add_visitor()
        assert other.exec_driver_sql(asked).scalar() != before


def test_a_visitor_is_found_by_their_token_alone(store: Store) -> None:
    first, second = store.add_visitor(), store.add_visitor()
    assert first.id != second.id
    assert len(first.token) == 43
    assert store.find_visitor(first.token) == first
    assert store.find_visitor(second.token) == second
    for other in ("", first.token[:-1], first.token.lower() + "x", "\x00", "\ud800", "x" * 10_000):
        assert store.find_visitor(other) is None


def test_tokens_are_not_stored_in_clear(store: Store) -> None:
    visitor = store.add_visitor()
    with store.engine.connect() as connection:
        row = connection.execute(sa.select(visitors)).one()
    assert visitor.token not in " ".join(str(value) for value in row)
    assert len(row.token_hash) == 64


def test_a_run_is_waiting_until_it_is_finished(store: Store) -> None:
    run = store.add_run(store.new_run(ODD, {}))
    found = store.find_run(run.id)
    assert found == run
    assert not run.finished
    assert abs(found.created_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_finished_run_has_its_result(store: Store) -> None:
    run = store.add_run(store.new_run({}, {}))
    result = {"shapes": {"queries": [100, 128]}, "milliseconds": 5.25, "row_sums": None, "agrees": True}
    store.finish_run(run.id, result)
    found = store.find_run(run.id)
    assert found is not None
    assert (found.result, found.problem, found.finished) == (result, None, True)


def test_a_run_that_failed_has_its_sentence(store: Store) -> None:
    run = store.add_run(store.new_run({}, {}))
    store.finish_run(run.id, None, "It took too long.")
    found = store.find_run(run.id)
    assert found is not None
    assert (found.result, found.problem, found.finished) == (None, "It took too long.", True)


def test_runs_have_ids_that_cannot_be_guessed(store: Store) -> None:
    ids = {store.add_run(store.new_run({}, {})).id for _ in range(20)}
    assert len(ids) == 20
    assert {len(run_id) for run_id in ids} == {16}
    for other in ("", "1", "x" * 10_000, "é🙂", "a\x00b"):
        assert store.find_run(other) is None


def test_what_was_kept_is_there_after_a_restart(store: Store, database_url: str, tmp_path: Path) -> None:
    visitor = store.add_visitor()
    draft = save(store, PracticeSheetKey(visitor.id, SHEET), {"queries.rows": "100"})
    store.close()
    again = Store(database_url, tmp_path)
    found = again.find_visitor(visitor.token)
    assert found == visitor
    assert again.classwork.draft(PracticeSheetKey(found.id, SHEET)) == draft
    again.close()


def test_the_id_of_a_deleted_row_is_not_reused(store: Store) -> None:
    visitor = store.add_visitor()
    with store.engine.begin() as connection:
        connection.execute(sa.delete(visitors))
    assert store.add_visitor().id == visitor.id + 1


def tables_that_reuse_ids(connection: sa.Connection) -> set[str]:
    """The tables on SQLite that number their rows without AUTOINCREMENT, which Alembic doesn't compare."""
    if connection.dialect.name != "sqlite":
        return set()
    ids = (table.c.id for table in metadata.sorted_tables if "id" in table.c)
    numbered = {column.table.name for column in ids if isinstance(column.type, sa.Integer)}
    never_reusing = sa.text("SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'")
    return numbered - set(connection.scalars(never_reusing))


def test_a_new_database_is_as_if_migrated(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_name": is_ours})
        assert compare_metadata(context, metadata) == []
        assert tables_that_reuse_ids(connection) == set()
        assert (
            context.get_current_revision()
            == ScriptDirectory(str(PROJECT / "app" / "store" / "migrations")).get_current_head()
        )


def test_a_difference_would_be_seen(bare_database_url: str, tmp_path: Path) -> None:
    store = Store(bare_database_url, tmp_path)
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE runs DROP COLUMN problem"))
    with store.engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection, opts={"include_name": is_ours}), metadata)
    store.close()
    assert [(kind, table, column.name) for kind, _, table, column in found] == [
        ("add_column", "runs", runs.c.problem.name)
    ]


def test_stores_that_open_one_new_database_at_once_all_work(bare_database_url: str, tmp_path: Path) -> None:
    barrier, opened, problems = threading.Barrier(4), list[Store](), list[Exception]()

    def open_it() -> None:
        barrier.wait()
        try:
            store = Store(bare_database_url, tmp_path)
            opened.append(store)
            store.add_visitor()
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in opened:
        store.close()
    assert problems == []
    assert len(opened) == 4


@pytest.mark.slow
def test_processes_that_open_one_new_database_at_once_all_work(bare_database_url: str, tmp_path: Path) -> None:
    command = (
        "import sys, pathlib; from app.store import Store; "
        "s = Store(sys.argv[1], pathlib.Path(sys.argv[2])); s.add_visitor(); s.close()"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", command, bare_database_url, str(tmp_path)],
            cwd=PROJECT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [process.communicate(timeout=300)[1] for process in started] == ["", "", ""]
    assert [process.returncode for process in started] == [0, 0, 0]


def test_the_folder_of_a_new_database_is_made(tmp_path: Path) -> None:
    store = Store(Settings(data_dir=tmp_path / "a" / "b", database_url="").database, tmp_path / "a" / "b")
    store.check_writable()
    store.close()
    assert (tmp_path / "a" / "b" / "attention-shapes.sqlite3").is_file()


@pytest.mark.parametrize("url", ["postgres://u:p@h/d", "postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d"])
def test_a_postgresql_url_is_read_as_hosters_write_it(url: str) -> None:
    assert Settings(database_url=url).database == "postgresql+psycopg://u:p@h/d"


def test_a_kept_model_is_found_by_its_key(store: Store) -> None:
    kept = store.keep_model("Tiny", {"b": "\ud800", "a": float("inf")}, "pasted")
    assert (kept.name, kept.config, kept.source) == ("Tiny", '{"a":Infinity,"b":"\\ud800"}', "pasted")
    assert store.keep_model("Other", {"a": float("inf"), "b": "\ud800"}, "file") == kept
    assert store.find_model(kept.key) == kept
    assert store.find_model("cfg-" + "0" * 20) is None
    assert store.find_model("cfg-\0") is None


@pytest.mark.parametrize(("workers", "each"), [(1, 20), (4, 17), (6, 11), (20, 4), (64, 4)])
def test_workers_share_the_connections(new_postgres_database: str, tmp_path: Path, workers: int, each: int) -> None:
    """So many in all that a server as it is installed has room for seventeen processes, and others beside them."""
    shared = Store(new_postgres_database, tmp_path, workers)
    pool = shared.single_engine.pool
    shared.close()
    assert (connections_of_each(workers), pool.size()) == (each, each)  # type: ignore[attr-defined]


def test_a_machine_knows_how_far_its_clock_is_from_the_databases(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    right_time = time.time
    for wrong_by in (3600, -3600):
        monkeypatch.setattr(time, "time", lambda wrong_by=wrong_by: right_time() + wrong_by)
        expected = 0 if store.engine.dialect.name == "sqlite" else wrong_by
        assert clock_ahead_s(store.engine) == pytest.approx(expected, abs=60)
