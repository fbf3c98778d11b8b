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
from .classwork import Classwork
from .courses import Courses
from .database import migrating, open_engine, upgrade
from .live import Live
from .people import People
from .questions import Questions, Turn, hashed, now
from .regrades import Regrades
from .samples import Samples
from .tables import attempts, drafts, learners, models, runs

Answers = Mapping[str, str]
_MODEL_KEY = re.compile(r"cfg-[0-9a-f]{20}")


@dataclass(frozen=True)
class Learner:
    """Someone who works in one browser; the token is in their cookie, only its hash is stored."""

    id: int
    token: str


@dataclass(frozen=True)
class Draft:
    """What stands in the boxes of one sheet, as typed; versions grow with the browser's clock."""

    answers: Answers
    version: int


@dataclass(frozen=True)
class Attempt:
    """One checked try: the texts as typed, and its score: boxes that are right, and shares of those that follow."""

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
    `live` and `regrades`; `samples` fills sample courses.
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

    def close(self) -> None:
        self.engine.dispose()

    def ping(self) -> None:
        """Ask the database the least there is to ask; raises SQLAlchemyError if it does not answer."""
        self._one(sa.select(1))

    def add_learner(self, token: str = "") -> Learner:
        """A new learner with that token, or one of 256 random bits."""
        token = token or secrets.token_urlsafe(32)
        with self._writing() as connection:
            row = connection.execute(sa.insert(learners).values(token_hash=hashed(token), created_at=now()))
            return Learner(row.inserted_primary_key[0], token)  # type: ignore[index]  # one row was inserted

    def find_learner(self, token: str) -> Learner | None:
        row = self._one(sa.select(learners.c.id).where(learners.c.token_hash == hashed(token)))
        return Learner(row[0], token) if row else None

    def save_draft(self, learner: Learner, sheet: str, draft: Draft) -> None:
        """Keep what stands in the boxes, unless something newer is kept already; durable once this returns."""
        values = {"answers": dict(draft.answers), "version": draft.version, "saved_at": now()}
        insert = self._insert(drafts).values(learner_id=learner.id, sheet=sheet, **values)
        upsert = insert.on_conflict_do_update(
            index_elements=[drafts.c.learner_id, drafts.c.sheet],
            set_=values,
            where=drafts.c.version <= draft.version,
        )
        self._write(upsert)

    def find_draft(self, learner: Learner, sheet: str) -> Draft | None:
        query = sa.select(drafts.c.answers, drafts.c.version).where(
            drafts.c.learner_id == learner.id, drafts.c.sheet == sheet
        )
        row = self._one(query)
        return Draft(*row) if row else None

    def record_attempt(self, learner: Learner, sheet: str, attempt: Attempt) -> None:
        """Keep one checked try for good."""
        row = {"answers": dict(attempt.answers), "score": attempt.score, "out_of": attempt.out_of, "created_at": now()}
        self._write(sa.insert(attempts).values(learner_id=learner.id, sheet=sheet, **row))

    def last_attempt(self, learner: Learner, sheet: str) -> Attempt | None:
        return next(iter(self.latest_attempts(learner, sheet, 1)), None)

    def latest_attempts(self, learner: Learner, sheet: str, most: int) -> list[Attempt]:
        """The newest checked tries of a sheet, newest first, so many at most."""
        query = (
            sa.select(attempts.c.answers, attempts.c.score, attempts.c.out_of)
            .where(attempts.c.learner_id == learner.id, attempts.c.sheet == sheet)
            .order_by(attempts.c.id.desc())
            .limit(most)
        )
        return [Attempt(*row) for row in self._all(query)]

    def add_run(self, sheet: str, answers: Answers) -> Run:
        """A run that has not finished; its id cannot be guessed, since whoever has it may look."""
        run = Run(secrets.token_urlsafe(12), sheet, answers, None, None, now())
        row = {"id": run.id, "sheet": sheet, "answers": dict(answers), "created_at": run.created_at}
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
        return Run(row.id, row.sheet, row.answers, row.result, row.problem, created)

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
