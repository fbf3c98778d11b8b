"""The queue of print jobs: one at a time on a machine, a few for each client, ended when nobody waits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from app.handout import handout_printer
from app.handout.handout_printer import MAX_VISITOR_JOBS, HandoutPrinter, PrinterBusyError
from app.handout.options import HandoutError, HandoutOptions
from app.handout.print_child import MakeSheets
from app.handout.print_jobs import ABANDONED_AFTER_S, PrintJob
from app.handout.sheet_plan import plan_sheets
from app.machine.work_queue import Client
from tests.helpers.shipped import LIBRARY

FEW = HandoutOptions(sheets=2)
MANY = HandoutOptions(worksheet="head-of-a-model", variants=True, sheets=100, layout="full", key="with")


@pytest.fixture
def printers(tmp_path: Path) -> Iterator[tuple[HandoutPrinter, HandoutPrinter]]:
    """The printers of two workers on one data folder, whose jobs are not left for idle time."""
    new_printer = partial(HandoutPrinter, tmp_path, {}, start_limit_s=600, idle_time_only=False)
    pair = new_printer(), new_printer()
    yield pair
    for printer in pair:
        printer.close()


def start(
    printer: HandoutPrinter,
    options: HandoutOptions = FEW,
    client: str = "192.0.2.1",
    wait: threading.Event | None = None,
) -> PrintJob:
    """Start a job of a visitor; with `wait`, it holds its turn until that is set."""

    def prepare() -> MakeSheets:
        assert wait is None or wait.wait(600)
        return partial(plan_sheets, LIBRARY, options)

    return printer.start_job("A sheet", options, (), "", prepare, client=Client(client, is_member=False))


def finished(printer: HandoutPrinter, job: PrintJob) -> PrintJob:
    """The job once it is ready or has a problem."""
    for _ in range(12_000):
        found = printer.find_job(job.key, None)
        assert found
        if found.is_finished:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_jobs_of_all_workers_stand_in_one_queue(printers: tuple[HandoutPrinter, HandoutPrinter]) -> None:
    """In the order in which they came, and either worker tells how many come before."""
    here, there = printers
    go = threading.Event()
    first = start(here, wait=go)
    second, third = start(there, client="192.0.2.2"), start(here, client="192.0.2.3")
    assert [there.jobs_before(second), here.jobs_before(third)] == [1, 2]
    go.set()
    assert [finished(here, job).is_ready for job in (third, second, first)] == [True, True, True]
    pdfs = [here.find_pdf(finished(here, job)) for job in (first, second, third)]
    times = [pdf.stat().st_mtime for pdf in pdfs if pdf]
    assert times == sorted(times)
    assert len(times) == 3


@pytest.mark.slow
def test_a_client_has_a_few_jobs_in_the_queue_and_the_others_their_own(
    printers: tuple[HandoutPrinter, HandoutPrinter],
) -> None:
    """One visitor who asks again and again is refused with a sentence; the next visitor is not."""
    here, there = printers
    go = threading.Event()
    jobs = [start(printer, wait=go) for printer in (here, there, here)]
    assert len(jobs) == MAX_VISITOR_JOBS
    with pytest.raises(PrinterBusyError, match="Several of your handouts"):
        start(there)
    other = start(there, client="192.0.2.2")
    go.set()
    assert all(finished(here, job).is_ready for job in (*jobs, other))


def test_a_full_queue_refuses_everybody(
    printers: tuple[HandoutPrinter, HandoutPrinter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is full for the machine, whichever worker is asked."""
    monkeypatch.setattr(handout_printer, "MAX_QUEUED_JOBS", 2)
    here, there = printers
    go = threading.Event()
    jobs = [start(here, wait=go), start(there, client="192.0.2.2")]
    with pytest.raises(PrinterBusyError):
        start(here, client="192.0.2.3")
    go.set()
    assert all(finished(here, job).is_ready for job in jobs)


def test_a_cancelled_job_ends_at_once_and_leaves_nothing(
    printers: tuple[HandoutPrinter, HandoutPrinter], tmp_path: Path
) -> None:
    """Also from another worker, and in the middle of its work: the child is gone, and the next job has its turn."""
    here, there = printers
    job, next_job = start(here, MANY), start(there, client="192.0.2.2")
    while not (found := there.find_job(job.key, None)) or not found.has_started:
        time.sleep(0.02)
    there.cancel_job(found)
    assert finished(there, job).problem == "This handout was cancelled."
    assert finished(there, next_job).is_ready
    assert not list((tmp_path / "handouts").glob(f"{job.key}.pdf*"))


def test_a_job_that_nobody_waits_for_is_ended(
    printers: tuple[HandoutPrinter, HandoutPrinter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever closed the page does not keep others waiting."""
    monkeypatch.setattr(handout_printer, "VISITOR_GONE_AFTER_S", 0.0)
    monkeypatch.setattr(handout_printer, "HEARTBEAT_S", 0.0)
    here, there = printers
    job = start(here, MANY)
    assert "was closed" in finished(there, job).problem


def test_a_disk_that_takes_no_job_is_told_and_frees_the_turn(
    printers: tuple[HandoutPrinter, HandoutPrinter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the job cannot be stored, and where its end cannot; the next one is made."""
    here, _there = printers
    save = here._folder.save

    def refuse(_job: PrintJob) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(here._folder, "save", refuse)
    with pytest.raises(PrinterBusyError, match="disk"):
        start(here)
    monkeypatch.setattr(here._folder, "save", save)
    go = threading.Event()
    lost = start(here, wait=go)
    while not (found := here.find_job(lost.key, None)) or not found.has_started:
        time.sleep(0.02)
    monkeypatch.setattr(here._folder, "save", refuse)
    go.set()
    while any(thread.name.endswith("(_run_job)") for thread in threading.enumerate()):
        time.sleep(0.02)
    monkeypatch.setattr(here._folder, "save", save)
    os.utime(here._folder._file(lost.key, "json"), (time.time() - 2 * ABANDONED_AFTER_S,) * 2)
    assert finished(here, start(here, client="192.0.2.9")).is_ready


@pytest.mark.slow
def test_what_typst_took_is_given_back(printers: tuple[HandoutPrinter, HandoutPrinter]) -> None:
    """A hundred sheets with their key: this process has not grown, and a child that has is not kept."""
    here, _there = printers
    here.render_small(LIBRARY, FEW, "")
    before = psutil.Process().memory_info().rss
    assert here.render_small(LIBRARY, MANY, "").startswith(b"%PDF")
    assert psutil.Process().memory_info().rss - before < 30_000_000
    assert not here._quick_child.is_running


def test_more_versions_than_there_are_cost_nothing(printers: tuple[HandoutPrinter, HandoutPrinter]) -> None:
    """They are counted before anything is made: no child is started."""
    here, _there = printers
    with pytest.raises(HandoutError, match="at most 188 different versions"):
        here.preview(LIBRARY, HandoutOptions(worksheet="llama-7b", variants=True, sheets=190), "")
    with pytest.raises(HandoutError, match="only 1 version"):
        here.render_small(LIBRARY, HandoutOptions(worksheet="count-llama-7b", variants=True, sheets=2), "")
    assert not here._quick_child.is_running
