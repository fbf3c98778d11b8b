"""The migrations give the tables of the code, and what was made before the first release is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from app import cli
from app.store import (
    Store,
    database,
)
from app.store.database import (
    UnreleasedDatabaseError,
    empty_log,
    migration_transaction,
    open_engine,
    revision_of,
    upgrade,
)
from app.store.jobs import is_ours
from app.store.tables import metadata, students
from simulation.postgres import create_database
from tests.helpers.running_app import running_app
from tests.helpers.school import Classroom

WHEN = datetime(2026, 3, 1, 9, tzinfo=UTC)


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
    """An index's properties on this database only, such as its rows, as text."""
    return {name: str(value) for name, value in index.get("dialect_options", {}).items()}


def test_the_migrations_lead_to_the_tables_of_the_code(bare_database_url: str) -> None:
    engine = open_engine(bare_database_url)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_name": is_ours})
        assert compare_metadata(context, metadata) == []
        migrated = structure(connection)
        del migrated["alembic_version"]
        metadata.drop_all(connection)
        metadata.create_all(connection)
        created = structure(connection)
        del created["alembic_version"]
        assert migrated == created
    engine.dispose()


def test_keys_and_indexes_are_named_after_their_tables(store: Store) -> None:
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


def unreleased_database(url: str, revision: str) -> sa.Engine:
    """A database as a commit before the first release left it, as far as the code looks."""
    engine = open_engine(url)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    return engine


@pytest.mark.parametrize("revision", ["0012", "0001_tables", "0008_anonymous_tickets"])
def test_a_database_from_before_the_first_release_is_refused(
    revision: str, bare_database_url: str, tmp_path: Path
) -> None:
    engine = unreleased_database(bare_database_url, revision)
    with pytest.raises(UnreleasedDatabaseError):
        Store(bare_database_url, tmp_path)
    with engine.connect() as connection:
        assert revision_of(connection) == revision
    engine.dispose()


def test_a_command_says_what_to_do_with_an_unreleased_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'old.sqlite3'}"
    unreleased_database(url, "0008_anonymous_tickets").dispose()
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["teacher", "add", "ada@example.org"])
    assert stopped.value.code not in (0, None)
    assert "move the file away" in capsys.readouterr().err


FIRST_RELEASE = "1001_tables"
ADDED_TABLE = re.compile(r"CREATE TABLE (\w+)")
ADDED_COLUMN = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+) (.*)", re.DOTALL)
ADDED_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX \w+ ON (\w+)")
CHANGED_ROWS = re.compile(r"(?:INSERT INTO|UPDATE) (\w+)(?: SET (\w+)\W)?")


def refused_by_the_version_before(statements: Sequence[str]) -> list[str]:
    """Those statements of one migration that the code before it could not go on working after."""
    tables, columns, refused = {"alembic_version"}, set[tuple[str, str]](), list[str]()
    for statement in statements:
        if table := ADDED_TABLE.match(statement):
            tables.add(table[1])
            is_addition = statement.count("REFERENCES") == len(re.findall("ON DELETE (?:CASCADE|SET NULL)", statement))
        elif column := ADDED_COLUMN.match(statement):
            columns.add((column[1], column[2]))
            is_addition = "NOT NULL" not in column[3] or "DEFAULT" in column[3]
            is_addition &= "REFERENCES" not in column[3] or "ON DELETE" in column[3]
        elif index := ADDED_INDEX.match(statement):
            is_addition = index[2] in tables or not index[1]
        elif rows := CHANGED_ROWS.match(statement):
            is_addition = rows[1] in tables or (rows[1], rows[2]) in columns
        else:
            is_addition = statement.startswith("SELECT")
        if not is_addition:
            refused.append(statement)
    return refused


@pytest.mark.parametrize(
    ("statement", "is_refused"),
    [
        ("ALTER TABLE jobs ADD COLUMN runner VARCHAR(80) DEFAULT '' NOT NULL", False),
        ("ALTER TABLE jobs ADD COLUMN runner VARCHAR(80) NOT NULL", True),
        ("ALTER TABLE jobs DROP COLUMN runner", True),
        ("ALTER TABLE jobs ALTER COLUMN runner TYPE TEXT", True),
        ("ALTER TABLE jobs RENAME COLUMN runner TO machine", True),
        ("CREATE TABLE runners (name TEXT, FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE)", False),
        ("CREATE TABLE runners (name TEXT, FOREIGN KEY(job_id) REFERENCES jobs (id))", True),
        ("CREATE INDEX ix_jobs_runner ON jobs (runner)", False),
        ("CREATE UNIQUE INDEX ix_jobs_runner ON jobs (runner)", True),
        ("UPDATE jobs SET kind = 'x'", True),
        ("DELETE FROM jobs", True),
        ("DROP TABLE jobs", True),
    ],
)
def test_a_migration_that_the_version_before_would_not_survive_is_known(statement: str, is_refused: bool) -> None:
    assert bool(refused_by_the_version_before([statement])) == is_refused


