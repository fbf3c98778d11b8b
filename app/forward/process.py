"""Runs heads in warm child processes, one at a time in each, so that the app itself stays small.

A child holds torch (190 MB, and seconds to load). It can be killed when a head takes too long, and takes its memory
with it when it goes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Literal

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.sources import open_checkpoint
from app.forward.devices import available_bytes, device_name
from app.forward.hidden_states import HiddenStates, Report
from app.forward.lines import ForwardError
from app.forward.real_head import RealHead, run_real_head
from app.forward.run import USABLE_SHARE, HeadRun, available_device, run_head
from app.machine.child import START_LIMIT_S, TICK_S, ChildLost, ChildTooLarge, ChildTooSlow, WarmChild, enter_child
from app.machine.turn import MachineTurn
from app.models.architecture import Architecture
from app.translation import in_language, language

RUNNER_IDLE_LIMIT_S = 300
SHARE_OF_VISITORS = 0.5  # of the free memory: what anybody may start leaves the other half to the app

JobKind = Literal["head", "real head", "device"]


@dataclass(frozen=True)
class DeviceHere:
    """A device of this machine: "cuda", "mps" or "cpu", its name for people, and the free bytes that a run may take."""

    device: str
    name: str
    usable_bytes: int


class RunTooLong(Exception):
    """The head took longer than the time limit, and its process was killed."""


class RunnerFailed(Exception):
    """The child process ended or failed before it had a result, e.g. killed by the system for its memory."""


class HeadRunner:
    """Runs heads in child processes, for any number of threads; each call waits for its result.

    children: how many heads may run at the same time, each in a child of its own; further calls wait.
    device: where a head runs whose call names no device; None for the fastest there is.
    time_limit_s: for one head, with torch loaded already.
    idle_limit_s: how long a child is kept without work. The next call starts another.
    start_limit_s: how long a child may take to load torch.
    turn: held during a run, so that one head at a time runs on a machine with several workers; None for no others.
    memory_share: the share of the free memory that all children may take together.
    checkpoint_folders: the folders from which weights may be opened.
    """

    def __init__(
        self,
        time_limit_s: float = 60,
        idle_limit_s: float = RUNNER_IDLE_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
        turn: MachineTurn | None = None,
        memory_share: float = USABLE_SHARE,
        checkpoint_folders: Sequence[Path] = (),
        children: int = 1,
        device: str | None = None,
    ) -> None:
        """Make the children, all idle and none started yet; each gets an equal part of `memory_share`."""
        self.time_limit_s, self.memory_share = time_limit_s, memory_share / children
        self._turn, self._device, self._closed = turn, device, False
        self._checkpoint_folders = tuple(checkpoint_folders)
        self._children = [
            WarmChild("head-runner", _serve_jobs, idle_limit_s=idle_limit_s, start_limit_s=start_limit_s)
            for _ in range(children)
        ]
        self._idle = LifoQueue[WarmChild]()  # the one that worked last is the warmest
        for child in reversed(self._children):
            self._idle.put(child)

    def run(
        self, architecture: Architecture, tokens: int, *, check: Callable[[], object] = lambda: None, **options: Any
    ) -> HeadRun:
        """Run `run_head` with these arguments and options in a child; blocks until its result is there.

        `check` is called again and again; what it raises ends the run. Raises ForwardError if the head was refused,
        RunTooLong after the time limit, and RunnerFailed if the child failed or this runner is closed.
        """
        answer = self._ask("head", (architecture, tokens), options, check)
        assert isinstance(answer, HeadRun)  # noqa: S101 - as `_run_job` has it
        return answer

    def run_real_head(
        self,
        source: str | Path,
        text: str,
        *,
        check: Callable[[], object] = lambda: None,
        report: Report = lambda _done, _total: None,
        **options: Any,
    ) -> RealHead:
        """Open the checkpoint of a source and run `run_real_head` on it in a child, with these options; blocks.

        The source must be in the runner's checkpoint folders. The child keeps what it computed last, so that another
        layer or head of the same text takes less time if the same child does it. `report` is called with the layers
        below that have run, and how many there are to run. `check` and what is raised are as in `run`; a checkpoint
        that cannot be used is a ForwardError, too.
        """
        arguments = (source, text, self._checkpoint_folders)
        answer = self._ask("real head", arguments, options, check, lambda layers: report(*layers))
        assert isinstance(answer, RealHead)  # noqa: S101 - as `_run_job` has it
        return answer

    def describe_device(self, check: Callable[[], object] = lambda: None) -> DeviceHere:
        """The device where heads run whose call names none; loads torch in a child, and raises as `run` does.

        A machine without that device is a ForwardError. `usable_bytes` is the share of one child.
        """
        answer = self._ask("device", (), {}, check)
        assert isinstance(answer, DeviceHere)  # noqa: S101 - as `_run_job` has it
        return answer

    def _ask(
        self,
        kind: JobKind,
        arguments: tuple[object, ...],
        options: dict[str, Any],
        check: Callable[[], object],
        on_progress: Callable[[Any], object] = lambda _content: None,
    ) -> object:
        """Have a child do a job as soon as one is idle, and return its result.

        It also waits for this machine's turn, if the runner has one. The job is done in this thread's language, on the
        runner's device unless the options name another (None names none), and with the memory share of one child unless
        they name another. `on_progress` is called with what the child reports on the way, and `check` again and again,
        while waiting and during the job. Raises ForwardError, with the child's sentence, if the job is refused,
        RunTooLong after the time limit, for which waiting doesn't count, RunnerFailed if the child fails, is lost or
        takes too much memory, or if this runner is closed, and what `check` raises.
        """

        def wait() -> None:
            if self._closed:
                raise ChildLost
            check()

        try:
            with self._idle_child(wait) as child, self._turn.taken(wait) if self._turn else nullcontext():
                device = options.get("device") or self._device
                job = language(), kind, arguments, {"usable_share": self.memory_share, **options, "device": device}
                outcome, answer = child.ask(job, self.time_limit_s, on_progress, on_tick=check)
        except ChildTooSlow:
            raise RunTooLong from None
        except (ChildLost, ChildTooLarge):
            raise RunnerFailed from None
        if outcome == "refused":
            raise ForwardError(answer)
        if outcome == "failed":
            raise RunnerFailed
        return answer

    @contextmanager
    def _idle_child(self, wait: Callable[[], object]) -> Iterator[WarmChild]:
        """Take an idle child, the one that worked last, for this `with`, and make it idle again at its end.

        That is also done after an exception. It waits without limit: before each attempt to take a child it calls
        `wait()`, whose exceptions end the waiting.
        """
        child: WarmChild | None = None
        while child is None:
            wait()
            with suppress(Empty):
                child = self._idle.get(timeout=TICK_S)
        try:
            yield child
        finally:
            self._idle.put(child)

    def close(self) -> None:
        """Kill the children at once and for good: each head that is running and every later call raise RunnerFailed."""
        self._closed = True
        for child in self._children:
            child.close()


def _serve_jobs(pipe: Connection) -> None:
    """The child's main loop: load torch, say "ready", then one answer for every job until the app closes the pipe.

    Torch gets at most as many threads as the child may use cores. A job is (language, kind, arguments, options), and is
    done in that language; the answer is that of `_run_job`. While a real head runs, ("progress", (layers run, layers to
    run)) is sent ahead of the answer. The hidden states of real heads are kept from one job to the next.
    """
    cores = enter_child()
    import torch  # loading it belongs to the start, not to the first head's time

    torch.set_num_threads(min(torch.get_num_threads(), cores))
    states = HiddenStates()

    def real_head(source: str | Path, text: str, folders: Sequence[Path], **options: Any) -> RealHead:
        """Open a checkpoint and run a head of it, from the kept `states`.

        While it runs, ("progress", (layers run, layers to run)) is sent through the pipe.
        """
        checkpoint = open_checkpoint(source, folders)
        return run_real_head(
            checkpoint, text, states=states, report=lambda *layers: pipe.send(("progress", layers)), **options
        )

    work: Mapping[JobKind, Callable[..., object]]
    work = {"head": run_head, "real head": real_head, "device": _describe_device}
    pipe.send(("ready", None))
    while True:
        try:
            spoken, kind, arguments, options = pipe.recv()
        except EOFError:
            return
        pipe.send(in_language(spoken, _run_job, work[kind], arguments, options))


def _describe_device(device: str | None, usable_share: float) -> DeviceHere:
    """The device asked for, or the fastest one, with its name and `usable_share` of its free bytes, 0 for meta."""
    device = available_device(device)
    return DeviceHere(device, device_name(device), int(usable_share * (available_bytes(device) or 0)))


def _run_job(work: Callable[..., object], arguments: tuple[object, ...], options: dict[str, Any]) -> tuple[str, Any]:
    """The child's answer to one job: ("done", what `work` returned), ("refused", sentence), or ("failed", None).

    A ForwardError and a CheckpointError are refusals, which are not logged. Any other Exception is logged, with its
    traceback but without the arguments: a text that somebody typed is in no log.
    """
    try:
        return "done", work(*arguments, **options)
    except (ForwardError, CheckpointError) as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger("attention_shapes").exception("a head failed")
        return "failed", None
