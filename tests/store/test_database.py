"""The migrations give the tables of the code, and what was made before the first release is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from app import cli
from app.settings import PROJECT
from app.store import Store
from app.store.backup import FORMER_FORMAT, BackupError, check_backup, restore_backup, write_backup
from app.store.database import (
    OlderDatabaseError,
    migration_transaction,
    open_engine,
    prepare_tables,
    revision_of,
    upgrade,
)
from app.store.tables import metadata


def structure(connection: sa.Connection) -> dict[str, list[str]]:
    """Columns, indexes and constraints of every table, and on SQLite whether it reuses ids or has row numbers."""
    looked, kinds = sa.inspect(connection), {}
    if connection.dialect.name == "sqlite":
        rows = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        kinds = {name: [f"{word in sql}" for word in ("AUTOINCREMENT", "WITHOUT ROWID")] for name, sql in rows}
    return {
        name: sorted(
            str(part)
            for parts in (
                looked.get_columns(name),
                [{**index, "dialect_options": str_values(index)} for index in looked.get_indexes(name)],
                looked.get_unique_constraints(name),
                looked.get_foreign_keys(name),
                looked.get_check_constraints(name),
                [looked.get_pk_constraint(name)],
                kinds.get(name, []),
            )
            for part in parts
        )
        for name in looked.get_table_names()
    }


def str_values(index: Any) -> dict[str, str]:
    """What an index is like on this database alone, such as the rows that it has, as text."""
    return {name: str(value) for name, value in index.get("dialect_options", {}).items()}


def config_on(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(PROJECT / "app" / "store" / "migrations"))
    config.attributes["connection"] = connection
    return config


def test_the_migrations_lead_to_the_tables_of_the_code(bare_database_url: str) -> None:
    """Alembic finds no difference to tables.metadata, and none is left to what a new database gets at once."""
    engine = open_engine(bare_database_url)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        migrated, revision = structure(connection), revision_of(connection)
        command.downgrade(config_on(connection), "base")
        assert set(sa.inspect(connection).get_table_names()) == {"alembic_version"}
        connection.execute(sa.text("DROP TABLE alembic_version"))
        prepare_tables(connection)
        assert (structure(connection), revision_of(connection)) == (migrated, revision)
    engine.dispose()


def test_keys_and_indexes_are_named_after_their_tables(store: Store) -> None:
    """Only the primary key of a table that numbers its rows has no name on SQLite."""
    with store.engine.connect() as connection:
        looked = sa.inspect(connection)
        for name, table in metadata.tables.items():
            foreign = looked.get_foreign_keys(name)
            assert {key["name"] for key in foreign} == {
                f"fk_{name}_{'_'.join(key['constrained_columns'])}" for key in foreign
            }
            nameless = connection.dialect.name == "sqlite" and table.dialect_options["sqlite"]["autoincrement"]
            assert looked.get_pk_constraint(name)["name"] == (None if nameless else f"pk_{name}")
            indexes = [key for key in looked.get_indexes(name) if not key.get("duplicates_constraint")]
            unique, checks = looked.get_unique_constraints(name), looked.get_check_constraints(name)
            named = [*(("uq", key["name"]) for key in unique), *(("ck", key["name"]) for key in checks)]
            named += [("ix", key["name"]) for key in indexes]
            assert all(str(key).startswith(f"{kind}_{name}_") for kind, key in named)


def older_database(url: str) -> sa.Engine:
    """A database as the last commit before the first release left it, as far as the code looks."""
    engine = open_engine(url)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0012'"))
    return engine


def test_a_database_from_before_the_first_release_is_refused(bare_database_url: str, tmp_path: Path) -> None:
    """Nothing in it changes, and no backup is made of it."""
    engine = older_database(bare_database_url)
    with pytest.raises(OlderDatabaseError):
        Store(bare_database_url, tmp_path)
    with pytest.raises(BackupError, match="older"):
        write_backup(engine, tmp_path / "backup")
    with engine.connect() as connection:
        assert revision_of(connection) == "0012"
    engine.dispose()
    assert not (tmp_path / "backup").exists()


def test_a_command_says_what_to_do_with_an_older_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, the exit status of a wrong input, and no traceback."""
    url = f"sqlite:///{tmp_path / 'old.sqlite3'}"
    older_database(url).dispose()
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["teacher", "add", "ada@example.org"])
    assert stopped.value.code not in (0, None)
    assert "first release" in capsys.readouterr().err


@pytest.mark.parametrize("changed", [{"format": FORMER_FORMAT}, {"revision": "0012"}])
def test_an_older_backup_is_refused(store: Store, tmp_path: Path, changed: dict[str, Any]) -> None:
    """By its format, or by the revision of its tables; every row of the database stays."""
    visitor = store.add_visitor()
    write_backup(store.engine, tmp_path / "new")
    with zipfile.ZipFile(tmp_path / "new") as new, zipfile.ZipFile(tmp_path / "old", "w") as old:
        for name in new.namelist():
            content = new.read(name)
            if name == "backup.json":
                content = json.dumps({**json.loads(content), **changed}).encode()
            old.writestr(name, content)
    for refuse in (check_backup, lambda path: restore_backup(store.engine, path, replace=True)):
        with pytest.raises(BackupError, match="older"):
            refuse(tmp_path / "old")
    assert store.find_visitor(visitor.token) == visitor
