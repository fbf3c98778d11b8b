"""Queries for operators: waiting, running, slow and failed jobs, without anything that somebody typed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from app.machine.jobs import JobEnd, JobKind

from .queries import QueryBase, columns
from .tables import jobs

_OPEN = jobs.c.ending.is_(None)
_FAILED = jobs.c.ending.in_(("failed", "lost"))


@dataclass(frozen=True)
class JobRecord:
    """A job as operators see it: neither its key, which is an address, nor anything that somebody typed.

    `started_at` is its newest start, None before the first.
    """

    id: int
    kind: JobKind
    request_id: str
    runner: str
    attempt: int
    is_working: bool
    done: int
    total: int
    created_at: datetime
    started_at: datetime | None
    heard_at: datetime
    ending: JobEnd | None
    reason: str

    @property
    def waited(self) -> timedelta:
        """The time from being queued (or requeued) to its newest start; zero if it never started."""
        return (self.started_at or self.created_at) - self.created_at

    @property
    def took(self) -> timedelta:
        """The time from its newest start to its end or last heartbeat; zero if it never started."""
        return self.heard_at - (self.started_at or self.heard_at)


@dataclass(frozen=True)
class KindQueue:
    """How many jobs of a kind wait and run, and when the oldest waiting one was queued."""

    kind: JobKind
    waiting: int
    working: int
    oldest: datetime | None


class Machines(QueryBase):
    """What the machines page shows of jobs; ended ones are kept for a day.

    A job counts as running until its end is stored or it is requeued, even if its process fell silent.
    """

    def time(self) -> datetime:
        """The time by the clock that jobs use: PostgreSQL's or, with SQLite, the app's."""
        if self.engine.dialect.name == "sqlite":
            return self.now()
        at: datetime = self._fetch_one(sa.select(sa.func.clock_timestamp()))[0]
        return at

    def queues(self) -> dict[str, KindQueue]:
        """By kind, how many jobs wait and run, and when the oldest waiting one was queued."""
        count, waits = sa.func.count(), ~jobs.c.is_working
        numbers = sa.select(
            jobs.c.kind,
            count.filter(waits),
            count.filter(jobs.c.is_working),
            sa.func.min(jobs.c.created_at).filter(waits),
        )
        rows = self._fetch_all(numbers.where(_OPEN).group_by(jobs.c.kind))
        return {row[0]: KindQueue(*row) for row in rows}

    def open_jobs(self, limit: int) -> tuple[JobRecord, ...]:
        """Running jobs, the first started first, then waiting ones, by kind and in queue order."""
        order = (jobs.c.is_working.desc(), sa.case((jobs.c.is_working, jobs.c.started_at)), jobs.c.kind,
                 jobs.c.is_member.desc(), jobs.c.turn, jobs.c.id)  # fmt: skip
        return self._records(_OPEN, order, limit)

    def slowest(self, limit: int) -> tuple[JobRecord, ...]:
        """The `limit` jobs that took longest from their newest start to their end, longest first."""
        seconds = sa.func.julianday if self.engine.dialect.name == "sqlite" else lambda at: sa.extract("epoch", at)
        took = seconds(jobs.c.heard_at) - seconds(jobs.c.started_at)
        is_ready = (jobs.c.ending == "ready") & jobs.c.started_at.is_not(None)
        return self._records(is_ready, (took.desc(), jobs.c.id), limit)

    def failed(self, limit: int) -> tuple[JobRecord, ...]:
        """Failed or lost jobs, the newest end first, at most `limit`."""
        return self._records(_FAILED, (jobs.c.heard_at.desc(), jobs.c.id.desc()), limit)

    def endings(self) -> Counter[str]:
        """How many jobs ended in each way."""
        rows = self._fetch_all(sa.select(jobs.c.ending, sa.func.count()).where(~_OPEN).group_by(jobs.c.ending))
        return Counter(dict(map(tuple, rows)))

    def _records(
        self, condition: sa.ColumnElement[bool], order: tuple[sa.ColumnElement[Any], ...], limit: int
    ) -> tuple[JobRecord, ...]:
        query = sa.select(*columns(jobs, JobRecord)).where(condition).order_by(*order).limit(limit)
        return self._values(JobRecord, query)
