"""Handouts: the options with a preview, the PDF, print jobs for class lists, and marking what comes back on paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from app.exchange.class_list import MAX_ROSTER_BYTES, read_names
from app.exchange.imported_models import library_with_model, variant_from_code
from app.exchange.spreadsheet import BOM
from app.grading.grade import AnswersError
from app.grading.paper import MarkedPaper, blank_order, mark_lines
from app.handout.handout_printer import MAX_DOWNLOAD_SHEETS
from app.handout.marks_csv import marks_csv
from app.handout.options import HandoutError, HandoutOptions
from app.handout.print_child import PREVIEW_PAGES
from app.handout.sheet_plan import check_version_count, plan_sheets
from app.machine.work_queue import Client
from app.models.architecture import TokensError
from app.refusal import Refusal
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet, WorksheetError, library_key, whole_key
from app.store import Teacher
from app.store.jobs import Job
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.handout_form import HandoutForm, handout_base_url, pdf_response
from app.web.shared.handout_jobs import start_handout
from app.web.shared.model_menu import answer_choice, model_menu
from app.web.shared.paper_grid import GRID_ROWS, GridRow, grid_rows, rows_to_fill
from app.web.shared.permissions import MaybeTeacher, QueueClient, require_practice
from app.web.shared.request_guard import MAX_PAPER
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_view import length_remark
from app.web.shared.templating import is_htmx, render, render_page_or_fragment
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

_PICTURE_SIZE = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
PREVIEW_CACHE_CONTROL = "private, max-age=600"
MAX_SHOWN_CODE_LENGTH = 60
REFRESH_S = 3  # of a print job's page, without script


@dataclass(frozen=True)
class PreviewPicture:
    """One page of the preview: its number from 1, and its size in points."""

    number: int
    width: int
    height: int

    @property
    def is_wide(self) -> bool:
        """Whether it is in landscape format."""
        return self.width > self.height


@router.get("/handout")
@in_threads("print")
def show_handout(request: Request, services: ServicesDep, teacher: MaybeTeacher, client: QueueClient) -> Response:
    """Show the options and the first pages; to htmx only the pages, and what else changes with the options."""
    page, status = _handout_page(request, services, HandoutForm.read(request.query_params), teacher, client)
    return render_page_or_fragment(
        request,
        "handouts/handout.html",
        "handouts/_handout_pages.html",
        status=status,
        is_fragment=is_htmx(request),
        **page,
    )


@router.get("/handout/pages/{page}.svg")
@in_threads("print")
def show_handout_preview(
    request: Request, services: ServicesDep, teacher: MaybeTeacher, client: QueueClient, page: int
) -> Response:
    """Page `page` of the preview, from 1, as SVG; 404 if it doesn't exist."""
    options, library = _options_and_library(services, HandoutForm.read(request.query_params), teacher)
    pages = services.printer.preview(library, options, handout_base_url(request, services.settings), client)
    if not 0 < page <= len(pages):
        raise HTTPException(404)
    return Response(pages[page - 1], media_type="image/svg+xml", headers={"Cache-Control": PREVIEW_CACHE_CONTROL})


@router.get("/handout.pdf")
@in_threads("print")
def download_handout(request: Request, services: ServicesDep, teacher: MaybeTeacher, client: QueueClient) -> Response:
    """Send a handout as PDF; an unusable option gives an error page."""
    options, library = _options_and_library(services, HandoutForm.read(request.query_params), teacher)
    pdf = services.printer.render_small(library, options, handout_base_url(request, services.settings), client)
    return pdf_response(pdf, options.worksheet)


@router.post("/handout/class")
@in_threads("print")
def print_for_class_list(
    request: Request,
    services: ServicesDep,
    teacher: MaybeTeacher,
    client: QueueClient,
    form: FormDep,
) -> Response:
    """Start a print job for a class list, or for many sheets without names, and redirect (303) to its page."""
    typed, typed_names = HandoutForm.read(form.texts()), form.raw("names", MAX_ROSTER_BYTES + 1)
    try:
        options, library = _options_and_library(services, typed, teacher)
        names = read_names(form.file or typed_names) if form.file_name or typed_names.strip() else ()
        plan_sheets(library, replace(options, sheets=1))  # raises here what the job would raise
        if not names:
            check_version_count(library, options)
        title, base_url = library.worksheet(options.worksheet).title, handout_base_url(request, services.settings)
        job = start_handout(services, client, teacher, title, options, names, base_url)
    except Refusal as error:
        page, _ = _handout_page(request, services, typed, teacher, client)
        page |= {"names": typed_names, "names_problem": str(error)}
        return render("handouts/handout.html", status=error.status, is_fragment=False, **page)
    return RedirectResponse(url_for("show_print_job", key=job.key), 303)


def _options_and_library(
    services: Services, form: HandoutForm, teacher: Teacher | None
) -> tuple[HandoutOptions, Library]:
    return _options(services, form, teacher), library_with_model(services.library, services.store, form.model)


def _options(services: Services, form: HandoutForm, teacher: Teacher | None) -> HandoutOptions:
    options = form.to_options(services.tickets)
    if options.key != "none" and teacher is None:  # a student may be about to fill in the same sheet
        raise HandoutError(_("The answer key is for teachers: sign in to print it."), "key")
    return options


