"""Queries on jobs: the queue, heartbeats, results, and the runners. See app/machine/jobs.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import psycopg
import sqlalchemy as sa

from app.machine.jobs import JOB_FORM, Claimed, Job, JobEnd, JobKind, JobLimits, JobRefusedError, Result, Runner
from app.machine.work_queue import Client
from app.translation import language

from .limits import insist
from .queries import OpenDatabase, QueryBase
from .tables import MAX_PROBLEM, UtcDateTime, job_pieces, jobs, runners, runs

JOB_RETENTION = timedelta(hours=1)  # for results and for what was typed: a PDF holds names of students
ROW_RETENTION = timedelta(days=1)  # for a job's outcome, shown to operators
SILENT_AFTER = timedelta(seconds=30)  # a job's process or a runner is gone after this long without a heartbeat
WEB_SILENT_AFTER = timedelta(minutes=25)  # web processes send one every ten minutes
OVERDUE_AFTER = timedelta(seconds=60)  # since the job was queued
GIVES_WAY_AFTER = timedelta(seconds=5)  # how long a member has waited for a visitor's job
MAX_ATTEMPTS = 3  # starts of a job whose process ended during it
PIECE_BYTES = 1_000_000  # per transaction, so that saves need not wait for a whole result
CHANNEL = "attention_shapes_jobs"  # the channel on which PostgreSQL tells runners that a job waits
LISTEN_AGAIN_AFTER_S = 60.0  # repeats a statement, which fails on a connection whose other end vanished
_PG_LOCK = 7303  # for a kind's queue; SQLite lets one thread write at a time
_FORGOTTEN = "~"  # prefix for keys of jobs that nobody may find any more; other keys never have it

_HIDDEN = ("arguments", "is_working", "visitor_id", "student_id")
_SHOWN = [column for column in jobs.c if column.name not in _HIDDEN]
_OPEN = jobs.c.ending.is_(None)
_OTHER = jobs.alias()


class JobTable(QueryBase):
    """Jobs and runners as rows, so that all processes of the app see the same queue; implements `JobRows`.

    On PostgreSQL all times are the database's, so that machines' clocks need not agree.
    """

    def __init__(self, database: OpenDatabase) -> None:
        super().__init__(database)
        self._is_postgresql = self.engine.dialect.name == "postgresql"
        # Built once: every job's page asks for it each second, and building it takes longer than the answer.
        self._found = self._build_found()
        self._find = self._found.where(jobs.c.key == sa.bindparam("job_key"))
        self._listening: sa.Connection | None = None
        self._listened_at = 0.0

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
        checkpoint: str = "",
        device: str = "",
        memory_bytes: int = 0,
        runner: Runner | None = None,
    ) -> Job:
        """Store a new job in its client's next turn, and return it; raises JobRefusedError if `limits` are reached.

        `along` is called in the same transaction, after these checks.
        """
        own = (jobs.c.client == client.key, jobs.c.kind == kind, jobs.c.is_member == client.is_member)
        count, has_started = sa.func.count(), jobs.c.started_at.is_not(None)
        of_all = sa.select(
            count, count.filter(~jobs.c.is_member), count.filter(~self._works()), count.filter(self._is_at(runner))
        ).where(jobs.c.kind == kind, _OPEN)
        latest = sa.select(sa.func.max(jobs.c.turn)).where(jobs.c.kind == kind, own[2], has_started)
        of_client = sa.select(
            count.filter(_OPEN),
            count.filter(jobs.c.created_at > self._time(timedelta(hours=1))),
            sa.func.max(jobs.c.turn).filter(_OPEN | has_started),
            latest.scalar_subquery(),
        ).where(*own)

        spoken = language()  # here, since another request's thread may store the job

        def within(connection: sa.Connection) -> Job:
            self._lock_queue(connection, kind)
            total, visitors, waiting, at_work = connection.execute(of_all).one()
            mine, hourly, own_turn, turn = connection.execute(of_client).one()
            if total >= limits.total or (not client.is_member and visitors >= limits.visitors):
                raise JobRefusedError("full")
            if client.key and mine >= (limits.member if client.is_member else limits.visitor):
                raise JobRefusedError("yours")
            if client.key and hourly >= (limits.member_hourly if client.is_member else limits.visitor_hourly):
                raise JobRefusedError("hourly")
            along()
            at, starts = self._time(), bool(runner and not waiting and at_work < runner.concurrency)
            job = {"key": key, "kind": kind, "client": client.key, "is_member": client.is_member,
                   "teacher_id": teacher_id, "visitor_id": visitor_id, "student_id": student_id, "about": dict(about),
                   "arguments": dict(arguments), "request_id": request_id, "language": spoken, "created_at": at,
                   "heard_at": at, "attempt": int(starts), "is_working": starts,
                   "turn": max(turn or 0, -1 if own_turn is None else own_turn + 1), "checkpoint": checkpoint,
                   "device": device, "memory_bytes": memory_bytes, "form": JOB_FORM, "done": 0, "total": 1,
                   "problem": ""}  # fmt: skip
            started = {"started_at": at, "runner": runner.name} if runner and starts else {}
            connection.execute(sa.insert(jobs).values(job | started))
            if not starts:
                self._tell_runners(connection)
            return _job(connection.execute(self._find, {"job_key": key}).one())

        return self.in_transaction(within)

    def find(self, key: str) -> Job | None:
        """A job with its place, even if it has ended; None if it is unknown or deleted."""
        if "\0" in key:  # no key contains it, and PostgreSQL would refuse the query
            return None
        row = self._fetch_one(self._find, job_key=key)
        return _job(row) if row else None

    def find_numbered(self, job_id: int) -> Job | None:
        """The job with that id, with its place, deleted or not; None if it is unknown or ended a day ago."""
        row = self._fetch_one(self._found.where(jobs.c.id == job_id))
        return _job(row) if row else None

    def overdue(self) -> Sequence[Job]:
        """At most 200 jobs waiting for longer than OVERDUE_AFTER, oldest first."""
        late = jobs.c.created_at < self._time(OVERDUE_AFTER)
        rows = self._fetch_all(self._found.where(_OPEN, ~self._works(), late).order_by(jobs.c.id).limit(200))
        return [_job(row) for row in rows]

    def count(self, kind: JobKind) -> int:
        """How many jobs of a kind wait or run."""
        return int(self._fetch_one(sa.select(sa.func.count()).where(jobs.c.kind == kind, _OPEN))[0])

    def count_of_other_forms(self) -> int:
        """How many waiting or running jobs have another JOB_FORM, so that no runner with this code can do them."""
        return int(self._fetch_one(sa.select(sa.func.count()).where(_OPEN, jobs.c.form != JOB_FORM))[0])

    def claim(self, kind: JobKind, runner: Runner) -> Claimed | None:
        """Start the first job of a kind whose needs a runner meets, and return it with its arguments."""
        first = (
            sa.select(jobs.c.id, jobs.c.is_working, jobs.c.attempt)
            .where(jobs.c.kind == kind, _OPEN, ~self._works(), _suits(runner))
            .order_by(jobs.c.is_member.desc(), jobs.c.turn, jobs.c.id)
            .limit(1)
        )
        at_work = sa.select(sa.func.count()).where(jobs.c.kind == kind, _OPEN, self._is_at(runner))
        first = first.where(at_work.scalar_subquery() < runner.concurrency)
        if self._fetch_one(first) is None:  # the usual case: nobody has to wait for the queue's lock
            return None
        started = {"is_working": True, "heard_at": self._time(), "started_at": self._time(), "runner": runner.name,
                   "attempt": jobs.c.attempt + 1}  # fmt: skip
        lost = {"ending": "lost", "is_working": False, "heard_at": self._time()}

        def within(connection: sa.Connection) -> Claimed | None:
            self._lock_queue(connection, kind)
            while row := connection.execute(first).one_or_none():
                if row.is_working and row.attempt >= MAX_ATTEMPTS:
                    connection.execute(sa.update(jobs).where(jobs.c.id == row.id).values(lost))
                    continue
                start = sa.update(jobs).where(jobs.c.id == row.id).values(started).returning(*_SHOWN, jobs.c.arguments)
                *shown, arguments = connection.execute(start).one()
                values = dict(zip((column.name for column in _SHOWN), shown, strict=True))
                return Job(**values, is_working=True, before=0, is_stalled=False, is_overdue=False), arguments
            return None

        return self.in_transaction(within)

    def await_job(self, seconds: float) -> None:
        """Wait until a job may have been queued, at most `seconds`."""
        if not self._is_postgresql:
            time.sleep(seconds)
            return
        try:
            if self._listening is None:
                self._listening, self._listened_at = self.single_engine.connect(), time.monotonic()
                self._listening.detach()
                self._listening.exec_driver_sql(f"LISTEN {CHANNEL}")
                return  # nobody was notified of what was queued until now
            if time.monotonic() - self._listened_at > LISTEN_AGAIN_AFTER_S:
                self._listening.exec_driver_sql(f"LISTEN {CHANNEL}")
                self._listened_at = time.monotonic()
            connection = cast("psycopg.Connection[Any]", self._listening.connection.dbapi_connection)
            for _told in connection.notifies(timeout=seconds, stop_after=1):
                pass
        except (sa.exc.SQLAlchemyError, psycopg.Error):  # the next call connects again
            self.stop_listening()
            time.sleep(seconds)

    def stop_listening(self) -> None:
        """Close the connection on which `await_job` waits, if it is open."""
        if self._listening:
            with suppress(sa.exc.SQLAlchemyError, psycopg.Error):
                self._listening.close()
        self._listening = None

    def beat(self, job: Job, done: int, total: int) -> bool:
        """Store a heartbeat and the progress; False, storing nothing, if the job has ended or was restarted."""
        return self._update(job, heard_at=self._time(), done=done, total=total)

    def must_give_way(self, job: Job, runner: Runner) -> bool:
        """Whether a visitor's `job` must stop for a member's."""
        count = sa.select(sa.func.count())
        waiting = count.where(
            jobs.c.kind == job.kind,
            _OPEN,
            jobs.c.is_member,
            ~jobs.c.is_working,
            jobs.c.created_at < self._time(GIVES_WAY_AFTER),
            _suits(runner),
        )
        stop_before = count.where(
            jobs.c.kind == job.kind, _OPEN, self._is_at(runner), ~jobs.c.is_member, jobs.c.id > job.id
        )
        return bool(self._fetch_one(sa.select(waiting.scalar_subquery() > stop_before.scalar_subquery()))[0])

    def put_back(self, job: Job) -> None:
        """Requeue a started job in its turn, with no progress; this start doesn't count."""
        waits = {"is_working": False, "done": 0, "attempt": job.attempt - 1, "started_at": None, "runner": ""}

        def within(connection: sa.Connection) -> None:
            if self._update(job, **waits):
                self._tell_runners(connection)

        self.in_transaction(within)

    def finish(self, job: Job, ending: JobEnd, problem: str = "", result: Result = b"", reason: str = "") -> None:
        """Store a job's result and ending, unless it has already ended or was restarted elsewhere.

        A `result` that is a function is called in the same transaction; a large result's earlier pieces have their own.
        """
        insist(lambda: self._finish(job, ending, problem, result, reason))

    def _finish(self, job: Job, ending: JobEnd, problem: str, result: Result, reason: str) -> None:
        """Each piece but the last has its own transaction."""
        data, store_result = (result, None) if isinstance(result, bytes) else (b"", result)
        *pieces, rest = (data[start : start + PIECE_BYTES] for start in range(0, len(data) + 1, PIECE_BYTES))
        for number, piece in enumerate(pieces):
            with self.transaction():
                if not self._update(job, heard_at=self._time()):
                    return
                self._store_piece(job, number, piece)
        ended = {"ending": ending, "problem": problem[:MAX_PROBLEM], "reason": reason, "is_working": False}
        done_by = sa.update(runners).where(runners.c.name == job.runner)

        def within(_connection: sa.Connection) -> None:
            if not self._update(job, heard_at=self._time(), **ended):
                return
            if rest:
                self._store_piece(job, len(pieces), rest)
            if store_result:
                store_result()
            self._execute(done_by.values(jobs_done=runners.c.jobs_done + 1))

        self.in_transaction(within)

    def _store_piece(self, job: Job, number: int, data: bytes) -> None:
        piece = {"job_id": job.id, "attempt": job.attempt, "number": number, "data": data}
        self._execute(self._insert_into(job_pieces).values(piece).on_conflict_do_nothing())

    def refuse(self, job: Job, problem: str, reason: str) -> None:
        """Fail a waiting job with a sentence, cut after MAX_PROBLEM characters, and a reason."""
        waits = (jobs.c.id == job.id, _OPEN, ~self._works())
        failed = {"ending": "failed", "problem": problem[:MAX_PROBLEM], "reason": reason, "is_working": False}

        def within(connection: sa.Connection) -> None:
            self._lock_queue(connection, job.kind)
            connection.execute(sa.update(jobs).where(*waits).values(heard_at=self._time(), **failed))

        self.in_transaction(within)

    def cancel(self, job: Job) -> bool:
        """Cancel a waiting or running job; False if it has already ended."""
        end = sa.update(jobs).where(jobs.c.id == job.id, _OPEN).returning(jobs.c.turn, jobs.c.started_at)
        end = end.values(ending="cancelled", is_working=False, heard_at=self._time())
        own = (jobs.c.client == job.client, jobs.c.kind == job.kind, jobs.c.is_member == job.is_member)

        def within(connection: sa.Connection) -> bool:
            self._lock_queue(connection, job.kind)
            row = connection.execute(end).one_or_none()
            if row and row.started_at is None:
                later = sa.update(jobs).where(*own, _OPEN, jobs.c.turn > row.turn)
                connection.execute(later.values(turn=jobs.c.turn - 1))
            return row is not None

        return self.in_transaction(within)

    def retry(self, job: Job) -> bool:
        """Requeue a failed or lost job in its old turn, and notify runners."""
        failed = (jobs.c.ending.in_(("failed", "lost")), jobs.c.heard_at >= self._time(JOB_RETENTION))
        again = {"ending": None, "problem": "", "reason": "", "done": 0, "started_at": None, "runner": "",
                 "created_at": self._time(), "heard_at": self._time()}  # fmt: skip
        retried = sa.update(jobs).where(jobs.c.id == job.id, ~jobs.c.key.startswith(_FORGOTTEN), *failed)

        def within(connection: sa.Connection) -> bool:
            if not connection.execute(retried.values(again)).rowcount:
                return False
            connection.execute(sa.update(runs).where(runs.c.id == job.key).values(problem=None))
            self._tell_runners(connection)
            return True

        return self.in_transaction(within)

    def result(self, job: Job) -> bytes:
        """The bytes stored by a job's last start; b"" if there are none."""
        of_job = (job_pieces.c.job_id == job.id, job_pieces.c.attempt == job.attempt)
        pieces = self._fetch_all(sa.select(job_pieces.c.data).where(*of_job).order_by(job_pieces.c.number))
        return b"".join(data for (data,) in pieces)

    def arguments(self, job: Job) -> Mapping[str, Any]:
        """What a job's work needs; empty for a deleted job."""
        row = self._fetch_one(sa.select(jobs.c.arguments).where(jobs.c.id == job.id))
        arguments: Mapping[str, Any] = row.arguments if row else {}
        return arguments

    def delete(self, job: Job) -> None:
        """Cancel a job unless it has ended, and delete its arguments, problem, description and result."""
        with self.transaction():
            self.cancel(job)
            self._execute(sa.update(jobs).where(jobs.c.id == job.id).values(self._without_content()))
            self._execute(sa.delete(job_pieces).where(job_pieces.c.job_id == job.id))

    def delete_expired(self) -> None:
        """Delete jobs that ended more than ROW_RETENTION ago, and runners that were silent for as long."""
        nobody = {"client": "", "teacher_id": None, "visitor_id": None, "student_id": None}
        is_forgotten = jobs.c.key.startswith(_FORGOTTEN)
        is_past = (~_OPEN, jobs.c.heard_at < self._time(JOB_RETENTION), ~is_forgotten | (jobs.c.client != ""))
        with self.transaction():
            self._execute(sa.update(jobs).where(*is_past).values(self._without_content() | nobody))
            of_forgotten = job_pieces.c.job_id.in_(sa.select(jobs.c.id).where(is_forgotten))
            self._execute(sa.delete(job_pieces).where(of_forgotten))
            self._execute(sa.delete(jobs).where(~_OPEN, jobs.c.heard_at < self._time(ROW_RETENTION)))
            self._execute(sa.delete(runners).where(runners.c.heard_at < self._time(ROW_RETENTION)))

    # Runners

    def sign_on(self, runner: Runner) -> None:
        """Store a runner and a heartbeat, replacing what is stored under its name."""
        said = {"is_web": runner.is_web, "kinds": list(runner.kinds), "device": runner.device,
                "device_name": runner.device_name, "memory_bytes": runner.memory_bytes,
                "concurrency": runner.concurrency, "checkpoints": [dict(each) for each in runner.checkpoints],
                "form": runner.form, "version": runner.version, "heard_at": self._time()}  # fmt: skip
        new = {"name": runner.name, "started_at": self._time(), "jobs_done": 0, **said}
        insert = self._insert_into(runners).values(new)
        self._execute(insert.on_conflict_do_update(index_elements=[runners.c.name], set_=said))

    def sign_off(self, name: str) -> None:
        """Delete the runner with this name; its running jobs count as silent, so that they restart at once."""
        at_work_there = (_OPEN, jobs.c.is_working, jobs.c.runner == name)
        with self.transaction():
            self._execute(sa.delete(runners).where(runners.c.name == name))
            self._execute(sa.update(jobs).where(*at_work_there).values(heard_at=self._time(2 * SILENT_AFTER)))

    def runners(self) -> tuple[Runner, ...]:
        """Every stored runner by name, including web processes and silent ones."""
        alive_after = sa.case((runners.c.is_web, self._time(WEB_SILENT_AFTER)), else_=self._time(SILENT_AFTER))
        is_alive = (runners.c.heard_at >= alive_after).label("is_alive")
        rows = self._fetch_all(sa.select(runners, is_alive).order_by("name"))
        return tuple(Runner(**{**row._mapping, "kinds": tuple(row.kinds)}) for row in rows)

    # What the queries share

    def _update(self, job: Job, **values: Any) -> bool:
        start = (jobs.c.id == job.id, jobs.c.attempt == job.attempt, jobs.c.runner == job.runner, jobs.c.is_working)
        return self._execute(sa.update(jobs).where(*start).values(values)) == 1

    def _time(self, ago: timedelta = timedelta()) -> sa.ColumnElement[Any]:
        if self._is_postgresql:
            return sa.func.clock_timestamp() - sa.literal(ago, sa.Interval())
        return sa.bindparam(None, callable_=lambda: self.now() - ago, type_=UtcDateTime(), unique=True)

    def _works(self, table: sa.FromClause = jobs) -> sa.ColumnElement[bool]:
        return table.c.is_working & (table.c.heard_at >= self._time(SILENT_AFTER))

    def _is_at(self, runner: Runner | None) -> sa.ColumnElement[bool]:
        return self._works() & (jobs.c.runner == runner.name) if runner else sa.false()

    def _build_found(self) -> sa.Select[Any]:
        waits, other_works = _OPEN & ~self._works(), self._works(_OTHER)
        rivals = (_OTHER.c.kind == jobs.c.kind, _OTHER.c.ending.is_(None), _OTHER.c.id != jobs.c.id)
        is_earlier = (_OTHER.c.is_member & ~jobs.c.is_member) | (
            (_OTHER.c.is_member == jobs.c.is_member)
            & (sa.tuple_(_OTHER.c.turn, _OTHER.c.id) < sa.tuple_(jobs.c.turn, jobs.c.id))
        )
        before = sa.select(sa.func.count()).where(*rivals, other_works | is_earlier).scalar_subquery()
        return sa.select(
            *_SHOWN,
            self._works().label("is_working"),
            sa.case((waits, before), else_=0).label("before"),
            (waits & ~sa.exists().where(*rivals, other_works)).label("is_stalled"),
            (waits & (jobs.c.created_at < self._time(OVERDUE_AFTER))).label("is_overdue"),
        )

    def _lock_queue(self, connection: sa.Connection, kind: JobKind) -> None:
        """Hold the lock on a kind's queue until the transaction ends."""
        if self._is_postgresql:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PG_LOCK, sa.func.hashtext(kind))))

    def _tell_runners(self, connection: sa.Connection) -> None:
        """Wake the waiting runners once the transaction commits; with SQLite nobody waits."""
        if self._is_postgresql:
            connection.execute(sa.select(sa.func.pg_notify(CHANNEL, "")))

    def _without_content(self) -> dict[str, Any]:
        sqlite, postgresql = (
            sa.func.hex(sa.func.randomblob(16)),
            sa.func.md5(sa.cast(sa.func.gen_random_uuid(), sa.Text)),
        )
        random = postgresql if self._is_postgresql else sqlite
        return {"key": _FORGOTTEN + sa.func.substr(random, 2, 31), "about": {}, "arguments": {}, "problem": ""}


def _job(row: Any) -> Job:
    return Job(**row._mapping)


def _suits(runner: Runner) -> sa.ColumnElement[bool]:
    is_ours = jobs.c.form == runner.form
    if runner.is_web:
        return is_ours
    return (
        is_ours
        & jobs.c.checkpoint.in_(["", *runner.checkpoint_keys])
        & jobs.c.device.in_(["", runner.device_kind])
        & (jobs.c.memory_bytes <= runner.memory_bytes)
    )
