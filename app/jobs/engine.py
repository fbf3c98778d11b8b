"""Jobs on several machines, with PostgreSQL: the library procrastinate hands them to workers.

Our row decides whether a job counts; the engine's job only says which row to start. The engine doesn't notice jobs of
dead processes, and its workers end when the database does: `sweep` and the loop in `serve_queues` are ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import procrastinate
import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from app.store.jobs import JobKind, Worker, jobs

from .jobs import Jobs, note_failure

TASK = "work"
SIGN_EVERY_S = 5.0  # between two heartbeats of a worker, each of which also looks for silent jobs
RETRY_S = 0.5
PUT_BACK_AFTER_S = 3.0  # from the signal to stop until jobs at work are put back
POLL_S = 1.0  # for jobs that a worker wasn't notified of
STALLED_AFTER_S = 20.0  # without a heartbeat of the engine, which looks for it only when one of its workers starts

_engine_jobs = sa.table("procrastinate_jobs", sa.column("id"), sa.column("status"), sa.column("worker_id"))
_STATUS = sa.cast(_engine_jobs.c.status, sa.Text)
# A job being done has no worker once the engine has given its worker up for dead.
_IS_MISSING = ~sa.exists().where(
    _engine_jobs.c.id == jobs.c.engine_id, (_STATUS == "todo") | _engine_jobs.c.worker_id.is_not(None)
)


class EngineJobs(Jobs):
    """Leaves jobs to workers, of which there must be one for each queue."""

    has_workers = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # It is never opened, and knows the task only by name. The worker's own can't defer in our transactions, since
        # its connections are asynchronous.
        self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())

    def workers(self) -> tuple[Worker, ...]:
        """The workers that are alive or probably restarting."""
        return tuple(worker for worker in self.rows.workers() if worker.is_expected)

    def serves(self, queue: str) -> bool:
        """Whether a worker takes jobs of a queue."""
        return any(queue in worker.queues for worker in self.workers())

    def defer(self, connection: sa.Connection, job_id: int, queue: str, priority: int) -> int | None:
        """Give a job to the engine in the caller's transaction, and return the engine's id for it."""
        driver = cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)
        task = self._deferring.configure_task(TASK, queue=queue, priority=priority, connection=driver)
        return task.defer(job_id=job_id)

    def tidy(self) -> None:
        """Delete what has expired, and see to jobs that no worker takes, since nobody else may be there to do so."""
        super().tidy()
        self.sweep()

    def sweep(self) -> None:
        """See to jobs that are silent, lost by the engine, or taken by nobody."""
        stalled = sa.func.procrastinate_prune_stalled_workers_v1(STALLED_AFTER_S)
        left_over = sa.delete(_engine_jobs).where(_STATUS == "doing", _engine_jobs.c.worker_id.is_(None))
        with self.rows.transaction() as connection:
            connection.execute(sa.select(stalled))
            connection.execute(left_over)
        # A silent job gets a new job of the engine. If the engine retried the old one, a paused process that wakes up
        # could end it while another process does the job.
        self.rows.sweep(self.defer, _IS_MISSING)


async def serve_queues(
    jobs: EngineJobs,
    database: str,
    worker: Worker,
    queues: Mapping[JobKind, Sequence[str]],
    concurrency: int,
    stop: asyncio.Event,
) -> None:
    """Do jobs of these queues until `stop` is set, `concurrency` of each kind at a time; outlives the database."""
    address = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(concurrency * len(queues) + 2))
    limits = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    connector = procrastinate.PsycopgConnector(conninfo=address, min_size=1, max_size=2, timeout=3, kwargs=limits)
    app = procrastinate.App(connector=connector)
    app.task(name=TASK)(jobs.do)
    beside = [asyncio.create_task(_sign(jobs, worker)), asyncio.create_task(_put_back(jobs, stop))]
    while not stop.is_set():
        with suppress(procrastinate.exceptions.ConnectorException, psycopg.OperationalError):
            # The engine's pool would wait up to 30 s between two attempts to connect.
            await (await psycopg.AsyncConnection.connect(address, connect_timeout=5)).close()
            async with app.open_async():
                await _serve(app, queues, concurrency, stop)
        if not stop.is_set():  # the engine's workers end with the database's connections
            await asyncio.sleep(RETRY_S)
    for task in beside:
        task.cancel()


async def _serve(
    app: procrastinate.App, queues: Mapping[JobKind, Sequence[str]], concurrency: int, stop: asyncio.Event
) -> None:
    """One worker of the engine for each kind, or handouts would take the places of runs; until one of them ends."""
    serving = [
        asyncio.create_task(
            app.run_worker_async(
                queues=names,
                concurrency=concurrency,
                name=kind,
                install_signal_handlers=False,
                delete_jobs="always",
                fetch_job_polling_interval=POLL_S,
                update_heartbeat_interval=5,
                stalled_worker_timeout=STALLED_AFTER_S,
            )
        )
        for kind, names in queues.items()
    ]
    told = asyncio.create_task(stop.wait())
    await asyncio.wait([*serving, told], return_when=asyncio.FIRST_COMPLETED)
    for task in (*serving, told):
        task.cancel()  # a worker then waits for its jobs
    await asyncio.gather(*serving, return_exceptions=True)


async def _put_back(jobs: EngineJobs, stop: asyncio.Event) -> None:
    """Put jobs back a while after `stop`. The engine's own limit for them also counts when the database goes away."""
    await stop.wait()
    await asyncio.sleep(PUT_BACK_AFTER_S)
    jobs.stopping.set()


async def _sign(jobs: EngineJobs, worker: Worker) -> None:
    is_lost = False
    while True:
        try:
            await asyncio.to_thread(jobs.rows.sign_on, worker)
            await asyncio.to_thread(jobs.sweep)
            is_lost = False
        except Exception:
            if not is_lost:
                note_failure()
            is_lost = True
        await asyncio.sleep(SIGN_EVERY_S)
