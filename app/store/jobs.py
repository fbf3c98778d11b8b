"""Queries on jobs: the queue, signs of life, and results. See app/machine/jobs.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from app.machine.jobs import Claimed, Job, JobEnd, JobKind, JobLimits, JobRefusedError, Result
from app.machine.work_queue import Client
from app.translation import language

from .limits import insist
from .queries import QueryBase, insert_row
from .tables import MAX_PROBLEM, job_pieces, jobs

JOB_RETENTION = timedelta(hours=1)  # a PDF holds names of students
SILENT_AFTER = timedelta(seconds=30)  # without a sign of life, a job's process is gone
GIVES_WAY_AFTER = timedelta(seconds=5)  # that a member has waited for a visitor's job
MAX_ATTEMPTS = 3  # starts of a job whose process ended in the middle of it
PIECE_BYTES = 1_000_000  # of a result in one transaction, so that saves need not wait for all of it
_PG_LOCK = 7303  # of the queue; SQLite lets one thread write at a time

_HIDDEN = ("arguments", "heard_at", "is_working", "visitor_id", "student_id")
_SHOWN = [column for column in jobs.c if column.name not in _HIDDEN]
_OPEN = jobs.c.ending.is_(None)
_OTHER = jobs.alias()
# At work, and heard of within SILENT_AFTER.
_WORKS, _OTHER_WORKS = (each.c.is_working & (each.c.heard_at >= sa.bindparam("heard_after")) for each in (jobs, _OTHER))
_WAITS = _OPEN & ~_WORKS
_RIVALS = (_OTHER.c.kind == jobs.c.kind, _OTHER.c.ending.is_(None), _OTHER.c.id != jobs.c.id)
_IS_EARLIER = (_OTHER.c.is_member & ~jobs.c.is_member) | (
    (_OTHER.c.is_member == jobs.c.is_member) & (_OTHER.c.id < jobs.c.id)
)
_BEFORE = sa.select(sa.func.count()).where(*_RIVALS, _OTHER_WORKS | _IS_EARLIER).scalar_subquery()
# Built once: every page of a job asks it each second, and building it takes longer than the answer.
_FIND = sa.select(
    *_SHOWN,
    _WORKS.label("is_working"),
    sa.case((_WAITS, _BEFORE), else_=0).label("before"),
    (_WAITS & ~sa.exists().where(*_RIVALS, _OTHER_WORKS)).label("is_stalled"),
).where(jobs.c.key == sa.bindparam("job_key"))


class JobTable(QueryBase):
    """Jobs as rows, so that every process of the app sees the same queue; implements `JobRows`."""

    def add(
        self,
        kind: JobKind,
        client: Client,
        limits: JobLimits,
        request_id: str,
        key: str,
        teacher_id: int | None,
        about: Mapping[str, Any],
        arguments: Mapping[str, Any],
        along: Callable[[], object] = lambda: None,
        visitor_id: int | None = None,
        student_id: int | None = None,
    ) -> Job:
        """Store a new job at the end of the queue; raises JobRefusedError if `limits` are reached.

        In this order: "full" in all or for visitors, "yours" for this client, "hourly" for what this client started
        within an hour. A client without a key is held only to the first. `along` is called in the same transaction.
        The job is deleted with the visitor or student whose it is, if they are deleted before it.

        If no other job of its kind waits or is at work, it is started, as `claim` would, for the caller to do.
        """
        own = (jobs.c.client == client.key) & (jobs.c.is_member == client.is_member)
        count, at = sa.func.count(), self.now()
        numbers = sa.select(
            count.filter(_OPEN),
            count.filter(_OPEN, ~jobs.c.is_member),
            count.filter(_OPEN, own),
            count.filter(own, jobs.c.created_at > at - timedelta(hours=1)),
            count.filter(_OPEN, jobs.c.is_member | _WORKS),
        ).where(jobs.c.kind == kind)

        def within(connection: sa.Connection) -> Job:
            self._lock_queue(connection)
            total, visitors, mine, hourly, before_members = connection.execute(numbers, self._heard_after).one()
            if total >= limits.total or (not client.is_member and visitors >= limits.visitors):
                raise JobRefusedError("full")
            if client.key and mine >= (limits.member if client.is_member else limits.visitor):
                raise JobRefusedError("yours")
            if client.key and hourly >= (limits.member_hourly if client.is_member else limits.visitor_hourly):
                raise JobRefusedError("hourly")
            along()
            row: dict[str, Any] = {"key": key, "kind": kind, "client": client.key, "is_member": client.is_member,
                   "teacher_id": teacher_id, "about": dict(about), "request_id": request_id, "language": language(),
                   "created_at": at, "attempt": int(not total), "is_working": not total, "done": 0, "total": 1,
                   "ending": None, "problem": ""}  # fmt: skip
            hidden = {"arguments": dict(arguments), "heard_at": at, "visitor_id": visitor_id, "student_id": student_id}
            job_id = insert_row(connection, jobs, {**row, **hidden})
            return Job(id=job_id, **row, before=before_members if client.is_member else total, is_stalled=False)

        return self.in_transaction(within)

    def find(self, key: str) -> Job | None:
        """A job with its place; None for an unknown key."""
        if "\0" in key:  # no key has it, and PostgreSQL refuses the query
            return None
        row = self._fetch_one(_FIND, job_key=key, **self._heard_after)
        return Job(**row._mapping) if row else None

    def count(self, kind: JobKind) -> int:
        """How many jobs of a kind wait or are at work."""
        return int(self._fetch_one(sa.select(sa.func.count()).where(jobs.c.kind == kind, _OPEN))[0])

    def claim(self, kind: JobKind) -> Claimed | None:
        """Start the first job of a kind, members' jobs first, and return it with its arguments.

        None if one is at work, or none waits. A job that gave no sign of life for SILENT_AFTER starts again; after
        MAX_ATTEMPTS starts it is lost.
        """
        if not self.count(kind):  # the usual case once a job has ended: nobody has to wait for the lock of the queue
            return None
        of_kind, at = (jobs.c.kind == kind) & _OPEN, self.now()
        is_lost = ~_WORKS & jobs.c.is_working & (jobs.c.attempt >= MAX_ATTEMPTS)
        lost = sa.update(jobs).where(of_kind, is_lost).values(ending="lost", is_working=False)
        first = sa.select(jobs.c.id, _WORKS.label("works")).where(of_kind).limit(1)
        first = first.order_by(_WORKS.desc(), jobs.c.is_member.desc(), jobs.c.id)
        started = {"is_working": True, "heard_at": at, "attempt": jobs.c.attempt + 1}

        def within(connection: sa.Connection) -> Claimed | None:
            self._lock_queue(connection)
            connection.execute(lost, self._heard_after)
            row = connection.execute(first, self._heard_after).one_or_none()
            if row is None or row.works:
                return None
            start = sa.update(jobs).where(jobs.c.id == row.id).values(started).returning(*_SHOWN, jobs.c.arguments)
            *shown, arguments = connection.execute(start).one()
            names = (column.name for column in _SHOWN)
            return Job(**dict(zip(names, shown, strict=True)), is_working=True, before=0, is_stalled=False), arguments

        return self.in_transaction(within)

    def beat(self, job: Job, done: int, total: int) -> bool:
        """Store a sign of life and the progress; False if the job has ended or was started again elsewhere."""
        return self._update(job, heard_at=self.now(), done=done, total=total)

    def must_give_way(self, job: Job) -> bool:
        """Whether a member's job of the same kind has waited for more than GIVES_WAY_AFTER."""
        waits = sa.exists().where(
            jobs.c.kind == job.kind,
            _OPEN,
            jobs.c.is_member,
            ~jobs.c.is_working,
            jobs.c.created_at < self.now() - GIVES_WAY_AFTER,
        )
        return bool(self._fetch_one(sa.select(waits))[0])

    def put_back(self, job: Job) -> None:
        """Let a job that was started wait again; this start does not count."""
        self._update(job, is_working=False, done=0, attempt=job.attempt - 1)

    def finish(self, job: Job, ending: JobEnd, problem: str = "", result: Result = b"") -> None:
        """Store the result of a job and how it has ended, unless it has ended already or was started again elsewhere.

        In one transaction, but for the pieces of a large result. `problem` is the sentence for a job that has failed,
        cut after MAX_PROBLEM characters.
        """
        insist(lambda: self._finish(job, ending, problem, result))

    def _finish(self, job: Job, ending: JobEnd, problem: str, result: Result) -> None:
        """Store each whole piece of a result in its own transaction, then the rest with the ending."""
        data, store_result = (result, None) if isinstance(result, bytes) else (b"", result)
        *pieces, rest = (data[start : start + PIECE_BYTES] for start in range(0, len(data) + 1, PIECE_BYTES))
        for number, piece in enumerate(pieces):
            self._store_piece(job, number, piece)

        def within(_connection: sa.Connection) -> None:
            at = self.now()
            if not self._update(job, ending=ending, problem=problem[:MAX_PROBLEM], is_working=False, heard_at=at):
                return
            if rest:
                self._store_piece(job, len(pieces), rest)
            if store_result:
                store_result()

        self.in_transaction(within)

    def _store_piece(self, job: Job, number: int, data: bytes) -> None:
        """Store a piece of a job's result, unless it is stored already since the rest could not be."""
        piece = {"job_id": job.id, "attempt": job.attempt, "number": number, "data": data}
        self._execute(self._insert_into(job_pieces).values(piece).on_conflict_do_nothing())

    def cancel(self, job: Job) -> None:
        """End a job that waits or is at work, which its process then notices."""
        ended = {"ending": "cancelled", "is_working": False, "heard_at": self.now()}
        self._execute(sa.update(jobs).where(jobs.c.id == job.id, _OPEN).values(ended))

    def result(self, job: Job) -> bytes:
        """What a job that is ready has given."""
        of_job = (job_pieces.c.job_id == job.id, job_pieces.c.attempt == job.attempt)
        pieces = self._fetch_all(sa.select(job_pieces.c.data).where(*of_job).order_by(job_pieces.c.number))
        return b"".join(data for (data,) in pieces)

    def arguments(self, job: Job) -> Mapping[str, Any]:
        """What the work of a job needs; empty for one that has been deleted."""
        row = self._fetch_one(sa.select(jobs.c.arguments).where(jobs.c.id == job.id))
        arguments: Mapping[str, Any] = row.arguments if row else {}
        return arguments

    def delete(self, job: Job) -> None:
        """Delete a job with its arguments and its result, whatever it is doing."""
        self._execute(sa.delete(jobs).where(jobs.c.id == job.id))

    def delete_expired(self) -> None:
        """Delete the jobs that ended more than JOB_RETENTION ago, with their results."""
        self._execute(sa.delete(jobs).where(~_OPEN, jobs.c.heard_at < self.now() - JOB_RETENTION))

    def _update(self, job: Job, **values: Any) -> bool:
        """Change a job, and return True, if it is at work by this start; else return False."""
        current = (jobs.c.id == job.id, jobs.c.attempt == job.attempt, jobs.c.is_working)
        return self._execute(sa.update(jobs).where(*current).values(values)) == 1

    @property
    def _heard_after(self) -> dict[str, datetime]:
        return {"heard_after": self.now() - SILENT_AFTER}

    def _lock_queue(self, connection: sa.Connection) -> None:
        if self.engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PG_LOCK)))
