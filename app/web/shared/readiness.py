"""Whether the database can store something, asked at most once a second, however many ask."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from anyio import CapacityLimiter, Lock, fail_after
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from app.store.limits import Failure, failure_of

CHECK_LIMIT_S = 3
HOLDS_S = 1.0
log = logging.getLogger("attention_shapes")


class Readiness:
    """Asks the database for all who want to know; otherwise one client could hold the answer back from a balancer."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check, self._lock = check, Lock()
        self._thread = CapacityLimiter(1)  # which no request shares, so that it works while all others wait
        self._problem, self._holds_until = "", 0.0

    async def problem(self) -> str:
        """Why nothing can be stored, for the operator; "" if it can."""
        async with self._lock:
            if time.monotonic() >= self._holds_until:
                self._problem = await self._ask()
                self._holds_until = time.monotonic() + HOLDS_S
            return self._problem

    async def _ask(self) -> str:
        try:
            with fail_after(CHECK_LIMIT_S):
                await run_sync(self._check, limiter=self._thread, abandon_on_cancel=True)
        except TimeoutError:
            return Failure.SILENT.value
        except (SQLAlchemyError, OSError) as error:
            if failure := failure_of(error):
                return failure.value
            log.exception("the database refused a health check")
            return "the database refuses a health check: see the log"
        return ""
