"""/machines, for operators: who does jobs, what waits, what was slow or failed; cancel or retry a job.

The page doesn't show who asked for a job, or what they typed; it names a job by its id, since its key is an address.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.machine.jobs import JOB_FORM, Job, JobKind, Runner, percent
from app.store import AuditAction, Store, Teacher
from app.store.jobs import JOB_RETENTION
from app.store.machines import JobRecord, KindQueue
from app.translation import gettext as _
from app.web.shared.permissions import Operator, valid_id
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.templating import render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

LISTED_KINDS: tuple[JobKind, ...] = ("run", "handout", "head")  # in the order of the page
MAX_OPEN_JOBS = 1000  # far more than may wait
MAX_WAITING_SHOWN = 3  # jobs of each kind shown unless all are asked for
MAX_FAILED, MAX_SLOWEST = 20, 6


@dataclass(frozen=True)
class JobLine:
    """A job with its times as text."""

    job: JobRecord
    percent: int
    waited: str  # so far, or until it was started
    took: str  # so far, or until it ended
    ended: str  # how long ago
    reason: str  # why it failed, or "lost"
    can_retry: bool


@dataclass(frozen=True)
class RunnerLine:
    """A runner with ages as text: since its start (`up`), its last heartbeat (`heard`), and each running job's start
    (`works`).
    """

    runner: Runner
    device: str
    kinds: tuple[JobKind, ...]
    works: tuple[tuple[JobKind, str], ...]
    up: str
    heard: str
    is_outdated: bool


@dataclass(frozen=True)
class QueueLine:
    """The queue of a kind: how many jobs wait and run, the longest wait, and whether a living runner does this kind."""

    kind: JobKind
    waiting: int
    working: int
    longest: str
    is_served: bool


@dataclass(frozen=True)
class MachinesPage:
    """Everything that templates/machines/machines.html and _machines.html show."""

    teacher: Annotated[Teacher, Doc("The operator who is signed in.")]
    runners: Annotated[tuple[RunnerLine, ...], Doc("Runners, then the web processes of each machine, by name.")]
    queues: Annotated[tuple[QueueLine, ...], Doc("The queue of each kind.")]
    jobs: Annotated[tuple[JobLine, ...], Doc("Jobs at work, then jobs that wait, in their order.")]
    more: Annotated[int, Doc("How many more jobs wait that are not shown.")]
    shows_all: Annotated[bool, Doc("Whether all of them were asked for.")]
    failed: Annotated[tuple[JobLine, ...], Doc("Jobs that failed or were lost within a day, the newest first.")]
    slowest: Annotated[tuple[JobLine, ...], Doc("Jobs of the day that took longest to do.")]
    endings: Annotated[Counter[str], Doc("How many jobs of the day ended in each way.")]
    done: Annotated[str, Doc("What was just done, a key of the template; any other text says nothing.")] = ""
    job_id: Annotated[int, Doc("To which job.")] = 0


@router.get("/machines")
def show_machines(
    request: Request, services: ServicesDep, teacher: Operator, jobs: str = "", done: str = "", job: int = 0
) -> Response:
    """The page; to htmx, which polls every few seconds, the part of it that changes."""
    page = _machines_page(services, teacher, shows_all=jobs == "all", done=done, job_id=job)
    return render_page_or_fragment(request, "machines/machines.html", "machines/_machines.html", page)


@router.post("/machines/jobs/{job_id:int}/cancel")
def cancel_any_job(store: StoreDep, teacher: Operator, job_id: int) -> Response:
    """Cancel a waiting or running job, with an audit entry; an ended job is left as it is."""
    job = _find_job(store, job_id)
    with store.transaction():
        is_cancelled = store.jobs.cancel(job)
        if is_cancelled:
            store.audit_log.record(teacher, AuditAction.JOB_CANCELLED, job)
    return _to_page("cancelled" if is_cancelled else "ended", job)


@router.post("/machines/jobs/{job_id:int}/retry")
def retry_any_job(services: ServicesDep, teacher: Operator, job_id: int) -> Response:
    """Requeue a failed or lost job, with an audit entry, and start it if web processes do jobs."""
    store = services.store
    job = _find_job(store, job_id)
    with store.transaction():
        is_retried = store.jobs.retry(job)
        if is_retried:
            store.audit_log.record(teacher, AuditAction.JOB_RETRIED, job)
    if is_retried:
        services.jobs.start()
    return _to_page("retried" if is_retried else "late", job)


def _to_page(done: str, job: Job) -> Response:
    return RedirectResponse(url_for("show_machines", done=done, job=job.id), 303)


def _find_job(store: Store, job_id: int) -> Job:
    job = store.jobs.find_numbered(valid_id(job_id))
    if job is None:
        raise HTTPException(404)
    return job


def _machines_page(services: Services, teacher: Teacher, *, shows_all: bool, done: str, job_id: int) -> MachinesPage:
    store = services.store
    machines, runners = store.machines, store.jobs.runners()
    at, counted = machines.time(), machines.queues()
    queues = [counted.get(kind) or KindQueue(kind, 0, 0, None) for kind in LISTED_KINDS]
    open_jobs = machines.open_jobs(MAX_OPEN_JOBS)
    working = [job for job in open_jobs if job.is_working]
    waiting = [[job for job in open_jobs if job.kind == kind and not job.is_working] for kind in LISTED_KINDS]
    shown = [*working, *chain.from_iterable(queue[: None if shows_all else MAX_WAITING_SHOWN] for queue in waiting)]
    serves = [runner for runner in runners if runner.is_alive and not (runner.is_web and services.settings.runners)]
    served = {kind for runner in serves for kind in runner.kinds}
    return MachinesPage(
        teacher,
        tuple(_runner_line(each, working, at) for each in sorted(runners, key=lambda each: (each.is_web, each.name))),
        tuple(
            QueueLine(queue.kind, queue.waiting, queue.working, _age(queue.oldest, at), queue.kind in served)
            for queue in queues
        ),
        tuple(_job_line(job, at) for job in shown),
        sum(queue.waiting + queue.working for queue in queues) - len(shown),
        shows_all,
        tuple(_job_line(job, at) for job in machines.failed(MAX_FAILED)),
        tuple(_job_line(job, at) for job in machines.slowest(MAX_SLOWEST)),
        machines.endings(),
        done,
        job_id,
    )


def _runner_line(runner: Runner, working: Iterable[JobRecord], at: datetime) -> RunnerLine:
    return RunnerLine(
        runner,
        f"{runner.device_name} ({runner.device})" if runner.device_name else runner.device,
        tuple(kind for kind in LISTED_KINDS if kind in runner.kinds),
        tuple((job.kind, _age(job.started_at, at)) for job in working if job.runner == runner.name),
        _age(runner.started_at, at),
        _age(runner.heard_at, at),
        runner.form != JOB_FORM,
    )


def _job_line(job: JobRecord, at: datetime) -> JobLine:
    waited, took = job.waited, job.took
    if job.is_working:
        took = at - (job.started_at or at)
    elif job.ending is None:
        waited = at - job.created_at
    return JobLine(
        job,
        percent(job.done, job.total),
        _duration(waited),
        _duration(took),
        _age(job.heard_at, at),
        "lost" if job.ending == "lost" else job.reason,
        job.ending in ("failed", "lost") and at - job.heard_at < JOB_RETENTION,
    )


def _age(since: datetime | None, at: datetime) -> str:
    return _duration(at - since, exact=False) if since else ""


def _duration(length: timedelta, *, exact: bool = True) -> str:
    seconds = max(0.0, length.total_seconds())
    if exact and seconds < 9.95:
        return _("{seconds} s").format(seconds=f"{seconds:.1f}")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return _("{hours} h {minutes} min").format(hours=hours, minutes=f"{minutes_left:02}")
    if minutes >= 10 and not exact:
        return _("{minutes} min").format(minutes=minutes)
    if minutes:
        return _("{minutes} min {seconds} s").format(minutes=minutes, seconds=f"{rest:02}")
    return _("{seconds} s").format(seconds=rest)
