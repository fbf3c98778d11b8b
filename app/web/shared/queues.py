"""How many requests work and wait in the threads of this process, for whoever watches the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from anyio import CapacityLimiter
from anyio.to_thread import current_default_thread_limiter

from app.metrics import Meters, meters
from app.web.shared.services import Services

QUEUES_NOTED_EVERY_S = 1.0


@asynccontextmanager
async def watch_queues(services: Services) -> AsyncIterator[None]:
    """Keep the metrics of the queues up to date with `_watch` until this `async with` ends, which stops it."""
    kept = meters()
    if kept is None:
        yield
        return
    watching = asyncio.create_task(_watch(services, kept))
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _watch(services: Services, kept: Meters) -> None:
    limiters: dict[str, CapacityLimiter] = {"other": current_default_thread_limiter()}
    limiters.update((kind, limiter) for kind, limiter in services.threads.items())
    while True:
        for kind, limiter in limiters.items():
            statistics = limiter.statistics()
            kept.queue.labels(kind, "working").set(statistics.borrowed_tokens)
            kept.queue.labels(kind, "waiting").set(statistics.tasks_waiting)
        await asyncio.sleep(QUEUES_NOTED_EVERY_S)
