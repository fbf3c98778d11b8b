"""Jobs as rows, queued and started without any process that does them."""

from __future__ import annotations

from typing import Any

from app.jobs.jobs import queue_name
from app.machine.work_queue import Client
from app.store import Store
from app.store.jobs import Job, JobKind, JobLimits

MANY = JobLimits(total=10**6, visitors=10**6, visitor=10**6, member=10**6)
MEMBER, VISITOR = Client("teacher 1"), Client("192.0.2.1", is_member=False)


def add_job(
    store: Store,
    key: str,
    client: Client = MEMBER,
    kind: JobKind = "handout",
    limits: JobLimits = MANY,
    *,
    part: str = "",
    **options: Any,
) -> Job:
    """Queue a job, by default a handout of a member."""
    given = {"about": {}, "arguments": {}} | options
    return store.jobs.add(kind, queue_name(kind, part), client, limits, key, **given)


def start_first(store: Store, kind: JobKind = "handout", worker: str = "one") -> Job:
    """Start the job of a kind that is next."""
    job_id = store.jobs.first_waiting(kind)
    assert job_id
    begun = store.jobs.begin(job_id, worker)
    assert begun
    return begun[0]


def found_job(store: Store, key: str) -> Job:
    """A job that must be there."""
    job = store.jobs.find(key)
    assert job
    return job
