"""The order of jobs: clients take turns, as if each had a line of its own that is served one job at a time."""

from __future__ import annotations

from itertools import zip_longest
from random import Random

import pytest
import sqlalchemy as sa

from app.machine.jobs import Job, JobLimits, Runner
from app.machine.work_queue import Client
from app.store import Store
from app.store.tables import jobs
from app.web.shared.run_jobs import RUN_LIMITS

LIMITS = JobLimits(total=10**6, visitors=10**6, visitor=10**6, member=10**6)
RUNNER = Runner("one")


def add(store: Store, client: str, number: int) -> Job:
    """Queue a job; a client in small letters is a visitor."""
    whose = Client(client, is_member=not client.islower())
    return store.jobs.add("run", whose, LIMITS, "-", f"{client}{number}", None, {}, {})


def start(store: Store) -> str:
    """Start the first job, and end it; returns its key."""
    claimed = store.jobs.claim("run", RUNNER)
    assert claimed
    store.jobs.finish(claimed[0], "ready")
    return claimed[0].key


def place(store: Store, key: str) -> int:
    job = store.jobs.find(key)
    assert job
    return job.before


# A letter queues a job of a client, "." starts the first, "-A1" cancels A's first, "xA1" deletes it; then all the
# others start.
CASES = (
    ("A A B C", "A B C A"),
    ("A A A B B C", "A B C A B A"),
    ("A A A . . B", "A A B A"),  # latecomers start in the current turn, not at the end
    ("A A A . . B B", "A A B A B"),
    ("C C C A B . A . B . A . B . A . B", "C A B C A B C A B A B"),  # who queues one at a time gets no more
    ("A . A . A . B A", "A A A B A"),  # what was done while nobody waited counts for nothing
    ("a b A A b", "A A a b b"),  # members go before visitors
    ("A A A B B -A1 -A2", "A B B"),
    ("A A A B B B -A1", "A B A B B"),  # a cancelled job costs no turn
    ("A A B -A1 A", "A B A"),
    ("A A B -A1 -A2 A", "B A"),
    ("C C A . . xA1 A", "C A C A"),  # deleting what was done brings nobody forward
)


def test_clients_take_turns(store: Store) -> None:
    """In the order that the places said."""
    for steps, order in CASES:
        started, count = list[str](), dict[str, int]()
        for step in steps.split():
            if step == ".":
                started.append(start(store))
            elif step[0] in "-x":
                job = store.jobs.find(step[1:])
                assert job
                (store.jobs.cancel if step[0] == "-" else store.jobs.delete)(job)
            else:
                count[step] = count.get(step, 0) + 1
                add(store, step, count[step])
        keys = [f"{client}{number}" for client in count for number in range(1, count[client] + 1)]
        places = {key: place(store, key) for key in keys if (job := store.jobs.find(key)) and not job.ending}
        rest = [start(store) for _ in places]
        assert " ".join(key[0] for key in started + rest) == order, steps
        assert [places[key] for key in rest] == list(range(len(rest))), steps
        with store.transaction() as connection:
            connection.execute(sa.delete(jobs))


def test_nobody_waits_longer_than_a_fair_share_and_one_job(store: Store) -> None:
    random, begun = Random(7), list[str]()  # noqa: S311 - a test
    begun_before, waiting = dict[str, int](), dict[str, Job]()  # by the job's key
    for number in range(100):
        step = random.choices(("add", "start", "cancel"), (5, 4 if number < 60 else 9, 1))[0]
        if step == "add":
            job = add(store, random.choice("AAABBCDE"), number)
            waiting[job.key], begun_before[job.key] = job, len(begun)
        elif waiting and step == "cancel":
            store.jobs.cancel(waiting.pop(random.choice(sorted(waiting))))
        elif waiting:
            key = start(store)
            waiting.pop(key)
            begun.append(key)
            meanwhile = [each[0] for each in begun[begun_before[key] :]]
            assert max(map(meanwhile.count, meanwhile)) <= meanwhile.count(key[0]) + 1, (key, meanwhile)
    assert len(begun) > 30


@pytest.mark.slow
def test_a_thousand_runs_of_five_hundred_students(store: Store) -> None:
    random, lines = Random(3), dict[str, list[str]]()  # noqa: S311 - a test
    for number, student in enumerate(random.sample([f"student {number // 2}" for number in range(1000)], 1000)):
        lines.setdefault(student, []).append(f"{number}")
        store.jobs.add("run", Client(student), RUN_LIMITS, "-", f"{number}", None, {}, {})
    for key in random.sample(range(1000), 100):
        job = store.jobs.find(f"{key}")
        assert job
        store.jobs.cancel(job)
        lines[job.client].remove(job.key)
    order = [key for turn in zip_longest(*lines.values()) for key in sorted(filter(None, turn), key=int)]
    assert [place(store, key) for key in order] == list(range(900))
    begun, at_work = list[str](), list[Job]()
    while len(begun) < 200:
        for runner in (RUNNER, Runner("another")):
            claimed = store.jobs.claim("run", runner)
            assert claimed
            begun.append(claimed[0].key)
            at_work.append(claimed[0])
        while at_work:
            store.jobs.finish(at_work.pop(), "ready")
    assert begun == order[:200]
    assert [place(store, key) for key in order[200:]] == list(range(700))
