"""Runs heads in warm child processes, one at a time in each, so that the app itself stays small.

A child holds torch (190 MB, and seconds to load). It can be killed when a head takes too long, and its memory is freed
with it.
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
from app.forward.devices import device_name
from app.forward.hidden_states import HiddenStates, Report
from app.forward.lines import ForwardError
from app.forward.real_head import RealHead, run_real_head
from app.forward.run import USABLE_SHARE, HeadRun, available_device, run_head
from app.machine.child import START_LIMIT_S, TICK_S, ChildLost, ChildTooLarge, ChildTooSlow, WarmChild, enter_child
from app.machine.turn import MachineTurn
from app.models.architecture import Architecture
from app.translation import in_language, language

RUNNER_IDLE_LIMIT_S = 300
SHARE_OF_VISITORS = 0.5  # visitors' runs leave the other half of the free memory to the app

JobKind = Literal["head", "real head", "device"]


@dataclass(frozen=True)
class DeviceHere:
    """A device of this machine: "cuda", "mps" or "cpu" and its name for people."""

    device: str
    name: str


class RunTooLong(Exception):
    """The head took longer than the time limit, and its process was killed."""


class RunnerFailed(Exception):
    """The child process ended or failed without a result, e.g. killed by the system for its memory."""


class HeadRunner:
    """Runs heads in child processes, from any number of threads; each call waits for its result."""

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
        """Run `run_head` with these arguments and options in a child; blocks."""
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
        """Open a source's checkpoint and run `run_real_head` on it in a child, with these options; blocks."""
        arguments = (source, text, self._checkpoint_folders)
        answer = self._ask("real head", arguments, options, check, lambda layers: report(*layers))
        assert isinstance(answer, RealHead)  # noqa: S101 - as `_run_job` has it
        return answer

    def describe_device(self, check: Callable[[], object] = lambda: None) -> DeviceHere:
        """The default device; loads torch in a child, and raises as `run` does."""
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
        """Kill the children for good: running heads and all later calls raise RunnerFailed."""
        self._closed = True
        for child in self._children:
            child.close()


def _serve_jobs(pipe: Connection) -> None:
    cores = enter_child()
    import torch  # loading it belongs to the start, not to the first head's time

    torch.set_num_threads(min(torch.get_num_threads(), cores))
    states = HiddenStates()

    def real_head(source: str | Path, text: str, folders: Sequence[Path], **options: Any) -> RealHead:
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


def _describe_device(device: str | None, **_options: object) -> DeviceHere:
    device = available_device(device)
    return DeviceHere(device, device_name(device))


def _run_job(work: Callable[..., object], arguments: tuple[object, ...], options: dict[str, Any]) -> tuple[str, Any]:
    try:
        return "done", work(*arguments, **options)
    except (ForwardError, CheckpointError) as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger("attention_shapes").exception("a head failed")
        return "failed", None
