"""Jobs: work of several seconds, done by runners; any process can answer their pages.

A job is a database row with everything its work needs, so any runner on any machine can take it, including after a
restart. A runner is a process of its own, or all web processes of one machine together; it does a limited number of
jobs of each kind at a time. The rows are in `app/store/jobs.py`.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from app import __version__
from app.logs import REQUEST_ID
from app.metrics import count_failure, timed_job
from app.translation import gettext as _
from app.translation import speak

from .work_queue import Client

JobKind = Literal["handout", "run", "head"]
JobEnd = Literal["ready", "failed", "cancelled", "lost"]
JOB_FORM = 1  # version of all kinds' arguments; raise it when the previous release's code would misread them
BEAT_S = 1.0  # between two heartbeats of a running job, each of which also checks whether it was cancelled
POLL_S = 0.5  # between two polls for jobs that a runner wasn't notified of
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.25  # between two checks whether a job has ended
RUNNERS_TTL_S = 5.0  # for which the list of runners is cached
HOPELESS_AFTER_S = 60.0  # for which no runner could do a job; a restarting one is back by then

log = logging.getLogger("attention_shapes")


def percent(done: int, total: int) -> int:
    """How much of a job is done, from 0 to 100, rounded down."""
    return 100 * done // total


@dataclass(frozen=True)
class Job:
    """A job in its current state; `about` is what its page shows."""

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
    started_at: datetime | None  # the latest start; None before the first, and once it is requeued
    heard_at: datetime  # the last heartbeat; the end, for a job that has ended
    attempt: int  # how often it was started
    runner: str  # who started it last
    turn: int  # its round in the queue; each client has one job per round
    checkpoint: str
    device: str
    memory_bytes: int
    form: int
    done: int
    total: int
    ending: JobEnd | None
    problem: str  # the sentence to show for a failed job
    reason: str  # why it failed, as a word that quotes nothing anybody typed
    is_working: bool
    before: int
    is_stalled: bool  # waiting, with no runner for jobs of its kind
    is_overdue: bool  # has waited so long that it fails if no runner can do it

    @property
    def percent(self) -> int:
        return percent(self.done, self.total)


@dataclass(frozen=True)
class Runner:
    """A process that does jobs, or all web processes of one machine (`is_web`), which share a name.

    `concurrency` is how many jobs of each kind it does at a time.
    """

    name: str
    kinds: tuple[JobKind, ...] = get_args(JobKind)
    is_web: bool = False
    device: str = "cpu"
    device_name: str = ""
    memory_bytes: int = 0
    concurrency: int = 1
    checkpoints: Sequence[Mapping[str, Any]] = ()
    form: int = JOB_FORM
    version: str = __version__
    started_at: datetime | None = None
    heard_at: datetime | None = None  # its last heartbeat
    jobs_done: int = 0  # since it started
    is_alive: bool = True

    @property
    def device_kind(self) -> str:
        """The device without its number: "cuda" for "cuda:0"."""
        return self.device.partition(":")[0]

    @property
    def checkpoint_keys(self) -> list[str]:
        return [str(checkpoint["key"]) for checkpoint in self.checkpoints]


def web_runner(folder: Path, *, leaves_jobs: bool = False) -> Runner:
    """The runner formed by this machine's web processes with this data folder."""
    name = f"{socket.gethostname()} {sha256(str(folder.resolve()).encode()).hexdigest()[:8]}"
    return Runner(name, () if leaves_jobs else get_args(JobKind), is_web=True, device="")


