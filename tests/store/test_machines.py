"""What operators learn of jobs from the database, and a failed job that is put back, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.machine.jobs import Job, JobKind, JobLimits, Runner
from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import JOB_RETENTION, MAX_ATTEMPTS, SILENT_AFTER
from app.store.machines import KindQueue
from tests.helpers.clock import age_jobs

LIMITS = JobLimits(total=99, visitors=99, visitor=99, member=99)
RUNNER, VISITOR = Runner("one", concurrency=2), Client("192.0.2.1", is_member=False)


def add(store: Store, key: str, kind: JobKind = "handout", client: Client | None = None) -> Job:
    return store.jobs.add(kind, client or Client(key), LIMITS, "request", key, None, {}, {"typed": key})


def started(store: Store, kind: JobKind = "handout") -> Job:
    claimed = store.jobs.claim(kind, RUNNER)
    assert claimed
    return claimed[0]


def pass_time(store: Store, seconds: float) -> None:
    """Let this many seconds go by for all jobs."""
    age_jobs(store, timedelta(seconds=seconds - 1))


def test_a_queue_has_its_length_and_its_oldest_job(store: Store) -> None:
    store.jobs.finish([add(store, "done"), started(store)][1], "ready")
    assert store.machines.queues() == {}
    first = add(store, "a")
    pass_time(store, 40)
    add(store, "b")
    assert started(store).id == first.id
    add(store, "c")
    add(store, "d", "head")
    started(store, "head")
    queues, at = store.machines.queues(), store.machines.time()
    assert {kind: (queue.waiting, queue.working) for kind, queue in queues.items()} == {
        "handout": (2, 1),
        "head": (0, 1),
    }
    oldest = queues["handout"].oldest
    assert oldest
    assert timedelta() <= at - oldest < timedelta(seconds=30)  # not the running job's
    assert queues["head"] == KindQueue("head", 0, 1, None)


def test_open_jobs_are_listed_as_they_will_be_done(store: Store) -> None:
    add(store, "work")
    at_work = started(store)
    for key, client in (("v", VISITOR), ("a", Client("m")), ("b", Client("m")), ("c", Client("n"))):
        add(store, key, client=client)
    expected = [found.id for key in ("work", "a", "c", "b", "v") if (found := store.jobs.find(key))]
    assert [job.id for job in store.machines.open_jobs(9)] == expected
    [first] = store.machines.open_jobs(1)
    assert (first.id, first.is_working, first.runner) == (at_work.id, True, "one")


def test_ended_jobs_are_counted_and_the_slow_and_failed_listed(store: Store) -> None:
    add(store, "quick")
    pass_time(store, 500)
    store.jobs.finish(started(store), "ready")
    add(store, "slow")
    job = started(store)
    pass_time(store, 20)
    store.jobs.finish(job, "ready")
    for key in ("x", "y"):
        add(store, key)
        store.jobs.finish(started(store), "failed", "“x” is wrong.", reason="refused")
        pass_time(store, 5)
    store.jobs.cancel(add(store, "z"))
    slow, quick = store.machines.slowest(9)
    assert (slow.id, timedelta(seconds=19) < slow.took < timedelta(seconds=80)) == (job.id, True)
    assert quick.waited > timedelta(seconds=499)
    assert quick.took < timedelta(seconds=19)
    newest, oldest = store.machines.failed(9)
    assert (newest.id > oldest.id, newest.reason, newest.attempt) == (True, "refused", 1)
    assert store.machines.endings() == {"ready": 2, "failed": 2, "cancelled": 1}


@pytest.mark.parametrize("ending", ["failed", "lost"])
def test_a_job_that_came_to_nothing_is_put_back(store: Store, ending: str) -> None:
    add(store, "a")
    job = started(store)
    if ending == "failed":
        store.jobs.finish(job, "failed", "no", reason="refused")
    else:
        for _ in range(MAX_ATTEMPTS):
            age_jobs(store, SILENT_AFTER)
            store.jobs.claim("handout", RUNNER)
    ended = store.jobs.find_numbered(job.id)
    assert ended
    assert ended.ending == ending
    assert store.jobs.retry(job)
    waiting = store.jobs.find("a")
    assert waiting
    assert (waiting.ending, waiting.problem, waiting.reason, waiting.started_at, waiting.runner) == (
        None,
        "",
        "",
        None,
        "",
    )
    assert not waiting.is_overdue
    again = started(store)
    assert (again.id, again.attempt) == (job.id, ended.attempt + 1)
    store.jobs.finish(job, "ready", result=b"old")
    assert store.jobs.result(again) == b""
    store.jobs.finish(again, "ready", result=b"new")
    assert store.jobs.result(again) == b"new"


def test_what_has_not_failed_or_is_too_old_is_not_put_back(store: Store) -> None:
    job = add(store, "a")
    assert not store.jobs.retry(job)
    job = started(store)
    assert not store.jobs.retry(job)
    store.jobs.finish(job, "ready")
    assert not store.jobs.retry(job)
    cancelled = add(store, "b")
    assert store.jobs.cancel(cancelled)
    assert not store.jobs.cancel(cancelled)
    assert not store.jobs.retry(cancelled)
    add(store, "c")
    failed = started(store)
    store.jobs.finish(failed, "failed", "no")
    age_jobs(store, JOB_RETENTION)
    assert not store.jobs.retry(failed)


def test_a_run_that_is_put_back_waits_again(store: Store) -> None:
    run = store.add_run(store.new_run({}, {}))
    job = add(store, run.id, "run")
    store.jobs.finish(started(store, "run"), "failed", "no", lambda: store.finish_run(run.id, None, "no"))
    failed = store.find_run(run.id)
    assert failed
    assert failed.finished
    assert store.jobs.retry(job)
    assert store.find_run(run.id) == run
