"""The open database: queries on visitors, practice, runs and imported models, and the groups of all other queries."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.activities.content import Snapshot
from app.activities.work import Answers, MergedBoxes, Stamp, merge_boxes
from app.secret_key import SecretKey, read_or_make_secret

from .activities import Activities, keep_snapshots
from .audit import AuditLog
from .classwork import Classwork
from .courses import Courses
from .database import migration_transaction, open_engine, prepare_tables
from .exit_tickets import ExitTickets
from .grades import Grades
from .jobs import JobTable
from .limits import check_room, tolerated_failure
from .live import Live
from .materials import Materials
from .people import People
from .queries import Clock, OpenDatabase, QueryBase, columns, from_row, hash_secret, utc_now
from .regrades import Regrades
from .roster import Roster
from .sample_data import SampleData
from .student_merge import StudentMerge
from .tables import MAX_PROBLEM, models, practice_attempts, practice_drafts, runs, visitors

MODEL_USE_NOTED_AFTER = timedelta(days=1)
_MODEL_KEY = re.compile(r"cfg-[0-9a-f]{20}")


@dataclass(frozen=True)
class Visitor:
    """An anonymous browser. The token is in its cookie; the database has only the token's hash."""

    id: int
    token: str


@dataclass(frozen=True)
class PracticeDraft:
    """What is typed on a practice sheet, as it is stored or as a page sent it; the fields are those of a ClassDraft."""

    answers: Answers
    version: int
    changed: Mapping[str, Stamp] | None = None
    pages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PracticeAttempt:
    """One check of a practice sheet: the texts as typed, and the score out of as many points as there are blanks."""

    answers: Answers
    score: float
    out_of: int

    @property
    def handed_in(self) -> bool:
        """Never: that is for classes."""
        return False

    @property
    def client_id(self) -> str:
        """None: an attempt that is sent again counts again."""
        return ""


@dataclass(frozen=True)
class PracticeSheetWork:
    """A visitor, what they have typed on a practice sheet, and their last attempt on it."""

    visitor: Visitor
    draft: PracticeDraft | None
    last: PracticeAttempt | None


@dataclass(frozen=True)
class Run:
    """One run of a head: its sheet, the answers shown beside it, and a result or a problem once it has finished."""

    id: str
    answers: Answers
    frozen: Mapping[str, Any]  # the sheet as it was; see app/classes/frozen/frozen_run.py
    result: dict[str, Any] | None
    problem: str | None
    created_at: datetime
    activity_id: int | None = None  # None in practice

    @property
    def finished(self) -> bool:
        return self.result is not None or self.problem is not None


@dataclass(frozen=True)
class StoredModel:
    """An imported model: its config as JSON text, and its source: "pasted", "file" or its name on the Hub."""

    key: str
    name: str
    config: str
    source: str


_MADE, _LAST = practice_attempts.alias(), practice_attempts.alias()
_IS_LAST = _LAST.c.id == (
    sa.select(sa.func.max(_MADE.c.id))
    .where(_MADE.c.visitor_id == visitors.c.id, _MADE.c.sheet_key == sa.bindparam("sheet_key"))
    .scalar_subquery()
)
_ON_PRACTICE_SHEET = sa.and_(
    practice_drafts.c.visitor_id == visitors.c.id, practice_drafts.c.sheet_key == sa.bindparam("sheet_key")
)
# Built once: building a statement takes as long as executing it.
_VISITOR_AT_WORK = (
    sa.select(
        visitors.c.id,
        *columns(_LAST, PracticeAttempt, "last__"),
        *(practice_drafts.c[name] for name in ("answers", "version", "stamps")),
    )
    .select_from(visitors.outerjoin(practice_drafts, _ON_PRACTICE_SHEET).outerjoin(_LAST, _IS_LAST))
    .where(visitors.c.token_hash == sa.bindparam("token_hash"))
)