def unmet_need(job: Job, runners: Iterable[Runner]) -> tuple[str, str] | None:
    """Why none of these runners can do a job, as (reason, sentence), or None."""
    able = [each for each in runners if each.is_alive and not each.is_web and job.kind in each.kinds]
    needs: tuple[tuple[str, str, Callable[[Runner], bool]], ...] = (
        ("no-runner", _("Nothing on this server does such work at the moment: try again later."), lambda _each: True),
        ("old-code", _("This server is being updated: try again in a few minutes."),
         lambda each: each.form == job.form),
        ("no-weights", _("No running machine of this server has these weights: choose others, or try again later."),
         lambda each: job.checkpoint in ("", *each.checkpoint_keys)),
        ("no-device", _("No running machine of this server has such a device: choose another, or try again later."),
         lambda each: job.device in ("", each.device_kind)),
        ("no-memory", _("No running machine of this server has enough memory for this: choose something smaller."),
         lambda each: job.memory_bytes <= each.memory_bytes),
    )  # fmt: skip
    for reason, sentence, meets in needs:
        able = [each for each in able if meets(each)]
        if not able:
            return reason, sentence
    return None


@dataclass(frozen=True)
class JobLimits:
    """How many jobs of a kind may wait or run: in total, and for visitors, one network and one member.

    `visitor_hourly` and `member_hourly` limit how many each may queue per hour.
    """

    total: int
    visitors: int
    visitor: int
    member: int
    visitor_hourly: int = 10**9
    member_hourly: int = 10**9


class JobRefusedError(Exception):
    """There is no room for a job: `reason` is "full", or "yours" or "hourly" if this client has too many."""

    def __init__(self, reason: Literal["full", "yours", "hourly"]) -> None:
        super().__init__(reason)
        self.reason = reason


class JobStoppedError(Exception):
    """Raised by `Task.check` inside a job that was cancelled, must give way, or whose process is ending."""


Claimed = tuple[Job, Mapping[str, Any]]  # a job started by this process, and its arguments
# The result of a job: bytes stored with the job, or a function that stores the result elsewhere. The function is called
# in the transaction that ends the job, unless the job has been cancelled.
Result = bytes | Callable[[], object]


class JobFailedError(ValueError):
    """A job that failed: the sentence to show, and the reason as a word that quotes nothing.

    `result` is stored with the job, as a successful job's would be.
    """

    def __init__(self, problem: str, reason: str = "refused", result: Result = b"") -> None:
        super().__init__(problem)
        self.reason, self.result = reason, result


class JobRows(Protocol):
    """Where jobs are stored; see `app/store/jobs.py` for each method."""

    def add(self, kind: JobKind, client: Client, limits: JobLimits, request_id: str, key: str, teacher_id: int | None,
            about: Mapping[str, Any], arguments: Mapping[str, Any], along: Callable[[], object],
            visitor_id: int | None, student_id: int | None, checkpoint: str, device: str, memory_bytes: int,
            runner: Runner | None,
            ) -> Job: ...  # fmt: skip
    def find(self, key: str) -> Job | None: ...
    def overdue(self) -> Sequence[Job]: ...
    def count(self, kind: JobKind) -> int: ...
    def claim(self, kind: JobKind, runner: Runner) -> Claimed | None: ...
    def await_job(self, seconds: float) -> None: ...
    def beat(self, job: Job, done: int, total: int) -> bool: ...
    def must_give_way(self, job: Job, runner: Runner) -> bool: ...
    def put_back(self, job: Job) -> None: ...
    def finish(self, job: Job, ending: JobEnd, problem: str = "", result: Result = b"", reason: str = "") -> None: ...
    def refuse(self, job: Job, problem: str, reason: str) -> None: ...
    def cancel(self, job: Job) -> bool: ...
    def result(self, job: Job) -> bytes: ...
    def arguments(self, job: Job) -> Mapping[str, Any]: ...
    def delete(self, job: Job) -> None: ...
    def delete_expired(self) -> None: ...
    def sign_on(self, runner: Runner) -> None: ...
    def sign_off(self, name: str) -> None: ...
    def runners(self) -> tuple[Runner, ...]: ...


