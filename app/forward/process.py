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
from app.checkpoints.files import open_checkpoint
from app.forward.lines import ForwardError
from app.forward.program import check_modelled, is_layer, run_sizes, runnable_table
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

FailureReason = Literal["busy", "too-long", "stopped"]
NotRunReason = Literal["refused"] | FailureReason


class HeadNotRun(ValueError):
    """A head or layer that wasn't run; `str()` is the sentence to show."""

    def __init__(self, sentence: str, reason: NotRunReason) -> None:
        super().__init__(sentence)
        self.reason = reason


def run_sheet(runner: HeadRunner, variant: Variant, **options: Any) -> HeadRun:
    """Run the head or layer that a sheet asks about, with `options` for `run_architecture`; blocks. Raises
    HeadNotRun.
    """
    architecture, tokens, of_sheet = parts_of_sheet(variant)
    return run_architecture(runner, architecture, tokens, **of_sheet, **options)


def parts_of_sheet(variant: Variant) -> tuple[Architecture, int, dict[str, Any]]:
    """What `run_sheet` runs: (architecture, number of tokens, `run_head`'s options "topic" and "decoder_tokens")."""
    topic = variant.worksheet.topic
    options: dict[str, Any] = {"topic": topic}
    if TOPICS[topic].reads_two_texts:
        options["decoder_tokens"] = variant.problem.sizes["M"]
    return variant.architecture if is_layer(topic) else variant.model.architecture, variant.tokens, options


def run_architecture(runner: HeadRunner, architecture: Architecture, tokens: int, **options: Any) -> HeadRun:
    """Run one head or layer of an architecture."""
    check_runnable(architecture, tokens, options.get("topic", SINGLE_HEAD.key), options.get("decoder_tokens"))
    with _failures_told():
        return runner.run(architecture, tokens, **options)


def check_runnable(architecture: Architecture, tokens: int, topic: str, decoder_tokens: int | None) -> None:
    """Raise HeadNotRun, "refused", if no program fits the model and topic, or the model can't take the tokens."""
    with _failures_told():
        run_sizes(topic, architecture, tokens, decoder_tokens)
        runnable_table(topic, architecture, tokens)
        check_modelled(architecture, topic)


def run_checkpoint(runner: HeadRunner, source: str, text: str, **options: Any) -> RealHead:
    with _failures_told(is_real=True):
        return runner.run_real_head(source, text, **options)


@contextmanager
def _failures_told(*, is_real: bool = False) -> Iterator[None]:
    try:
        yield
    except ForwardError as refusal:
        raise HeadNotRun(str(refusal), "refused") from None
    except RunTooLong:
        raise HeadNotRun(why_not_run("too-long", is_real=is_real), "too-long") from None
    except RunnerFailed:
        raise HeadNotRun(why_not_run("stopped", is_real=is_real), "stopped") from None


def why_not_run(reason: FailureReason, *, is_real: bool = False) -> str:
    """The sentence on why the runner has no result, and what to try instead."""
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
    return sentences[reason]


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
