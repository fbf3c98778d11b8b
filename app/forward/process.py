"""Real heads for the web app: one warm child process runs them one at a time, so that the app itself stays small.

The child holds torch (190 MB and seconds to load), can be stopped when a head takes too long, and takes its memory
with it when it goes.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from app.forward.run import ForwardError, run_head
from app.models.architecture import Architecture

START_LIMIT_S = 120
IDLE_LIMIT_S = 300


class RunnerBusy(Exception):
    """As many heads as may wait are waiting already."""


class RunTooLong(Exception):
    """The head took longer than the time limit and was stopped."""


class RunnerFailed(Exception):
    """The child ended or failed before it had a result, e.g. killed by the system for its memory."""


@dataclass(frozen=True)
class _Child:
    process: BaseProcess
    pipe: Connection


class HeadRunner:
    """Runs heads for the threads of the app, each call waiting for its turn and for its result.

    time_limit_s: for one head, torch already loaded. max_waiting: calls that may wait beside the one that runs.
    """

    def __init__(self, time_limit_s: float = 60, max_waiting: int = 8, idle_limit_s: float = IDLE_LIMIT_S) -> None:
        self.time_limit_s, self.max_waiting, self.idle_limit_s = time_limit_s, max_waiting, idle_limit_s
        self._turn, self._count = threading.Lock(), threading.Lock()
        self._inside, self._closed = 0, False
        self._child: _Child | None = None
        self._idle: threading.Timer | None = None

    def run(self, architecture: Architecture, tokens: int, **options: Any) -> dict[str, Any]:
        """`run_head` with these arguments, as plain data.

        Raises ForwardError with its sentence, RunnerBusy, RunTooLong or RunnerFailed.
        """
        with self._blank(), self._turn:
            if self._idle:
                self._idle.cancel()
            try:
                return self._ask((_plain(architecture), tokens, options))
            finally:
                self._idle = threading.Timer(self.idle_limit_s, self._rest)
                self._idle.daemon = True
                self._idle.start()

    def close(self) -> None:
        """End the child at once, with the app: the head that is running, and every later one, ends as RunnerFailed."""
        self._closed = True
        if child := self._child:
            child.process.kill()
        self._rest()

    def _rest(self) -> None:
        with self._turn:
            if self._idle:
                self._idle.cancel()
            self._stop()

    @contextmanager
    def _blank(self) -> Iterator[None]:
        with self._count:
            if self._inside > self.max_waiting:
                raise RunnerBusy
            self._inside += 1
        try:
            yield
        finally:
            with self._count:
                self._inside -= 1

    def _ask(self, job: tuple[Architecture, int, dict[str, Any]]) -> dict[str, Any]:
        kind, answer = self._answer(self._ready_child(), self.time_limit_s, job)
        if kind == "refused":
            raise ForwardError(answer)
        if kind == "failed":
            raise RunnerFailed
        return dict(answer)

    def _ready_child(self) -> _Child:
        if self._closed:
            raise RunnerFailed
        if self._child is None or not self._child.process.is_alive():
            self._stop()
            self._child = _started()
            self._answer(self._child, START_LIMIT_S)
        return self._child

    def _answer(self, child: _Child, limit_s: float, job: object = None) -> tuple[str, Any]:
        """What the child says next; one that says nothing in time is stopped, and the next run starts another."""
        try:
            if job:
                child.pipe.send(job)
            if child.pipe.poll(limit_s):
                kind, answer = child.pipe.recv()
                return kind, answer
        except (EOFError, OSError):
            self._stop()
            raise RunnerFailed from None
        self._stop()
        raise RunTooLong

    def _stop(self) -> None:
        if self._child:
            self._child.process.kill()
            self._child.process.join()
            self._child.pipe.close()
            self._child = None


def _started() -> _Child:
    context = multiprocessing.get_context("spawn")  # a fork would take the app's threads and locks with it
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), name="head-runner", daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends when the child does
    return _Child(process, ours)


def _serve(pipe: Connection) -> None:
    """The child: one answer a job, until the app closes its end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is the app's to answer
    import torch  # noqa: F401 - loading it belongs to the start, not to the first head's time

    pipe.send(("ready", None))
    while True:
        try:
            architecture, tokens, options = pipe.recv()
        except EOFError:
            return
        pipe.send(_answered(architecture, tokens, options))


def _answered(architecture: Architecture, tokens: int, options: dict[str, Any]) -> tuple[str, Any]:
    try:
        return "done", run_head(architecture, tokens, **options).as_dict()
    except ForwardError as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger(__name__).exception("a head failed")
        return "failed", None


def _plain(architecture: Architecture) -> Architecture:
    """The same Architecture with a plain dict of rope_scaling: a read-only mapping does not pass through a pipe."""
    rotary = architecture.rotary
    return replace(architecture, rotary=replace(rotary, scaling=dict(rotary.scaling))) if rotary else architecture
