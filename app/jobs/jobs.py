"""Jobs: work of several seconds, as rows that any process can show.

A job's row (app/store/jobs.py) has everything that its work needs and is what pages read. It makes a job count once:
only its latest start may store a result. Who starts it, and whether anybody does, is up to `InlineJobs` or
`EngineJobs`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from app.logs import REQUEST_ID
from app.machine.work_queue import Client
from app.metrics import count_failure, timed_job
from app.store.jobs import (
    Job,
    JobKind,
    JobLimits,
    JobRefusedError,
    JobTable,
    Result,
    Worker,
    no_worker,
)
from app.translation import gettext as _
from app.translation import speak

# Version of all kinds' arguments, in the names of queues: raise it when the previous release's code would misread them.
JOB_FORM = 2
QUEUES: Mapping[JobKind, str] = {"run": "runs", "handout": "handouts", "head": "heads"}
CONNECTIONS_OF_ENGINE = 5  # in a worker, at most: three listeners, and a pool of two
MAX_PART = 24  # the engine refuses queues with names of more than 40 characters
BEAT_S = 1.0  # between two heartbeats of a running job, each of which also checks whether it was cancelled
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.25  # between two checks whether a job has ended

log = logging.getLogger("attention_shapes")


def queue_name(kind: JobKind, part: str = "") -> str:
    """The queue of jobs of a kind; those with a `part`, such as a device, are only for workers that name it.

    Example: queue_name("run", "cuda") == "runs:cuda@2"
    """
    if len(part) > MAX_PART or not part.isascii():
        part = sha256(part.encode()).hexdigest()[:MAX_PART]
    return f"{QUEUES[kind]}{':' if part else ''}{part}@{JOB_FORM}"


class JobFailedError(ValueError):
    """A job that failed: the sentence to show, the reason as a word that quotes nothing, and what else to store."""

    def __init__(self, problem: str, reason: str, result: Result) -> None:
        super().__init__(problem)
        self.reason, self.result = reason, result


class JobStoppedError(Exception):
    """Raised by `Task.check` inside a job that was cancelled, or restarted elsewhere."""


class PutBackError(JobStoppedError):
    """Raised by `Task.check` inside a job whose process is stopping: another start will do it."""


class Task:
    """A running job as its work sees it."""

    def __init__(self, rows: JobTable, job: Job, arguments: Mapping[str, Any], stopping: threading.Event) -> None:
        self.job, self.arguments = job, arguments
        self._rows, self._stopping = rows, stopping
        self._progress, self._next_beat = (0, 1), time.monotonic() + BEAT_S

    def report(self, done: int, total: int) -> None:
        """Note the progress, which is stored with the next heartbeat."""
        self._progress = done, max(total, 1)  # a head of layer 0 has no layers below to report on

    def check(self) -> None:
        """Raise JobStoppedError if the work should stop; call this several times per second."""
        if self._stopping.is_set():
            raise PutBackError
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + BEAT_S
        try:
            goes_on = self._rows.progress(self.job, *self._progress)
        except Exception:  # the database doesn't answer; the next heartbeat may be stored
            return
        if not goes_on:
            raise JobStoppedError


Work = Callable[[Task], Result]  # may raise JobStoppedError, and a ValueError whose text is shown


@dataclass(frozen=True)
class Kind:
    """A kind of job: its work, and how many there may be."""

    work: Work
    limits: JobLimits


class Jobs:
    """Queues jobs and does them; `name` is this process's in their rows."""

    has_workers = False  # whether other processes do the jobs

    def __init__(self, rows: JobTable, name: str = "") -> None:
        self.rows, self.name, self.kinds = rows, name, dict[JobKind, Kind]()
        self.stopping = threading.Event()

    def start(self) -> None:
        """Begin with what waits, if this process does jobs."""

    def workers(self) -> tuple[Worker, ...]:
        """The workers that are alive or probably restarting."""
        return ()

    def serves(self, queue: str) -> bool:
        """Whether jobs of a queue will be done."""
        return True

    def submit(
        self,
        kind: JobKind,
        client: Client,
        key: str,
        about: Mapping[str, Any],
        arguments: Mapping[str, Any],
        *,
        part: str = "",
        **owner: Any,
    ) -> Job:
        """Queue a job and return it without waiting; raises JobRefusedError.

        `part` is the queue's, see `queue_name`; `owner` is for `JobTable.add`.
        """
        queue = queue_name(kind, part)
        if not self.serves(queue):
            raise JobRefusedError("no-worker")
        return self.rows.add(kind, queue, client, self.kinds[kind].limits, key, about=about, arguments=arguments,
                             request_id=REQUEST_ID.get(), defer=self.defer, **owner)  # fmt: skip

    def defer(self, connection: sa.Connection, job_id: int, queue: str, priority: int) -> int | None:
        """Give a job to the engine, if there is one: see `Defer`."""
        return None

    def find(self, key: str) -> Job | None:
        """The job with this key, or None if it is unknown, deleted or ended over an hour ago."""
        return self.rows.find(key)

    def wait(self, job: Job, seconds: float) -> Job | None:
        """The job once it has ended, or as it is after `seconds`; None if it was deleted meanwhile."""
        deadline, pause_s = time.monotonic() + seconds, FIRST_PAUSE_S
        found: Job | None = job
        while found and not found.ending and time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)
            found = self.find(job.key)
        return found

    def why_it_waits(self, job: Job) -> str:
        """The sentence for the page of a waiting job that no worker takes; usually empty."""
        return no_worker() if job.state == "waiting" and not self.serves(job.queue) else ""

    def do(self, job_id: int) -> None:
        """Do a job, unless it doesn't wait any more; if this process is stopping, put it back."""
        begun = self.rows.begin(job_id, self.name)
        if begun is None:
            return
        job, arguments = begun
        REQUEST_ID.set(job.request_id)
        speak(job.language)
        waited_s = (job.started_at - job.created_at).total_seconds() if job.started_at else 0.0
        try:
            with timed_job(job.kind, waited_s):
                result = self.kinds[job.kind].work(Task(self.rows, job, arguments, self.stopping))
            self.rows.finish(job, "ready", result=result)
        except PutBackError:
            self.rows.put_back(job)
        except JobStoppedError:
            pass
        except JobFailedError as failure:
            self.rows.finish(job, "failed", str(failure), failure.result, failure.reason)
        except ValueError as refusal:  # all our errors are ValueErrors
            self.rows.finish(job, "failed", str(refusal), reason=getattr(refusal, "reason", "refused"))
        except Exception:  # nothing above this thread would report the error, and a page waits for the result
            log.exception("a job of the kind %s failed", job.kind)
            self.rows.finish(job, "failed", _("Something went wrong on the server. Try again."), reason="error")

    def tidy(self) -> None:
        """Delete what has expired, and see to what was left behind."""
        self.rows.delete_expired()

    def close(self) -> None:
        """Stop the work of this process, and put it back."""
        self.stopping.set()


def note_failure() -> None:
    """Log the current exception as a queue that can't be read or written."""
    count_failure("jobs")
    log.exception("the queue of jobs could not be read or written")
