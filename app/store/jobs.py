"""Jobs as rows: their order, progress and results, and the workers that do them; see app/jobs/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

from app.machine.work_queue import Client
from app.translation import gettext as _
from app.translation import in_language, language

from .limits import insist
from .queries import OpenDatabase, QueryBase
from .tables import MAX_PROBLEM, UtcDateTime, metadata

JobKind = Literal["handout", "run", "head"]
JobEnd = Literal["ready", "failed", "cancelled"]
JobState = Literal["waiting", "working"] | JobEnd

JOB_RETENTION = timedelta(hours=1)  # for results and for what was typed: a PDF holds names of students
ROW_RETENTION = timedelta(days=1)  # for a job's outcome, shown to operators
WORKER_RETENTION = timedelta(hours=1)
SILENT_AFTER = timedelta(seconds=15)  # a job's process, or a worker, is gone after this long without a heartbeat
RESTARTS_WITHIN = timedelta(seconds=60)  # a worker that is gone for less is probably restarting
OVERDUE_AFTER = timedelta(minutes=10)  # a job that no worker takes fails after this long
MAX_ATTEMPTS = 3  # starts of a job whose process ended during it
PRIORITY_OF_MEMBERS = 1000
_LIMITS_LOCK = 7303  # on PostgreSQL, with the kind: held from counting jobs until another one is stored
_FORGOTTEN = "~"  # begins the keys of jobs that nobody may find any more

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),  # part of the job's address; for a run, its id
    Column("kind", String(20), nullable=False),
    Column("queue", String(40), nullable=False),  # the workers that may take it: see queue_name
    Column("client", String(100), nullable=False),  # the owner: a network, or a member such as "teacher 3"
    Column("is_member", Boolean, nullable=False),
    Column("teacher_id", ForeignKey("teachers.id", ondelete="CASCADE"), index=True),  # the only one who may see it
    # it is deleted with the person who typed it: a browser, or a student
    Column("visitor_id", ForeignKey("visitors.id", ondelete="CASCADE"), index=True),
    Column("student_id", ForeignKey("students.id", ondelete="CASCADE"), index=True),
    Column("about", JSON, nullable=False),  # what its page shows
    Column("arguments", JSON, nullable=False),  # what its work needs
    Column("request_id", String(20), nullable=False),  # for log lines
    Column("language", String(20), nullable=False),  # the language of the result and its sentences
    Column("priority", Integer, nullable=False),  # the highest goes first
    Column("state", String(10), nullable=False),
    Column("engine_id", BigInteger),  # procrastinate's job that starts it
    Column("attempt", Integer, nullable=False),  # how often it was started; only the last start may store anything
    Column("worker", Text, nullable=False),  # the process that started it last
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),  # the latest start; null before the first, and once it is put back
    Column("heard_at", UtcDateTime, nullable=False),  # the last heartbeat, or the end
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    # for the person who asked for it: may quote what they typed
    Column("problem", String(MAX_PROBLEM), nullable=False),
    Column("reason", String(20), nullable=False),  # why it failed, without anything that somebody typed
    Column("result", LargeBinary),
    sqlite_autoincrement=True,
)
Index(None, jobs.c.kind, jobs.c.state)

workers = Table(
    "workers",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("queues", JSON, nullable=False),
    Column("device", String(20), nullable=False),  # such as cpu or cuda
    Column("device_name", String(200), nullable=False),
    Column("checkpoints", JSON, nullable=False),  # its description of each
    Column("version", String(20), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("heard_at", UtcDateTime, nullable=False),  # its last heartbeat
)


def create_engine_tables(connection: sa.Connection) -> None:
    """Create the tables of procrastinate, which hands jobs to workers, on PostgreSQL."""
    if connection.dialect.name != "postgresql":
        return
    from procrastinate.schema import SchemaManager  # not at the top: most installations don't need it

    driver = cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)
    driver.execute(SchemaManager.get_schema())  # SQLAlchemy would take its % for parameters


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Whether Alembic should compare this part of a database: the engine's tables aren't in our metadata."""
    return kind != "table" or not str(name).startswith("procrastinate_")


