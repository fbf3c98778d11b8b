"""Databases of every earlier version, written in plain SQL, open with the code of today and keep every row."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from app.settings import PROJECT
from app.store import AuditEntry, Content, Plan, Policies, Store, VariantSizes
from app.store.backup import restore_backup, write_backup
from app.store.database import migration_transaction, open_engine, upgrade
from app.store.queries import hash_secret
from app.store.tables import metadata

pytestmark = pytest.mark.slow

REVISIONS = ("0001", "0002", "0003", "0004")
AT = "2026-03-01 10:00:00+00:00"
SHEET = {"key": "llama-7b", "title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 100,
         "rows": ["queries"]}  # fmt: skip
POLICIES = {"variants": "same", "feedback": "at_once", "tries": 3, "follow_share": 0.5, "hints": True, "run": "after",
            "ticket_anonymous": True}  # fmt: skip
CONTENT = {"items": [SHEET, {**SHEET, "row_points": [["queries", 2]], "questions": [{"key": "q", "text": "?"}]}],
           "ticket": None, "wording": "w"}  # fmt: skip
LLAMA = {"model": "llama-7b", "tokens": 100, "decoder_tokens": None}

# Rows as the released migrations have them: table, then columns with their values. JSON stands as a list or object.
Rows = list[tuple[str, dict[str, Any]]]
FIRST: Rows = [
    ("learners", {"id": 7, "token_hash": hash_secret("visitor token"), "created_at": AT}),
    ("drafts", {"learner_id": 7, "sheet": "s/m/100", "answers": {"a": "1"}, "version": 10**14, "saved_at": AT}),
    ("attempts", {"id": 4, "learner_id": 7, "sheet": "s/m/100", "answers": {"a": "2"}, "score": 1.5, "out_of": 2,
                  "created_at": AT}),
    ("runs", {"id": "run", "sheet": "s/m/100", "answers": {}, "result": {"n": 1}, "problem": None, "created_at": AT}),
]  # fmt: skip
SECOND: Rows = [
    ("models", {"key": "cfg-" + "0" * 20, "name": "M", "config": "{}", "source": "pasted", "created_at": AT})
]
THIRD: Rows = [
    ("teachers", {"id": 3, "email": "ada@example.org", "name": "Ada", "password_hash": "x", "created_at": AT}),
    ("sessions", {"id": 1, "token_hash": "t1", "teacher_id": 3, "created_at": AT, "seen_at": AT, "ended_at": None}),
    *(("log", {"id": number, "at": AT, "who": who, "what": what, "object": about}) for number, who, what, about in (
        (1, "nobody", "sign-in refused", ""), (2, "teacher 3", "exported answers.csv", "course 5"),
        (3, "teacher 3", "name freed", "student 9"), (4, "teacher 33", "regraded 12", "activity 6"),
        (5, "terminal", "teacher add", ""), (8, "teacher 3", "of a later version", "thing"))),
    ("courses", {"id": 5, "title": "C", "time_zone": "UTC", "sample": False, "created_at": AT, "archived_at": None}),
    ("staff", {"course_id": 5, "teacher_id": 3, "role": "instructor"}),
    ("links", {"id": 2, "kind": "invite", "token_hash": hash_secret("link token"), "email": "", "course_id": 5,
               "role": "assistant", "expires_at": "2126-01-01 00:00:00+00:00", "used_at": None}),
    ("students", {"id": 9, "course_id": 5, "name": "Kim", "roster_key": "1", "resume_hash": "r", "joined_at": AT,
                  "created_at": AT}),
    ("seats", {"learner_id": 7, "course_id": 5, "student_id": 9, "created_at": AT}),
    ("activities", {"id": 6, "course_id": 5, "title": "A", "day": "2026-03-01", "join_code": "ABCDEF", "state": "open",
                    "policies": POLICIES, "opens_at": None, "closes_at": None, "created_at": AT}),
    ("revisions", {"id": 1, "activity_id": 6, "number": 1, "content": CONTENT, "created_at": AT}),
    ("attendance", {"activity_id": 6, "student_id": 9, "arrived_at": AT, "ticket_in": True}),
    ("work", {"student_id": 9, "activity_id": 6, "sheet": "llama-7b@1", "answers": {"a": "1"}, "version": 5,
              "variant": LLAMA, "saved_at": AT}),
    *(("tries", {"id": number, "student_id": 9, "activity_id": 6, "revision": 1, "item": item, "sheet": "llama-7b@1",
                 "client_id": f"c{number}", "variant": LLAMA, "answers": {"a": "1"}, "marks": {"a": "follows"},
                 "beliefs": ["whole-width"], "score": 0.5, "out_of": 1, "handed_in": item == 1, "created_at": AT})
      for number, item in ((20, 0), (21, 1))),
    ("ticket_answers", {"id": "x", "activity_id": 6, "question": "q", "text": "t", "student_id": None,
                        "day": "2026-03-01", "starred": True, "follow_up": False, "hidden": False}),
]  # fmt: skip
FOURTH: Rows = [
    ("spotlights", {"activity_id": 6, "item": 1, "belief": "whole-width", "drawn": True}),
    ("regrades", {"id": 1, "activity_id": 6, "teacher_id": 3, "at": AT}),
    ("old_marks", {"regrade_id": 1, "try_id": 20, "marks": {"a": "wrong"}, "beliefs": [], "score": 0, "out_of": 1}),
]  # fmt: skip
ROWS: dict[str, Rows] = {
    "0001": FIRST,
    "0002": [*FIRST, *SECOND],
    "0003": [*FIRST, *SECOND, *THIRD],
    "0004": [*FIRST, *SECOND, *THIRD, *FOURTH],
}


def write(url: str, revision: str) -> None:
    """A database at an earlier migration, with rows in each of its tables."""
    engine = open_engine(url)
    with migration_transaction(engine) as connection:
        upgrade(connection, revision)
        for table, row in ROWS[revision]:
            values = {n: json.dumps(v) if isinstance(v, list | dict) else v for n, v in row.items()}
            names = ", ".join(f":{name}" for name in values)
            connection.execute(sa.text(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({names})"), values)  # noqa: S608
            if "id" in row and isinstance(row["id"], int) and engine.dialect.name == "postgresql":
                connection.execute(sa.text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {row['id']})"))
        tables = set(sa.inspect(connection).get_table_names()) - {"alembic_version"}
    engine.dispose()
    assert tables == {table for table, _ in ROWS[revision]}


def counts(engine: sa.Engine) -> dict[str, int]:
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        return {name: len(connection.execute(sa.text(f"SELECT 1 FROM {name}")).all()) for name in tables}  # noqa: S608


def row_of(store: Store, table: str, **key: Any) -> dict[str, Any]:
    found = metadata.tables[table]
    with store.engine.connect() as connection:
        return dict(connection.execute(sa.select(found).filter_by(**key)).one()._mapping)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_an_earlier_version_keeps_every_row(
    bare_database_url: str, tmp_path: Path, revision: str
) -> None:
    """As many rows as were written, in the tables of today, and new rows get numbers after them."""
    write(bare_database_url, revision)
    store = Store(bare_database_url, tmp_path)
    assert sum(counts(store.engine).values()) == len(ROWS[revision]) + 1  # and that of alembic_version
    assert set(counts(store.engine)) == {*metadata.tables, "alembic_version"}
    visitor = store.find_visitor("visitor token")
    assert visitor
    assert store.add_visitor().id == 8
    draft, attempt, run = (
        store.find_draft(visitor, "s/m/100"),
        next(iter(store.latest_attempts(visitor, "s/m/100", 1)), None),
        store.find_run("run"),
    )
    assert draft
    assert attempt
    assert run
    assert (draft.answers, draft.version, attempt.answers, attempt.score, run.sheet_key, run.result) == (
        {"a": "1"}, 10**14, {"a": "2"}, 1.5, "s/m/100", {"n": 1},
    )  # fmt: skip
    store.close()


def test_what_people_did_in_classes_is_read_by_its_new_names(bare_database_url: str, tmp_path: Path) -> None:
    """Enrolments, drafts, attempts with sheets counted from 1, old marks, the spotlight, links and policies."""
    write(bare_database_url, "0004")
    store = Store(bare_database_url, tmp_path)
    found = store.activities.of_visitor("visitor token", 6)
    assert found
    activity, student = found.activity, found.student
    assert (activity.policies.feedback, activity.policies.max_attempts) == ("immediate", 3)
    first, second = store.classwork.attempts_of_activity(6)
    assert [first.sheet_number, second.sheet_number] == [1, 2]
    assert (first.sheet_key, first.misconceptions, first.marks) == ("llama-7b@1", ("whole-width",), {"a": "follows"})
    assert (first.marked_by, second.marked_by) == (None, "llama-7b@1")  # only the first was ever regraded
    [draft] = store.classwork.drafts_of_activity(6)
    assert (draft.sheet_key, draft.variant) == ("llama-7b@1", VariantSizes("llama-7b", 100))
    spotlight = store.live.spotlight(6)
    assert spotlight
    assert (spotlight.sheet_number, spotlight.misconception, spotlight.shows_drawing) == (2, "whole-width", True)
    assert store.regrades.old_marks(6, student.id)[first.id][0].graded.marks == {"a": "wrong"}
    link = store.people.find_link("link token")
    assert link
    assert link.role == "assistant"
    assert row_of(store, "ticket_answers", id="x")["day"] == date(2026, 3, 1)
    store.close()


def test_lists_of_pairs_become_tables(bare_database_url: str) -> None:
    """In worksheets and tickets, as an activity, a run and a regrade have them; what had no pairs stays as it was."""
    write(bare_database_url, "0004")
    engine = open_engine(bare_database_url)
    ticket = {"key": "classic", "title": "Bye", "instruction": "Pick.", "questions": [["why", "Why?"]]}
    misconception: dict[str, Any] = {"key": "own-x", "boxes": [["queries.rows", "d"]]}
    sheet = {**SHEET, "row_names": [], "row_hints": [["queries", "Hm"]], "misconceptions": [misconception]}
    content = json.dumps({"items": [sheet], "ticket": ticket, "wording": "w"})
    with migration_transaction(engine) as connection:
        upgrade(connection, "0011")
        connection.execute(sa.text("UPDATE revisions SET content = :content WHERE id = 1"), {"content": content})
        frozen = {"frozen": f'{{"content": {content}, "sheet": 1}}'}
        connection.execute(sa.text("UPDATE runs SET frozen = :frozen"), frozen)
        connection.execute(sa.text("UPDATE regrades SET definitions = :all"), {"all": f'{{"llama-7b@1": {content}}}'})
        upgrade(connection)
        columns = (
            metadata.tables[t].c[c]
            for t, c in (("revisions", "content"), ("runs", "frozen"), ("regrades", "definitions"))
        )
        kept, run, regrade = (connection.scalars(sa.select(column)).one() for column in columns)
    engine.dispose()
    assert (run, regrade) == ({"content": kept, "sheet": 1}, {"llama-7b@1": kept})
    assert kept["ticket"]["questions"] == [{"key": "why", "text": "Why?"}]
    misconception["boxes"] = {"queries.rows": "d"}
    assert kept["items"] == [
        {**sheet, "row_names": {}, "row_hints": {"queries": "Hm"}, "misconceptions": [misconception]}
    ]


def test_the_log_is_taken_apart(bare_database_url: str, tmp_path: Path) -> None:
    """Kind, id and detail get columns of their own; what nobody knows stays as it is."""
    write(bare_database_url, "0004")
    store = Store(bare_database_url, tmp_path)
    with store.engine.connect() as connection:
        names = ("id", "actor_kind", "actor_id", "action", "object_kind", "object_id", "detail")
        table = metadata.tables["audit_log"]
        rows = connection.execute(sa.select(*(table.c[name] for name in names)).order_by(table.c.id)).all()
    assert [tuple(row) for row in rows] == [
        (1, "nobody", None, "sign-in refused", "", None, ""),
        (2, "teacher", 3, "exported", "course", 5, "answers.csv"),
        (3, "teacher", 3, "student released", "student", 9, ""),
        (4, "teacher", 33, "regraded", "activity", 6, "12"),
        (5, "terminal", None, "teacher added", "", None, ""),
        (8, "teacher", 3, "of a later version", "thing", None, ""),
    ]
    since = datetime(2026, 1, 1, tzinfo=UTC)
    entries = store.audit_log.entries({"course": [5], "student": [9]}, since, 10)
    at = datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert entries == [
        AuditEntry(at, "teacher", 3, "student released", "student", 9, ""),
        AuditEntry(at, "teacher", 3, "exported", "course", 5, "answers.csv"),
    ]
    store.close()


def test_keys_and_indexes_are_named_after_their_tables(bare_database_url: str, tmp_path: Path) -> None:
    """Also those of tables that an earlier version made under another name.

    Only the primary key of a table that numbers its rows has no name on SQLite.
    """
    write(bare_database_url, "0004")
    store = Store(bare_database_url, tmp_path)
    with store.engine.connect() as connection:
        looked = sa.inspect(connection)
        for name, table in metadata.tables.items():
            foreign = looked.get_foreign_keys(name)
            assert {key["name"] for key in foreign} == {f"fk_{name}_{key['constrained_columns'][0]}" for key in foreign}
            nameless = connection.dialect.name == "sqlite" and table.dialect_options["sqlite"]["autoincrement"]
            assert looked.get_pk_constraint(name)["name"] == (None if nameless else f"pk_{name}")
            for kind, known in (("uq", looked.get_unique_constraints(name)), ("ix", looked.get_indexes(name))):
                own = [key for key in known if not key.get("duplicates_constraint")]
                assert all(str(key["name"]).startswith(f"{kind}_{name}_") for key in own)
    store.close()


def test_the_newest_migration_can_be_taken_back(bare_database_url: str, tmp_path: Path) -> None:
    """Down to 0004 every row stands as it was written; up again and the app opens it."""
    write(bare_database_url, "0004")
    engine = open_engine(bare_database_url)
    before = dump(engine)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        command.downgrade(config_on(connection), "0004")
    assert dump(engine) == before
    engine.dispose()
    Store(bare_database_url, tmp_path).close()


def test_every_migration_can_be_taken_back(bare_database_url: str, tmp_path: Path) -> None:
    """From the newest to no tables at all, and up again."""
    write(bare_database_url, "0004")
    engine = open_engine(bare_database_url)
    with migration_transaction(engine) as connection:
        upgrade(connection)
        command.downgrade(config_on(connection), "base")
        assert set(sa.inspect(connection).get_table_names()) == {"alembic_version"}
    engine.dispose()
    Store(bare_database_url, tmp_path).close()


MATERIAL = {"id": 2, "kind": "worksheet", "teacher_id": 3, "title": "W", "topic": "t", "model": "m", "version": 1,
            "share_hash": "s", "created_at": AT}  # fmt: skip


def insert(connection: sa.Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(f":{name}" for name in row)
    connection.execute(sa.text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({names})"), row)  # noqa: S608


def test_copying_tables_for_ids_changes_no_row_and_no_constraint(bare_database_url: str) -> None:
    """Where SQLite stops reusing ids: rows, columns, indexes, references and checks are as they were, up and down."""
    write(bare_database_url, "0004")
    engine = open_engine(bare_database_url)
    with migration_transaction(engine) as connection:
        upgrade(connection, "0008")
        insert(connection, "materials", MATERIAL)
    rows, tables = dump(engine), structure(engine)
    with migration_transaction(engine) as connection:
        upgrade(connection, "0009")
    assert {**dump(engine), "alembic_version": rows["alembic_version"]} == rows
    assert structure(engine) == tables
    with engine.begin() as connection, pytest.raises(sa.exc.IntegrityError):
        insert(connection, "materials", {**MATERIAL, "id": 3, "share_hash": None, "course_id": 5})
    with migration_transaction(engine) as connection:
        command.downgrade(config_on(connection), "0008")
    assert (dump(engine), structure(engine)) == (rows, tables)
    engine.dispose()


def structure(engine: sa.Engine) -> dict[str, list[str]]:
    """Columns, indexes and constraints of every table, without the names of primary keys."""
    with engine.connect() as connection:
        looked = sa.inspect(connection)
        return {
            name: sorted(
                str(part)
                for parts in (
                    looked.get_columns(name),
                    looked.get_indexes(name),
                    looked.get_unique_constraints(name),
                    looked.get_foreign_keys(name),
                    looked.get_check_constraints(name),
                    looked.get_pk_constraint(name)["constrained_columns"],
                )
                for part in parts
            )
            for name in looked.get_table_names()
        }


def test_ids_that_only_the_log_remembers_are_not_reused(tmp_path: Path) -> None:
    """On SQLite, where rows were deleted before this migration; the title of a deleted activity is no id."""
    url = f"sqlite:///{tmp_path / 'store.sqlite3'}"
    write(url, "0004")
    engine = open_engine(url)
    with migration_transaction(engine) as connection:
        upgrade(connection, "0008")
        insert(connection, "materials", MATERIAL)
        entry = {"at": AT, "actor_kind": "teacher", "actor_id": 90, "detail": ""}
        for action, kind, object_id, detail in (
            ("student removed", "course", 5, "student 40"),
            ("students merged", "student", 30, "student 39"),
            ("activity saved", "activity", 60, ""),
            ("activity deleted", "course", 5, "student 5000"),
            ("course deleted", "course", 70, ""),
            ("worksheet or ticket created", "material", 80, ""),
        ):
            about = {"action": action, "object_kind": kind, "object_id": object_id, "detail": detail}
            insert(connection, "audit_log", {**entry, **about})
    engine.dispose()
    store = Store(url, tmp_path)
    ada = store.people.add_teacher("new@example.org", "Ada")
    assert ada
    course = store.courses.add("New", "UTC", ada)
    student = store.roster.enrol_new_student(course, "Lou", store.add_visitor().id)[0]
    activity = store.activities.add(course, Plan("A", None, Policies()), Content((), None, ""))
    assert (ada.id, course.id, student.id, activity.id) == (91, 71, 41, 61)
    with store.engine.begin() as connection:
        insert(connection, "materials", {n: v for n, v in MATERIAL.items() if n not in ("id", "share_hash")})
        assert connection.scalar(sa.text("SELECT max(id) FROM materials")) == 81
    store.close()


def config_on(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(PROJECT / "app" / "store" / "migrations"))
    config.attributes["connection"] = connection
    return config


def dump(engine: sa.Engine) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, by column, and in the order of its first column."""
    with engine.connect() as connection:
        found = sa.MetaData()
        found.reflect(connection)
        return {
            name: [dict(row._mapping) for row in connection.execute(sa.select(t).order_by(next(iter(t.c))))]
            for name, t in found.tables.items()
        }


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_backup_of_an_earlier_version_is_restored(tmp_path: Path, store: Store, revision: str) -> None:
    """Written from a database that was never migrated, it comes back whole on either database of today."""
    url = f"sqlite:///{tmp_path / 'old.sqlite3'}"
    write(url, revision)
    old = open_engine(url)
    contents = write_backup(old, tmp_path / "backup")
    old.dispose()
    assert (contents.revision, contents.rows) == (revision, len(ROWS[revision]))
    restore_backup(store.engine, tmp_path / "backup")
    assert sum(counts(store.engine).values()) == len(ROWS[revision]) + 1
    assert store.find_visitor("visitor token")
    assert store.add_visitor().id == 8
