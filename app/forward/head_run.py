"""Runs a head or layer in the runner's process, and explains in one sentence why a run failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from app.forward.lines import ForwardError
from app.forward.process import HeadRunner, RunnerFailed, RunTooLong
from app.forward.program import check_modelled, is_layer, run_sizes, runnable_table
from app.forward.real_head import RealHead
from app.forward.run import HeadRun
from app.models.architecture import Architecture
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _

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
