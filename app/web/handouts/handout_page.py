"""/handout: options on the left, the real pages on the right, the PDF, and print jobs for class lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from app.exchange.class_list import MAX_ROSTER_BYTES, RosterError, read_names
from app.exchange.imported_models import library_with_model
from app.handout.handout_printer import MAX_DOWNLOAD_SHEETS
from app.handout.options import HandoutError, HandoutOptions
from app.handout.print_child import PREVIEW_PAGES
from app.handout.sheet_plan import check_version_count, plan_sheets
from app.machine.work_queue import Client
from app.models.architecture import TokensError
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.seeds import SeedError
from app.sheets.worksheet import Worksheet, WorksheetError, library_key, whole_key
from app.store import Teacher
from app.topics.requirements import TopicError
from app.web.shared.handout_form import HandoutForm, handout_base_url, pdf_response
from app.web.shared.errors import status_of
from app.web.shared.forms import FormDep
from app.web.shared.handout_jobs import start_handout
from app.web.shared.model_menu import AnswerChoice, ModelMenu, answer_choice, model_menu
from app.web.shared.permissions import MaybeTeacher, QueueClient, require_practice
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_view import length_remark
from app.web.shared.templating import is_htmx, render, render_page_or_fragment
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

# What a form's fields may raise: shown on the page, with everything typed kept.
FORM_ERRORS = (HandoutError, RosterError, WorksheetError, TokensError, TopicError, SeedError)
_PICTURE_SIZE = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
PREVIEW_CACHE_CONTROL = "private, max-age=600"


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


@dataclass(frozen=True)
class HandoutPage:
    """The variables of templates/handouts/handout.html and _handout_pages.html."""

    form: Annotated[HandoutForm, Doc("The options as chosen and typed.")]
    worksheets: Annotated[Mapping[str, tuple[Worksheet, ...]], Doc("The worksheets by the name of their topic.")]
    model_menu: Annotated[ModelMenu, Doc("The models that can be chosen for the worksheet.")]
    answer_choice: Annotated[AnswerChoice | None, Doc("Numbers or symbols; None where the worksheet decides.")]
    tickets: Annotated[tuple[Ticket, ...], Doc("The exit tickets that can stand on the back.")]
    base_url: Annotated[str, Doc("Where students reach the app; empty if there are no QR codes.")]
    is_for_exams: Annotated[bool, Doc("Whether practice is closed here, so that students could not use a QR code.")]
    pages: Annotated[tuple[PreviewPicture, ...], Doc("The pages that are shown.")] = ()
    is_fragment: Annotated[bool, Doc("Whether a script puts this into the page it is on.")] = False
    more_pages: Annotated[bool, Doc("Whether only the first pages are shown.")] = False
    sheets: Annotated[int, Doc("How many sheets the handout has.")] = 0
    downloads: Annotated[bool, Doc("Whether it is small enough to be downloaded without a print job.")] = True
    needs_account: Annotated[bool, Doc("Whether it has more sheets than somebody without an account may have.")] = False
    problem: Annotated[str, Doc("Which option cannot be used and why, or empty.")] = ""
    length_remark: Annotated[str, Doc("What to know of the number of tokens, or empty.")] = ""
    problem_field: Annotated[str, Doc("The field that the problem is about, or empty.")] = ""
    names: Annotated[str, Doc("The names as typed.")] = ""
    names_problem: Annotated[str, Doc("Why the class list cannot be used, or empty.")] = ""


@router.get("/handout")
@in_threads("print")
def show_handout(request: Request, services: ServicesDep, teacher: MaybeTeacher, client: QueueClient) -> Response:
    """Show the options and the first pages; to htmx only the pages, and what else changes with the options."""
    page, status = _handout_page(request, services, HandoutForm.read(request.query_params), teacher, client)
    page = replace(page, is_fragment=is_htmx(request))
    return render_page_or_fragment(request, "handouts/handout.html", "handouts/_handout_pages.html", page, status)


@router.get("/handout/pages/{page}.svg")
@in_threads("print")
def show_handout_preview(request: Request, services: ServicesDep, client: QueueClient, page: int) -> Response:
    """Page `page` of the preview, from 1, as SVG; 404 if it doesn't exist."""
    options, library = _options_and_library(services, HandoutForm.read(request.query_params))
    pages = services.printer.preview(library, options, handout_base_url(request, services.settings), client)
    if not 0 < page <= len(pages):
        raise HTTPException(404)
    return Response(pages[page - 1], media_type="image/svg+xml", headers={"Cache-Control": PREVIEW_CACHE_CONTROL})


@router.get("/handout.pdf")
@in_threads("print")
def download_handout(request: Request, services: ServicesDep, client: QueueClient) -> Response:
    """Send a handout as PDF; an unusable option gives an error page."""
    options, library = _options_and_library(services, HandoutForm.read(request.query_params))
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
        options, library = _options_and_library(services, typed)
        names = read_names(form.file or typed_names) if form.file_name or typed_names.strip() else ()
        plan_sheets(library, replace(options, sheets=1))  # raises here what the job would raise
        if not names:
            check_version_count(library, options)
        title, base_url = library.worksheet(options.worksheet).title, handout_base_url(request, services.settings)
        job = start_handout(services, client, teacher, title, options, names, base_url)
    except FORM_ERRORS as error:
        page, _ = _handout_page(request, services, typed, teacher, client)
        page = replace(page, names=typed_names, names_problem=str(error))
        return render("handouts/handout.html", page, status_of(error))
    return RedirectResponse(url_for("show_print_job", key=job.key), 303)


def _options_and_library(services: Services, form: HandoutForm) -> tuple[HandoutOptions, Library]:
    return form.to_options(services.tickets), library_with_model(services.library, services.store, form.model)


def _handout_page(
    request: Request, services: Services, form: HandoutForm, teacher: Teacher | None, client: Client
) -> tuple[HandoutPage, int]:
    library = library_with_model(services.library, services.store, form.model)
    page = HandoutPage(
        form=form,
        worksheets=_worksheets_by_topic(library, form.listed_worksheet),
        model_menu=model_menu(library, whole_key(form.worksheet), form.model),
        answer_choice=answer_choice(
            library, whole_key(form.worksheet), form.model if form.model in library.models else ""
        ),
        tickets=tuple(services.tickets.values()),
        base_url=handout_base_url(request, services.settings),
        is_for_exams=not services.settings.practice,
    )
    try:
        options = form.to_options(services.tickets)
        pages = services.printer.preview(library, options, page.base_url, client)
    except FORM_ERRORS as error:
        field = error.field if isinstance(error, HandoutError) else "tokens" if isinstance(error, TokensError) else ""
        return replace(page, problem=str(error), problem_field=field), status_of(error)
    remark = ""
    if options.tokens is not None:
        lengths = (options.tokens, options.decoder_tokens)
        remark = length_remark(library.variant(options.worksheet, options.model or None, *lengths))
    return replace(
        page,
        pages=tuple(_preview_picture(number, picture) for number, picture in enumerate(pages, 1)),
        more_pages=len(pages) == PREVIEW_PAGES,
        sheets=options.sheets,
        downloads=options.sheets <= MAX_DOWNLOAD_SHEETS,
        needs_account=options.sheets > MAX_DOWNLOAD_SHEETS and teacher is None,
        length_remark=remark,
    ), 200


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
