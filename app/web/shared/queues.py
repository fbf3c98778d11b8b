"""How many requests run and wait in this process's threads, as metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from app.metrics import Meters, meters
from app.web.shared.services import Services

QUEUES_NOTED_EVERY_S = 1.0


@asynccontextmanager
async def watch_queues(services: Services) -> AsyncIterator[None]:
    """Keep the metrics of the queues up to date until this `async with` ends."""
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
    while True:
        for kind, limiter in services.threads.items():
            kept.queue.labels(kind, "working").set(limiter.working)
            kept.queue.labels(kind, "waiting").set(limiter.waiting)
        await asyncio.sleep(QUEUES_NOTED_EVERY_S)
