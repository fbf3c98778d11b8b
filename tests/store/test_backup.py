"""Backups: the same rows after the way from SQLite to PostgreSQL and back, of one moment, whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import random
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

from app import cli
from app.store import Store
from app.store.backup import BackupError, _restore_table, check_backup, restore_backup, write_backup
from app.store.database import migration_transaction, open_engine
from app.store.tables import (
    PASSING_TABLES,
    activities,
    attempts,
    audit_log,
    courses,
    metadata,
    students,
    visitors,
)

STUDENT_WORK = {"student_id": "students", "activity_id": "activities"}
Rows = dict[str, list[tuple[Any, ...]]]


def texts(chance: random.Random, longest: int) -> str:
    """Something people may type: quotes, line ends, other scripts, a half of nothing."""
    pieces = ["'", '"', "\n", "√d", "名前", "é", "\\", "%s", "{}", "=1+1", "🙂", " ", "a"]
    return "".join(chance.choice(pieces) for _ in range(chance.randrange(8)))[:longest] + str(chance.random())[:10]


MAKE: list[tuple[type[Any], Callable[[random.Random, Any], Any]]] = [
    (sa.JSON, lambda chance, _: {texts(chance, 20): [chance.random(), None, {"a": texts(chance, 9)}], "n": 10**12}),
    (sa.LargeBinary, lambda chance, _: chance.randbytes(20)),
    (sa.Boolean, lambda chance, _: chance.random() < 0.5),
    (sa.DateTime, lambda chance, _: datetime(2026, 3, 29, tzinfo=UTC) + timedelta(seconds=chance.randrange(10**7) / 7)),
    (sa.Date, lambda chance, _: date(2026, 1, 1) + timedelta(chance.randrange(500))),
    (sa.Float, lambda chance, _: chance.random() * 10 ** chance.randrange(-5, 9)),
    (sa.BigInteger, lambda chance, _: chance.randrange(10**15)),
    (sa.Integer, lambda chance, _: chance.randrange(10**9)),
    (sa.String, lambda chance, kind: texts(chance, (kind.length or 5000) - 10)[: kind.length]),
]


def value(chance: random.Random, column: sa.Column[Any], there: Rows) -> Any:
    """Something that a column can hold: what it refers to, nothing where that may be, else by its type."""
    if column.nullable and chance.random() < 0.3:
        return None
    for reference in column.foreign_keys:
        parent = reference.column
        return chance.choice(there[parent.table.name])[list(parent.table.columns).index(parent)]
    kind = column.type.impl if isinstance(column.type, sa.TypeDecorator) else column.type
    return next(make for known, make in MAKE if isinstance(kind, known))(chance, kind)


def allowed(chance: random.Random, table: sa.Table, row: dict[str, Any], there: Rows) -> dict[str, Any]:
    """What has to be otherwise in a row for the constraints of its table."""
    checks = {str(each.sqltext) for each in table.constraints if isinstance(each, sa.CheckConstraint)}
    words = (re.fullmatch(r"(\w+) IN \((.*)\)", check) for check in checks)
    fit = {found[1]: chance.choice(re.findall(r"'(.*?)'", found[2])) for found in words if found}
    if table.name == "materials":  # a course's or a teacher's, never both
        fit["course_id"] = None if row["teacher_id"] else there["courses"][0][0]
    if table.name == "version_models":
        fit |= zip(("material_id", "number"), chance.choice(there["material_versions"])[:2], strict=True)
    if table.name == "grade_changes":
        fit["points"] = chance.random() if fit["kind"] == "points" else None
    if table.name in ("drafts", "attempts"):  # a visitor's, or a student's in an activity
        in_class = {name: chance.choice(there[kind])[0] for name, kind in STUDENT_WORK.items()}
        if table.name == "attempts":
            in_class["sheet_number"], in_class["activity_id"], in_class["revision"], *_ = chance.choice(
                there["revisions"]
            )
        visitor_id = chance.choice(there["visitors"])[0] if chance.random() < 0.5 else None
        fit |= {"visitor_id": visitor_id} | (dict.fromkeys(in_class) if visitor_id else in_class)
    if table.name == "attempts":
        fit["score"] = chance.random() * row["out_of"]
    return fit


def fill(store: Store, seed: int) -> None:
    """Rows in every table there is, whatever the newest migration has added, with numbers that have gaps."""
    chance, there = random.Random(seed), Rows()  # noqa: S311 - so that it can be repeated
    for table in metadata.sorted_tables:
        rows = list[dict[str, Any]]()
        for _ in range(12):
            row = {column.name: value(chance, column, there) for column in table.columns}
            row |= allowed(chance, table, row, there)
            keys = [tuple(row[c.name] for c in table.primary_key.columns)]
            if keys[0] not in [tuple(old[c.name] for c in table.primary_key.columns) for old in rows]:
                rows.append(row)
        with store.engine.begin() as connection:
            connection.execute(sa.insert(table), rows)
        there[table.name] = [tuple(row.values()) for row in rows]


def everything(store: Store) -> Rows:
    """Every row that a backup keeps, as the app reads it."""
    with store.engine.connect() as connection:
        found = {
            table.name: connection.execute(sa.select(table).order_by(*table.primary_key.columns)).all()
            for table in metadata.sorted_tables
            if table.name not in PASSING_TABLES
        }
    return {name: [tuple(in_utc(value) for value in row) for row in rows] for name, rows in found.items()}


def in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


@pytest.fixture
def other(new_postgres_database: str, tmp_path: Path) -> Iterator[Store]:
    """A second database, on PostgreSQL."""
    opened = Store(new_postgres_database, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Store]:
    opened = Store(f"sqlite:///{tmp_path / 'one.sqlite3'}", tmp_path)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_row_comes_back_by_way_of_the_other_database(
    sqlite: Store, other: Store, tmp_path: Path, seed: int
) -> None:
    fill(sqlite, seed)
    before = everything(sqlite)
    assert all(len(rows) > 1 for rows in before.values())
    contents = write_backup(sqlite.engine, tmp_path / "first")
    assert contents.rows == sum(map(len, before.values()))
    restore_backup(other.engine, tmp_path / "first")
    assert everything(other) == before
    write_backup(other.engine, tmp_path / "second")
    restore_backup(open_engine(f"sqlite:///{tmp_path / 'new.sqlite3'}"), tmp_path / "second")
    back = Store(f"sqlite:///{tmp_path / 'new.sqlite3'}", tmp_path)
    assert everything(back) == before
    back.close()


def test_what_comes_after_a_restore_gets_numbers_of_its_own(store: Store, tmp_path: Path) -> None:
    for _ in range(5):
        store.add_visitor()
    write_backup(store.engine, tmp_path / "kept")
    restore_backup(store.engine, tmp_path / "kept", replace=True)
    assert store.add_visitor().id == 6


@pytest.mark.slow
def test_the_id_of_a_deleted_row_is_not_reused_after_a_restore(sqlite: Store, other: Store, tmp_path: Path) -> None:
    for _ in range(5):
        sqlite.add_visitor()
    with sqlite.engine.begin() as connection:
        connection.execute(sa.delete(visitors).where(visitors.c.id > 3))
    write_backup(sqlite.engine, tmp_path / "first")
    restore_backup(other.engine, tmp_path / "first")
    write_backup(other.engine, tmp_path / "second")
    restore_backup(sqlite.engine, tmp_path / "second", replace=True)
    assert [store.add_visitor().id for store in (sqlite, other)] == [6, 6]


def test_a_backup_is_of_one_moment(store: Store, tmp_path: Path) -> None:
    store.add_visitor()
    written = list[str]()

    def add_both(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "FROM visitors" in statement and not written:
            written.append(statement)
            store.people.add_teacher("ada@example.org", "Ada")  # a table that is read later
            store.add_visitor()

    sa.event.listen(store.engine, "after_cursor_execute", add_both)
    contents = write_backup(store.engine, tmp_path / "kept")
    sa.event.remove(store.engine, "after_cursor_execute", add_both)
    assert written
    assert (contents.tables["visitors"].rows, contents.tables["teachers"].rows) == (1, 0)
    assert len(everything(store)["visitors"]) == 2
    assert len(everything(store)["teachers"]) == 1


def test_a_backup_is_for_its_owner_and_has_its_name_when_it_is_whole(sqlite: Store, tmp_path: Path) -> None:
    path = tmp_path / "out" / "kept"
    path.parent.mkdir()
    write_backup(sqlite.engine, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    yesterday = path.read_bytes()
    with sqlite.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999_later'"))
    with pytest.raises(BackupError, match="newer"):
        write_backup(sqlite.engine, path)
    assert path.read_bytes() == yesterday
    assert list(path.parent.iterdir()) == [path]


def test_data_is_not_overwritten_unless_that_is_said(store: Store, tmp_path: Path) -> None:
    write_backup(store.engine, tmp_path / "kept")
    restore_backup(store.engine, tmp_path / "kept")
    ada = store.people.add_teacher("ada@example.org", "Ada")
    with pytest.raises(BackupError, match="not-empty"):
        restore_backup(store.engine, tmp_path / "kept")
    assert store.people.find_teacher("ada@example.org") == ada
    restore_backup(store.engine, tmp_path / "kept", replace=True)
    assert store.people.find_teacher("ada@example.org") is None


def spoilt(path: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """A backup with one of its files changed."""
    other = path.with_name("spoilt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            new.writestr(member, change(data) if member == name else data)
    return other


def with_value(key: str, value: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), key: value}).encode()


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("tables/visitors.jsonl", lambda data: data[:-2], "damaged"),
        ("tables/visitors.jsonl", lambda data: data + data.splitlines(keepends=True)[-1], "damaged"),
        ("backup.json", lambda data: b"{", "no-backup"),
        ("backup.json", lambda data: b"[]", "no-backup"),
        ("backup.json", with_value("format", "another 1"), "no-backup"),
        ("backup.json", with_value("revision", "9999_later"), "newer"),
        ("backup.json", with_value("revision", ["0001"]), "newer"),
        ("backup.json", with_value("made_at", 5), "no-backup"),
        ("backup.json", lambda data: b"[" * 9000, "no-backup"),
        ("backup.json", with_value("tables", {}), "misfit"),
        ("backup.json", with_value("tables", {"elsewhere": {"rows": 1, "sha256": ""}}), "no-backup"),
    ],
)
def test_a_file_that_is_no_whole_backup_changes_nothing(
    sqlite: Store, tmp_path: Path, name: str, change: Callable[[bytes], bytes], reason: str
) -> None:
    fill(sqlite, 7)
    before = everything(sqlite)
    write_backup(sqlite.engine, tmp_path / "kept")
    with pytest.raises(BackupError, match=reason):
        restore_backup(sqlite.engine, spoilt(tmp_path / "kept", name, change), replace=True)
    assert everything(sqlite) == before


NAMES = b'["id","token_hash","created_at"]\n'


MISFITS = {
    "empty": b"",
    "broken": b"{\n",
    "unnamed": b"[1]\n",
    "short": NAMES + b"[1]\n",
    "no time": NAMES + b'[1,"t","soon"]\n',
    "null": NAMES + b'[1,null,"2026-01-01T00:00:00"]\n',
    "deep": b"[" * 100_000 + b"\n",
    "objects": NAMES + b"[{},[],{}]\n",
    "number": NAMES + b"7\n",
}


@pytest.mark.slow
def test_rows_that_do_not_fit_are_told_and_change_nothing(store: Store, tmp_path: Path) -> None:
    fill(store, 7)
    before = everything(store)
    write_backup(store.engine, tmp_path / "kept")
    for kind, rows in MISFITS.items():
        count = {"rows": rows.count(b"\n") - 1, "sha256": hashlib.sha256(rows).hexdigest(), "last_id": 0}

        def with_hash(data: bytes, count: Mapping[str, object] = count) -> bytes:
            listing = json.loads(data)
            return json.dumps({**listing, "tables": {**listing["tables"], "visitors": count}}).encode()

        changed = spoilt(tmp_path / "kept", "tables/visitors.jsonl", lambda _, rows=rows: rows)  # type: ignore[misc]
        changed = spoilt(changed.rename(tmp_path / "changed"), "backup.json", with_hash)
        with pytest.raises(BackupError) as refused:
            restore_backup(store.engine, changed, replace=True)
        assert (kind, refused.match("misfit")) == (kind, True)
        assert everything(store) == before, kind


def test_a_line_without_an_end_does_not_fill_the_memory(
    sqlite: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite, 7)
    write_backup(sqlite.engine, tmp_path / "kept")
    monkeypatch.setattr("app.store.backup.MAX_LINE_BYTES", 20)
    with pytest.raises(BackupError, match="damaged"):
        check_backup(tmp_path / "kept")


def test_a_backup_with_a_password_says_so(sqlite: Store, tmp_path: Path) -> None:
    write_backup(sqlite.engine, tmp_path / "kept")
    data = (tmp_path / "kept").read_bytes()
    entries = [match.start() for match in re.finditer(b"PK\x01\x02", data)]  # of the files, at the end of the archive
    for encrypted in (entries, entries[:1]):
        changed = bytearray(data)
        for at in encrypted:
            changed[at + 8] |= 1  # the flag of a password
        (tmp_path / "locked").write_bytes(changed)
        with pytest.raises(BackupError, match="encrypted"):
            restore_backup(sqlite.engine, tmp_path / "locked", replace=True)


def test_bytes_that_change_on_disk_are_noticed(sqlite: Store, tmp_path: Path) -> None:
    fill(sqlite, 1)
    contents = write_backup(sqlite.engine, tmp_path / "kept")
    data = (tmp_path / "kept").read_bytes()
    chance, noticed = random.Random(1), 0  # noqa: S311 - so that it can be repeated
    for at in (*(chance.randrange(len(data)) for _ in range(60)), None):
        changed = data[: len(data) // 2] if at is None else data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        (tmp_path / "changed").write_bytes(changed)
        try:
            same = check_backup(tmp_path / "changed")
        except BackupError:
            noticed += 1
        else:
            assert same == contents
    assert noticed > 45


def test_a_restore_that_breaks_in_the_middle_leaves_what_was_there(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 3)
    before = everything(store)
    write_backup(store.engine, tmp_path / "kept")

    def restore_some(connection: sa.Connection, archive: Any, table: sa.Table, contents: Any) -> None:
        if table.name == "audit_log":
            raise OSError(errno.ENOSPC, "disk full")
        _restore_table(connection, archive, table, contents)

    monkeypatch.setattr("app.store.backup._restore_table", restore_some)
    with pytest.raises(OSError, match="disk full"):
        restore_backup(store.engine, tmp_path / "kept", replace=True)
    assert everything(store) == before


def test_a_table_made_anew_by_a_migration_keeps_what_refers_to_it(bare_database_url: str, tmp_path: Path) -> None:
    store = Store(bare_database_url, tmp_path)
    fill(store, 5)
    before = everything(store)
    with migration_transaction(store.engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("courses", recreate="auto") as batch:
            batch.alter_column("title", type_=sa.String(300))
    assert everything(store) == before
    assert all(before[table.name] for table in (courses, students, activities, attempts, audit_log))
    with store.engine.begin() as connection, pytest.raises(sa.exc.IntegrityError):
        connection.execute(sa.insert(students).values(course_id=10, name="x", created_at=datetime.now(UTC)))
    store.close()


# In the terminal


def test_the_terminal_backs_up_and_restores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path / "one"))
    cli.main(["teacher", "add", "ada@example.org"])
    cli.main(["backup", str(tmp_path / "kept")])
    assert "rows" in capsys.readouterr().out
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path / "two"))
    cli.main(["restore", str(tmp_path / "kept")])
    moved = Store(f"sqlite:///{tmp_path / 'two' / 'attention-shapes.sqlite3'}", tmp_path / "two")
    assert moved.people.find_teacher("ada@example.org")
    moved.close()
    capsys.readouterr()
    for wrong, said in (
        (["restore", str(tmp_path / "kept")], "--replace"),
        (["restore", str(tmp_path / "nothing")], "cannot be read"),
        (["restore", str(tmp_path / "two" / "attention-shapes.sqlite3")], "is not a backup"),
        (["backup", str(tmp_path / "no folder" / "kept")], "cannot be written"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(wrong)
        problem = capsys.readouterr().err
        assert ended.value.code == 2
        assert said in problem
        assert problem.count("\n") == 1
    cli.main(["restore", "--replace", str(tmp_path / "kept")])


def test_there_is_nothing_to_back_up_before_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path / "none"))
    with pytest.raises(SystemExit):
        cli.main(["backup", str(tmp_path / "kept")])
    assert "nothing" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()
