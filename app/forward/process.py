"""Runs heads for the web app in one warm child process, one at a time, so that the app itself stays small.

The child holds torch (190 MB, and seconds to load). It can be killed when a head takes too long, and takes its memory
with it when it goes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from multiprocessing.connection import Connection
from typing import Any

from app.forward.lines import ForwardError
from app.forward.run import USABLE_SHARE, HeadRun, run_head
from app.machine.child import START_LIMIT_S, ChildLost, ChildTooLarge, ChildTooSlow, WarmChild, enter_child
from app.machine.turn import MachineTurn
from app.machine.work_queue import THE_APP, Client, QueueFullError, WorkQueue
from app.models.architecture import Architecture
from app.translation import in_language, language

RUNNER_IDLE_LIMIT_S = 300
MAX_WAITING_RUNS = 20  # on one machine
SHARE_OF_MEMBERS = 1 / 3  # of the places: visitors leave them to teachers and enrolled students
SHARE_OF_VISITORS = 0.5  # of the free memory: what anybody may start leaves the other half to the app


class RunnerBusy(Exception):
    """As many calls wait as may, of everybody or of this client, or a visitor's run had to give way."""


class RunTooLong(Exception):
    """The head took longer than the time limit, and its process was killed."""


class RunnerFailed(Exception):
    """The child process ended or failed before it had a result, e.g. killed by the system for its memory."""


class HeadRunner:
    """Runs one head after the other in a child process, for any number of threads; each call waits for its result.

    time_limit_s: for one head, with torch loaded already.
    max_waiting: calls that may wait beside the one that runs; one more raises RunnerBusy. A third of the places is
    kept for teachers and enrolled students, and a network of visitors may take half of the rest.
    idle_limit_s: how long the child is kept without work. The next call starts another.
    start_limit_s: how long the child may take to load torch.
    turn: held during a run, so that one head at a time runs on a machine with several workers; None for no others.
    memory_share: the share of the free memory that one run may take.
    """

    def __init__(
        self,
        time_limit_s: float = 60,
        max_waiting: int = MAX_WAITING_RUNS,
        idle_limit_s: float = RUNNER_IDLE_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
        turn: MachineTurn | None = None,
        memory_share: float = USABLE_SHARE,
    ) -> None:
        self.time_limit_s, self.max_waiting, self.memory_share = time_limit_s, max_waiting, memory_share
        places = max_waiting + 1
        reserved = int(SHARE_OF_MEMBERS * places)
        self._queue = WorkQueue(places, reserved=reserved, of_visitor=max(1, (places - reserved) // 2))
        self._turn, self._closed = turn, False
        self._child = WarmChild("head-runner", _serve_jobs, idle_limit_s=idle_limit_s, start_limit_s=start_limit_s)

    def run(
        self,
        architecture: Architecture,
        tokens: int,
        *,
        client: Client = THE_APP,
        check: Callable[[], object] = lambda: None,
        **options: Any,
    ) -> HeadRun:
        """Run `run_head` with these arguments in the child; blocks.

        `client` decides whose run is next. `check` is called again and again; what it raises ends the run. Raises
        ForwardError if the head was refused, RunnerBusy, RunTooLong or RunnerFailed.
        """

        def wait() -> None:
            self._check_open()
            check()

        def work() -> None:
            self._queue.check_patience(client)
            check()

        try:
            with self._queue.turn(client, wait), self._turn.taken(wait) if self._turn else nullcontext():
                job = language(), architecture, tokens, {"usable_share": self.memory_share, **options}
                kind, answer = self._child.ask(job, self.time_limit_s, on_tick=work)
        except QueueFullError:
            raise RunnerBusy from None
        except ChildTooSlow:
            raise RunTooLong from None
        except (ChildLost, ChildTooLarge):
            raise RunnerFailed from None
        if kind == "refused":
            raise ForwardError(answer)
        if kind == "failed":
            raise RunnerFailed
        assert isinstance(answer, HeadRun)  # noqa: S101 - as `_run_job` has it
        return answer

    def close(self) -> None:
        """Kill the child at once and for good: the head that is running and every later call raise RunnerFailed."""
        self._closed = True
        self._child.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ChildLost


def _serve_jobs(pipe: Connection) -> None:
    """The child's main loop: load torch, say "ready", then one answer for every job until the app closes the pipe."""
    cores = enter_child()
    import torch  # loading it belongs to the start, not to the first head's time

    torch.set_num_threads(min(torch.get_num_threads(), cores))
    pipe.send(("ready", None))
    while True:
        try:
            spoken, architecture, tokens, options = pipe.recv()
        except EOFError:
            return
        pipe.send(in_language(spoken, _run_job, architecture, tokens, options))


def _run_job(architecture: Architecture, tokens: int, options: dict[str, Any]) -> tuple[str, Any]:
    """The child's answer to one job: ("done", run), ("refused", sentence), or ("failed", None) with a log entry."""
    try:
        return "done", run_head(architecture, tokens, **options)
    except ForwardError as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger("attention_shapes").exception("a head failed")
        return "failed", None
