"""Jobs of several processes on one database: their order, their limits, and what becomes of them in trouble."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from copy import copy
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.logs import REQUEST_ID, LogFormatter
from app.machine import jobs as jobs_module
from app.machine.jobs import Job, JobEnd, JobLimits, JobRefusedError, Jobs, Result, Runner, Task, web_runner
from app.machine.work_queue import Client
from app.store import Store, limits
from app.store.jobs import MAX_ATTEMPTS, PIECE_BYTES, ROW_RETENTION, SILENT_AFTER, JobTable
from app.store.tables import job_pieces, jobs
from tests.helpers.clock import age_jobs

RUNNER = Runner("web", is_web=True)
ADA, KIM = Client("teacher 1"), Client("student 1")
LIMITS = JobLimits(total=8, visitors=6, visitor=3, member=4, visitor_hourly=5, member_hourly=50)


def visitor(number: int) -> Client:
    return Client(f"192.0.2.{number}", is_member=False)


class Works:
    """What two processes do with their jobs: note them in `order`, and wait while `gate` is closed."""

    def __init__(self, store: Store) -> None:
        self.store, self.order = store, list[str]()
        self.gate = threading.Event()
        self.gate.set()
        self.processes = [self.new_process(), self.new_process()]

    def new_process(self) -> Jobs:
        """Jobs of one more process on the same database."""
        process = Jobs(self.store.jobs, RUNNER)
        process.add_kind("handout", self.work, LIMITS)
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

    def submit(self, key: str, client: Client = ADA, process: int = 0, **arguments: Any) -> Job:
        """Queue a job in one of the processes."""
        return self.processes[process].submit("handout", client, key, {"title": key}, arguments)

    def wait_for(self, key: str, condition: Callable[[Job], object]) -> Job:
        """The job once the condition holds, as the second process sees it."""
        for _ in range(12_000):
            job = self.processes[1].find(key)
            assert job
            if condition(job):
                return job
            time.sleep(0.01)
        raise AssertionError(job)

    def ended(self, key: str) -> JobEnd | None:
        """How a job has ended, once it has."""
        return self.wait_for(key, lambda job: job.ending).ending


@pytest.fixture
def works(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Works]:
    """Two processes whose jobs give many signs of life."""
    monkeypatch.setattr(jobs_module, "BEAT_S", 0.02)
    both = Works(store)
    yield both
    both.gate.set()
    for process in both.processes:
        process.close()


def test_jobs_of_all_processes_are_one_queue(works: Works) -> None:
    works.gate.clear()
    works.submit("first", visitor(1))
    works.wait_for("first", lambda job: job.is_working)
    for number, (key, client) in enumerate((("v2", visitor(2)), ("v3", visitor(3)), ("kim", KIM), ("ada", ADA))):
        works.submit(key, client, process=number % 2)
    places = {key: works.processes[1].find(key) for key in ("kim", "ada", "v2", "v3")}
    assert [job and job.before for job in places.values()] == [1, 2, 3, 4]
    assert works.order == ["first"]
    works.gate.set()
    assert {works.ended(key) for key in places} == {"ready"}
    assert works.order == ["first", "kim", "ada", "v2", "v3"]


def test_progress_is_seen_by_every_process(works: Works) -> None:
    works.gate.clear()
    works.submit("a")
    assert works.wait_for("a", lambda job: job.done).percent == 25


def test_there_is_room_for_so_many_and_visitors_leave_some(works: Works) -> None:
    works.gate.clear()

    def refused(client: Client) -> str:
        with pytest.raises(JobRefusedError) as raised:
            works.submit("refused", client, process=1)
        return raised.value.reason

    for number in (1, 1, 1, 2, 2, 3):
        works.submit(f"{time.monotonic()}", visitor(number))
    assert refused(visitor(4)) == "full"
    for client in (ADA, KIM):
        works.submit(client.key, client)
    assert refused(Client("teacher 2")) == "full"
    works.gate.set()
    works.ended("student 1")
    while works.processes[0].rows.count("handout"):
        time.sleep(0.01)
    works.gate.clear()
    works.submit("again 1", visitor(1))
    works.submit("again 2", visitor(1))
    assert refused(visitor(1)) == "hourly"
    for number in range(4):
        works.submit(f"ada {number}")
    assert refused(ADA) == "yours"


def test_a_job_is_cancelled_while_it_waits_and_while_it_is_made(works: Works) -> None:
    works.gate.clear()
    for key in ("a", "b", "c"):
        works.submit(key)
    for key in ("b", "a"):
        works.processes[1].rows.cancel(works.wait_for(key, lambda job: job.is_working or job.key == "b"))
        assert works.ended(key) == "cancelled"
    works.wait_for("c", lambda job: job.is_working)
    works.gate.set()
    assert works.ended("c") == "ready"
    works.processes[0].rows.cancel(works.wait_for("c", lambda job: job.ending))
    assert works.ended("c") == "ready"
    assert works.order == ["a", "c"]


def test_a_restart_loses_no_job(works: Works) -> None:
    works.gate.clear()
    for key in ("a", "b"):
        works.submit(key)
    works.wait_for("a", lambda job: job.is_working)
    works.processes.pop(0).close()
    assert [job and job.attempt for job in map(works.store.jobs.find, "ab")] == [0, 0]
    works.gate.set()
    works.processes.insert(0, works.new_process())
    works.processes[0].start()
    assert {works.ended("a"), works.ended("b")} == {"ready"}
    assert works.order == ["a", "a", "b"]


def test_a_job_whose_process_died_is_done_by_another_and_counts_once(works: Works) -> None:
    asleep = works.store.jobs.add("handout", ADA, LIMITS, "-", "a", None, {}, {"size": 3}, runner=RUNNER)
    assert asleep.is_working
    assert works.store.jobs.claim("handout", RUNNER) is None
    age_jobs(works.store, timedelta(seconds=31))
    assert works.ended("a") == "ready"
    assert not works.store.jobs.beat(asleep, 1, 1)
    works.store.jobs.finish(asleep, "failed", "It woke up.", b"other")
    job = works.wait_for("a", lambda job: job.ending)
    assert (job.ending, job.attempt, works.processes[1].rows.result(job)) == ("ready", 2, b"xxx")


def test_a_job_that_ends_every_process_is_lost(works: Works) -> None:
    works.store.jobs.add("handout", ADA, LIMITS, "-", "a", None, {}, {}, runner=RUNNER)
    age_jobs(works.store, timedelta(seconds=31))
    for _ in range(MAX_ATTEMPTS - 1):
        assert works.store.jobs.claim("handout", RUNNER)
        age_jobs(works.store, timedelta(seconds=31))
    assert works.ended("a") == "lost"
    assert works.order == []


def test_a_visitors_job_gives_way_to_a_member_and_goes_on(works: Works) -> None:
    works.gate.clear()
    works.submit("v1", visitor(1))
    works.wait_for("v1", lambda job: job.is_working)
    works.submit("v2", visitor(2))
    age_jobs(works.store, timedelta(seconds=10))
    works.submit("kim", KIM, process=1)
    time.sleep(0.2)
    assert works.order == ["v1"]
    age_jobs(works.store, timedelta(seconds=10))
    works.wait_for("kim", lambda job: job.is_working)
    works.submit("ada")
    age_jobs(works.store, timedelta(seconds=10))
    time.sleep(0.2)
    works.gate.set()
    assert {works.ended(key) for key in ("kim", "ada", "v1", "v2")} == {"ready"}
    assert works.order == ["v1", "kim", "ada", "v1", "v2"]


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
    table, failures = works.store.jobs, {"beat": 3, "_finish": 2, "claim": 1}
    monkeypatch.setattr(limits, "STORED_AGAIN_AFTER_S", (0.01, 0.01, 0.01))

    def broken(name: str) -> Callable[..., Any]:
        method = getattr(table, name)

        def call(*arguments: Any) -> Any:
            if failures[name]:
                failures[name] -= 1
                raise sa.exc.OperationalError("UPDATE", {}, Exception("disk I/O error"))
            return method(*arguments)

        return call

    for name in failures:
        monkeypatch.setattr(table, name, broken(name))
    works.gate.clear()
    works.submit("a")
    works.wait_for("a", lambda job: job.is_working and not failures["beat"])
    works.gate.set()
    assert works.ended("a") == "ready"
    works.wait_for("a", lambda _job: not failures["claim"])  # its thread looks for another job
    assert failures == {"beat": 0, "_finish": 0, "claim": 0}


def test_a_result_is_stored_in_pieces_and_deleted_an_hour_after_the_end(works: Works) -> None:
    size = 2 * PIECE_BYTES + 7
    works.submit("a", size=size)
    assert len(works.processes[0].rows.result(works.wait_for("a", lambda job: job.ending))) == size
    works.gate.clear()
    works.submit("b")
    works.wait_for("b", lambda job: job.is_working)
    age_jobs(works.store, timedelta(minutes=61))
    works.processes[0].tidy()
    assert works.processes[0].find("a") is None
    assert works.processes[0].find("b")
    assert counts(works.store) == [2, 0]
    age_jobs(works.store, ROW_RETENTION)
    works.processes[0].tidy()
    assert works.processes[0].find("b")
    assert counts(works.store) == [1, 0]


def counts(store: Store) -> list[int | None]:
    """How many jobs and pieces of results there are."""
    with store.engine.connect() as connection:
        return [connection.scalar(sa.select(sa.func.count()).select_from(table)) for table in (jobs, job_pieces)]


class Campus:
    """A web process that leaves its jobs to runners, and the runners "one" and "two"; `gate` holds their work up."""

    def __init__(self, store: Store) -> None:
        self.store, self.gate, self.by = store, threading.Event(), dict[str, str]()
        self.rows: list[JobTable] = []
        self.web = self.new_process(None)
        self.runners = [self.new_process(Runner("one", concurrency=2)), self.new_process(Runner("two"))]

    def new_process(self, runner: Runner | None) -> Jobs:
        rows = copy(self.store.jobs)  # each process listens for itself
        self.rows.append(rows)
        process = Jobs(rows, runner)
        process.add_kind("handout", self.work, LIMITS)
        return process

    def work(self, task: Task) -> bytes:
        """Note who does the job, and wait for the gate."""
        self.by[task.job.key] = task.job.runner
        while not self.gate.wait(0.02):
            task.check()
        return b"done"

    def submit(self, key: str, **needs: Any) -> Job:
        return self.web.submit("handout", Client(key), key, {}, {}, **needs)

    def wait_for(self, condition: Callable[[], object]) -> None:
        for _ in range(6000):
            if condition():
                return
            time.sleep(0.01)
        raise AssertionError

    def close(self) -> None:
        self.gate.set()
        for process in self.runners:
            process.close()
        for rows in self.rows:
            rows.stop_listening()


@pytest.fixture
def campus(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campus]:
    """A campus whose runners have not started."""
    for name in ("BEAT_S", "POLL_S", "RUNNERS_TTL_S"):
        monkeypatch.setattr(jobs_module, name, 0.02)
    monkeypatch.setattr(jobs_module, "HOPELESS_AFTER_S", 0.1)
    opened = Campus(store)
    yield opened
    opened.close()


def test_runners_do_what_web_processes_leave_to_them(campus: Campus) -> None:
    jobs = [campus.submit(f"{number}") for number in range(5)]
    campus.web.start()
    assert {job.is_working for job in jobs} == {False}
    for runner in campus.runners:
        runner.start()
    campus.wait_for(lambda: len(campus.by) == 3)
    assert sorted(campus.by.values()) == ["one", "one", "two"]
    waited = campus.web.wait(jobs[4], 0.1)
    assert waited
    assert (waited.ending, waited.is_working, waited.before) == (None, False, 4)
    campus.runners.pop(0).close()
    campus.wait_for(lambda: [runner.name for runner in campus.store.jobs.runners()] == ["two"])
    campus.gate.set()
    ended = [campus.web.wait(job, 60) for job in jobs]
    assert [(job and job.ending, job and job.attempt) for job in ended] == [("ready", 1)] * 5
    assert [runner.jobs_done for runner in campus.store.jobs.runners()] == [5]


def test_jobs_that_wait_for_long_outlive_the_restart_of_a_runner(
    campus: Campus, monkeypatch: pytest.MonkeyPatch
) -> None:
    campus.runners[1].start()
    campus.submit("at work")
    campus.wait_for(lambda: campus.by)
    waits = campus.submit("waits")
    age_jobs(campus.store, timedelta(minutes=1))
    campus.web.find(waits.key)
    monkeypatch.setattr(jobs_module, "HOPELESS_AFTER_S", 60.0)
    campus.runners.pop(1).close()
    for _ in range(10):
        job = campus.web.find(waits.key)
        time.sleep(0.01)
    assert job
    assert job.ending is None


@pytest.mark.parametrize("looks", ["at its page", "at nothing"])
def test_a_job_that_no_runner_can_do_fails(campus: Campus, looks: str) -> None:
    campus.runners[1].start()
    campus.wait_for(campus.store.jobs.runners)
    campus.submit("at work")
    campus.wait_for(lambda: campus.by)
    hopeless, waits = campus.submit("hopeless", checkpoint="none"), campus.submit("waits")
    campus.web.find("hopeless")
    age_jobs(campus.store, timedelta(minutes=1))
    campus.store.jobs.sign_on(Runner("two"))

    def has_failed() -> bool:
        if looks == "at nothing":
            campus.web.tidy()
        else:
            campus.web.find(hopeless.key)
        return find_job(campus.store, hopeless.key).ending == "failed"

    campus.wait_for(has_failed)
    job = find_job(campus.store, hopeless.key)
    assert (job.reason, bool(job.problem)) == ("no-weights", True)
    assert find_job(campus.store, waits.key).ending is None


def do_runs(url: str, folder: Path, gate: Path) -> None:
    """Be a runner that stores a result for each run once there is a gate, until the gate is gone again."""
    store = Store(url, folder)

    def work(task: Task) -> Result:
        while not gate.exists():
            task.report(1, 3)
            task.check()
            time.sleep(0.02)
        return partial(store.finish_run, task.job.key, {"by": "asleep"})

    process = Jobs(store.jobs, Runner("asleep"))
    process.add_kind("run", work, LIMITS)
    process.start()
    while not gate.exists() or process.rows.count("run"):
        time.sleep(0.02)
    time.sleep(0.5)
    process.close()
    store.close()


def test_web_processes_that_leave_jobs_to_runners_are_listed_and_start_none(store: Store, tmp_path: Path) -> None:
    web = Jobs(store.jobs, web_runner(tmp_path, leaves_jobs=True))
    web.add_kind("run", lambda _task: b"", LIMITS)
    web.start()
    until = time.monotonic() + 60
    while not (listed := store.jobs.runners()):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert [(each.is_web, each.kinds, each.is_alive) for each in listed] == [(True, (), True)]
    assert not web.submit("run", ADA, "key", {}, {}).is_working
    web.close()


@pytest.mark.slow
def test_a_runner_that_was_paused_for_too_long_changes_nothing(store: Store, database_url: str, tmp_path: Path) -> None:
    run, gate = store.add_run(store.new_run({}, {})), tmp_path / "gate"
    web = Jobs(store.jobs, None)
    web.add_kind("run", lambda _task: b"", LIMITS)
    web.submit("run", ADA, run.id, {}, {})
    runner = multiprocessing.get_context("spawn").Process(target=do_runs, args=(database_url, tmp_path, gate))
    runner.start()
    assert runner.pid
    try:
        beats = set[object]()
        while len(beats) < 2:
            beats |= {job.heard_at} if (job := find_job(store, run.id)).done else set()
            time.sleep(0.01)
        time.sleep(0.2)  # the next sign of life is further away: it holds no lock now
        os.kill(runner.pid, signal.SIGSTOP)
        age_jobs(store, SILENT_AFTER)
        claimed = store.jobs.claim("run", RUNNER)
        assert claimed
        gate.touch()
        os.kill(runner.pid, signal.SIGCONT)
        time.sleep(2)
        job, stored = find_job(store, run.id), store.find_run(run.id)
        assert (job.runner, job.attempt, job.ending, stored and stored.result) == (RUNNER.name, 2, None, None)
        store.jobs.finish(claimed[0], "ready", result=partial(store.finish_run, run.id, {"by": "awake"}))
        runner.join(60)
        stored = store.find_run(run.id)
        assert (stored and stored.result, runner.exitcode) == ({"by": "awake"}, 0)
    finally:
        runner.kill()


def find_job(store: Store, key: str) -> Job:
    job = store.jobs.find(key)
    assert job
    return job