@dataclass(frozen=True)
class Job:
    """A job in its current state; `about` is what its page shows, `before` how many go before it."""

    id: int
    key: str
    kind: JobKind
    queue: str
    client: str
    is_member: bool
    teacher_id: int | None
    about: Mapping[str, Any]
    request_id: str
    language: str
    state: JobState
    attempt: int
    worker: str
    created_at: datetime
    started_at: datetime | None
    heard_at: datetime
    done: int
    total: int
    problem: str
    reason: str
    before: int = 0

    @property
    def is_working(self) -> bool:
        return self.state == "working"

    @property
    def ending(self) -> JobEnd | None:
        return None if self.state == "waiting" or self.state == "working" else self.state

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total


@dataclass(frozen=True)
class Worker:
    """A process that does jobs of some queues; `checkpoints` describes the real weights on its machine."""

    name: str
    queues: Sequence[str]
    device: str = "cpu"
    device_name: str = ""
    checkpoints: Sequence[Mapping[str, Any]] = ()
    version: str = ""
    started_at: datetime | None = None
    heard_at: datetime | None = None
    is_alive: bool = True
    is_expected: bool = True  # alive, or probably restarting


@dataclass(frozen=True)
class JobQueue:
    """How many jobs of a queue wait and run, and when the oldest waiting one was queued."""

    name: str
    waiting: int
    working: int
    oldest: datetime | None


@dataclass(frozen=True)
class JobLimits:
    """How many jobs of a kind may wait or run: in total, and for visitors, one network and one member.

    `visitor_hourly` and `member_hourly` limit how many each may queue per hour.
    """

    total: int
    visitors: int
    visitor: int
    member: int
    visitor_hourly: int = 10**9
    member_hourly: int = 10**9


class JobRefusedError(Exception):
    """A job wasn't queued: no room ("full"), too many of this client's, or no worker that would take it."""

    def __init__(self, reason: Literal["full", "yours", "hourly", "no-worker"]) -> None:
        super().__init__(reason)
        self.reason = reason


# The result of a job: bytes stored with the job, or a function that stores the result elsewhere. The function is called
# in the transaction that ends the job, unless the job has been cancelled.
Result = bytes | Callable[[], object]
# Gives a waiting job to the engine, in the transaction that stores the job, and returns the engine's id for it.
Defer = Callable[[sa.Connection, int, str, int], int | None]

_SHOWN = [jobs.c[field.name] for field in fields(Job) if field.name != "before"]
_WAITS, _WORKS = jobs.c.state == "waiting", jobs.c.state == "working"
_OPEN = jobs.c.state.in_(("waiting", "working"))
_OTHER = jobs.alias()


def undeferred(_connection: sa.Connection, _job_id: int, _queue: str, _priority: int) -> None:
    """Give a job to no engine: the process that queued it does it."""


def no_worker() -> str:
    """The sentence about a job that no worker takes."""
    return _(
        "The part of this server that runs heads and makes handouts is down. Try again in a minute; if that doesn’t "
        "help, tell the server’s operator to start a worker."
    )


