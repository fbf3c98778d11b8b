"""How many requests and jobs wait, as metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from app.metrics import Meters, meters
from app.web.shared.services import Services

QUEUES_NOTED_EVERY_S, JOBS_NOTED_EVERY_S = 1.0, 10.0


@asynccontextmanager
async def watch_queues(services: Services) -> AsyncIterator[None]:
    """Keep the metrics of the queues up to date until this `async with` ends."""
    kept = meters()
    if kept is None:
        yield
        return
    watching = [asyncio.create_task(watch(services, kept)) for watch in (_watch_threads, _watch_jobs)]
    try:
        yield
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def _watch_threads(services: Services, kept: Meters) -> None:
    while True:
        for kind, limiter in services.threads.items():
            kept.queue.labels(kind, "working").set(limiter.working)
            kept.queue.labels(kind, "waiting").set(limiter.waiting)
        await asyncio.sleep(QUEUES_NOTED_EVERY_S)


async def _watch_jobs(services: Services, kept: Meters) -> None:
    names = set[str]()
    while True:
        with suppress(SQLAlchemyError):  # the database doesn't answer, which has a metric of its own
            names = await asyncio.to_thread(_note_jobs, services, kept, names)
        await asyncio.sleep(JOBS_NOTED_EVERY_S)


def _note_jobs(services: Services, kept: Meters, names: set[str]) -> set[str]:
    """Set the gauges of jobs; `names` are the queues noted so far, of which some may be empty by now."""
    queues, workers = {queue.name: queue for queue in services.jobs.rows.queues()}, services.jobs.rows.workers()
    for name in names | queues.keys():
        kept.jobs_waiting.labels(name).set(queues[name].waiting if name in queues else 0)
    since = min((queue.oldest for queue in queues.values() if queue.oldest), default=None)
    kept.oldest_job.set(max(timedelta(), services.store.now() - since).total_seconds() if since else 0)
    kept.workers.set(sum(worker.is_alive for worker in workers))
    return names | queues.keys()
