"""The named questions the app asks of its database. SQLite and PostgreSQL answer them alike."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from .activities import Activities
from .audit import AuditLog
from .classwork import Classwork
from .courses import Courses
from .database import migrating, open_engine, upgrade
from .live import Live
from .people import People
from .questions import Questions, Turn, hashed, now
from .regrades import Regrades
from .samples import Samples
from .tables import models, practice_attempts, practice_drafts, runs, visitors

Answers = Mapping[str, str]
_MODEL_KEY = re.compile(r"cfg-[0-9a-f]{20}")


@dataclass(frozen=True)
class Visitor:
    """Someone who works in one browser; the token is in their cookie, only its hash is stored."""

    id: int
    token: str


@dataclass(frozen=True)
class PracticeDraft:
    """What stands in the boxes of one sheet, as typed; versions grow with the browser's clock."""

    answers: Answers
    version: int


@dataclass(frozen=True)
class PracticeAttempt:
    """One check of a practice sheet: the texts as typed, and the score out of as many points as there are boxes."""

    answers: Answers
    score: float
    out_of: int


@dataclass(frozen=True)
class Run:
    """One press of "Run this head": its sheet, the answers beside it, and a result or a problem once there is one."""

    id: str
    sheet: str
    answers: Answers
    result: dict[str, Any] | None
    problem: str | None
    created_at: datetime

    @property
    def finished(self) -> bool:
        return self.result is not None or self.problem is not None

    @property
    def seconds_waiting(self) -> float:
        return (datetime.now(UTC) - self.created_at).total_seconds()


@dataclass(frozen=True)
class KeptModel:
    """An imported model: its config as JSON text, and whether that was "pasted", a "file", or which name on the Hub."""

    key: str
    name: str
    config: str
    source: str


