"""/handout/jobs/…: the progress of a print job, started on the page of handouts or of a class, and its PDF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from starlette.exceptions import HTTPException

from app.handout.handout_printer import HandoutPrinter
from app.handout.print_jobs import PrintJob
from app.store import Teacher
from app.translation import gettext as _
from app.web.shared.permissions import MaybeTeacher, require_practice
from app.web.shared.services import ServicesDep
from app.web.shared.templating import is_htmx, render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

REFRESH_S = 3  # without script
PDF_HEADERS = {"Cache-Control": "private, no-store"}


@dataclass(frozen=True)
class PrintJobPage:
    """The variables of templates/handouts/print_job.html and _print_job.html."""

    job: Annotated[PrintJob, Doc("The handout that waits, is being made, or is ready.")]
    jobs_before: Annotated[int, Doc("How many handouts are made before it; 0 once it has been started.")] = 0


@router.get("/handout/jobs/{key}.pdf")
def download_print_job(services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Send the PDF of a print job; redirects to the job's page while it is not ready."""
    pdf = services.printer.find_pdf(_find_job(services.printer, key, teacher))
    if pdf is None:
        return RedirectResponse(url_for("show_print_job", key=key), 303)
    return FileResponse(pdf, media_type="application/pdf", filename="handout.pdf", headers=PDF_HEADERS)


@router.get("/handout/jobs/{key}")
def show_print_job(request: Request, services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Show the progress of a print job; to htmx, which asks again by itself, only that part of the page.

    A browser without script loads the page again every REFRESH_S seconds until the job is ready or has failed.
    """
    job = _find_job(services.printer, key, teacher)
    page = PrintJobPage(job, services.printer.jobs_before(job))
    response = render_page_or_fragment(request, "handouts/print_job.html", "handouts/_print_job.html", page)
    if not (is_htmx(request) or job.is_finished):
        response.headers["Refresh"] = str(REFRESH_S)
    return response


@router.post("/handout/jobs/{key}/cancel")
def cancel_print_job(services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Cancel a print job that waits or is being made, and show its page; a finished one stays as it is."""
    services.printer.cancel_job(_find_job(services.printer, key, teacher))
    return RedirectResponse(url_for("show_print_job", key=key), 303)


def _find_job(printer: HandoutPrinter, key: str, teacher: Teacher | None) -> PrintJob:
    """Return the print job with this key; raises 404 for one that is expired, unknown or another teacher's.

    A job that belongs to no teacher is for everybody who has its key; `teacher` is None for a visitor.
    """
    job = printer.find_job(key, teacher.id if teacher else None)
    if job is None:
        raise HTTPException(404, _("This handout has been deleted: create it again from its page."))
    return job
