"""A thread that tidies up while the app runs, every few minutes and, for other work, once a day."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.metrics import count_failure

from .turn import MachineTurn

TIDY_EVERY_S, DAY_S = 600, 24 * 3600
STOP_LIMIT_S = 5

log = logging.getLogger("attention_shapes")


class _SomebodyElseDoesError(Exception):
    """Another process of this machine is doing the daily work."""


class Housekeeper:
    """Calls `often` every TIDY_EVERY_S in every process, and `daily` once a day in one process of this machine.

    `folder` holds the lock for the daily work and a file that is touched when it is done.
    """

    def __init__(self, folder: Path, often: Callable[[], object], daily: Callable[[], object]) -> None:
        self._often, self._daily = often, daily
        self._turn, self._done = MachineTurn(folder / "housekeeping"), folder / "housekeeping-done"
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start tidying up every TIDY_EVERY_S."""
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after its current deletion; a longer statement is rolled back with the process."""
        self._stopped.set()
        if self._thread:
            self._thread.join(STOP_LIMIT_S)

    def tidy(self) -> None:
        """Do the frequent work, then the daily work if it is due, even if the frequent work fails."""
        for work in (self._often, self._do_daily_work):
            try:
                work()
            except Exception:  # a full disk or an unreachable database: the next time may go better
                log.exception("housekeeping failed")
                count_failure("housekeeping")

    def _do_daily_work(self) -> None:
        if self._is_due():
            with suppress(_SomebodyElseDoesError), self._turn.taken(_give_up):
                if self._is_due():
                    self._daily()
                    self._done.touch(mode=0o600)

    def _run(self) -> None:
        while not self._stopped.wait(TIDY_EVERY_S):
            self.tidy()

    def _is_due(self) -> bool:
        return not self._done.exists() or time.time() - self._done.stat().st_mtime > DAY_S


def _give_up() -> None:
    raise _SomebodyElseDoesError