class Store(QueryBase):
    """An open database with the newest tables.

    `folder` is the data folder, with the secret key, which is made where there is none; raises SecretFileError.
    `workers` are the processes that share the connections that the server allows. `clock` gives the times that are
    stored.

    The store itself has the queries on visitors, practice, runs and imported models. The others are grouped:
    `store.roster.students(course)`, `store.classwork.save(key, draft)` and so on. `transaction()` spans all groups.
    """

    def __init__(self, url: str, folder: Path, workers: int = 1, clock: Clock = utc_now) -> None:
        engine = open_engine(url, workers)
        database = OpenDatabase.of(engine, clock)
        super().__init__(database)
        self.key = SecretKey(read_or_make_secret(folder))
        try:
            with migration_transaction(engine) as connection:
                prepare_tables(connection)
        except BaseException:
            engine.dispose()
            raise
        self.people = People(database)
        self.courses = Courses(database)
        self.roster = Roster(database, self.key)
        self.student_merge = StudentMerge(database)
        self.activities = Activities(database)
        self.classwork = Classwork(database)
        self.exit_tickets = ExitTickets(database, self.key)
        self.live = Live(database)
        self.materials = Materials(database)
        self.regrades = Regrades(database)
        self.grades = Grades(database)
        self.audit_log = AuditLog(database)
        self.jobs = JobTable(database)
        self.sample_data = SampleData(database)

    def close(self) -> None:
        """Close every connection, and the file by which processes take turns."""
        self.engine.dispose()
        if self._commits:
            self._commits.lock.close()

    def check_writable(self) -> None:
        """Raise SQLAlchemyError if the database takes nothing in; nothing is written.

        An UPDATE that no row meets needs all that a write needs, but for room. An SQLite file must have room left; how
        much PostgreSQL has, a client cannot ask.
        """
        self._execute(sa.update(visitors).where(sa.false()).values(token_hash=""))
        check_room(self.engine)

    # Visitors and practice

    def visitor_at_work(self, token: str, sheet_key: str) -> PracticeSheetWork | None:
        """The visitor with this token and their work on a practice sheet, in one query; None if there is none."""
        row = self._fetch_one(_VISITOR_AT_WORK, token_hash=hash_secret(token), sheet_key=sheet_key)
        return row and _practice_work(row, token)

    def add_visitor(self, token: str = "") -> Visitor:
        """Add a visitor with this token, or return the one that has it; "" makes a new random token of 256 bits."""
        token = token or secrets.token_urlsafe(32)
        insert = self._insert_into(visitors).values(token_hash=hash_secret(token), created_at=self.now())
        unless_known = insert.on_conflict_do_nothing(index_elements=[visitors.c.token_hash])
        with self.transaction() as connection:
            new_id = connection.scalar(unless_known.returning(visitors.c.id))
        visitor = Visitor(new_id, token) if new_id else self.find_visitor(token)
        assert visitor is not None  # noqa: S101 - the token was known before, or has just been inserted
        return visitor

    def find_visitor(self, token: str) -> Visitor | None:
        """The visitor with this token; None if there is none."""
        row = self._fetch_one(sa.select(visitors.c.id).where(visitors.c.token_hash == hash_secret(token)))
        return Visitor(row.id, token) if row else None

    def save_draft(
        self, visitor: Visitor, sheet_key: str, draft: PracticeDraft, seen: PracticeDraft | None = None
    ) -> PracticeDraft:
        """Merge a draft that a page sent into the stored one; return what is stored, durable once this returns.

        `seen` is the stored draft if this request has read it. If the draft brings nothing new, nothing is stored.
        """
        stored = seen or self.find_draft(visitor, sheet_key)
        while True:
            before = MergedBoxes(stored.answers, stored.pages) if stored else None
            merged = merge_boxes(before, draft.answers, draft.changed)
            if merged is None:
                return stored or draft
            version = stored.version + 1 if stored else 1
            row = {"visitor_id": visitor.id, "sheet_key": sheet_key, "answers": dict(merged.answers),
                   "version": version, "saved_at": self.now(), "stamps": dict(merged.pages)}  # fmt: skip
            if self._execute(self._draft_upsert, row):
                return PracticeDraft(merged.answers, version, pages=merged.pages)
            stored = self.find_draft(visitor, sheet_key)  # another save came first

    def keep_practice(
        self,
        visitor: Visitor,
        sheet_key: str,
        draft: PracticeDraft,
        seen: PracticeDraft | None,
        attempt: PracticeAttempt | None,
    ) -> PracticeDraft:
        """Save a draft as `save_draft` does and return it, in one transaction with `attempt` unless that is None."""
        if attempt is None:
            return self.save_draft(visitor, sheet_key, draft, seen)

        def write(_connection: sa.Connection) -> PracticeDraft:
            stored = self.save_draft(visitor, sheet_key, draft, seen)
            self.record_attempt(visitor, sheet_key, attempt)
            return stored

        return self.in_transaction(write)

    @cached_property
    def _draft_upsert(self) -> sa.Insert:
        """The INSERT of a draft that overwrites a stored one, if that has the version before; built once."""
        insert = self._insert_into(practice_drafts)
        values = {name: insert.excluded[name] for name in ("answers", "version", "saved_at", "stamps")}
        key = [practice_drafts.c.visitor_id, practice_drafts.c.sheet_key]
        next_version = practice_drafts.c.version == insert.excluded.version - 1
        upsert = insert.on_conflict_do_update(index_elements=key, set_=values, where=next_version)
        return upsert.execution_options(preserve_rowcount=True)  # which SQLAlchemy forgets for an INSERT

    def find_draft(self, visitor: Visitor, sheet_key: str) -> PracticeDraft | None:
        """What a visitor has typed on a practice sheet; None before the first save."""
        this = (practice_drafts.c.visitor_id == visitor.id, practice_drafts.c.sheet_key == sheet_key)
        shown = (practice_drafts.c.answers, practice_drafts.c.version, practice_drafts.c.stamps)
        row = self._fetch_one(sa.select(*shown).where(*this))
        return PracticeDraft(row.answers, row.version, pages=row.stamps or {}) if row else None

    def record_attempt(self, visitor: Visitor, sheet_key: str, attempt: PracticeAttempt) -> None:
        """Store one more attempt of a visitor on a practice sheet."""
        row = {"visitor_id": visitor.id, "sheet_key": sheet_key, "answers": dict(attempt.answers),
               "score": attempt.score, "out_of": attempt.out_of, "created_at": self.now()}  # fmt: skip
        self._execute(sa.insert(practice_attempts).values(row))

    def latest_attempts(self, visitor: Visitor, sheet_key: str, limit: int) -> list[PracticeAttempt]:
        """The newest attempts of a visitor on a practice sheet, newest first, `limit` at most."""
        query = (
            sa.select(*columns(practice_attempts, PracticeAttempt))
            .where(practice_attempts.c.visitor_id == visitor.id, practice_attempts.c.sheet_key == sheet_key)
            .order_by(practice_attempts.c.id.desc())
            .limit(limit)
        )
        return [from_row(PracticeAttempt, row) for row in self._fetch_all(query)]

    # Runs of a head

    def new_run(self, answers: Answers, frozen: Mapping[str, Any], activity_id: int | None = None) -> Run:
        """A run that has not finished, to be stored by `add_run`; `frozen` is what it stores of its sheet.

        Its id is 96 random bits, since knowing it is enough to see the run.
        """
        return Run(secrets.token_urlsafe(12), answers, frozen, None, None, self.now(), activity_id)

    def add_run(self, run: Run, snapshots: Iterable[Snapshot] = ()) -> Run:
        """Store a new run, and return it; `snapshots` are the texts that its `frozen` names."""
        with self.transaction() as connection:
            keep_snapshots(connection, self._insert_into, snapshots, run.created_at)
            row = {name: value for name, value in vars(run).items() if value is not None}
            connection.execute(sa.insert(runs).values(row))
        return run

    def finish_run(self, run_id: str, result: Mapping[str, Any] | None, problem: str | None = None) -> None:
        """Store that a run has finished: its result, or None and the sentence that says why there is none.

        The sentence is cut after 500 characters.
        """
        values = {"result": None if result is None else dict(result), "problem": problem and problem[:MAX_PROBLEM]}
        self._execute(sa.update(runs).where(runs.c.id == run_id).values(**values))

    def find_run(self, run_id: str) -> Run | None:
        """The run with that id, finished or not; None if there is none."""
        if "\0" in run_id:  # no id has it, and PostgreSQL refuses the query
            return None
        row = self._fetch_one(sa.select(*columns(runs, Run)).where(runs.c.id == run_id))
        return from_row(Run, row) if row else None

    # Imported models

    def keep_model(self, name: str, config: Any, source: str, given_name: str = "") -> StoredModel:
        """Store a parsed config.json, and return the model with its key: a hash of the config and of the given name.

        One that is stored already keeps the name and source of its first import. The name is cut after 100 characters,
        the source after 200.
        """
        text = _config_text(config)
        key = _model_key(f"{text} {given_name}" if given_name else text)
        row = {"key": key, "name": name[:100], "config": text, "source": source[:200], "created_at": self.now()}
        self._execute(self._insert_into(models).values(row).on_conflict_do_nothing(index_elements=[models.c.key]))
        return self.find_model(key) or StoredModel(key, name, text, source)

    def find_config(self, config: Any) -> StoredModel | None:
        """The imported model that was stored with exactly this config and no given name; None if there is none."""
        return self.find_model(_model_key(_config_text(config)))

    def find_model(self, key: str) -> StoredModel | None:
        """The imported model with that key; None if there is none.

        A key that is not "cfg-" and 20 hexadecimal digits is not looked up.
        """
        if not _MODEL_KEY.fullmatch(key):
            return None
        query = sa.select(*columns(models, StoredModel), models.c.used_at).where(models.c.key == key)
        row = self._fetch_one(query)
        if row is None:
            return None
        self._note_use(key, row.used_at)
        return from_row(StoredModel, row)

    def _note_use(self, key: str, used_at: datetime | None) -> None:
        """Note that an imported model is in use, once a day; a database that is full or read-only goes on without."""
        if used_at is None or self.now() - used_at > MODEL_USE_NOTED_AFTER:
            with tolerated_failure():
                self._execute(sa.update(models).where(models.c.key == key).values(used_at=self.now()))

    def model_keys(self, prefix: str) -> list[str]:
        """The keys of imported models that begin with a prefix, in any order, 100 at most."""
        query = sa.select(models.c.key).where(models.c.key.startswith(prefix, autoescape=True)).limit(100)
        return [row.key for row in self._fetch_all(query)]


def _practice_work(row: Any, token: str) -> PracticeSheetWork:
    """The work of a row of _VISITOR_AT_WORK."""
    draft = None if row.version is None else PracticeDraft(row.answers, row.version, pages=row.stamps or {})
    last = None if row.last__score is None else from_row(PracticeAttempt, row, "last__")
    return PracticeSheetWork(Visitor(row.id, token), draft, last)


def _config_text(config: Any) -> str:
    """A config as it is stored: sorted, in ASCII, without spaces."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def _model_key(text: str) -> str:
    return f"cfg-{hash_secret(text)[:20]}"
