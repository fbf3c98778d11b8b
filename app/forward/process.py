"""Runs heads for the web app in one warm child process, one at a time, so that the app itself stays small.

The child holds torch (190 MB, and seconds to load). It can be killed when a head takes too long, and takes its memory
with it when it goes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.sources import open_checkpoint
from app.forward.hidden_states import HiddenStates, Report
from app.forward.lines import ForwardError
from app.forward.real_head import RealHead, run_real_head
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


JobKind = Literal["head", "real head"]


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
    checkpoint_folders: the folders from which weights may be opened.
    """

    def __init__(
        self,
        time_limit_s: float = 60,
        max_waiting: int = MAX_WAITING_RUNS,
        idle_limit_s: float = RUNNER_IDLE_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
        turn: MachineTurn | None = None,
        memory_share: float = USABLE_SHARE,
        checkpoint_folders: Sequence[Path] = (),
    ) -> None:
        self.time_limit_s, self.max_waiting, self.memory_share = time_limit_s, max_waiting, memory_share
        places = max_waiting + 1
        reserved = int(SHARE_OF_MEMBERS * places)
        self._queue = WorkQueue(places, reserved=reserved, of_visitor=max(1, (places - reserved) // 2))
        self._turn, self._closed = turn, False
        self._checkpoint_folders = tuple(checkpoint_folders)
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
        answer = self._ask("head", (architecture, tokens), options, client, check)
        assert isinstance(answer, HeadRun)  # noqa: S101 - as `_run_job` has it
        return answer

    def run_real_head(
        self,
        source: str | Path,
        text: str,
        *,
        client: Client = THE_APP,
        check: Callable[[], object] = lambda: None,
        report: Report = lambda _done, _total: None,
        **options: Any,
    ) -> RealHead:
        """Open the checkpoint of a source and run `run_real_head` on it in the child, with these options; blocks.

        The child keeps what it computed last, so that another layer or head of the same text takes less time. `report`
        is called with the layers below that have run, and how many there are to run. As for `run` otherwise; a
        checkpoint that cannot be used is a ForwardError, too.
        """
        arguments = (source, text, self._checkpoint_folders)
        answer = self._ask("real head", arguments, options, client, check, lambda layers: report(*layers))
        assert isinstance(answer, RealHead)  # noqa: S101 - as `_run_job` has it
        return answer

    def _ask(
        self,
        kind: JobKind,
        arguments: tuple[object, ...],
        options: dict[str, Any],
        client: Client,
        check: Callable[[], object],
        on_progress: Callable[[Any], object] = lambda _content: None,
    ) -> object:
        """Have the child do a job when it is the client's turn, and return its result or raise as `run` does."""

        def wait() -> None:
            self._check_open()
            check()

        def look() -> None:
            self._queue.check_patience(client)
            check()

        try:
            with self._queue.turn(client, wait), self._turn.taken(wait) if self._turn else nullcontext():
                job = language(), kind, arguments, {"usable_share": self.memory_share, **options}
                outcome, answer = self._child.ask(job, self.time_limit_s, on_progress, on_tick=look)
        except QueueFullError:
            raise RunnerBusy from None
        except ChildTooSlow:
            raise RunTooLong from None
        except (ChildLost, ChildTooLarge):
            raise RunnerFailed from None
        if outcome == "refused":
            raise ForwardError(answer)
        if outcome == "failed":
            raise RunnerFailed
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
    states = HiddenStates()
    work: Mapping[JobKind, Callable[..., object]] = {
        "head": run_head,
        "real head": partial(_run_real_head, states, lambda *layers: pipe.send(("progress", layers))),
    }
    pipe.send(("ready", None))
    while True:
        try:
            spoken, kind, arguments, options = pipe.recv()
        except EOFError:
            return
        pipe.send(in_language(spoken, _run_job, work[kind], arguments, options))


def _run_real_head(
    states: HiddenStates, report: Report, source: str | Path, text: str, folders: Sequence[Path], **options: Any
) -> RealHead:
    """Open a checkpoint and run a head of it, from the `states` that the child keeps."""
    checkpoint = open_checkpoint(source, folders)
    return run_real_head(checkpoint, text, states=states, report=report, **options)


def _run_job(work: Callable[..., object], arguments: tuple[object, ...], options: dict[str, Any]) -> tuple[str, Any]:
    """The child's answer to one job: ("done", run), ("refused", sentence), or ("failed", None) with a log entry.

    A log entry has no arguments: a text that somebody typed is in no log.
    """
    try:
        return "done", work(*arguments, **options)
    except (ForwardError, CheckpointError) as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger("attention_shapes").exception("a head failed")
        return "failed", None
