"""Handouts in child processes: ended when they take too much or are given up, and their memory given back."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
import pytest

from app.handout import handout_printer
from app.handout.handout_printer import HandoutPrinter, PrinterBusyError
from app.handout.options import HandoutError, HandoutOptions
from app.handout.sheet_plan import plan_sheets
from tests.helpers.own_sheets import with_own_worksheet
from tests.helpers.shipped import LIBRARY

FEW = HandoutOptions(sheets=2)
MANY = HandoutOptions(worksheet="softmax-of-a-model", variants=True, sheets=100, layout="full", key="with")


@pytest.fixture
def printer(tmp_path: Path) -> Iterator[HandoutPrinter]:
    """A printer whose large handouts are not left for idle time."""
    opened = HandoutPrinter(tmp_path, {}, start_limit_s=600, idle_time_only=False)
    yield opened
    opened.close()


def large(printer: HandoutPrinter, options: HandoutOptions, *callbacks: Callable[..., object]) -> bytes:
    """The PDF of a handout without names, made as a large one; the callbacks are told of its progress, and checks."""
    return printer.print_large(options, partial(plan_sheets, LIBRARY, options), "", {}, *callbacks)


def print_jobs() -> list[BaseProcess]:
    """The children that are at work on large handouts."""
    return [each for each in multiprocessing.active_children() if each.name == "print-job"]


@pytest.mark.slow
def test_a_handout_that_is_given_up_ends_its_child_at_once(printer: HandoutPrinter) -> None:
    progress = list[tuple[int, int]]()

    def give_up() -> None:
        if progress:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        large(printer, MANY, lambda *parts: progress.append(parts), give_up)
    assert not print_jobs()
    assert progress[0][0] < progress[0][1]
    assert large(printer, FEW).startswith(b"%PDF")


@pytest.mark.parametrize(
    ("limit", "sentence", "reason"),
    [("MAX_PRINT_MEMORY", "needs more memory", "no-memory"), ("JOB_LIMIT_S", "took too long", "too-long")],
)
def test_a_child_that_takes_too_much_is_ended_with_a_sentence(
    printer: HandoutPrinter, monkeypatch: pytest.MonkeyPatch, limit: str, sentence: str, reason: str
) -> None:
    monkeypatch.setattr(handout_printer, limit, 1)
    with pytest.raises(HandoutError, match=sentence) as failed:
        large(printer, MANY)
    assert failed.value.reason == reason
    assert not print_jobs()


@pytest.mark.slow
def test_a_child_that_is_killed_fails_its_handout_and_not_the_next(printer: HandoutPrinter) -> None:
    def kill(_done: int, _total: int) -> None:
        [child] = print_jobs()
        child.kill()

    with pytest.raises(PrinterBusyError, match="could not be created") as failed:
        large(printer, MANY, kill)
    assert failed.value.reason == "stopped"
    assert large(printer, FEW).startswith(b"%PDF")


@pytest.mark.slow
def test_what_typst_took_is_given_back(printer: HandoutPrinter) -> None:
    printer.render_small(LIBRARY, FEW, "")
    before = psutil.Process().memory_info().rss
    assert printer.render_small(LIBRARY, MANY, "").startswith(b"%PDF")
    assert psutil.Process().memory_info().rss - before < 30_000_000
    assert not printer._quick_child.is_running


def test_more_versions_than_there_are_cost_nothing(printer: HandoutPrinter) -> None:
    with pytest.raises(HandoutError, match="at most 188 different versions"):
        printer.preview(LIBRARY, HandoutOptions(worksheet="llama-7b", variants=True, sheets=190), "")
    one_model = with_own_worksheet(LIBRARY, "count-llama-7b", models=())
    with pytest.raises(HandoutError, match="only 1 version"):
        printer.render_small(one_model, HandoutOptions(worksheet="mine", variants=True, sheets=2), "")
    assert not printer._quick_child.is_running
