"""A server's worker processes: one that ends is replaced, unless they all end as they start."""

from __future__ import annotations

import logging
import time
from socket import socket
from typing import Any

from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors import Multiprocess

EARLY_S = 10  # a worker that ends within this time of its start hasn't done any work
MAX_EARLY_ENDS = 3  # in a row, of any workers

log = logging.getLogger("attention_shapes")


class Workers(Multiprocess):
    """uvicorn's supervisor with a limit: uvicorn would replace a worker that can't start twice a second for ever."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self.keep_dying = False  # set once it has given up
        self._early_ends, self._seen = 0, dict[Any, float]()  # each process, and when it was first seen

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that have ended or hang (these are killed); uvicorn calls this again and again."""
        now, before = time.monotonic(), list(self.processes)
        for process in before:
            self._seen.setdefault(process, now)
        super().keep_subprocess_alive()
        for process in before:
            if process in self.processes:
                self.keep_dying |= process.exitcode == STARTUP_FAILURE
                continue
            self._early_ends = self._early_ends + 1 if now - self._seen.pop(process) < EARLY_S else 0
            if self._early_ends >= MAX_EARLY_ENDS:
                log.error("workers end as soon as they start, with exit code %s: stopping", process.exitcode)
                self.keep_dying = True
                self.should_exit.set()
                return