class Store(Questions):
    """An open database, brought to the newest tables.

    Practice is asked of the store itself, a class of its `people`, `courses`, `activities`, `classwork`,
    `live`, `regrades` and `audit_log`; `samples` fills sample courses.
    """

    def __init__(self, url: str) -> None:
        engine = open_engine(url)
        super().__init__(engine, Turn() if engine.dialect.name == "sqlite" else None)
        with migrating(engine) as connection:
            upgrade(connection)
        parts = self.engine, self._turn
        self.people, self.courses = People(*parts), Courses(*parts)
        self.activities, self.classwork = Activities(*parts), Classwork(*parts)
        self.samples = Samples(*parts)
        self.live, self.regrades = Live(*parts), Regrades(*parts)
        self.audit_log = AuditLog(*parts)

    def close(self) -> None:
        self.engine.dispose()

    def ping(self) -> None:
        """Ask the database the least there is to ask; raises SQLAlchemyError if it does not answer."""
        self._one(sa.select(1))

    def add_visitor(self, token: str = "") -> Visitor:
        """A new visitor with a token of 256 random bits, or the one of that token, new or not."""
        token = token or secrets.token_urlsafe(32)
        insert = self._insert(visitors).values(token_hash=hashed(token), created_at=now())
        new = insert.on_conflict_do_nothing(index_elements=[visitors.c.token_hash]).returning(visitors.c.id)
        with self._writing() as connection:
            added = connection.scalar(new)
        found = Visitor(added, token) if added else self.find_visitor(token)
        assert found is not None  # noqa: S101 - whoever was there before is there
        return found

    def find_visitor(self, token: str) -> Visitor | None:
        row = self._one(sa.select(visitors.c.id).where(visitors.c.token_hash == hashed(token)))
        return Visitor(row[0], token) if row else None

    def save_draft(self, visitor: Visitor, sheet: str, draft: PracticeDraft) -> None:
        """Keep what stands in the boxes, unless something newer is kept already; durable once this returns."""
        values = {"answers": dict(draft.answers), "version": draft.version, "saved_at": now()}
        insert = self._insert(practice_drafts).values(visitor_id=visitor.id, sheet_key=sheet, **values)
        upsert = insert.on_conflict_do_update(
            index_elements=[practice_drafts.c.visitor_id, practice_drafts.c.sheet_key],
            set_=values,
            where=practice_drafts.c.version <= draft.version,
        )
        self._write(upsert)

    def find_draft(self, visitor: Visitor, sheet: str) -> PracticeDraft | None:
        query = sa.select(practice_drafts.c.answers, practice_drafts.c.version).where(
            practice_drafts.c.visitor_id == visitor.id, practice_drafts.c.sheet_key == sheet
        )
        row = self._one(query)
        return PracticeDraft(*row) if row else None

    def record_attempt(self, visitor: Visitor, sheet: str, attempt: PracticeAttempt) -> None:
        """Keep one attempt for good."""
        row = {"answers": dict(attempt.answers), "score": attempt.score, "out_of": attempt.out_of, "created_at": now()}
        self._write(sa.insert(practice_attempts).values(visitor_id=visitor.id, sheet_key=sheet, **row))

    def last_attempt(self, visitor: Visitor, sheet: str) -> PracticeAttempt | None:
        return next(iter(self.latest_attempts(visitor, sheet, 1)), None)

    def latest_attempts(self, visitor: Visitor, sheet: str, most: int) -> list[PracticeAttempt]:
        """The newest attempts on a sheet, newest first, so many at most."""
        query = (
            sa.select(practice_attempts.c.answers, practice_attempts.c.score, practice_attempts.c.out_of)
            .where(practice_attempts.c.visitor_id == visitor.id, practice_attempts.c.sheet_key == sheet)
            .order_by(practice_attempts.c.id.desc())
            .limit(most)
        )
        return [PracticeAttempt(*row) for row in self._all(query)]

    def add_run(self, sheet: str, answers: Answers) -> Run:
        """A run that has not finished; its id cannot be guessed, since whoever has it may look."""
        run = Run(secrets.token_urlsafe(12), sheet, answers, None, None, now())
        row = {"id": run.id, "sheet_key": sheet, "answers": dict(answers), "created_at": run.created_at}
        self._write(sa.insert(runs).values(row))
        return run

    def finish_run(self, run_id: str, result: Mapping[str, Any] | None, problem: str | None = None) -> None:
        values = {"result": None if result is None else dict(result), "problem": problem}
        self._write(sa.update(runs).where(runs.c.id == run_id).values(**values))

    def find_run(self, run_id: str) -> Run | None:
        if "\0" in run_id:  # no id has one, and PostgreSQL refuses the question
            return None
        row = self._one(sa.select(runs).where(runs.c.id == run_id))
        if row is None:
            return None
        created = row.created_at if row.created_at.tzinfo else row.created_at.replace(tzinfo=UTC)
        return Run(row.id, row.sheet_key, row.answers, row.result, row.problem, created)

    def keep_model(self, name: str, config: Any, source: str) -> KeptModel:
        """Keep a parsed config.json; one that is there already stays as it was first imported, name and all."""
        text = json.dumps(config, sort_keys=True, separators=(",", ":"))
        key = f"cfg-{hashed(text)[:20]}"
        row = {"key": key, "name": name[:100], "config": text, "source": source[:200], "created_at": now()}
        self._write(self._insert(models).values(row).on_conflict_do_nothing(index_elements=[models.c.key]))
        return self.find_model(key) or KeptModel(key, name, text, source)

    def find_model(self, key: str) -> KeptModel | None:
        if not _MODEL_KEY.fullmatch(key):  # so that no other key costs a question
            return None
        query = sa.select(models.c.key, models.c.name, models.c.config, models.c.source).where(models.c.key == key)
        row = self._one(query)
        return KeptModel(*row) if row else None

    def models_beginning(self, prefix: str) -> list[str]:
        """The keys of imported models that begin so, a hundred at most."""
        query = sa.select(models.c.key).where(models.c.key.startswith(prefix, autoescape=True)).limit(100)
        return [row.key for row in self._all(query)]
