"""One child process of the app, kept warm: started when needed, ended when idle, too slow or too large.

Work that takes seconds or much memory is done in a child, so that its memory is freed with it. Children run at lower
priority than the app, and are killed first if memory runs out.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from app.logs import configure_logging
from app.metrics import count_failure

START_LIMIT_S = 120
MAX_STARTS, PAUSE_BETWEEN_STARTS_S, REST_AFTER_FAILED_STARTS_S = 3, 0.5, 60
TICK_S = 0.1  # between two checks of a working child
NICENESS = 10
FIRST_TO_BE_KILLED = 1000  # the highest oom_score_adj

log = logging.getLogger("attention_shapes")

Message = tuple[str, Any]  # a child's message: kind and content


class ChildTooSlow(Exception):
    """The child took longer than its time limit, and was killed."""


class ChildTooLarge(Exception):
    """The child took more memory than it may, and was killed."""


class ChildLost(Exception):
    """The child ended without an answer, for example killed by the system for its memory."""


@dataclass(frozen=True)
class _Running:
    """The child process, and the parent's end of the pipe to it."""

    process: BaseProcess
    pipe: Connection


class WarmChild:
    """Asks one child process after another, from any number of threads; each call waits for its answer.

    `serve` is the child's main function.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[Connection], None],
        *,
        idle_limit_s: float,
        start_limit_s: float = START_LIMIT_S,
        memory_limit: int | None = None,
        kept_memory: int | None = None,
        idle_time_only: bool = False,
    ) -> None:
        self._name, self._serve = name, serve
        self.idle_limit_s, self.memory_limit, self.kept_memory = idle_limit_s, memory_limit, kept_memory
        self._start_limit_s, self._idle_time_only = start_limit_s, idle_time_only
        self._lock, self._closed = threading.Lock(), False
        self._running: _Running | None = None
        self._idle_timer: threading.Timer | None = None
        self._rests_until = float("-inf")  # after it failed to start

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def ask(
        self,
        job: object,
        time_limit_s: float,
        on_progress: Callable[[Any], object] = lambda _content: None,
        on_tick: Callable[[], object] = lambda: None,
    ) -> Message:
        """Send a job to the child and return its answer as (kind, content); errors of the job are answers.

        Raises ChildTooSlow, ChildTooLarge and ChildLost. After each the child is gone, and the next call starts
        another.
        """
        with self._lock:
            if self._idle_timer:
                self._idle_timer.cancel()
            try:
                child = self._ready_child(on_tick)
                try:
                    child.pipe.send(job)
                except OSError:
                    self._kill()
                    raise ChildLost from None
                return self._await_answer(child, time_limit_s, on_progress, on_tick)
            finally:
                self._rest()

    def close(self) -> None:
        """Kill the child for good: the running call and all later ones raise ChildLost."""
        self._closed = True
        if running := self._running:
            running.process.kill()  # without the lock, which the running call holds until its child answers or dies
        self._end()

    def _end(self) -> None:
        with self._lock:
            if self._idle_timer:
                self._idle_timer.cancel()
            self._kill()

    def _rest(self) -> None:
        if self._running is None:
            return
        too_large = self.kept_memory is not None and memory_of(self._running.process.pid) > self.kept_memory
        if too_large or self.idle_limit_s <= 0:
            self._kill()
            return
        self._idle_timer = threading.Timer(self.idle_limit_s, self._end)
        self._idle_timer.daemon = True
        self._idle_timer.start()

    def _ready_child(self, on_tick: Callable[[], object]) -> _Running:
        if not self._closed and self._running and self._running.process.is_alive():
            return self._running
        self._kill()
        for tries_left in reversed(range(MAX_STARTS)):
            if self._closed or time.monotonic() < self._rests_until:
                break
            self._running = running = self._start()
            with suppress(ChildLost):
                self._await_answer(running, self._start_limit_s, on_tick=on_tick)
                return running
            if tries_left:
                time.sleep(PAUSE_BETWEEN_STARTS_S)
            elif not self._closed:
                self._rests_until = time.monotonic() + REST_AFTER_FAILED_STARTS_S
                count_failure("child")
                reason = "the lines above are what it wrote"
                if getattr(sys.modules["__main__"], "__file__", None) == "<stdin>":
                    reason = "a program that was read from standard input cannot start any"
                log.error("the %s process ended with exit code %s before it was ready, %s times; next try in %s s: %s",
                          self._name, running.process.exitcode, MAX_STARTS, REST_AFTER_FAILED_STARTS_S,
                          reason)  # fmt: skip
        raise ChildLost

    def _start(self) -> _Running:
        context = multiprocessing.get_context("spawn")  # a fork would inherit the app's threads and locks
        ours, theirs = context.Pipe()
        process = context.Process(target=self._serve, args=(theirs,), name=self._name, daemon=True)
        process.start()
        if self._idle_time_only and process.pid:
            with suppress(OSError, AttributeError):  # only Linux has it
                os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
        theirs.close()  # so that the pipe ends when the child does
        return _Running(process, ours)

    def _await_answer(
        self,
        child: _Running,
        limit_s: float,
        on_progress: Callable[[Any], object] = lambda _content: None,
        on_tick: Callable[[], object] = lambda: None,
    ) -> Message:
        ends_at = time.monotonic() + limit_s
        try:
            while True:
                if child.pipe.poll(max(0.0, min(TICK_S, ends_at - time.monotonic()))):
                    kind, content = child.pipe.recv()
                    if kind != "progress":
                        return kind, content
                    on_progress(content)
                on_tick()
                if self.memory_limit is not None and memory_of(child.process.pid) > self.memory_limit:
                    raise ChildTooLarge
                if time.monotonic() >= ends_at:
                    raise ChildTooSlow
        except (EOFError, ConnectionError):
            child.process.join(TICK_S)  # so that its own exit code is known
            self._kill()
            raise ChildLost from None
        except BaseException:
            self._kill()
            raise

    def _kill(self) -> None:
        """Kill the child and wait until it is gone; the caller must hold the lock."""
        if self._running:
            self._running.process.kill()
            self._running.process.join()
            self._running.pipe.close()
            self._running = None


def enter_child() -> int:
    """Set up a child: its log, a low priority, ignoring Ctrl-C, and ending with the app."""
    configure_logging()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cores = _leave_a_core()
    with suppress(OSError, AttributeError):  # AttributeError: Windows
        os.nice(NICENESS)
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_BE_KILLED))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return cores


def _leave_a_core() -> int:
    try:
        cores = sorted(os.sched_getaffinity(0))
        others = cores[:-1] or cores
        os.sched_setaffinity(0, others)
        return len(others)
    except (OSError, AttributeError):  # only Linux has it
        return max(1, (os.cpu_count() or 2) - 1)


def memory_of(process_id: int | None) -> int:
    """A process's resident memory in bytes, or 0 if it can't be read."""
    import psutil

    with suppress(psutil.Error):
        return int(psutil.Process(process_id).memory_info().rss) if process_id else 0
    return 0


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
