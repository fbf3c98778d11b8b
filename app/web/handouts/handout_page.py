"""Handouts: options on the left, the real pages on the right, the PDF, and large ones with their progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from app.exchange.imported_models import library_with_model
from app.exchange.roster import MAX_ROSTER_BYTES, RosterError, read_names
from app.handout.options import HandoutError, Options
from app.models.architecture import TokensError
from app.shapes.topics import TopicError
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.seeds import SeedError
from app.sheets.worksheet import Model, Worksheet, WorksheetError
from app.store import Teacher
from app.web.handouts.print_jobs import AT_ONCE, Job, Printing, Wish, address_of, printing_of
from app.web.shared.errors import status_of
from app.web.shared.permissions import MaybeTeacher
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

REFUSED = (HandoutError, RosterError, WorksheetError, TokensError, TopicError, SeedError)
Print = Annotated[Printing, Depends(printing_of)]


@dataclass(frozen=True)
class HandoutPage:
    """Everything that templates/handouts/handout.html and its partial show."""

    wish: Annotated[Wish, Doc("The options as chosen and typed.")]
    worksheets: Annotated[Mapping[str, tuple[Worksheet, ...]], Doc("The worksheets by the name of their topic.")]
    models: Annotated[tuple[Model, ...], Doc("The models there are.")]
    tickets: Annotated[tuple[Ticket, ...], Doc("The exit tickets that can stand on the back.")]
    pages: Annotated[tuple[int, ...], Doc("The numbers of the pages that are shown.")] = ()
    sheets: Annotated[int, Doc("How many sheets the handout has.")] = 0
    at_once: Annotated[bool, Doc("Whether it is small enough to be made while the browser waits.")] = True
    address: Annotated[str, Doc("Where students reach the app; empty prints codes without a QR code.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, or nothing.")] = ""
    names: Annotated[str, Doc("The names as typed.")] = ""
    names_problem: Annotated[str, Doc("The sentence about a class list that cannot be used, or nothing.")] = ""


@dataclass(frozen=True)
class JobPage:
    """Everything that templates/handouts/print_job.html and its partial show."""

    job: Annotated[Job, Doc("The handout in the making.")]


@dataclass(frozen=True)
class ClassForm:
    """The form of a class: the options that it carries along, the names as typed, and the file."""

    wish: Wish
    names: str
    file: bytes


async def posted(request: Request) -> ClassForm:
    """The class list, typed or as a file."""
    async with request.form(max_part_size=MAX_ROSTER_BYTES + 1) as form:
        upload, names = form.get("roster"), form.get("names")
        file = await upload.read(MAX_ROSTER_BYTES + 1) if isinstance(upload, UploadFile) and upload.filename else b""
        return ClassForm(Wish.read(form), names if isinstance(names, str) else "", file)


@router.get("/handout")
def show_handout(request: Request, services: ServicesDep, printing: Print) -> Response:
    """The options and the first pages; to a script, what changes with the options alone."""
    page, status = _page(request, services, printing, Wish.read(request.query_params))
    return render(
        "handouts/_handout_pages.html" if "hx-request" in request.headers else "handouts/handout.html",
        page,
        status,
    )


@router.get("/handout/pages/{page}.svg")
def show_page(request: Request, services: ServicesDep, printing: Print, page: int) -> Response:
    """One page of the preview as a picture."""
    options, library = _asked(services, printing, Wish.read(request.query_params))
    pages = printing.preview(library, options, address_of(request, services.settings.address))
    if not 0 < page <= len(pages):
        raise HTTPException(404)
    return Response(pages[page - 1], media_type="image/svg+xml", headers={"Cache-Control": "private, max-age=600"})


@router.get("/handout.pdf")
def download(request: Request, services: ServicesDep, printing: Print) -> Response:
    """The handout as PDF, where it is small enough to wait for."""
    wish = Wish.read(request.query_params)
    options, library = _asked(services, printing, wish)
    if max(options.copies, options.variants) > AT_ONCE:
        raise HandoutError(f"More than {AT_ONCE} sheets are made from the page of this handout, with progress shown.")
    made = printing.pdf_now(library, options, address_of(request, services.settings.address))
    return _pdf(made, options.worksheet)


@router.post("/handout/class")
def make_for_class(
    request: Request, services: ServicesDep, printing: Print, form: Annotated[ClassForm, Depends(posted)]
) -> Response:
    """Begin a handout for a class list, or a large one, and go to its progress; or say what cannot be used."""
    address = address_of(request, services.settings.address)
    try:
        options, library = _asked(services, printing, form.wish)
        names = read_names(form.file or form.names) if form.file or form.names.strip() else ()
        _check_first(library, options)
        job = printing.start(library, options, names, address)
    except REFUSED as error:
        page, _ = _page(request, services, printing, form.wish, names=form.names, names_problem=str(error))
        return render("handouts/handout.html", page, status_of(error))
    return RedirectResponse(f"/handout/jobs/{job.key}", 303)


@router.get("/handout/jobs/{key}.pdf")
def download_job(printing: Print, teacher: MaybeTeacher, key: str) -> Response:
    """The finished PDF."""
    job = _job(printing, key, teacher)
    if job.pdf is None:
        return RedirectResponse(f"/handout/jobs/{key}", 303)
    return _pdf(job.pdf, "handout")


@router.get("/handout/jobs/{key}")
def show_job(request: Request, services: ServicesDep, printing: Print, teacher: MaybeTeacher, key: str) -> Response:
    """How far a large handout is; without script the page asks again by itself."""
    page = JobPage(_job(printing, key, teacher))
    if "hx-request" in request.headers:
        return render("handouts/_print_job.html", page)
    response = render("handouts/print_job.html", page)
    if not (page.job.pdf or page.job.problem):
        response.headers["Refresh"] = "3"
    return response


def _job(printing: Printing, key: str, teacher: Teacher | None) -> Job:
    job = printing.job(key, teacher.id if teacher else None)
    if job is None:
        raise HTTPException(404, "This handout is no longer kept: make it again from its page.")
    return job


def _pdf(made: bytes, name: str) -> Response:
    safe = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in name)[:60]
    disposition = {"Content-Disposition": f'attachment; filename="{safe}.pdf"', "Cache-Control": "private, no-store"}
    return Response(made, media_type="application/pdf", headers=disposition)


def _asked(services: Services, printing: Printing, wish: Wish) -> tuple[Options, Library]:
    return wish.options(printing.tickets), library_with_model(services.library, services.store, wish.model)


def _check_first(library: Library, options: Options) -> None:
    """Raise now what one sheet of these options would raise later."""
    if options.same:
        library.variant(options.worksheet, options.model or None, options.tokens, options.decoder_tokens)
    else:
        library.seeded(options.worksheet, 0, options.model or None)


def _page(request: Request, services: Services, printing: Printing, wish: Wish, **more: Any) -> tuple[HandoutPage, int]:
    library = library_with_model(services.library, services.store, wish.model)
    address = address_of(request, services.settings.address)
    groups = {
        library.wording.say("topics", topic): tuple(s for s in library.worksheets.values() if s.topic == topic)
        for topic in library.topics
    }
    models = tuple(library.models.values())
    said = {"wish": wish, "worksheets": groups, "models": models, "address": address, **more}
    tickets = tuple(printing.tickets.values())
    try:
        options = wish.options(printing.tickets)
        pages = printing.preview(library, options, address)
    except REFUSED as error:
        return HandoutPage(tickets=tickets, problem=str(error), **said), status_of(error)
    count = options.variants or options.copies
    shown = tuple(range(1, len(pages) + 1))
    return HandoutPage(tickets=tickets, pages=shown, sheets=count, at_once=count <= AT_ONCE, **said), 200