def _handout_page(
    request: Request, services: Services, form: HandoutForm, teacher: Teacher | None, client: Client
) -> tuple[dict[str, Any], int]:
    """What the page shows, and its status; for unusable options a problem in place of the preview."""
    library = library_with_model(services.library, services.store, form.model)
    base_url = handout_base_url(request, services.settings)
    page: dict[str, Any] = {
        "form": form,
        "worksheets": _worksheets_by_topic(library, form.listed_worksheet),
        "model_menu": model_menu(library, whole_key(form.worksheet), form.model),
        "answer_choice": answer_choice(
            library, whole_key(form.worksheet), form.model if form.model in library.models else ""
        ),
        "tickets": tuple(services.tickets.values()),
        "base_url": base_url,
        "prints_key": teacher is not None,
        "is_for_exams": not services.settings.practice,
        "pages": (),
        "more_pages": False,
        "sheets": 0,
        "downloads": True,
        "needs_account": False,
        "problem": "",
        "problem_field": "",
        "length_remark": "",
        "names": "",
        "names_problem": "",
    }
    try:
        options = _options(services, form, teacher)
        pages = services.printer.preview(library, options, base_url, client)
    except Refusal as error:
        field = error.field if isinstance(error, HandoutError) else "tokens" if isinstance(error, TokensError) else ""
        return page | {"problem": str(error), "problem_field": field}, error.status
    if options.tokens is not None:
        lengths = (options.tokens, options.decoder_tokens)
        page["length_remark"] = length_remark(library.variant(options.worksheet, options.model or None, *lengths))
    return page | {
        "pages": tuple(_preview_picture(number, picture) for number, picture in enumerate(pages, 1)),
        "more_pages": len(pages) == PREVIEW_PAGES,
        "sheets": options.sheets,
        "downloads": options.sheets <= MAX_DOWNLOAD_SHEETS,
        "needs_account": options.sheets > MAX_DOWNLOAD_SHEETS and teacher is None,
    }, 200


def _preview_picture(number: int, picture: bytes) -> PreviewPicture:
    size = _PICTURE_SIZE.search(picture[:400])
    width, height = (round(float(each)) for each in size.groups()) if size else (612, 792)
    return PreviewPicture(number, width, height)


def _worksheets_by_topic(library: Library, chosen: str) -> dict[str, tuple[Worksheet, ...]]:
    worksheets = list(library.worksheets.values())
    with suppress(WorksheetError):
        if (part := library.worksheet(chosen)) not in worksheets:
            worksheets.insert(1 + [sheet.key for sheet in worksheets].index(library_key(part.key)), part)
    return {
        library.wording.topics[topic].name: tuple(sheet for sheet in worksheets if sheet.topic == topic)
        for topic in library.topics
    }


# Print jobs


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
    response = render_page_or_fragment(
        request,
        "handouts/print_job.html",
        "handouts/_print_job.html",
        job=job,
        problem=_("This handout was cancelled.") if job.ending == "cancelled" else job.problem,
        why_it_waits=services.jobs.why_it_waits(job),
    )
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


# Marking


@router.get("/marking")
def show_marking(services: ServicesDep, code: str = "") -> Response:
    """The form for a code or, for a valid code, the form for the lines of papers."""
    try:
        variant = variant_from_code(services.library, services.store, code) if code.strip() else None
    except WorksheetError as error:
        return _mark_paper(None, error.status, code=code[:MAX_SHOWN_CODE_LENGTH], code_problem=str(error))
    return _mark_paper(variant)


@router.post("/marking")
def show_marks(services: ServicesDep, form: FormDep) -> Response:
    """The form as typed, with the marks of every line below it; nothing is stored, and no sign-in is needed."""
    variant = variant_from_code(services.library, services.store, form.raw("code"))
    typed, columns = form.raw("typed", MAX_PAPER), len(variant.blanks)
    grid = grid_rows(form, columns)
    shown: dict[str, Any] = {"typed": typed, "grid": [*grid.values(), *rows_to_fill(form, columns)]}
    try:
        papers = mark_lines(variant, "\n".join([*grid, typed]))
    except AnswersError as error:
        return _mark_paper(variant, error.status, typed_problem=str(error), **shown)
    return _mark_paper(variant, papers=papers, **shown)


def _mark_paper(
    variant: Variant | None,
    status: int = 200,
    *,
    code: str = "",
    code_problem: str = "",
    typed: str = "",
    grid: Sequence[GridRow] = (),
    typed_problem: str = "",
    papers: Sequence[MarkedPaper] = (),
) -> Response:
    return render(
        "handouts/mark_paper.html",
        status=status,
        code=variant.code if variant else code,
        code_problem=code_problem,
        variant=variant,
        boxes=blank_order(variant) if variant else (),
        typed=typed,
        grid=grid,
        blank_rows=range(max(GRID_ROWS - len(grid), 1)),
        typed_problem=typed_problem,
        papers=papers,
    )


@router.post("/marking.csv")
def export_marked_papers(services: ServicesDep, form: FormDep) -> Response:
    """The marks of every line as a CSV file with a byte order mark, named after the sheet's code."""
    variant = variant_from_code(services.library, services.store, form.raw("code"))
    headers = {"Content-Disposition": f'attachment; filename="{variant.code}.csv"', "Cache-Control": "no-store"}
    lines = [*grid_rows(form, len(variant.blanks)), form.raw("typed", MAX_PAPER)]
    content = BOM + marks_csv(variant, mark_lines(variant, "\n".join(lines)))
    return Response(content, media_type="text/csv", headers=headers)
