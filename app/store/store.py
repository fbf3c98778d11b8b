"""The open database: queries on visitors, runs and imported models, and the groups of all other queries."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.activities.work import Answers
from app.secret_key import SecretKey, read_or_make_secret

from .activities import Activities
from .audit import AuditLog
from .classwork import Classwork
from .courses import Courses
from .database import ProcessRole, connection_name, migration_transaction, open_engine, upgrade
from .exit_tickets import ExitTickets
from .grades import Grades
from .jobs import JobTable
from .limits import tolerated_failure
from .lti import Lti
from .lti_scores import LtiScores
from .materials import Materials
from .people import People
from .queries import Clock, OpenDatabase, QueryBase, columns, from_row, hash_secret, utc_now
from .regrades import Regrades
from .roster import Roster
from .sample_data import SampleData
from .student_merge import StudentMerge
from .tables import MAX_PROBLEM, imported_model, models, runs, visitors

MODEL_USE_NOTED_AFTER = timedelta(days=1)
ROOM_NEEDED_BYTES = 8_000_000  # SQLite's log grows to half of it before it is written back


@dataclass(frozen=True)
class Visitor:
    """An anonymous browser. Its cookie has the token; the database only has the token's hash."""

    id: int
    token: str


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


class Store(QueryBase):
    """An open database with the newest tables.

    The secret key is in the data folder `folder`, created if missing.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        processes: int = 1,
        clock: Clock = utc_now,
        role: ProcessRole = "command",
    ) -> None:
        key = SecretKey(read_or_make_secret(folder))
        engine = open_engine(url, processes, connection_name(role, key))
        database = OpenDatabase.of(engine, clock)
        super().__init__(database)
        self.key = key
        try:
            with migration_transaction(engine) as connection:
                upgrade(connection)
        except BaseException:
            engine.dispose()
            raise
        self.people = People(database)
        self.courses = Courses(database)
        self.roster = Roster(database, self.key)
        self.student_merge = StudentMerge(database)
        self.activities = Activities(database)
        self.classwork = Classwork(database)
        self.exit_tickets = ExitTickets(database)
        self.materials = Materials(database)
        self.regrades = Regrades(database)
        self.grades = Grades(database)
        self.audit_log = AuditLog(database)
        self.jobs = JobTable(database)
        self.sample_data = SampleData(database)
        self.lti = Lti(database)
        self.lti_scores = LtiScores(database)

    def close(self) -> None:
        self.engine.dispose()

    def check_writable(self) -> None:
        """Raise SQLAlchemyError or OSError if nothing can be written, or an SQLite file's disk is nearly full."""
        self._execute(sa.update(visitors).where(sa.false()).values(token_hash=""))
        if self._writer and shutil.disk_usage(self._writer.path).free < ROOM_NEEDED_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # Visitors

    def add_visitor(self, token: str = "") -> Visitor:
        """Add a visitor with this token, or return the existing one; "" makes a new random token of 256 bits."""
        token = token or secrets.token_urlsafe(32)
        insert = self._insert_into(visitors).values(token_hash=hash_secret(token), created_at=self.now())
        unless_known = insert.on_conflict_do_nothing(index_elements=[visitors.c.token_hash])
        with self.transaction() as connection:
            new_id = connection.scalar(unless_known.returning(visitors.c.id))
        visitor = Visitor(new_id, token) if new_id else self.find_visitor(token)
        assert visitor is not None  # noqa: S101 - the token was known before, or has just been inserted
        return visitor

    def find_visitor(self, token: str) -> Visitor | None:
        row = self._fetch_one(sa.select(visitors.c.id).where(visitors.c.token_hash == hash_secret(token)))
        return Visitor(row.id, token) if row else None

    # Runs of a head

    def new_run(self, answers: Answers, frozen: Mapping[str, Any], activity_id: int | None = None) -> Run:
        """An unfinished run, to be stored by `add_run`; `frozen` is what it stores of its sheet."""
        return Run(secrets.token_urlsafe(12), answers, frozen, None, None, self.now(), activity_id)

    def add_run(self, run: Run) -> Run:
        """Store a new run, and return it."""
        row = {name: value for name, value in vars(run).items() if value is not None}
        self._execute(sa.insert(runs).values(row))
        return run

    def finish_run(self, run_id: str, result: Mapping[str, Any] | None, problem: str | None = None) -> None:
        """Store that a run has finished, with its result, or with a sentence saying why there is none."""
        values = {"result": None if result is None else dict(result), "problem": problem and problem[:MAX_PROBLEM]}
        self._execute(sa.update(runs).where(runs.c.id == run_id).values(**values))

    def find_run(self, run_id: str) -> Run | None:
        if "\0" in run_id:  # no id contains it, and PostgreSQL would refuse the query
            return None
        return self._value(Run, sa.select(*columns(runs, Run)).where(runs.c.id == run_id))

    # Imported models

    def keep_model(self, name: str, config: Any, source: str, given_name: str = "") -> StoredModel:
        """Store a parsed config.json, and return the model; its key is a hash of the config and the given name."""
        text = _config_text(config)
        key = _model_key(f"{text} {given_name}" if given_name else text)
        row = {"key": key, "name": name[:100], "config": text, "source": source[:200], "created_at": self.now()}
        self._execute(self._insert_into(models).values(row).on_conflict_do_nothing(index_elements=[models.c.key]))
        return self.find_model(key) or StoredModel(key, name, text, source)

    def find_config(self, config: Any) -> StoredModel | None:
        """The imported model with exactly this config and no given name, or None."""
        return self.find_model(_model_key(_config_text(config)))

    def find_model(self, key: str) -> StoredModel | None:
        """The imported model with that key, or None; its use is noted once a day."""
        if not imported_model(key):
            return None
        query = sa.select(*columns(models, StoredModel), models.c.used_at).where(models.c.key == key)
        row = self._fetch_one(query)
        if row is None:
            return None
        if row.used_at is None or self.now() - row.used_at > MODEL_USE_NOTED_AFTER:
            with tolerated_failure():  # a full or read-only database goes on without it
                self._execute(sa.update(models).where(models.c.key == key).values(used_at=self.now()))
        return from_row(StoredModel, row)

    def hub_models(self, words: Sequence[str], limit: int) -> list[tuple[str, str]]:
        """Key and name of models imported from the Hub, under their names there, that contain all words.

        Other imports have names that a visitor typed, so they are shown to nobody who hasn't their address.
        """
        contain = (models.c.name.icontains(word, autoescape=True) for word in words)
        query = sa.select(models.c.key, models.c.name).where(models.c.source == models.c.name, *contain)
        return [(row.key, row.name) for row in self._fetch_all(query.order_by(models.c.name).limit(limit))]

    def model_keys(self, prefix: str) -> list[str]:
        """At most 100 keys of imported models with a prefix, in any order."""
        query = sa.select(models.c.key).where(models.c.key.startswith(prefix, autoescape=True)).limit(100)
        return [row.key for row in self._fetch_all(query)]


def _config_text(config: Any) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def _model_key(text: str) -> str:
    return f"cfg-{hash_secret(text)[:20]}"