class Task:
    """A running job as its work sees it."""

    def __init__(
        self, rows: JobRows, runner: Runner, job: Job, arguments: Mapping[str, Any], is_closed: Callable[[], bool]
    ) -> None:
        self.job, self.arguments = job, arguments
        self.gives_way = False
        self._rows, self._runner, self._is_closed = rows, runner, is_closed
        self._progress, self._next_beat = (0, 1), time.monotonic() + BEAT_S

    @property
    def client(self) -> Client:
        return Client(self.job.client, self.job.is_member)

    def report(self, done: int, total: int) -> None:
        """Note the progress, which is stored with the next heartbeat."""
        self._progress = done, max(total, 1)  # a head of layer 0 has no layers below to report on

    def check(self) -> None:
        """Raise JobStoppedError if the work should stop; call this several times per second."""
        if self._is_closed():
            self.gives_way = True
            raise JobStoppedError
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + BEAT_S
        try:
            goes_on = self._rows.beat(self.job, *self._progress)
            self.gives_way = goes_on and not self.job.is_member and self._rows.must_give_way(self.job, self._runner)
        except Exception:  # the database doesn't answer; the next heartbeat may be stored
            return
        if self.gives_way or not goes_on:
            raise JobStoppedError


Work = Callable[[Task], Result]  # may raise JobStoppedError, and a ValueError whose text is shown


