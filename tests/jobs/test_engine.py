"""Jobs that PostgreSQL's engine hands to workers: once each, to the right ones, and again if one vanishes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.jobs import engine
from app.jobs import jobs as jobs_module
from app.jobs.engine import EngineJobs
from app.jobs.jobs import JOB_FORM, Kind, Task, queue_name
from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import (
    MAX_ATTEMPTS,
    OVERDUE_AFTER,
    RESTARTS_WITHIN,
    SILENT_AFTER,
    Job,
    JobKind,
    JobRefusedError,
    Worker,
)
from tests.helpers.clock import age_jobs
from tests.helpers.queued_jobs import MANY, MEMBER, found_job
from tests.helpers.worker_here import worker_here


class Campus:
    """A web process that leaves its jobs to workers, and what those do: note who does a job, and wait for the gate."""

    def __init__(self, store: Store) -> None:
        self.store, self.gate, self.by = store, threading.Event(), list[tuple[str, str]]()
        self.gate.set()
        work = Kind(self.work, MANY)
        self.kinds: dict[JobKind, Kind] = {"run": work, "handout": work, "head": work}
        self.web = EngineJobs(store.jobs)
        self.web.kinds.update(self.kinds)
        self.worker = partial(worker_here, store, self.kinds)

    def work(self, task: Task) -> bytes:
        self.by.append((task.job.key, task.job.worker))
        while task.job.kind == "handout" and not self.gate.wait(0.02):
            task.check()
        return b"done"

    def submit(self, key: str, kind: JobKind = "handout", client: Client = MEMBER, **options: Any) -> Job:
        return self.web.submit(kind, client, key, {}, {}, **options)

    def wait_for(self, condition: Callable[[], object]) -> None:
        give_up_at = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < give_up_at
            time.sleep(0.02)

    def ended(self, key: str) -> str | None:
        """How a job has ended, once it has."""
        self.wait_for(lambda: found_job(self.store, key).ending)
        return found_job(self.store, key).ending

    def engine_jobs(self) -> int:
        with self.store.engine.connect() as connection:
            return int(connection.scalar(sa.text("SELECT count(*) FROM procrastinate_jobs")) or 0)

    def execute(self, statement: str) -> None:
        with self.store.transaction() as connection:
            connection.exec_driver_sql(statement)


@pytest.fixture
def campus(new_postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campus]:
    """A worker of these queues is expected, but none is there."""
    monkeypatch.setattr(jobs_module, "BEAT_S", 0.05)
    monkeypatch.setattr(engine, "SIGN_EVERY_S", 0.2)
    monkeypatch.setattr(engine, "PUT_BACK_AFTER_S", 0.2)
    store = Store(new_postgres_database, tmp_path)
    expected = [queue_name("run"), queue_name("run", "cuda"), queue_name("handout")]
    store.jobs.sign_on(Worker("expected", expected))
    made = Campus(store)
    yield made
    made.gate.set()
    store.close()


def test_a_job_and_what_belongs_to_it_come_together_or_not_at_all(campus: Campus) -> None:
    with pytest.raises(ZeroDivisionError):
        campus.submit("a", along=lambda: 1 / 0)
    with suppress(ZeroDivisionError), campus.store.transaction():
        campus.submit("b")
        raise ZeroDivisionError
    assert (campus.store.jobs.count("handout"), campus.engine_jobs()) == (0, 0)
    campus.submit("c")
    assert (campus.store.jobs.count("handout"), campus.engine_jobs()) == (1, 1)


def test_jobs_are_done_once_in_their_order_and_the_engine_forgets_them(campus: Campus) -> None:
    for key, client in (("v", Client("192.0.2.1", is_member=False)), ("a", MEMBER), ("b", MEMBER), ("k", Client("k"))):
        campus.submit(key, client=client)
    assert [found_job(campus.store, key).before for key in "akbv"] == [0, 1, 2, 3]
    with campus.worker():
        assert [campus.ended(key) for key in "akbv"] == ["ready"] * 4
        campus.submit("later")  # in this process, where the worker's own engine is open
        assert campus.ended("later") == "ready"
        campus.wait_for(lambda: campus.engine_jobs() == 0)
    assert campus.by == [(key, "here") for key in ("a", "k", "b", "v", "later")]
    assert campus.store.jobs.result(found_job(campus.store, "a")) == b"done"


def test_a_kind_leaves_the_places_of_others_alone(campus: Campus) -> None:
    campus.gate.clear()
    with campus.worker():
        for key in "ab":
            campus.submit(key)
        campus.submit("run", "run")
        assert campus.ended("run") == "ready"
        assert found_job(campus.store, "b").state == "waiting"
        campus.gate.set()


def test_a_queue_is_left_to_workers_that_name_it(campus: Campus) -> None:
    campus.submit("gpu", "run", part="cuda")
    campus.submit("cpu", "run")
    with campus.worker(name="cpu"):
        assert campus.ended("cpu") == "ready"
        time.sleep(0.5)
        assert found_job(campus.store, "gpu").state == "waiting"
        with campus.worker({"run": [queue_name("run", "cuda")]}, name="gpu"):
            assert campus.ended("gpu") == "ready"
    assert campus.by == [("cpu", "cpu"), ("gpu", "gpu")]


def test_jobs_of_other_code_wait_for_its_workers(campus: Campus, monkeypatch: pytest.MonkeyPatch) -> None:
    with campus.worker():
        monkeypatch.setattr(jobs_module, "JOB_FORM", JOB_FORM + 1)
        campus.store.jobs.sign_on(Worker("newer", [queue_name("run")]))
        campus.submit("newer", "run")
        time.sleep(0.5)
        assert found_job(campus.store, "newer").state == "waiting"


@pytest.mark.parametrize("part", ["x" * 200, "Zoë", "a" * 30])
def test_a_queue_of_any_name_can_be_queued_in(campus: Campus, part: str) -> None:
    queue = queue_name("handout", part)
    assert len(queue) <= 40
    campus.store.jobs.sign_on(Worker("here", [queue]))
    campus.submit("a", part=part)
    with campus.worker({"handout": [queue]}):
        assert campus.ended("a") == "ready"


def test_what_no_worker_takes_is_refused_or_fails_after_a_while(campus: Campus) -> None:
    with pytest.raises(JobRefusedError):
        campus.submit("a", "head", part="unknown")
    waiting = campus.submit("b", "run", part="cuda")
    assert campus.web.why_it_waits(waiting) == ""
    age_jobs(campus.store, RESTARTS_WITHIN)
    assert campus.web.why_it_waits(waiting)
    with pytest.raises(JobRefusedError):
        campus.submit("c")
    with campus.worker():
        age_jobs(campus.store, OVERDUE_AFTER)
        campus.wait_for(lambda: found_job(campus.store, "b").ending)
    failed = found_job(campus.store, "b")
    assert (failed.ending, failed.reason, bool(failed.problem)) == ("failed", "no-worker", True)


def test_a_job_of_a_worker_that_vanished_is_done_by_another_and_counts_once(campus: Campus) -> None:
    job = campus.submit("a")
    begun = campus.store.jobs.begin(job.id, "vanished")
    campus.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    assert begun
    with campus.worker():
        time.sleep(0.5)
        assert campus.by == []
        age_jobs(campus.store, SILENT_AFTER)
        assert campus.ended("a") == "ready"
    campus.store.jobs.finish(begun[0], "failed", "It woke up.")
    assert not campus.store.jobs.progress(begun[0], 1, 1)
    done = found_job(campus.store, "a")
    assert (done.ending, done.attempt, done.worker, campus.by) == ("ready", 2, "here", [("a", "here")])
    assert campus.engine_jobs() == 0


def test_a_job_that_ends_every_worker_is_lost(campus: Campus) -> None:
    job = campus.submit("a")
    for _ in range(MAX_ATTEMPTS):
        assert campus.store.jobs.begin(job.id, "vanished")
        age_jobs(campus.store, SILENT_AFTER)
        campus.web.sweep()
    assert (campus.ended("a"), found_job(campus.store, "a").reason) == ("failed", "lost")
    with campus.worker():
        time.sleep(0.5)
    assert campus.by == []


@pytest.mark.parametrize(
    "trouble",
    [
        "DELETE FROM procrastinate_jobs",
        "UPDATE procrastinate_jobs SET status = 'doing'",  # by a worker that the engine has given up for dead
        "UPDATE procrastinate_jobs SET task_name = 'unknown'",  # which the engine fails and deletes
        "UPDATE procrastinate_jobs SET args = '{}'",  # which fails before the job begins
    ],
)
def test_a_job_that_the_engine_lost_is_found(campus: Campus, trouble: str) -> None:
    campus.submit("a")
    campus.execute(trouble)
    with campus.worker():
        assert campus.ended("a") == "ready"
    assert (len(campus.by), campus.engine_jobs()) == (1, 0)


def test_a_job_is_found_that_a_worker_took_before_it_stood_still(campus: Campus) -> None:
    campus.submit("a")
    campus.submit("b")
    campus.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now())")
    campus.execute(
        "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)"
    )
    with campus.worker():
        time.sleep(0.5)
        assert campus.by == []
        campus.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
        assert [campus.ended(key) for key in "ab"] == ["ready"] * 2
        campus.submit("later")  # the worker here was given up as well, and goes on
        assert campus.ended("later") == "ready"
    assert (len(campus.by), campus.engine_jobs()) == (3, 0)


def test_a_job_is_cancelled_while_it_waits_and_while_it_is_made(campus: Campus) -> None:
    campus.gate.clear()
    with campus.worker():
        for key in "abc":
            campus.submit(key)
        for key in "ba":
            campus.wait_for(lambda: found_job(campus.store, "a").is_working)
            campus.store.jobs.cancel(found_job(campus.store, key))
        campus.wait_for(lambda: found_job(campus.store, "c").is_working)
        campus.gate.set()
        assert [campus.ended(key) for key in "abc"] == ["cancelled", "cancelled", "ready"]
    assert [key for key, _worker in campus.by] == ["a", "c"]


def test_a_worker_that_is_stopped_puts_its_job_back(campus: Campus) -> None:
    campus.gate.clear()
    with campus.worker(name="first"):
        campus.submit("a")
        campus.wait_for(lambda: campus.by)
    put_back = found_job(campus.store, "a")
    assert (put_back.state, put_back.attempt, put_back.worker) == ("waiting", 0, "")
    campus.gate.set()
    with campus.worker(name="second"):
        assert campus.ended("a") == "ready"
    assert (campus.by, found_job(campus.store, "a").attempt) == ([("a", "first"), ("a", "second")], 1)


def test_a_worker_outlives_its_connections(campus: Campus) -> None:
    with campus.worker():
        campus.submit("before")
        assert campus.ended("before") == "ready"
        campus.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        campus.store.engine.dispose()
        campus.submit("after")
        assert campus.ended("after") == "ready"
