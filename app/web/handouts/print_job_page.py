"""/handout/jobs/…: the progress of a large handout, from the handout page or a class's, and its PDF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from app.store import Teacher
from app.store.jobs import Job
from app.translation import gettext as _
from app.web.handouts.handout_form import pdf_response
from app.web.shared.permissions import MaybeTeacher, require_practice
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import is_htmx, render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

REFRESH_S = 3  # without script


@dataclass(frozen=True)
class PrintJobPage:
    """The variables of templates/handouts/print_job.html and _print_job.html."""

    job: Annotated[Job, Doc("The handout that waits, is being made, or is ready.")]
    problem: Annotated[str, Doc("Why there will be no PDF; empty if there is one or it is waited for.")]
    why_it_waits: Annotated[str, Doc("That no worker is there to begin it; empty if one is.")]


@router.get("/handout/jobs/{key}.pdf")
def download_print_job(services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    job = _find_job(services, key, teacher)
    if job.ending != "ready":
        return RedirectResponse(url_for("show_print_job", key=key), 303)
    pdf = services.jobs.rows.result(job)
    if not pdf:  # it has been deleted meanwhile
        raise _handout_deleted()
    return pdf_response(pdf, "handout")


@router.get("/handout/jobs/{key}")
def show_print_job(request: Request, services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Show a handout's progress or how it ended; to htmx, which polls, only that part of the page."""
    job = _find_job(services, key, teacher)
    problem = _("This handout was cancelled.") if job.ending == "cancelled" else job.problem
    page = PrintJobPage(job, problem, services.jobs.why_it_waits(job))
    response = render_page_or_fragment(request, "handouts/print_job.html", "handouts/_print_job.html", page)
    if not (is_htmx(request) or job.ending):
        response.headers["Refresh"] = str(REFRESH_S)
    return response


@router.post("/handout/jobs/{key}/cancel")
def cancel_print_job(services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Cancel an unfinished handout, and show its page."""
    services.jobs.rows.cancel(_find_job(services, key, teacher))
    return RedirectResponse(url_for("show_print_job", key=key), 303)


def _find_job(services: Services, key: str, teacher: Teacher | None) -> Job:
    job = services.jobs.find(key)
    if job is None or job.kind != "handout" or job.teacher_id not in (None, teacher.id if teacher else None):
        raise _handout_deleted()
    return job


def _handout_deleted() -> HTTPException:
    return HTTPException(404, _("This handout has been deleted: create it again from its page."))
