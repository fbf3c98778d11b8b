"""Jobs that web processes on one machine do themselves, and what becomes of them in trouble."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.jobs import jobs as jobs_module
from app.jobs.inline import InlineJobs
from app.jobs.jobs import Kind, Task
from app.logs import REQUEST_ID, LogFormatter
from app.machine.work_queue import Client
from app.store import Store, limits
from app.store.jobs import MAX_ATTEMPTS, SILENT_AFTER, Job, JobTable
from tests.helpers.clock import CLOCK, age_jobs
from tests.helpers.queued_jobs import MANY, MEMBER, VISITOR, add_job, found_job, start_first


class Works:
    """What two processes do with their jobs: note them in `order`, and wait while `gate` is closed."""

    def __init__(self, store: Store) -> None:
        self.store, self.order = store, list[str]()
        self.gate = threading.Event()
        self.gate.set()
        self.processes = [self.new_process(), self.new_process()]

    def new_process(self) -> InlineJobs:
        """Jobs of one more process on the same database."""
        process = InlineJobs(self.store.jobs, "here")
        process.kinds["handout"] = Kind(self.work, MANY)
        return process

    def work(self, task: Task) -> bytes:
        """Note the job, wait while the gate is closed, and return or raise what its arguments say."""
        self.order.append(task.job.key)
        task.report(1, 4)
        while not self.gate.wait(0.02):
            task.check()
        if problem := task.arguments.get("problem"):
            raise ValueError(problem) if problem != "bug" else ZeroDivisionError
        return b"x" * int(task.arguments.get("size", 0))

    def submit(self, key: str, client: Client = MEMBER, **arguments: Any) -> Job:
        """Queue a job in the first process."""
        return self.processes[0].submit("handout", client, key, {"title": key}, arguments)

    def wait_for(self, key: str, condition: Callable[[Job], object]) -> Job:
        """The job once the condition holds, as nobody sees it who would do it."""
        give_up_at = time.monotonic() + 60
        while not condition(job := found_job(self.store, key)):
            assert time.monotonic() < give_up_at, job
            time.sleep(0.01)
        return job

    def ended(self, key: str) -> str | None:
        """How a job has ended, once it has."""
        return self.wait_for(key, lambda job: job.ending).ending


@pytest.fixture
def works(tables_in_a_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Works]:
    """Two processes whose jobs give many signs of life."""
    monkeypatch.setattr(jobs_module, "BEAT_S", 0.02)
    shutil.copy(tables_in_a_file, tmp_path / "store.sqlite3")
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite3'}", tmp_path, clock=CLOCK)
    both = Works(store)
    yield both
    both.gate.set()
    for process in both.processes:
        process.close()
    store.close()


def test_a_job_starts_at_once_and_members_go_first(works: Works) -> None:
    works.gate.clear()
    works.submit("first", VISITOR, size=3)
    works.wait_for("first", lambda job: job.is_working)
    works.submit("visitor", VISITOR)
    works.submit("member")
    assert [found_job(works.store, key).before for key in ("member", "visitor")] == [1, 2]
    works.gate.set()
    assert [works.ended(key) for key in ("first", "visitor", "member")] == ["ready"] * 3
    assert works.order == ["first", "member", "visitor"]
    assert works.store.jobs.result(found_job(works.store, "first")) == b"xxx"


def test_progress_is_in_the_row(works: Works) -> None:
    works.gate.clear()
    works.submit("a")
    assert works.wait_for("a", lambda job: job.done).percent == 25


def test_a_job_is_cancelled_while_it_waits_and_while_it_is_made(works: Works) -> None:
    works.gate.clear()
    for key in "abc":
        works.submit(key)
    for key in "ba":
        works.store.jobs.cancel(works.wait_for(key, lambda job: job.is_working or job.key == "b"))
    works.wait_for("c", lambda job: job.is_working)
    works.gate.set()
    assert [works.ended(key) for key in "abc"] == ["cancelled", "cancelled", "ready"]
    assert works.order == ["a", "c"]


def test_a_restart_loses_no_job(works: Works) -> None:
    works.gate.clear()
    for key in "ab":
        works.submit(key)
    works.wait_for("a", lambda job: job.is_working)
    works.processes.pop(0).close()
    assert [found_job(works.store, key).attempt for key in "ab"] == [0, 0]
    works.gate.set()
    works.processes[0].start()
    assert [works.ended(key) for key in "ab"] == ["ready", "ready"]
    assert works.order == ["a", "a", "b"]


@pytest.mark.parametrize("looks", ["at its page", "at nothing"])
def test_a_job_whose_process_died_is_done_by_another_and_counts_once(works: Works, looks: str) -> None:
    add_job(works.store, "a", arguments={"size": 3})
    asleep = start_first(works.store)
    other = works.processes[1]
    (other.tidy if looks == "at nothing" else lambda: other.find("a"))()
    time.sleep(0.2)
    assert works.order == []
    age_jobs(works.store, SILENT_AFTER)
    (other.tidy if looks == "at nothing" else lambda: other.find("a"))()
    assert works.ended("a") == "ready"
    works.store.jobs.finish(asleep, "failed", "It woke up.", b"other")
    job = found_job(works.store, "a")
    assert (job.ending, job.attempt, works.store.jobs.result(job)) == ("ready", 2, b"xxx")


def test_a_job_that_ends_every_process_is_lost(works: Works) -> None:
    add_job(works.store, "a")
    for _ in range(MAX_ATTEMPTS):
        works.store.jobs.sweep()
        start_first(works.store)
        age_jobs(works.store, SILENT_AFTER)
    works.processes[0].tidy()
    assert (works.ended("a"), found_job(works.store, "a").reason) == ("failed", "lost")
    assert works.order == []


def test_a_job_that_fails_says_why(works: Works, caplog: pytest.LogCaptureFixture) -> None:
    REQUEST_ID.set("5f0c2a9b71d4")
    caplog.handler.setFormatter(LogFormatter())
    with caplog.at_level(logging.ERROR):
        works.submit("a", problem="Print fewer sheets.")
        works.submit("b", problem="bug")
        assert works.wait_for("a", lambda job: job.ending).problem == "Print fewer sheets."
        assert "on the server" in works.wait_for("b", lambda job: job.ending).problem
    REQUEST_ID.set("-")
    [record] = caplog.records
    assert "a job of the kind handout failed" in record.getMessage()


def test_a_database_in_trouble_loses_no_job(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    table, failures = works.store.jobs, {"progress": 3, "_update": 2, "first_waiting": 1}
    monkeypatch.setattr(limits, "STORED_AGAIN_AFTER_S", (0.01, 0.01, 0.01))

    def broken(name: str) -> Callable[..., Any]:
        method = getattr(table, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if failures[name] and (name != "_update" or "state" in options):
                failures[name] -= 1
                raise sa.exc.OperationalError("UPDATE", {}, Exception("disk I/O error"))
            return method(*arguments, **options)

        return call

    for name in failures:
        monkeypatch.setattr(table, name, broken(name))
    works.gate.clear()
    works.submit("a")
    while failures["first_waiting"]:
        time.sleep(0.01)
    works.wait_for("a", lambda job: job.is_working or (works.processes[0].find("a") and False))
    works.wait_for("a", lambda _job: not failures["progress"])
    works.gate.set()
    assert works.ended("a") == "ready"
    assert failures == dict.fromkeys(failures, 0)


def test_what_is_over_is_deleted_and_what_goes_on_is_not(works: Works) -> None:
    works.submit("a", size=3)
    works.ended("a")
    works.gate.clear()
    works.submit("b")
    works.wait_for("b", lambda job: job.is_working)
    age_jobs(works.store, timedelta(minutes=61))
    JobTable.progress(works.store.jobs, found_job(works.store, "b"), 1, 4)
    works.processes[0].tidy()
    assert works.processes[0].find("a") is None
    assert works.processes[0].find("b")
