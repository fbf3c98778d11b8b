"""/machines, for operators: workers, what waits, and what failed; cancel a job.

The page doesn't show who asked for a job, or what they typed; it names a job by its id, since its key is an address.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.store import AuditAction
from app.translation import gettext as _
from app.web.shared.permissions import Operator, valid_id
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.templating import render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_OPEN, MAX_FAILED = 30, 20  # jobs in the tables


@router.get("/machines")
def show_machines(request: Request, services: ServicesDep, teacher: Operator, done: str = "", job: int = 0) -> Response:
    """The page; to htmx, which polls every few seconds, the part of it that changes."""
    rows, at = services.jobs.rows, services.store.now()
    queues = rows.queues()

    def ago(moment: datetime) -> str:
        return _duration(at - moment)

    return render_page_or_fragment(
        request,
        "machines/machines.html",
        "machines/_machines.html",
        teacher=teacher,
        has_workers=services.jobs.has_workers,
        workers=rows.workers(),
        queues=queues,
        unserved=[queue.name for queue in queues if queue.waiting and not services.jobs.serves(queue.name)],
        jobs=rows.open_jobs(MAX_OPEN),
        more=max(0, sum(queue.waiting + queue.working for queue in queues) - MAX_OPEN),
        failed=rows.failed(MAX_FAILED),
        ago=ago,
        done=done,
        job_id=job,
    )


@router.post("/machines/jobs/{job_id:int}/cancel")
def cancel_any_job(store: StoreDep, teacher: Operator, job_id: int) -> Response:
    """Cancel a waiting or running job, with an audit entry; an ended job is left as it is."""
    job = store.jobs.find_numbered(valid_id(job_id))
    if job is None:
        raise HTTPException(404)
    with store.transaction():
        is_cancelled = store.jobs.cancel(job)
        if is_cancelled:
            store.audit_log.record(teacher, AuditAction.JOB_CANCELLED, job)
    done = "cancelled" if is_cancelled else "ended"
    return RedirectResponse(url_for("show_machines", done=done, job=job.id), 303)


def _duration(length: timedelta) -> str:
    seconds = max(0, round(length.total_seconds()))
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return _("{hours} h {minutes} min").format(hours=hours, minutes=f"{minutes % 60:02}")
    if minutes:
        return _("{minutes} min {seconds} s").format(minutes=minutes, seconds=f"{seconds % 60:02}")
    return _("{seconds} s").format(seconds=seconds)