def test_migrations_only_add(postgres: str) -> None:
    """From the first release on, so that a process of the version before goes on serving: see docs/contributing.md."""
    engine, executed = open_engine(create_database(postgres, "additions")), list[str]()
    scripts = ScriptDirectory(str(Path(database.__file__).parent / "migrations"))
    newer = [each.revision for each in reversed([*scripts.walk_revisions(FIRST_RELEASE, "heads")])][1:]

    @sa.event.listens_for(engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        executed.append(statement.strip())

    with migration_transaction(engine) as connection:
        upgrade(connection, FIRST_RELEASE)
        for revision in newer:
            executed.clear()
            upgrade(connection, revision)
            assert refused_by_the_version_before(executed) == [], revision
    engine.dispose()


def test_a_process_of_the_version_before_works_with_a_newer_database(bare_database_url: str, tmp_path: Path) -> None:
    engine = open_engine(bare_database_url)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        for name in metadata.tables:
            connection.execute(sa.text(f"ALTER TABLE {name} ADD COLUMN later TEXT"))
            connection.execute(sa.text(f"ALTER TABLE {name} ADD COLUMN later_still INTEGER DEFAULT 7 NOT NULL"))
            connection.execute(sa.text(f"CREATE INDEX ix_{name}_later ON {name} (later)"))
        reference = "student_id INTEGER NOT NULL REFERENCES students (id) ON DELETE CASCADE"
        connection.execute(sa.text(f"CREATE TABLE later ({reference})"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '1999_later'"))
    with running_app(tmp_path, bare_database_url) as app:
        classroom = Classroom(app)
        student = classroom.student("Kim")
        with engine.begin() as connection:
            connection.execute(sa.text(f"INSERT INTO later VALUES ({student.id})"))  # noqa: S608 - a number
        classroom.send(student, "save", {"queries.rows": "100"})
        classroom.send(student, "hand-in", {"queries.rows": "100"})
        assert len(classroom.store.classwork.attempts_of_activity(classroom.activity.id)) == 1
        classroom.store.roster.remove_student(student)
    with engine.begin() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM later")) == 0
        assert revision_of(connection) == "1999_later"
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '2001_fewer'"))
    engine.dispose()
    with pytest.raises(CommandError):
        Store(bare_database_url, tmp_path)


def test_a_table_made_anew_by_a_migration_keeps_what_refers_to_it(bare_database_url: str, tmp_path: Path) -> None:
    with running_app(tmp_path, bare_database_url) as app:
        classroom = Classroom(app)
        classroom.send(classroom.student("Kim"), "hand-in", {"queries.rows": "100"})
    engine = open_engine(bare_database_url)
    with migration_transaction(engine) as connection:
        before = {table.name: connection.execute(sa.select(table)).all() for table in metadata.sorted_tables}
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("courses", recreate="auto") as batch:
            batch.alter_column("title", type_=sa.String(300))
    assert all(before[name] for name in ("courses", "staff", "students", "activities", "attempts"))
    with engine.begin() as connection:
        assert {table.name: connection.execute(sa.select(table)).all() for table in metadata.sorted_tables} == before
        with pytest.raises(sa.exc.IntegrityError):
            connection.execute(sa.insert(students).values(course_id=10, name="x", name_key="x", created_at=WHEN))
    engine.dispose()


@pytest.mark.parametrize("text", ["Zebras whistle.", "Zebras whistle. " * 999], ids=["in a page", "over many pages"])
def test_what_was_deleted_is_in_no_file(text: str, tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'notes.sqlite3'}")
    sa.event.listen(engine, "connect", lambda opened, _: opened.execute("PRAGMA secure_delete=OFF"), insert=True)

    def traces() -> int:
        return sum(path.read_bytes().count(b"Zebras") for path in tmp_path.iterdir())

    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (text TEXT)")
        connection.exec_driver_sql("INSERT INTO notes VALUES ('Lions.'), (?)", (text,))
    assert empty_log(engine)
    with engine.connect() as reader:
        reader.exec_driver_sql("BEGIN")
        assert reader.exec_driver_sql("SELECT count(*) FROM notes").scalar() == 2
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE notes SET text = text || '!'")
            connection.exec_driver_sql("DELETE FROM notes WHERE text LIKE 'Z%'")
        assert traces()
        assert not empty_log(engine)
    assert empty_log(engine)
    assert traces() == 0
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT text FROM notes").scalar() == "Lions.!"
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() > 1000
    engine.dispose()
