"""/handout/jobs/…: the progress of a print job, started on the page of handouts or of a class, and its PDF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from app.handout.print_jobs import HandoutPrinter, PrintJob
from app.store import Teacher
from app.translation import gettext as _
from app.web.handouts.handout_form import pdf_response
from app.web.shared.permissions import MaybeTeacher
from app.web.shared.services import ServicesDep
from app.web.shared.templating import is_htmx, render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

REFRESH_S = 3  # without script


@dataclass(frozen=True)
class PrintJobPage:
    """The variables of templates/handouts/print_job.html and _print_job.html."""

    job: Annotated[PrintJob, Doc("The handout that is being made, or is ready.")]


@router.get("/handout/jobs/{key}.pdf")
def download_print_job(services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Send the PDF of a print job; redirects to the job's page while it is not ready."""
    job = _find_job(services.printer, key, teacher)
    pdf = services.printer.read_pdf(job)
    return RedirectResponse(url_for("show_print_job", key=key), 303) if pdf is None else pdf_response(pdf, "handout")


@router.get("/handout/jobs/{key}")
def show_print_job(request: Request, services: ServicesDep, teacher: MaybeTeacher, key: str) -> Response:
    """Show the progress of a print job; to htmx, which asks again by itself, only that part of the page.

    A browser without script loads the page again every REFRESH_S seconds until the job is ready or has failed.
    """
    page = PrintJobPage(_find_job(services.printer, key, teacher))
    response = render_page_or_fragment(request, "handouts/print_job.html", "handouts/_print_job.html", page)
    if not (is_htmx(request) or page.job.is_ready or page.job.problem):
        response.headers["Refresh"] = str(REFRESH_S)
    return response


def _find_job(printer: HandoutPrinter, key: str, teacher: Teacher | None) -> PrintJob:
    """Return the print job with this key; raises 404 for one that is expired, unknown or another teacher's.

    A job that belongs to no teacher is for everybody who has its key; `teacher` is None for a visitor.
    """
    job = printer.find_job(key, teacher.id if teacher else None)
    if job is None:
        raise HTTPException(404, _("This handout has been deleted: create it again from its page."))
    return job
