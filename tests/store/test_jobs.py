"""The queue of jobs as rows, without threads; tests/machine/test_jobs.py has processes that work on it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa

from app.machine.jobs import JOB_FORM, Job, JobLimits, JobRefusedError, Runner, unmet_need
from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import GIVES_WAY_AFTER, JOB_RETENTION, MAX_ATTEMPTS, PIECE_BYTES, ROW_RETENTION, SILENT_AFTER
from app.store.queries import utc_now
from app.store.tables import jobs
from app.translation import in_language
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


def test_each_job_is_in_the_language_of_who_queued_it(store: Store) -> None:
    limits, together = JobLimits(total=99, visitors=99, visitor=99, member=99), Barrier(8)

    def queue(number: int) -> None:
        together.wait()
        store.jobs.add("handout", MEMBER, limits, "request", str(number), None, {}, {})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: in_language(f"language {number}", queue, number), range(80)))
    with store.engine.connect() as connection:
        queued = dict(connection.execute(sa.select(jobs.c.key, jobs.c.language)).all())
    assert queued == {str(number): f"language {number}" for number in range(80)}


def test_a_job_is_started_as_it_is_added_to_an_empty_queue(store: Store) -> None:
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
    job = add(store, "v", VISITOR)
    add(store, "a")
    assert not store.jobs.must_give_way(job, RUNNER)
    age_jobs(store, GIVES_WAY_AFTER)
    assert store.jobs.must_give_way(job, RUNNER)
    store.jobs.put_back(job)
    assert (found(store, "v").attempt, started(store).key) == (job.attempt - 1, "a")


def test_as_many_visitors_jobs_give_way_as_members_wait(store: Store) -> None:
    two = replace(RUNNER, concurrency=2)
    for key in ("u", "v"):
        store.jobs.add("handout", VISITOR, LIMITS, "-", key, None, {}, {}, runner=two)
    store.jobs.add("handout", VISITOR, LIMITS, "-", "w", None, {}, {}, runner=replace(RUNNER, name="elsewhere"))
    older, younger = found(store, "u"), found(store, "v")
    assert (older.is_working, younger.is_working) == (True, True)
    for key, gives_way in (("a", [False, True]), ("b", [True, True])):
        add(store, key)
        age_jobs(store, GIVES_WAY_AFTER)
        for job in (older, younger):
            store.jobs.beat(job, 0, 1)
        assert [store.jobs.must_give_way(job, two) for job in (older, younger)] == gives_way


def test_a_result_is_kept_whole_for_an_hour(store: Store) -> None:
    job, result = add(store, "a"), bytes(range(251)) * (2 * PIECE_BYTES // 250)
    store.jobs.finish(job, "ready", result=result)
    assert store.jobs.result(found(store, "a")) == result
    add(store, "b")
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    assert store.jobs.find("a") is None
    assert store.jobs.result(job) == b""
    assert found(store, "b").ending is None


def test_nothing_of_a_job_that_is_deleted_while_it_is_done_comes_back(store: Store) -> None:
    job = add(store, "a")
    store.jobs.delete(job)
    store.jobs.finish(job, "ready", result=bytes(2 * PIECE_BYTES))
    assert store.jobs.result(job) == b""


def test_what_was_typed_is_kept_for_an_hour_and_the_rest_for_a_day(store: Store) -> None:
    visitor = store.add_visitor()
    typed = {"names": ["Zoë Typed"]}
    job = store.jobs.add("handout", Client("Zoë"), LIMITS, "r", "Zoë", None, typed, typed, visitor_id=visitor.id,
                         runner=RUNNER)  # fmt: skip
    store.jobs.finish(job, "failed", "No font has “Zoë”.", b"Zoe", reason="refused")
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    [row] = rows_of(store)
    assert "Zoë" not in f"{row}"
    assert (row["visitor_id"], row["runner"], row["ending"], row["reason"]) == (None, "one", "failed", "refused")
    deleted = add(store, "deleted")
    store.jobs.delete(deleted)
    assert (store.jobs.find("deleted"), store.jobs.arguments(deleted), rows_of(store)[-1]["client"]) == (
        None, {}, MEMBER.key
    )  # fmt: skip
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    assert rows_of(store)[-1]["client"] == ""
    add(store, "another")
    age_jobs(store, ROW_RETENTION)
    store.jobs.delete_expired()
    assert [row["key"] for row in rows_of(store)] == ["another"]


def rows_of(store: Store) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        return [dict(row) for row in connection.execute(sa.select(jobs)).mappings()]


def test_a_cancelled_job_is_not_started_or_finished(store: Store) -> None:
    working, waiting = add(store, "works"), add(store, "waits")
    store.jobs.cancel(waiting)
    store.jobs.cancel(working)
    assert store.jobs.claim("handout", RUNNER) is None
    assert not store.jobs.beat(working, 1, 4)
    store.jobs.finish(working, "ready", result=b"late")
    assert found(store, "works").ending == "cancelled"


def test_a_runner_does_as_many_jobs_of_a_kind_as_it_says(store: Store) -> None:
    for number in range(5):
        store.jobs.add("handout", MEMBER, replace(LIMITS, member=9), "-", f"{number}", None, {}, {})
    two, other = Runner("two", concurrency=2), Runner("other")
    claims = [store.jobs.claim("handout", runner) for runner in (two, other, two, other, two)]
    assert [claimed and (claimed[0].key, claimed[0].runner) for claimed in claims] == [
        ("0", "two"), ("1", "other"), ("2", "two"), None, None
    ]  # fmt: skip
    store.jobs.sign_off("two")
    claimed = store.jobs.claim("handout", two)
    assert claimed
    assert (claimed[0].key, claimed[0].attempt) == ("0", 2)


def test_runners_are_listed_with_their_last_sign_of_life(store: Store) -> None:
    runner = Runner("gpu", ("handout",), device="cuda:0", memory_bytes=2**36, checkpoints=[{"key": "k", "layers": 3}])
    web = Runner("web", is_web=True)
    for each in (web, runner):
        store.jobs.sign_on(each)
    store.jobs.add("handout", MEMBER, LIMITS, "-", "a", None, {}, {})
    claimed = store.jobs.claim("handout", runner)
    assert claimed
    store.jobs.finish(claimed[0], "ready")
    store.jobs.finish(claimed[0], "ready")
    first = store.jobs.runners()[0]
    assert first.started_at
    assert replace(first, started_at=None, heard_at=None) == replace(runner, jobs_done=1)
    age_jobs(store, SILENT_AFTER)
    assert [each.is_alive for each in store.jobs.runners()] == [False, True]
    store.jobs.sign_on(replace(runner, device_name="H100"))
    again = store.jobs.runners()[0]
    assert (again.is_alive, again.device_name, again.jobs_done) == (True, "H100", 1)
    assert again.started_at == first.started_at - SILENT_AFTER - timedelta(seconds=1)
    store.jobs.sign_off("gpu")
    assert [each.name for each in store.jobs.runners()] == ["web"]
    age_jobs(store, ROW_RETENTION)
    store.jobs.delete_expired()
    assert store.jobs.runners() == ()


CPU = Runner("cpu")
GPU = Runner("gpu", device="cuda:1", memory_bytes=1000, checkpoints=[{"key": "w"}])
NEEDS: tuple[tuple[Runner, dict[str, Any], str | None], ...] = (
    (CPU, {}, None),
    (CPU, {"device": "cpu"}, None),
    (CPU, {"device": "cuda"}, "no-device"),
    (CPU, {"checkpoint": "w"}, "no-weights"),
    (CPU, {"memory_bytes": 1}, "no-memory"),
    (GPU, {"checkpoint": "w", "device": "cuda", "memory_bytes": 1000}, None),
    (GPU, {"checkpoint": "v"}, "no-weights"),
    (GPU, {"device": "cpu"}, "no-device"),
    (GPU, {"memory_bytes": 1001}, "no-memory"),
    (replace(GPU, form=JOB_FORM + 1), {}, "old-code"),
)


def test_a_runner_starts_the_jobs_whose_needs_it_meets(store: Store) -> None:
    for runner, needs, lacking in NEEDS:
        job = store.jobs.add("run", MEMBER, LIMITS, "-", "a", None, {}, {}, **needs)
        unmet = unmet_need(job, [runner])
        assert (unmet and unmet[0]) == lacking, needs
        assert (store.jobs.claim("run", runner) is None) == (lacking is not None), needs
        others = [replace(CPU, is_web=True), replace(CPU, is_alive=False), replace(CPU, kinds=("handout",))]
        assert (unmet_need(job, others) or ("",))[0] == "no-runner"
        assert (store.jobs.claim("run", others[0]) is None) == (lacking is None), needs
        store.jobs.delete(job)


def test_a_wrong_clock_changes_nothing_where_machines_share_a_database(
    new_postgres_database: str, tmp_path: Path
) -> None:
    right = Store(new_postgres_database, tmp_path)
    ended = add(right, "ended")
    right.jobs.finish(ended, "ready")
    working = add(right, "works")
    for hours in (-2, 2):
        clock = partial(lambda hours: utc_now() + timedelta(hours=hours), hours)
        wrong, runner = Store(new_postgres_database, tmp_path, clock=clock), Runner(f"{hours}")
        wrong.jobs.delete_expired()
        wrong.jobs.sign_on(runner)
        assert wrong.jobs.claim("handout", runner) is None
        assert (found(wrong, "ended").ending, right.jobs.beat(working, 1, 2)) == ("ready", True)
        job = add(wrong, "new")
        assert abs(job.created_at - utc_now()) < timedelta(minutes=5)
        assert (job.is_overdue, wrong.jobs.must_give_way(working, runner)) == (False, False)
        wrong.jobs.delete(job)
        assert [each.is_alive for each in wrong.jobs.runners()] == [True] * len(right.jobs.runners())
        wrong.close()
    right.close()


def test_postgresql_tells_of_a_job_at_once(new_postgres_database: str, tmp_path: Path) -> None:
    store = Store(new_postgres_database, tmp_path)
    for key in ("a", "b"):
        store.jobs.await_job(0)  # which connects
        with ThreadPoolExecutor(1) as thread:
            waiting, began = thread.submit(store.jobs.await_job, 60), time.monotonic()
            store.jobs.add("handout", MEMBER, LIMITS, "-", key, None, {}, {})
            waiting.result()
        assert time.monotonic() - began < 50
        with store.engine.connect() as connection:
            # Waits until that process has ended, so that the next call finds its connection closed.
            listening = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE query ^@ 'LISTEN'"
            assert list(connection.exec_driver_sql(listening).scalars()) == [True]
        store.jobs.await_job(0)  # which finds out
    store.close()