class JobTable(QueryBase):
    """The rows of jobs and workers. On PostgreSQL all times are the database's: machines' clocks need not agree."""

    def __init__(self, database: OpenDatabase) -> None:
        super().__init__(database)
        self._is_postgresql = self.engine.dialect.name == "postgresql"
        # Built once: every job's page asks for it each second, and building it takes longer than the answer.
        self._found = self._build_found()
        self._find = self._found.where(jobs.c.key == sa.bindparam("job_key"))

    def add(
        self,
        kind: JobKind,
        queue: str,
        client: Client,
        limits: JobLimits,
        key: str,
        *,
        about: Mapping[str, Any],
        arguments: Mapping[str, Any],
        request_id: str = "-",
        teacher_id: int | None = None,
        visitor_id: int | None = None,
        student_id: int | None = None,
        along: Callable[[], object] = lambda: None,
        defer: Defer = undeferred,
    ) -> Job:
        """Queue a job and return it; raises JobRefusedError if `limits` are reached.

        `along` is called in the same transaction, after these checks.
        """
        with self.transaction() as connection:
            mine = self._check_limits(connection, kind, client, limits)
            along()
            at, priority = self._time(), (PRIORITY_OF_MEMBERS if client.is_member else 0) - mine
            job = {"key": key, "kind": kind, "queue": queue, "client": client.key, "is_member": client.is_member,
                   "teacher_id": teacher_id, "visitor_id": visitor_id, "student_id": student_id, "about": dict(about),
                   "arguments": dict(arguments), "request_id": request_id, "language": language(),
                   "priority": priority, "state": "waiting", "attempt": 0, "worker": "", "created_at": at,
                   "heard_at": at, "done": 0, "total": 1, "problem": "", "reason": ""}  # fmt: skip
            insert = sa.insert(jobs).values(job).returning(jobs.c.id)
            job_id = connection.execute(insert).scalar_one()
            if engine_id := defer(connection, job_id, queue, priority):
                connection.execute(sa.update(jobs).where(jobs.c.id == job_id).values(engine_id=engine_id))
            return _job(connection.execute(self._find, {"job_key": key}).one())

    def _check_limits(self, connection: sa.Connection, kind: JobKind, client: Client, limits: JobLimits) -> int:
        """How many open jobs the client has."""
        if self._is_postgresql:  # whose transactions would count the same jobs at the same time
            lock = sa.func.pg_advisory_xact_lock(_LIMITS_LOCK, sa.func.hashtext(kind))
            connection.execute(sa.select(lock))
        count, is_recent = sa.func.count(), jobs.c.created_at > self._time(timedelta(hours=1))
        is_own = (jobs.c.client == client.key) & (jobs.c.is_member == client.is_member)
        counted = sa.select(
            count.filter(_OPEN),
            count.filter(_OPEN, ~jobs.c.is_member),
            count.filter(_OPEN, is_own),
            count.filter(is_recent, is_own),
        )
        total, visitors, mine, hourly = connection.execute(counted.where(jobs.c.kind == kind, _OPEN | is_recent)).one()
        if total >= limits.total or (not client.is_member and visitors >= limits.visitors):
            raise JobRefusedError("full")
        if client.key and mine >= (limits.member if client.is_member else limits.visitor):
            raise JobRefusedError("yours")
        if client.key and hourly >= (limits.member_hourly if client.is_member else limits.visitor_hourly):
            raise JobRefusedError("hourly")
        return int(mine)

    def find(self, key: str) -> Job | None:
        """A job with its place, even if it has ended; None if it is unknown or deleted."""
        if "\0" in key or key.startswith(_FORGOTTEN):  # PostgreSQL would refuse the query with \0
            return None
        row = self._fetch_one(self._find, job_key=key)
        return _job(row) if row else None

    def find_numbered(self, job_id: int) -> Job | None:
        """The job with that id, deleted or not; None if it is unknown or ended a day ago."""
        row = self._fetch_one(self._found.where(jobs.c.id == job_id))
        return _job(row) if row else None

    def count(self, kind: JobKind) -> int:
        """How many jobs of a kind wait or run."""
        return int(self._fetch_one(sa.select(sa.func.count()).where(jobs.c.kind == kind, _OPEN))[0])

    def first_waiting(self, kind: JobKind) -> int | None:
        """The id of the job to start next."""
        order = (jobs.c.priority.desc(), jobs.c.id)
        row = self._fetch_one(sa.select(jobs.c.id).where(jobs.c.kind == kind, _WAITS).order_by(*order).limit(1))
        return row.id if row else None

    def begin(self, job_id: int, worker: str) -> tuple[Job, Mapping[str, Any]] | None:
        """Start a waiting job and return it with its arguments; None if it doesn't wait any more."""
        start = sa.update(jobs).where(jobs.c.id == job_id, _WAITS).returning(*_SHOWN, jobs.c.arguments)
        at = self._time()
        values = {"state": "working", "worker": worker, "started_at": at, "heard_at": at, "attempt": jobs.c.attempt + 1}
        with self.transaction() as connection:
            row = connection.execute(start.values(values)).one_or_none()
        if row is None:
            return None
        shown = dict(row._mapping)
        arguments = shown.pop("arguments")
        return Job(**shown), arguments

    def progress(self, job: Job, done: int, total: int) -> bool:
        """Store a heartbeat and the progress; False, storing nothing, if the job has ended or was restarted."""
        return self._update(job, heard_at=self._time(), done=done, total=total)

    def put_back(self, job: Job) -> None:
        """Let a started job wait again; this start doesn't count."""
        self._update(job, state="waiting", done=0, attempt=job.attempt - 1, started_at=None, worker="")

    def finish(self, job: Job, end: JobEnd, problem: str = "", result: Result = b"", reason: str = "") -> None:
        """Store a job's end and result, unless it has already ended or was restarted elsewhere.

        Tries again for half a minute while the database can't work.
        """
        ended = {"state": end, "problem": problem[:MAX_PROBLEM], "reason": reason}
        data = result if isinstance(result, bytes) else None

        def store() -> None:
            with self.transaction():
                if self._update(job, heard_at=self._time(), result=data, **ended) and callable(result):
                    result()

        insist(store)

    def cancel(self, job: Job) -> bool:
        """Cancel a waiting or running job; False if it has already ended."""
        end = {"state": "cancelled", "heard_at": self._time()}
        return self._execute(sa.update(jobs).where(jobs.c.id == job.id, _OPEN).values(end)) == 1

    def result(self, job: Job) -> bytes:
        """The bytes that a job's work returned; b"" without any."""
        row = self._fetch_one(sa.select(jobs.c.result).where(jobs.c.id == job.id))
        return bytes(row.result or b"") if row else b""

    def arguments(self, job: Job) -> Mapping[str, Any]:
        """What a job's work needs; empty for a deleted job."""
        row = self._fetch_one(sa.select(jobs.c.arguments).where(jobs.c.id == job.id))
        arguments: Mapping[str, Any] = row.arguments if row else {}
        return arguments

    def delete(self, job: Job) -> None:
        """Cancel a job unless it has ended, and delete its arguments, problem, description and result."""
        with self.transaction():
            self.cancel(job)
            self._forget(jobs.c.id == job.id)

    def delete_expired(self) -> None:
        """Delete what has expired: first what somebody typed and its result, later the row; and workers that ended."""
        with self.transaction():
            self._forget(~_OPEN, jobs.c.heard_at < self._time(JOB_RETENTION), jobs.c.client != "")
            self._execute(sa.delete(jobs).where(~_OPEN, jobs.c.heard_at < self._time(ROW_RETENTION)))
            self._execute(sa.delete(workers).where(workers.c.heard_at < self._time(WORKER_RETENTION)))

    def _forget(self, *condition: sa.ColumnElement[bool]) -> None:
        nobody = {"client": "", "teacher_id": None, "visitor_id": None, "student_id": None}
        nothing: dict[str, Any] = {"about": {}, "arguments": {}, "problem": "", "result": None}
        key = sa.literal(_FORGOTTEN) + sa.cast(jobs.c.id, Text)
        self._execute(sa.update(jobs).where(*condition).values(key=key, **nobody, **nothing))

    def sweep(self, defer: Defer = undeferred, is_missing: sa.ColumnElement[bool] | None = None) -> None:
        """Let jobs wait again whose process fell silent, and fail those that it happened to too often.

        With an engine, the same for waiting jobs that it lost (`is_missing`); and jobs fail that no worker takes.
        """
        is_silent = _WORKS & (jobs.c.heard_at < self._time(SILENT_AFTER))
        is_overdue: sa.ColumnElement[bool] = sa.false()
        if is_missing is not None:
            served = [queue for worker in self.workers() if worker.is_expected for queue in worker.queues]
            is_overdue = _WAITS & (jobs.c.created_at < self._time(OVERDUE_AFTER)) & jobs.c.queue.not_in(served)
            is_silent |= _WAITS & is_missing
        found = sa.select(*_SHOWN, jobs.c.priority, is_overdue.label("is_overdue")).where(is_silent | is_overdue)
        if not self._fetch_all(found):  # the usual case takes no lock
            return
        with self.transaction() as connection:
            for row in connection.execute(found.with_for_update(skip_locked=True)).all():
                change: dict[str, Any] = {"state": "failed", "heard_at": self._time()}
                if row.is_overdue:
                    change |= {"problem": in_language(row.language, no_worker), "reason": "no-worker"}
                elif row.attempt >= MAX_ATTEMPTS:
                    change |= {"problem": in_language(row.language, _lost), "reason": "lost"}
                else:
                    change = {"state": "waiting", "done": 0, "started_at": None, "worker": "",
                              "engine_id": defer(connection, row.id, row.queue, row.priority)}  # fmt: skip
                connection.execute(sa.update(jobs).where(jobs.c.id == row.id).values(change))

    # For operators

    def queues(self) -> tuple[JobQueue, ...]:
        """Every queue in which jobs wait or run, by name."""
        count = sa.func.count()
        oldest = sa.func.min(jobs.c.created_at).filter(_WAITS)
        numbers = sa.select(jobs.c.queue, count.filter(_WAITS), count.filter(_WORKS), oldest)
        rows = self._fetch_all(numbers.where(_OPEN).group_by(jobs.c.queue).order_by(jobs.c.queue))
        return tuple(JobQueue(*row) for row in rows)

    def open_jobs(self, limit: int) -> tuple[Job, ...]:
        """Running jobs, then waiting ones, the oldest first."""
        rows = self._fetch_all(self._found.where(_OPEN).order_by(_WORKS.desc(), jobs.c.id).limit(limit))
        return tuple(map(_job, rows))

    def failed(self, limit: int) -> tuple[Job, ...]:
        """Failed jobs, the newest end first."""
        order = (jobs.c.heard_at.desc(), jobs.c.id.desc())
        rows = self._fetch_all(self._found.where(jobs.c.state == "failed").order_by(*order).limit(limit))
        return tuple(map(_job, rows))

    # Workers

    def sign_on(self, worker: Worker) -> None:
        """Store a worker and a heartbeat, replacing what is stored under its name."""
        said = {"queues": list(worker.queues), "device": worker.device, "device_name": worker.device_name,
                "checkpoints": [dict(each) for each in worker.checkpoints], "version": worker.version,
                "heard_at": self._time()}  # fmt: skip
        insert = self._insert_into(workers).values({"name": worker.name, "started_at": self._time(), **said})
        self._execute(insert.on_conflict_do_update(index_elements=[workers.c.name], set_=said))

    def workers(self) -> tuple[Worker, ...]:
        """Every worker of the last hour by name, including silent ones."""
        is_alive = (workers.c.heard_at >= self._time(SILENT_AFTER)).label("is_alive")
        is_expected = (workers.c.heard_at >= self._time(RESTARTS_WITHIN)).label("is_expected")
        rows = self._fetch_all(sa.select(workers, is_alive, is_expected).order_by("name"))
        return tuple(Worker(**row._mapping) for row in rows)

    # What the queries share

    def _update(self, job: Job, **values: Any) -> bool:
        start = (jobs.c.id == job.id, jobs.c.attempt == job.attempt, _WORKS)
        return self._execute(sa.update(jobs).where(*start).values(values)) == 1

    def _time(self, ago: timedelta = timedelta()) -> sa.ColumnElement[Any]:
        if self._is_postgresql:
            return sa.func.clock_timestamp() - sa.literal(ago, sa.Interval())
        return sa.bindparam(None, callable_=lambda: self.now() - ago, type_=UtcDateTime(), unique=True)

    def _build_found(self) -> sa.Select[Any]:
        goes_first = sa.tuple_(-_OTHER.c.priority, _OTHER.c.id) < sa.tuple_(-jobs.c.priority, jobs.c.id)
        is_before = (_OTHER.c.state == "working") | ((_OTHER.c.state == "waiting") & goes_first)
        before = sa.select(sa.func.count()).where(_OTHER.c.kind == jobs.c.kind, is_before).scalar_subquery()
        return sa.select(*_SHOWN, sa.case((_WAITS, before), else_=0).label("before"))


def _job(row: Any) -> Job:
    return Job(**row._mapping)


def _lost() -> str:
    return _("This was lost because the process working on it stopped. Start it again.")
