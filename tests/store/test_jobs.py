"""Jobs as rows: their order, limits and ends; tests/jobs/ has processes that do them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import (
    JOB_RETENTION,
    MAX_ATTEMPTS,
    RESTARTS_WITHIN,
    ROW_RETENTION,
    SILENT_AFTER,
    Job,
    JobLimits,
    JobQueue,
    JobRefusedError,
    Worker,
    jobs,
)
from app.store.queries import utc_now
from app.translation import in_language
from tests.helpers.at_once import all_at_once
from tests.helpers.clock import age_jobs
from tests.helpers.queued_jobs import MANY, VISITOR, add_job, found_job, start_first

LIMITS = JobLimits(total=8, visitors=6, visitor=3, member=4, visitor_hourly=5, member_hourly=50)


def rows_of(store: Store) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        return [dict(row) for row in connection.execute(sa.select(jobs).order_by(jobs.c.id)).mappings()]


# The order


# A letter queues a job of a client (a visitor's if it is small), "." starts and ends the first, "-A1" cancels A's
# first; then all the others start.
CASES = (
    ("A A B C", "A B C A"),
    ("A A A B B C", "A B C A B A"),
    ("A A A . . B", "A A B A"),
    ("A . A . A . B A", "A A A B A"),  # what was done while nobody waited counts for nothing
    ("a b A A b", "A A a b b"),  # members go before visitors
    ("A A A B B -A1 -A2", "B B A"),
)


@pytest.mark.parametrize(("steps", "order"), CASES)
def test_clients_take_turns_in_the_order_that_their_places_said(store: Store, steps: str, order: str) -> None:
    started, count = list[str](), dict[str, int]()
    for step in steps.split():
        if step == ".":
            job = start_first(store)
            store.jobs.finish(job, "ready")
            started.append(job.key)
        elif step[0] == "-":
            store.jobs.cancel(found_job(store, step[1:]))
        else:
            count[step] = count.get(step, 0) + 1
            add_job(store, f"{step}{count[step]}", Client(step, is_member=not step.islower()))
    keys = [row["key"] for row in rows_of(store) if row["state"] == "waiting"]
    places = {key: found_job(store, key).before for key in keys}
    for _ in keys:
        job = start_first(store)
        store.jobs.finish(job, "ready")
        started.append(job.key)
    assert " ".join(key[0] for key in started) == order
    assert sorted(places, key=lambda key: places[key]) == started[len(started) - len(keys) :]


def test_jobs_at_work_count_as_before(store: Store) -> None:
    add_job(store, "a")
    add_job(store, "b", VISITOR)
    working = start_first(store)
    assert (working.key, found_job(store, "a").before, found_job(store, "b").before) == ("a", 0, 1)
    store.jobs.finish(working, "ready")
    assert found_job(store, "b").before == 0
    assert (store.jobs.count("handout"), store.jobs.count("run")) == (1, 0)


# Limits


def test_there_is_room_for_so_many_and_visitors_leave_some(store: Store) -> None:
    def refused(client: Client) -> str:
        with pytest.raises(JobRefusedError) as raised:
            add_job(store, "refused", client, limits=LIMITS)
        return raised.value.reason

    def visitor(number: int) -> Client:
        return Client(f"192.0.2.{number}", is_member=False)

    for position, number in enumerate((1, 1, 1, 2, 2, 3)):
        add_job(store, f"{position}", visitor(number), limits=LIMITS)
    assert refused(visitor(4)) == "full"
    for member in ("a", "b"):
        add_job(store, member, Client(member), limits=LIMITS)
    assert refused(Client("c")) == "full"
    while store.jobs.count("handout"):
        store.jobs.finish(start_first(store), "ready")
    for key in ("x", "y"):
        add_job(store, key, visitor(1), limits=LIMITS)
    assert refused(visitor(1)) == "hourly"
    for number in range(4):
        add_job(store, f"of a: {number}", Client("a"), limits=LIMITS)
    assert refused(Client("a")) == "yours"


def test_the_limits_hold_for_jobs_that_are_queued_at_once(store: Store) -> None:
    def queue(number: int) -> None:
        add_job(store, f"{number}", VISITOR, limits=LIMITS)

    problems = all_at_once(12, queue)
    assert (len(rows_of(store)), len(problems)) == (LIMITS.visitor, 12 - LIMITS.visitor)


def test_what_belongs_to_a_job_is_stored_with_it_or_not_at_all(store: Store) -> None:
    def add_with_run(run_id: str, limits: JobLimits = MANY, divisor: int = 1) -> Job:
        run = replace(store.new_run({}, {}), id=run_id)
        return add_job(store, run_id, kind="run", limits=limits, along=lambda: (store.add_run(run), 1 / divisor))

    add_with_run("a")
    with pytest.raises(JobRefusedError):
        add_with_run("b", replace(LIMITS, total=1))
    with pytest.raises(ZeroDivisionError):
        add_with_run("c", divisor=0)
    assert [store.find_run(run_id) is None for run_id in "abc"] == [False, True, True]
    assert [store.jobs.find(key) is None for key in "abc"] == [False, True, True]


def test_each_job_is_in_the_language_of_who_queued_it(store: Store) -> None:
    in_language("de", add_job, store, "a")
    assert found_job(store, "a").language == "de"


# Each start and its end


def test_a_job_is_begun_once(store: Store) -> None:
    job = add_job(store, "a", arguments={"size": 1})
    begun = store.jobs.begin(job.id, "one")
    assert begun
    assert (begun[0].attempt, begun[0].worker, begun[1]) == (1, "one", {"size": 1})
    assert store.jobs.begin(job.id, "two") is None
    store.jobs.put_back(begun[0])
    again = store.jobs.begin(job.id, "two")
    assert again
    assert (again[0].attempt, again[0].worker) == (1, "two")


def test_a_result_kept_elsewhere_is_stored_with_the_end_of_its_job(store: Store) -> None:
    run = store.add_run(store.new_run({}, {}))

    def finish(job: Job, result: int) -> None:
        def keep() -> None:
            store.finish_run(run.id, {"result": result})
            assert 1 / result

        store.jobs.finish(job, "ready", result=keep)

    add_job(store, "a")
    job = start_first(store)
    with pytest.raises(ZeroDivisionError):
        finish(job, 0)
    assert (found_job(store, "a").ending, store.find_run(run.id)) == (None, run)
    finish(job, 7)
    stored = store.find_run(run.id)
    assert (found_job(store, "a").ending, stored and stored.result) == ("ready", {"result": 7})
    add_job(store, "b")
    cancelled = start_first(store)
    store.jobs.cancel(cancelled)
    finish(cancelled, 8)
    assert store.find_run(run.id) == stored


def test_a_silent_job_starts_again_until_it_is_lost(store: Store) -> None:
    add_job(store, "a")
    first = start_first(store)
    age_jobs(store, SILENT_AFTER / 2)
    assert store.jobs.progress(first, 1, 4)
    age_jobs(store, SILENT_AFTER / 2)
    store.jobs.sweep()
    assert found_job(store, "a").is_working
    age_jobs(store, SILENT_AFTER)
    store.jobs.sweep()
    second = start_first(store)
    assert second.attempt == first.attempt + 1
    assert not store.jobs.progress(first, 2, 4)
    store.jobs.finish(first, "ready", result=b"old")
    assert found_job(store, "a").ending is None
    for _ in range(MAX_ATTEMPTS - second.attempt):
        age_jobs(store, SILENT_AFTER)
        store.jobs.sweep()
        start_first(store)
    age_jobs(store, SILENT_AFTER)
    store.jobs.sweep()
    lost = found_job(store, "a")
    assert (lost.ending, lost.reason, bool(lost.problem)) == ("failed", "lost", True)


def test_a_cancelled_job_is_not_started_or_finished(store: Store) -> None:
    add_job(store, "works")
    waiting, working = add_job(store, "waits"), start_first(store)
    assert store.jobs.cancel(waiting)
    assert store.jobs.cancel(working)
    assert not store.jobs.cancel(working)
    assert store.jobs.begin(waiting.id, "one") is None
    assert not store.jobs.progress(working, 1, 4)
    store.jobs.finish(working, "ready", result=b"late")
    assert (found_job(store, "works").ending, store.jobs.result(working)) == ("cancelled", b"")


# What is kept


def test_a_result_is_kept_for_an_hour(store: Store) -> None:
    add_job(store, "a")
    job, result = start_first(store), bytes(range(251)) * 10_000
    store.jobs.finish(job, "ready", result=result)
    assert store.jobs.result(job) == result
    add_job(store, "b")
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    assert store.jobs.find("a") is None
    assert store.jobs.result(job) == b""
    assert found_job(store, "b").ending is None


def test_nothing_of_a_job_that_is_deleted_while_it_is_done_comes_back(store: Store) -> None:
    add_job(store, "a")
    job = start_first(store)
    store.jobs.delete(job)
    store.jobs.finish(job, "ready", result=b"late")
    assert store.jobs.result(job) == b""


def test_what_was_typed_is_kept_for_an_hour_and_the_rest_for_a_day(store: Store) -> None:
    visitor, typed = store.add_visitor(), {"names": ["Zoë Typed"]}
    add_job(store, "Zoë", Client("Zoë"), about=typed, arguments=typed, visitor_id=visitor.id)
    store.jobs.finish(start_first(store), "failed", "No font has “Zoë”.", b"Zoe", reason="refused")
    age_jobs(store, JOB_RETENTION)
    store.jobs.delete_expired()
    [row] = rows_of(store)
    assert "Zoë" not in f"{row}"
    assert (row["visitor_id"], row["worker"], row["state"], row["reason"]) == (None, "one", "failed", "refused")
    assert store.jobs.find(row["key"]) is None
    deleted = add_job(store, "deleted")
    store.jobs.delete(deleted)
    assert (store.jobs.find("deleted"), store.jobs.arguments(deleted), rows_of(store)[-1]["client"]) == (None, {}, "")
    add_job(store, "another")
    age_jobs(store, ROW_RETENTION)
    store.jobs.delete_expired()
    assert [row["key"] for row in rows_of(store)] == ["another"]


# Workers, and what operators see


def test_workers_are_listed_with_their_last_sign_of_life(store: Store) -> None:
    worker = Worker("gpu", ["handouts@2"], device="cuda:0", checkpoints=[{"key": "k", "layers": 3}], version="1")
    for each in (Worker("cpu", []), worker):
        store.jobs.sign_on(each)
    first = store.jobs.workers()[1]
    assert replace(first, started_at=None, heard_at=None) == worker
    age_jobs(store, SILENT_AFTER)
    store.jobs.sign_on(replace(worker, device_name="H100"))
    cpu, gpu = store.jobs.workers()
    assert ((cpu.is_alive, cpu.is_expected), (gpu.is_alive, gpu.device_name)) == ((False, True), (True, "H100"))
    assert first.started_at
    assert gpu.started_at == first.started_at - SILENT_AFTER - timedelta(seconds=1)
    age_jobs(store, RESTARTS_WITHIN)
    assert [each.is_expected for each in store.jobs.workers()] == [False, False]
    age_jobs(store, ROW_RETENTION)
    store.jobs.delete_expired()
    assert store.jobs.workers() == ()


def test_a_queue_has_its_length_and_its_oldest_job(store: Store) -> None:
    add_job(store, "done")
    store.jobs.finish(start_first(store), "ready")
    assert store.jobs.queues() == ()
    add_job(store, "a")
    age_jobs(store, timedelta(seconds=40))
    add_job(store, "b")
    start_first(store)
    add_job(store, "c", kind="run", part="cuda")
    start_first(store, "run")
    handouts, runs = store.jobs.queues()
    assert (handouts.waiting, handouts.working, handouts.oldest) == (1, 1, found_job(store, "b").created_at)
    assert runs == JobQueue("runs:cuda@2", 0, 1, None)


def test_operators_see_jobs_at_work_first_and_the_last_failures(store: Store) -> None:
    for key in ("x", "y"):
        add_job(store, key)
        store.jobs.finish(start_first(store), "failed", "“x” is wrong.", reason="refused")
        age_jobs(store, timedelta(seconds=5))
    add_job(store, "waits", VISITOR)
    add_job(store, "works")
    start_first(store)
    assert [job.key for job in store.jobs.open_jobs(9)] == ["works", "waits"]
    assert [(job.key, job.reason, job.attempt) for job in store.jobs.failed(1)] == [("y", "refused", 1)]


def test_a_wrong_clock_changes_nothing_where_machines_share_a_database(
    new_postgres_database: str, tmp_path: Path
) -> None:
    right = Store(new_postgres_database, tmp_path)
    add_job(right, "ended")
    right.jobs.finish(start_first(right), "ready")
    add_job(right, "works")
    working = start_first(right)
    for hours in (-2, 2):
        clock = partial(lambda hours: utc_now() + timedelta(hours=hours), hours)
        wrong = Store(new_postgres_database, tmp_path, clock=clock)
        wrong.jobs.delete_expired()
        wrong.jobs.sweep()
        wrong.jobs.sign_on(Worker(f"{hours}", []))
        assert (found_job(wrong, "ended").ending, right.jobs.progress(working, 1, 2)) == ("ready", True)
        job = add_job(wrong, "new")
        assert abs(job.created_at - utc_now()) < timedelta(minutes=5)
        wrong.jobs.delete(job)
        assert all(each.is_alive for each in wrong.jobs.workers())
        wrong.close()
    right.close()
