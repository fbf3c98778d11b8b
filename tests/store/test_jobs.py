"""The queue of jobs as rows, without threads; tests/machine/test_jobs.py has processes that work on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from app.machine.jobs import Job, JobLimits, JobRefusedError, Runner
from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import GIVES_WAY_AFTER, JOB_RETENTION, MAX_ATTEMPTS, PIECE_BYTES, ROW_RETENTION, SILENT_AFTER
from app.store.tables import jobs
from tests.helpers.clock import age_jobs

LIMITS = JobLimits(total=8, visitors=6, visitor=3, member=4, visitor_hourly=5, member_hourly=50)
RUNNER = Runner("one")
MEMBER, VISITOR = Client("teacher 1"), Client("192.0.2.1", is_member=False)


def add(store: Store, key: str, client: Client = MEMBER) -> Job:
    """Queue a handout; in an empty queue, it is started."""
    return store.jobs.add("handout", client, LIMITS, "request", key, None, {}, {"size": 1}, runner=RUNNER)


def started(store: Store) -> Job:
    """Start the first job."""
    claimed = store.jobs.claim("handout", RUNNER)
    assert claimed
    return claimed[0]


def found(store: Store, key: str) -> Job:
    job = store.jobs.find(key)
    assert job
    return job


def test_members_come_first_and_one_job_is_at_work(store: Store) -> None:
    """Then whoever came first; another kind of job has a queue of its own, and a job says its place as it is added."""
    first = add(store, "first", VISITOR)
    added = [add(store, key, client) for key, client in (("v", VISITOR), ("a", MEMBER), ("b", MEMBER))]
    assert (first.is_working, [job.before for job in added]) == (True, [1, 1, 2])
    assert [found(store, key).before for key in ("a", "b", "v")] == [1, 2, 3]
    assert store.jobs.claim("handout", RUNNER) is None
    store.jobs.finish(first, "ready")
    claimed = started(store)
    assert (claimed, claimed.is_working) == (found(store, "a"), True)
    assert store.jobs.claim("handout", RUNNER) is None
    assert store.jobs.claim("run", RUNNER) is None
    assert [found(store, key).before for key in ("b", "v")] == [1, 2]
    assert (store.jobs.count("handout"), store.jobs.count("run")) == (3, 0)


def test_a_job_is_started_as_it_is_added_to_an_empty_queue(store: Store) -> None:
    """With what belongs to it, in the same transaction; where that fails, or the job is refused, neither is stored."""

    def add_with_run(run_id: str, limits: JobLimits = LIMITS, divisor: int = 1) -> Job:
        run = replace(store.new_run({}, {}), id=run_id)
        along = lambda: (store.add_run(run), 1 / divisor)  # noqa: E731
        return store.jobs.add("run", MEMBER, limits, "request", run_id, None, {}, {}, along, runner=RUNNER)

    job = add_with_run("a")
    assert job == found(store, "a")
    assert (job.is_working, job.attempt, store.jobs.claim("run", RUNNER)) == (True, 1, None)
    with pytest.raises(JobRefusedError):
        add_with_run("b", replace(LIMITS, total=1))
    with pytest.raises(ZeroDivisionError):
        add_with_run("c", divisor=0)
    assert [store.find_run(run_id) is None for run_id in "abc"] == [False, True, True]
    assert [store.jobs.find(key) is None for key in "abc"] == [False, True, True]


def test_a_result_kept_elsewhere_is_stored_with_the_end_of_its_job(store: Store) -> None:
    """Both or neither; that of a job that was cancelled meanwhile is not stored."""
    run = store.add_run(store.new_run({}, {}))

    def finish(job: Job, result: int) -> None:
        def keep() -> None:
            store.finish_run(run.id, {"result": result})
            assert 1 / result

        store.jobs.finish(job, "ready", result=keep)

    job = add(store, "a")
    with pytest.raises(ZeroDivisionError):
        finish(job, 0)
    assert (found(store, "a").ending, store.find_run(run.id)) == (None, run)
    finish(job, 7)
    stored = store.find_run(run.id)
    assert (found(store, "a").ending, stored and stored.result) == ("ready", {"result": 7})
    store.jobs.cancel(cancelled := add(store, "b"))
    finish(cancelled, 8)
    assert store.find_run(run.id) == stored


def test_a_silent_job_starts_again_until_it_is_lost(store: Store) -> None:
    """A sign of life keeps it going; the start that was overtaken can change nothing any more."""
    first = add(store, "a")
    age_jobs(store, SILENT_AFTER / 2)
    assert store.jobs.beat(first, 1, 4)
    age_jobs(store, SILENT_AFTER / 2)
    assert store.jobs.claim("handout", RUNNER) is None
    age_jobs(store, SILENT_AFTER)
    second = started(store)
    assert second.attempt == first.attempt + 1
    assert not store.jobs.beat(first, 2, 4)
    store.jobs.finish(first, "ready", result=b"old")
    assert found(store, "a").ending is None
    for _ in range(MAX_ATTEMPTS - second.attempt):
        age_jobs(store, SILENT_AFTER)
        started(store)
    age_jobs(store, SILENT_AFTER)
    assert store.jobs.claim("handout", RUNNER) is None
    assert found(store, "a").ending == "lost"


def test_a_visitors_job_gives_way_once_a_member_has_waited(store: Store) -> None:
    """Put back, it waits behind the member, and its start does not count."""
    job = add(store, "v", VISITOR)
    add(store, "a")
    assert not store.jobs.must_give_way(job, RUNNER)
    age_jobs(store, GIVES_WAY_AFTER)
    assert store.jobs.must_give_way(job, RUNNER)
    store.jobs.put_back(job)
    assert (found(store, "v").attempt, started(store).key) == (job.attempt - 1, "a")


def test_a_result_is_kept_whole_for_an_hour(store: Store) -> None:
    """In pieces of a megabyte; a job that waits stays."""
    job, result = add(store, "a"), bytes(range(251)) * (2 * PIECE_BYTES // 250)
    store.jobs.finish(job, "ready", result=result)
    assert store.jobs.result(found(store, "a")) == result
    add(store, "b")
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    assert store.jobs.find("a") is None
    assert store.jobs.result(job) == b""
    assert found(store, "b").ending is None


def test_what_was_typed_is_kept_for_an_hour_and_the_rest_for_a_day(store: Store) -> None:
    """A row says when, where and how a job ended, but no longer whose it was, what was typed, or its address."""
    visitor = store.add_visitor()
    typed = {"names": ["Zoë Typed"]}
    job = store.jobs.add("handout", Client("Zoë"), LIMITS, "r", "Zoë", None, typed, typed, visitor_id=visitor.id,
                         runner=RUNNER)  # fmt: skip
    store.jobs.finish(job, "failed", "No font.", b"Zoe", reason="refused")
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    [row] = rows_of(store)
    assert "Zoë" not in f"{row}"
    assert (row["visitor_id"], row["runner"], row["ending"], row["reason"]) == (None, "one", "failed", "refused")
    add(store, "another")
    age_jobs(store, ROW_RETENTION)
    store.jobs.delete_expired()
    assert [row["key"] for row in rows_of(store)] == ["another"]


def rows_of(store: Store) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        return [dict(row) for row in connection.execute(sa.select(jobs)).mappings()]


def test_a_cancelled_job_is_not_started_or_finished(store: Store) -> None:
    """Whether it waits or is at work, which a beat tells its process."""
    working, waiting = add(store, "works"), add(store, "waits")
    store.jobs.cancel(waiting)
    store.jobs.cancel(working)
    assert store.jobs.claim("handout", RUNNER) is None
    assert not store.jobs.beat(working, 1, 4)
    store.jobs.finish(working, "ready", result=b"late")
    assert found(store, "works").ending == "cancelled"