class Jobs:
    """Queues jobs, and does those that its runner can do.

    Clients take turns with one job each; members' jobs go first.
    """

    def __init__(self, rows: JobRows, runner: Runner | None) -> None:
        self.rows, self._closed = rows, threading.Event()
        self._here = runner  # shown to operators even if it does no jobs
        self._runner = runner if runner and runner.kinds else None
        self._kinds = dict[JobKind, tuple[Work, JobLimits]]()
        self._threads = dict[JobKind, ThreadPoolExecutor]()
        self._server: threading.Thread | None = None
        self._runners, self._runners_at = tuple[Runner, ...](), -RUNNERS_TTL_S
        self._unmet_since = dict[int, float]()  # by job id, when a job was first seen waiting without a suitable runner

    def add_kind(self, kind: JobKind, work: Work, limits: JobLimits) -> None:
        """Register a kind of job with its `limits` and, if this process's runner does it, its `work`."""
        self._kinds[kind] = work, limits
        if self._runner and kind in self._runner.kinds:
            self._threads[kind] = ThreadPoolExecutor(self._runner.concurrency, thread_name_prefix=f"{kind}-jobs")

    def over(self, rows: JobRows) -> Jobs:
        """Jobs of the same kinds and threads, stored elsewhere, such as in another database."""
        jobs = Jobs(rows, self._runner)
        jobs._kinds, jobs._threads = self._kinds, self._threads
        return jobs

    def start(self) -> None:
        """Start threads for the waiting jobs and return at once."""
        if self._here and not self._runner:
            threading.Thread(target=self._sign_on, name="jobs", daemon=True).start()
        if not self._runner or not self._threads:
            return
        if self._runner.is_web:
            next(iter(self._threads.values())).submit(self._sign_on)
            for kind in self._threads:
                self._wake(kind)
        elif not self._server:
            self._server = threading.Thread(target=self._serve, args=(self._runner,), name="jobs", daemon=True)
            self._server.start()

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
        checkpoint: str = "",
        device: str = "",
        memory_bytes: int = 0,
    ) -> Job:
        """Queue a job and return it without waiting; raises JobRefusedError. Must not be called inside a
        transaction.
        """
        limits = self._kinds[kind][1]
        job = self.rows.add(kind, client, limits, REQUEST_ID.get(), key, teacher_id, about, arguments, along,
                            visitor_id, student_id, checkpoint, device, memory_bytes, self._runner)  # fmt: skip
        if self._runner:
            self._wake(kind, (job, arguments) if job.is_working else None)
        return job

    def find(self, key: str) -> Job | None:
        """The job with this key, or None if it is unknown, deleted or ended over an hour ago."""
        job = self.rows.find(key)
        if job and job.is_stalled and self._runner:
            self._wake(job.kind)
        if job and self._refuse_if_hopeless(job):
            return self.rows.find(key)
        return job

    def wait(self, job: Job, seconds: float) -> Job | None:
        """The job once it has ended, or as it is after `seconds`; None if it was deleted meanwhile."""
        deadline, pause_s = time.monotonic() + seconds, FIRST_PAUSE_S
        found: Job | None = job
        while found and not found.ending and time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)
            found = self.find(job.key)
        return found

    def tidy(self) -> None:
        """Delete what has expired, refuse hopeless jobs, and `start`."""
        self.rows.delete_expired()
        overdue = () if self._runner else self.rows.overdue()
        for job in overdue:
            speak(job.language)
            self._refuse_if_hopeless(job)
        since = self._unmet_since
        self._unmet_since = {job.id: since[job.id] for job in overdue if job.id in since}
        self.start()

    def close(self) -> None:
        """Stop the work of this process, requeue it, and wait until it has stopped."""
        self._closed.set()
        if self._server:
            self._server.join()
        for thread in self._threads.values():
            thread.shutdown()
        if self._server and self._runner:
            with suppress(Exception):  # its row is deleted a day later
                self.rows.sign_off(self._runner.name)

    def _sign_on(self) -> None:
        if self._here:
            with suppress(Exception):
                self.rows.sign_on(self._here)

    def _serve(self, runner: Runner) -> None:
        is_signed_on, is_lost = False, False
        while not self._closed.is_set():
            try:
                if not is_signed_on:
                    self.rows.sign_off(runner.name)
                    self.rows.sign_on(runner)
                    is_signed_on = True
                for kind in self._threads:
                    while not self._closed.is_set() and (claimed := self.rows.claim(kind, runner)):
                        self._wake(kind, claimed)
                is_lost = False
                self.rows.await_job(POLL_S)
            except Exception:
                if not is_lost:
                    count_failure("jobs")
                    log.exception("the queue of jobs could not be read or written: this runner tries again")
                is_lost = True
                self._closed.wait(POLL_S)

    def _refuse_if_hopeless(self, job: Job) -> bool:
        if self._runner or job.ending:
            return False
        at = time.monotonic()
        if at - self._runners_at >= RUNNERS_TTL_S:
            self._runners, self._runners_at = self.rows.runners(), at
        unmet = None if job.is_working else unmet_need(job, self._runners)
        if unmet is None:
            self._unmet_since.pop(job.id, None)
            return False
        if at - self._unmet_since.setdefault(job.id, at) < HOPELESS_AFTER_S or not job.is_overdue:
            return False
        reason, problem = unmet
        self.rows.refuse(job, problem, reason)
        return True

    def _wake(self, kind: JobKind, claimed: Claimed | None = None) -> None:
        try:
            self._threads[kind].submit(self._work_off, kind, claimed)
        except RuntimeError:  # closed meanwhile: the job waits for the next process
            if claimed:
                self.rows.put_back(claimed[0])

    def _work_off(self, kind: JobKind, claimed: Claimed | None) -> None:
        runner = self._runner
        if not runner:
            return
        try:
            while not self._closed.is_set() and (claimed := claimed or self.rows.claim(kind, runner)):
                self._carry_out(Task(self.rows, runner, *claimed, self._closed.is_set))
                claimed = None
            if claimed:
                self.rows.put_back(claimed[0])
        except Exception:
            count_failure("jobs")
            log.exception("the queue of jobs of the kind %s could not be read or written", kind)

    def _carry_out(self, task: Task) -> None:
        job = task.job
        REQUEST_ID.set(job.request_id)
        speak(job.language)
        try:
            with timed_job(job.kind):
                result = self._kinds[job.kind][0](task)
            self.rows.finish(job, "ready", result=result)
        except JobStoppedError:
            if task.gives_way:
                self.rows.put_back(job)
        except JobFailedError as failure:
            self.rows.finish(job, "failed", str(failure), failure.result, failure.reason)
        except ValueError as refusal:  # all our errors are ValueErrors
            self.rows.finish(job, "failed", str(refusal), reason="refused")
        except Exception:  # nothing above this thread would report the error, and a page waits for the result
            log.exception("a job of the kind %s failed", job.kind)
            self.rows.finish(job, "failed", _("Something went wrong on the server. Try again."), reason="error")
