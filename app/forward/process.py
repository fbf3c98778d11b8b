"""Runs heads in warm child processes, one at a time in each, so that the app itself stays small.

A child holds torch (190 MB, and seconds to load). It can be killed when a head takes too long, and its memory is freed
with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Literal

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import open_checkpoint
from app.forward.lines import ForwardError
from app.forward.program import runnable_table
from app.forward.real_head import HiddenStates, RealHead, Report, run_real_head
from app.forward.run import USABLE_SHARE, HeadRun, available_device, device_name, run_head
from app.machine.child import START_LIMIT_S, TICK_S, ChildLost, ChildTooLarge, ChildTooSlow, WarmChild, enter_child
from app.machine.turn import MachineTurn
from app.models.architecture import Architecture
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _
from app.translation import in_language, language

RUNNER_IDLE_LIMIT_S = 300
SHARE_OF_VISITORS = 0.5  # visitors' runs leave the other half of the free memory to the app

FailureReason = Literal["busy", "too-long", "stopped"]
JobKind = Literal["head", "real head", "device"]


def not_run(reason: FailureReason, *, is_real: bool = False) -> ForwardError:
    """The error of a run without a result, with what to try instead."""
    sentences: dict[FailureReason, str] = {
        "busy": _("Too many runs are in progress. Try again in a minute."),
        "too-long": _(
            "This run took more than a minute and was stopped. Choose fewer tokens, or the meta device, which works "
            "out shapes without computing numbers."
        ),
        "stopped": _(
            "The run stopped before it finished, perhaps because memory ran out. Try again with fewer tokens or on the "
            "meta device."
        ),
    }
    if is_real:
        sentences |= {
            "too-long": _(
                "This run took more than a minute and was stopped. Shorten the sentence, or choose a layer nearer to "
                "the input, which has fewer layers below it."
            ),
            "stopped": _(
                "The run stopped before it finished, perhaps because memory ran out. Try again with a shorter sentence."
            ),
        }
    return ForwardError(sentences[reason], reason)


def run_sheet(runner: HeadRunner, variant: Variant, **options: Any) -> HeadRun:
    """Run the head or layer that a sheet asks about; blocks."""
    topic = TOPICS[variant.worksheet.topic]
    architecture = variant.architecture if topic.is_layer else variant.model.architecture
    if topic.reads_two_texts:
        options["decoder_tokens"] = variant.problem.sizes["M"]
    return run_architecture(runner, architecture, variant.tokens, topic=topic.key, **options)


def run_architecture(runner: HeadRunner, architecture: Architecture, tokens: int, **options: Any) -> HeadRun:
    """Run one head or layer of an architecture; blocks. What can't run is refused before a child is needed."""
    runnable_table(options.get("topic", SINGLE_HEAD.key), architecture, tokens, options.get("decoder_tokens"))
    return runner.run(architecture, tokens, **options)


class HeadRunner:
    """Runs heads in child processes, from any number of threads; each call waits for its result.

    Raises ForwardError if there is none.
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
        """Run `run_head` with these arguments and options."""
        run: HeadRun = self._ask("head", (architecture, tokens), options, check)
        return run

    def run_real_head(
        self,
        source: str | Path,
        text: str,
        *,
        check: Callable[[], object] = lambda: None,
        report: Report = lambda _done, _total: None,
        **options: Any,
    ) -> RealHead:
        """Open a source's checkpoint and run `run_real_head` on it with these options."""
        arguments = (source, text, self._checkpoint_folders)
        head: RealHead = self._ask("real head", arguments, options, check, lambda layers: report(*layers))
        return head

    def describe_device(self, check: Callable[[], object] = lambda: None) -> tuple[str, str]:
        """The default device, such as "cuda", and its name for people; loads torch in a child."""
        device: tuple[str, str] = self._ask("device", (), {}, check)
        return device

    def _ask(
        self,
        kind: JobKind,
        arguments: tuple[object, ...],
        options: dict[str, Any],
        check: Callable[[], object],
        on_progress: Callable[[Any], object] = lambda _content: None,
    ) -> Any:
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
            raise not_run("too-long", is_real=kind == "real head") from None
        except (ChildLost, ChildTooLarge):
            raise not_run("stopped", is_real=kind == "real head") from None
        if outcome == "refused":
            raise ForwardError(answer)
        if outcome == "failed":
            raise not_run("stopped", is_real=kind == "real head")
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
        """Kill the children for good: running heads and all later calls raise ForwardError, "stopped"."""
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


def _describe_device(device: str | None, **_options: object) -> tuple[str, str]:
    device = available_device(device)
    return device, device_name(device)


def _run_job(work: Callable[..., object], arguments: tuple[object, ...], options: dict[str, Any]) -> tuple[str, Any]:
    try:
        return "done", work(*arguments, **options)
    except (ForwardError, CheckpointError) as refusal:
        return "refused", str(refusal)
    except Exception:
        logging.getLogger("attention_shapes").exception("a head failed")
        return "failed", None
