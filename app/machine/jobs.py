"""Jobs: work that takes seconds, done one at a time of each kind, whose page can be answered by any process.

A job is a row of the database with everything that its work needs, so that any process of the app can take it, also
after a restart. This module has the interface and the threads that do the work; `app/store/jobs.py` has the rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from app.logs import REQUEST_ID
from app.metrics import count_failure, timed_job
from app.translation import gettext as _
from app.translation import speak

from .work_queue import Client

JobKind = Literal["handout", "run", "head"]
JobEnd = Literal["ready", "failed", "cancelled", "lost"]
BEAT_S = 1.0  # between two signs of life of a job at work, at which it also learns that it was cancelled

log = logging.getLogger("attention_shapes")


@dataclass(frozen=True)
class Job:
    """A job as it is now. `about` is what its page shows, `before` how many jobs will be done before it.

    `teacher_id` is the one teacher who may see it; with None, everybody who has the key may.
    """

    id: int
    key: str
    kind: JobKind
    client: str
    is_member: bool
    teacher_id: int | None
    about: Mapping[str, Any]
    request_id: str
    language: str
    created_at: datetime
    attempt: int  # how often it was started
    done: int
    total: int
    ending: JobEnd | None
    problem: str  # the sentence to show for one that failed
    is_working: bool
    before: int
    is_stalled: bool  # it waits, and no process does jobs of its kind

    @property
    def percent(self) -> int:
        """How much is done, from 0 to 100, rounded down."""
        return 100 * self.done // self.total


@dataclass(frozen=True)
class JobLimits:
    """How many jobs of a kind may wait or be at work: in all, of visitors, of one visitor's network, of one member.

    `visitor_hourly` and `member_hourly` are how many each may start within an hour.
    """

    total: int
    visitors: int
    visitor: int
    member: int
    visitor_hourly: int = 10**9
    member_hourly: int = 10**9


class JobRefusedError(Exception):
    """A job that there is no room for. `reason` is "full", or "yours" or "hourly" where this client has too many."""

    def __init__(self, reason: Literal["full", "yours", "hourly"]) -> None:
        super().__init__(reason)
        self.reason = reason


class JobStoppedError(Exception):
    """A job that was cancelled, gives way to another, or whose process ends; raised by `Task.check` inside its work."""


Claimed = tuple[Job, Mapping[str, Any]]  # a job that was started here, and its arguments
# What the work of a job gives: bytes that are stored with the job, or what stores its result elsewhere, which is called
# in the transaction that ends the job, if it has not been cancelled by then.
Result = bytes | Callable[[], object]


class JobRows(Protocol):
    """Where jobs are stored; `app/store/jobs.py` says what each method does."""

    def add(self, kind: JobKind, client: Client, limits: JobLimits, request_id: str, key: str, teacher_id: int | None,
            about: Mapping[str, Any], arguments: Mapping[str, Any], along: Callable[[], object],
            visitor_id: int | None, student_id: int | None,
            ) -> Job: ...  # fmt: skip
    def find(self, key: str) -> Job | None: ...
    def count(self, kind: JobKind) -> int: ...
    def claim(self, kind: JobKind) -> Claimed | None: ...
    def beat(self, job: Job, done: int, total: int) -> bool: ...
    def must_give_way(self, job: Job) -> bool: ...
    def put_back(self, job: Job) -> None: ...
    def finish(self, job: Job, ending: JobEnd, problem: str = "", result: Result = b"") -> None: ...
    def cancel(self, job: Job) -> None: ...
    def result(self, job: Job) -> bytes: ...
    def arguments(self, job: Job) -> Mapping[str, Any]: ...
    def delete(self, job: Job) -> None: ...
    def delete_expired(self) -> None: ...


class Task:
    """A job at work, as its work sees it."""

    def __init__(self, rows: JobRows, job: Job, arguments: Mapping[str, Any], is_closed: Callable[[], bool]) -> None:
        self.job, self.arguments = job, arguments
        self.gives_way = False
        self._rows, self._is_closed = rows, is_closed
        self._progress, self._next_beat = (0, 1), time.monotonic() + BEAT_S

    @property
    def client(self) -> Client:
        return Client(self.job.client, self.job.is_member)

    def report(self, done: int, total: int) -> None:
        """Note how much is done, for the page; it is stored with the next sign of life."""
        self._progress = done, total

    def check(self) -> None:
        """Raise JobStoppedError once the work is to stop; to be called several times a second.

        It stops if this process closes; and, looked up every BEAT_S with a sign of life, if the job was cancelled or a
        visitor's job must give way to a member's. If the database does not answer, the work goes on.
        """
        if self._is_closed():
            self.gives_way = True
            raise JobStoppedError
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + BEAT_S
        try:
            goes_on = self._rows.beat(self.job, *self._progress)
            self.gives_way = goes_on and not self.job.is_member and self._rows.must_give_way(self.job)
        except Exception:  # the database does not answer: the next sign of life may be stored
            return
        if self.gives_way or not goes_on:
            raise JobStoppedError


Work = Callable[[Task], Result]  # raises a ValueError whose text is shown, and JobStoppedError


class Jobs:
    """Queues jobs and does them, one of each kind at a time whichever process took them in; members' jobs go first.

    Each kind has one thread in each process that has done such work. It goes on while there are jobs of any process.
    """

    def __init__(self, rows: JobRows) -> None:
        self._rows, self._closed = rows, False
        self._kinds = dict[JobKind, tuple[Work, JobLimits]]()
        self._threads = dict[JobKind, ThreadPoolExecutor]()

    def add_kind(self, kind: JobKind, work: Work, limits: JobLimits) -> None:
        """Let this process do jobs of a kind, and take no more than `limits`."""
        self._kinds[kind] = work, limits
        self._threads[kind] = ThreadPoolExecutor(1, thread_name_prefix=f"{kind}-jobs")

    def over(self, rows: JobRows) -> Jobs:
        """The same kinds of jobs in other rows, such as those of a database into which nothing can be written."""
        jobs = Jobs(rows)
        jobs._kinds, jobs._threads = self._kinds, self._threads
        return jobs

    def start(self) -> None:
        """Do what an earlier process has left waiting."""
        for kind in self._kinds:
            self._wake(kind)

    def submit(
        self,
        kind: JobKind,
        client: Client,
        key: str,
        about: Mapping[str, Any],
        arguments: Mapping[str, Any],
        teacher_id: int | None = None,
        along: Callable[[], object] = lambda: None,
        *,
        visitor_id: int | None = None,
        student_id: int | None = None,
    ) -> Job:
        """Queue a job and return it without waiting for it; raises JobRefusedError. Not inside a transaction.

        `key` is part of its address, and so a secret. `arguments` are what its work needs, as JSON. `teacher_id` is the
        one teacher who may see it, None for everybody who has the key. `along` stores what belongs to the job, in the
        same transaction. With a visitor or a student, who typed what is in its arguments, it is deleted once they are.
        Where no other job of its kind waits or is at work, it begins now.
        """
        limits = self._kinds[kind][1]
        job = self._rows.add(kind, client, limits, REQUEST_ID.get(), key, teacher_id, about, arguments, along,
                             visitor_id, student_id)  # fmt: skip
        self._wake(kind, (job, arguments) if job.is_working else None)
        return job

    def find(self, key: str) -> Job | None:
        """A job with its progress and its place; None for an unknown key, and an hour after its end.

        If nobody works on its queue, as after the end of a process, this process starts to.
        """
        job = self._rows.find(key)
        if job and job.is_stalled:
            self._wake(job.kind)
        return job

    def count(self, kind: JobKind) -> int:
        """How many jobs of a kind wait or are at work."""
        return self._rows.count(kind)

    def cancel(self, job: Job) -> None:
        """End a job that waits or is at work; nothing happens to one that has ended."""
        self._rows.cancel(job)

    def result(self, job: Job) -> bytes:
        """What the work of a job has returned."""
        return self._rows.result(job)

    def arguments(self, job: Job) -> Mapping[str, Any]:
        """What a job was queued with, for the page of whoever typed it."""
        return self._rows.arguments(job)

    def delete(self, job: Job) -> None:
        """Delete a job with all that was typed for it, and its result."""
        self._rows.delete(job)

    def tidy(self) -> None:
        """Delete the jobs that ended an hour ago, with their results, and look for those that nobody does."""
        self._rows.delete_expired()
        self.start()

    def close(self) -> None:
        """Stop the work that is being done here, which goes back to the queue; the next process does it."""
        self._closed = True
        for thread in self._threads.values():
            thread.shutdown()

    def _wake(self, kind: JobKind, claimed: Claimed | None = None) -> None:
        """Let the thread of a kind do the job that is `claimed`, if any, then look for others."""
        try:
            self._threads[kind].submit(self._work_off, kind, claimed)
        except RuntimeError:  # closed meanwhile: the job waits for the next process
            if claimed:
                self._rows.put_back(claimed[0])

    def _work_off(self, kind: JobKind, claimed: Claimed | None) -> None:
        """Do the job that is `claimed`, then others of its kind until none waits, or another process is at work, which
        then goes on.

        Errors are logged. If the database does not answer, the next call of `_wake` goes on; a job whose end could not
        be stored is then done again, since it gives no more signs of life.
        """
        try:
            while not self._closed and (claimed := claimed or self._rows.claim(kind)):
                self._carry_out(Task(self._rows, *claimed, lambda: self._closed))
                claimed = None
            if claimed:
                self._rows.put_back(claimed[0])
        except Exception:
            count_failure("jobs")
            log.exception("the queue of jobs of the kind %s could not be read or written", kind)

    def _carry_out(self, task: Task) -> None:
        """Do the work of a job, in its language, and store how it ended.

        A job that was stopped to give way is put back; one that was cancelled is left. A ValueError fails it with its
        text. Any other error, such as a result that cannot be stored, is logged and fails it with a general sentence.
        """
        job = task.job
        REQUEST_ID.set(job.request_id)
        speak(job.language)
        try:
            with timed_job(job.kind):
                result = self._kinds[job.kind][0](task)
            self._rows.finish(job, "ready", result=result)
        except JobStoppedError:
            if task.gives_way:
                self._rows.put_back(job)
        except ValueError as refusal:  # every error of ours is one
            self._rows.finish(job, "failed", str(refusal))
        except Exception:  # nothing above this thread would report it, and a page waits for the result
            log.exception("a job of the kind %s failed", job.kind)
            self._rows.finish(job, "failed", _("Something went wrong on the server. Try again."))
