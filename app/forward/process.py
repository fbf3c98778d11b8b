"""Runs heads for the web app in one warm child process, one at a time, so that the app itself stays small.

The child holds torch (190 MB, and seconds to load). It can be killed when a head takes too long, and takes its memory
with it when it goes.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from app.forward.lines import ForwardError
from app.forward.run import run_head
from app.models.architecture import Architecture

START_LIMIT_S = 120
IDLE_LIMIT_S = 300


class RunnerBusy(Exception):
    """As many calls as may wait are waiting already."""


class RunTooLong(Exception):
    """The head took longer than the time limit, and its process was killed."""


class RunnerFailed(Exception):
    """The child process ended or failed before it had a result, e.g. killed by the system for its memory."""


@dataclass(frozen=True)
class _Child:
    """The child process, and the parent's end of the pipe to it."""

    process: BaseProcess
    pipe: Connection


class HeadRunner:
    """Runs one head after the other in a child process, for any number of threads; each call waits for its result.

    time_limit_s: for one head, with torch loaded already.
    max_waiting: calls that may wait beside the one that runs; one more raises RunnerBusy.
    idle_limit_s: how long the child is kept without work. The next call starts another.
    """

    def __init__(self, time_limit_s: float = 60, max_waiting: int = 8, idle_limit_s: float = IDLE_LIMIT_S) -> None:
        self.time_limit_s, self.max_waiting, self.idle_limit_s = time_limit_s, max_waiting, idle_limit_s
        self._child_lock, self._count_lock = threading.Lock(), threading.Lock()
        self._calls, self._closed = 0, False  # calls that run or wait
        self._child: _Child | None = None
        self._idle_timer: threading.Timer | None = None

    def run(self, architecture: Architecture, tokens: int, **options: Any) -> dict[str, Any]:
        """Run `run_head` with these arguments in the child, and return `HeadRun.as_dict()`; blocks.

        Starts a child if none lives, and afterwards the timer that kills it when idle. Raises ForwardError if the head
        was refused, RunnerBusy, RunTooLong or RunnerFailed.
        """
        with self._queue_slot(), self._child_lock:
            if self._idle_timer:
                self._idle_timer.cancel()
            try:
                return self._run_in_child((architecture, tokens, options))
            finally:
                self._idle_timer = threading.Timer(self.idle_limit_s, self._end_child)
                self._idle_timer.daemon = True
                self._idle_timer.start()

    def close(self) -> None:
        """Kill the child at once and for good: the head that is running and every later call raise RunnerFailed."""
        self._closed = True
        if child := self._child:
            child.process.kill()  # without the lock, which the running call holds until its child answers or dies
        self._end_child()

    def _end_child(self) -> None:
        """Wait until no call uses the child, then kill it and cancel the idle timer.

        The idle timer calls this, and so does `close`.
        """
        with self._child_lock:
            if self._idle_timer:
                self._idle_timer.cancel()
            self._kill_child()

    @contextmanager
    def _queue_slot(self) -> Iterator[None]:
        """Count a call while it runs or waits; raises RunnerBusy at once if one runs and `max_waiting` others wait."""
        with self._count_lock:
            if self._calls > self.max_waiting:
                raise RunnerBusy
            self._calls += 1
        try:
            yield
        finally:
            with self._count_lock:
                self._calls -= 1

    def _run_in_child(self, job: tuple[Architecture, int, dict[str, Any]]) -> dict[str, Any]:
        """Send a job to the child and return its result.

        Raises ForwardError with the child's sentence if it refused, RunnerFailed if it failed or died, and RunTooLong
        after `time_limit_s`.
        """
        kind, answer = self._exchange(self._ready_child(), self.time_limit_s, job)
        if kind == "refused":
            raise ForwardError(answer)
        if kind == "failed":
            raise RunnerFailed
        return dict(answer)

    def _ready_child(self) -> _Child:
        """The living child, or a new one that has loaded torch; raises RunnerFailed after `close`.

        A new one that has not loaded torch after START_LIMIT_S is killed, with RunTooLong.
        """
        if self._closed:
            raise RunnerFailed
        if self._child is None or not self._child.process.is_alive():
            self._kill_child()
            self._child = _start_child()
            self._exchange(self._child, START_LIMIT_S)
        return self._child

    def _exchange(self, child: _Child, limit_s: float, job: object = None) -> tuple[str, Any]:
        """Send a job, if there is one, and wait for the child's next message: (kind, content).

        A child that says nothing in time is killed (RunTooLong), and so is one whose pipe broke (RunnerFailed); the
        next call starts another.
        """
        try:
            if job:
                child.pipe.send(job)
            if child.pipe.poll(limit_s):
                kind, content = child.pipe.recv()
                return kind, content
        except (EOFError, OSError):
            self._kill_child()
            raise RunnerFailed from None
        self._kill_child()
        raise RunTooLong

    def _kill_child(self) -> None:
        """Kill the child, if there is one, and wait until it is gone; the lock must be held."""
        if self._child:
            self._child.process.kill()
            self._child.process.join()
            self._child.pipe.close()
            self._child = None


def _start_child() -> _Child:
    """Start a child process that serves jobs, without waiting; its first message says that torch is loaded."""
    context = multiprocessing.get_context("spawn")  # a fork would take the app's threads and locks with it
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_jobs, args=(theirs,), name="head-runner", daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends when the child does
    return _Child(process, ours)


def _serve_jobs(pipe: Connection) -> None:
    """The child's main loop: load torch, say "ready", then one answer for every job until the app closes the pipe.

    Ctrl-C is ignored: it is the app's to answer.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch  # noqa: F401 - loading it belongs to the start, not to the first head's time

    pipe.send(("ready", None))
    while True:
        try:
            architecture, tokens, options = pipe.recv()
        except EOFError:
            return
        pipe.send(_run_job(architecture, tokens, options))


def _run_job(architecture: Architecture, tokens: int, options: dict[str, Any]) -> tuple[str, Any]:
    """The child's answer to one job: ("done", run), ("refused", sentence), or ("failed", None) with a log entry."""
    try:
        return "done", run_head(architecture, tokens, **options).as_dict()
    except ForwardError as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger(__name__).exception("a head failed")
        return "failed", None
