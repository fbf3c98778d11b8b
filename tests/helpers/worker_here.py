"""A worker in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from app.jobs import engine
from app.jobs.engine import EngineJobs
from app.jobs.jobs import Kind, queue_name
from app.store import Store
from app.store.jobs import JobKind, Worker

QUEUES: Mapping[JobKind, Sequence[str]] = {"run": [queue_name("run")], "handout": [queue_name("handout")]}


@contextmanager
def worker_here(
    store: Store,
    kinds: Mapping[JobKind, Kind],
    queues: Mapping[JobKind, Sequence[str]] = QUEUES,
    name: str = "here",
    concurrency: int = 1,
    **about: Any,
) -> Iterator[EngineJobs]:
    """Do a store's jobs of these kinds and queues until the end of this `with`; begins once the worker is listed."""
    jobs = EngineJobs(store.jobs, name)
    jobs.kinds.update(kinds)
    worker = Worker(name, [each for names in queues.values() for each in names], **about)
    database = store.engine.url.render_as_string(hide_password=False)
    stop, loops = asyncio.Event(), list[asyncio.AbstractEventLoop]()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await engine.serve_queues(jobs, database, worker, queues, concurrency, stop)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        give_up_at = time.monotonic() + 60
        while name not in {each.name for each in store.jobs.workers()}:
            assert time.monotonic() < give_up_at
            time.sleep(0.02)
        yield jobs
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()
