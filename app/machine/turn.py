"""A turn that one thread at a time has, among all threads of all processes on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FIRST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.05  # between two attempts to take the turn


class MachineTurn:
    """A lock on a file in the data folder; the system frees it when its process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def taken(self, wait: Callable[[], object]) -> Iterator[None]:
        """Hold the turn for this `with`, calling `wait()` repeatedly while somebody else has it."""
        file, look_s = None, FIRST_LOOK_S
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while file is not None and not _try_lock(file):
                wait()
                time.sleep(look_s)
                look_s = min(2 * look_s, LONGEST_LOOK_S)
            yield
        finally:
            if file is not None:
                os.close(file)  # closing it frees the lock


def _try_lock(file: int) -> bool:
    """Lock the open file; False if another descriptor holds the lock."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
