"""The sheet: choose one, fill it in, have it saved, checked and, after a try, answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.exchange.imported_models import library_with_model, variant_coded
from app.figures.figures import Figure
from app.figures.scale import ScaleName
from app.grading.explanations import Explanation, explain_diagnosis
from app.grading.grade import Report, grade
from app.grading.hints import HINT_LEVELS, Hint, HintLevel, next_hint_level, write_hint
from app.models.architecture import TokensError
from app.shapes.topics import TopicError
from app.sheets.library import Library
from app.sheets.worksheet import Variant, WorksheetError
from app.store import PracticeDraft, Visitor
from app.web.practice.practice_cookie import Practice, practice_around
from app.web.practice.sheet_request import (
    DEFAULT,
    Asked,
    Posted,
    find_variant,
    keep_try,
    read_scale,
    sheet_key,
    sheet_link,
)
from app.web.shared.errors import status_of
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_view import RowView, drawn, row_views
from app.web.shared.templating import render
from app.web.shared.visitor import FormSecret, MaybeVisitor, OwnerDep, remember_visitor

router = APIRouter(include_in_schema=False)
LOOKED_BACK = 20  # attempts that are looked through for a misconception to explain


@dataclass(frozen=True)
class Choice:
    """One entry of a list to choose from."""

    key: str
    name: str
    chosen: bool


@dataclass(frozen=True)
class Choices:
    """The worksheets of one topic."""

    topic: str
    entries: tuple[Choice, ...]


@dataclass(frozen=True)
class Chooser:
    """What stands above the sheet, as chosen or typed, and the sentences about what cannot be used."""

    worksheet: str
    worksheets: tuple[Choices, ...]
    models: tuple[Choice, ...]
    tokens: str
    problem: str = ""
    code: str = ""
    code_problem: str = ""


@dataclass(frozen=True)
class SheetPage:
    """Everything that templates/practice/sheet.html and its partials show."""

    chooser: Annotated[Chooser, Doc("The lists above the sheet.")]
    variant: Annotated[Variant | None, Doc("The sheet; none where the choice cannot be used.")] = None
    rows: Annotated[tuple[RowView, ...], Doc("The rows to fill in.")] = ()
    locked: Annotated[bool, Doc("Whether nothing can be typed any more: never outside of a class.")] = False
    figures: Annotated[tuple[Figure, ...], Doc("What was typed, drawn.")] = ()
    scale: Annotated[ScaleName, Doc("How lengths are drawn: by square root, or true.")] = "root"
    report: Annotated[Report | None, Doc("The last check, none before one.")] = None
    answers_shown: Annotated[bool, Doc("Whether the answers stand under the boxes.")] = False
    notice: Annotated[str, Doc("A sentence about the last press of a button, or nothing.")] = ""
    gap: Annotated[str, Doc("The first link that does not fit, in words, where nothing else here says so.")] = ""
    hint: Annotated[Hint | None, Doc("The hint that was asked for.")] = None
    next_hint: Annotated[HintLevel | None, Doc("How far the next hint goes; none if there is none.")] = None
    parameters: Annotated[tuple[str, ...], Doc("The letters of the model's matrices, as hints write them.")] = ()
    explanation: Annotated[Explanation | None, Doc("What an earlier try believed, once the sheet is done.")] = None
    link: Annotated[str, Doc("The address of this very sheet, without anything typed.")] = ""
    print_link: Annotated[str, Doc("The address of this sheet as a handout.")] = ""
    run_button: Annotated[str, Doc("What the button that runs the head says.")] = ""
    saved_version: Annotated[int, Doc("The browser's clock at the newest save the server has, 0 before one.")] = 0
    form_secret: Annotated[str, Doc("A secret of this page, where no cookie tells yet who works in this browser.")] = ""
    practising: Annotated[bool, Doc("Whether another sheet can be asked for from this one.")] = False
    practice: Annotated[Practice | None, Doc("What stands around a sheet of practice.")] = None


@router.get("/", name="home")
@router.get("/sheet")
def show_sheet(
    request: Request,
    services: ServicesDep,
    visitor: MaybeVisitor,
    worksheet: str = DEFAULT,
    model: str = "",
    tokens: str | None = None,
    decoded: str = "",
    scale: str = "root",
    practice: bool = False,
) -> Response:
    """The sheet as it was left in this browser: what was typed, and the marks of the boxes unchanged since a check."""
    library = library_with_model(services.library, services.store, model)
    try:
        variant = find_variant(library, worksheet, model, tokens, decoded)
    except (WorksheetError, TokensError, TopicError) as error:
        chooser = _chooser(library, worksheet, model, tokens, str(error))
        return render("practice/sheet.html", SheetPage(chooser), status_of(error))
    key = sheet_key(variant)
    draft = services.store.find_draft(visitor, key) if visitor else None
    attempt = services.store.last_attempt(visitor, key) if visitor else None
    asked = Asked(variant, draft or PracticeDraft({}, 0), read_scale(scale), practice)
    report = grade(variant, attempt.answers) if attempt else None
    page = sheet_page(services, asked, report)
    page = _looking_back(services, visitor, page) if visitor else replace(page, form_secret=FormSecret.new().secret)
    return render("practice/sheet.html", _whole(request, services, page))


@router.get("/v/{code}")
def open_sheet_code(services: ServicesDep, code: str) -> Response:
    """The sheet that a code on paper names."""
    return RedirectResponse(sheet_link(variant_coded(services.library, services.store, code)), 303)


@router.get("/v")
def find_sheet_code(services: ServicesDep, code: str = "") -> Response:
    """The same for a code that was typed; what cannot be one comes back to be mended."""
    try:
        return RedirectResponse(sheet_link(variant_coded(services.library, services.store, code)), 303)
    except WorksheetError as error:
        chooser = replace(_chooser(services.library, DEFAULT, "", None), code=code[:60], code_problem=str(error))
        return render("practice/sheet.html", SheetPage(chooser), 404)


@router.post("/sheet/save")
def save_sheet(request: Request, services: ServicesDep, owner: OwnerDep, asked: Posted) -> Response:
    """Keep what was typed, and give back its drawing."""
    services.store.save_draft(owner, sheet_key(asked.variant), asked.draft)
    response = render("shared/_figures.html", sheet_page(services, asked, None))
    remember_visitor(request, response, owner)
    return response


@router.post("/sheet/check")
def check_sheet(request: Request, services: ServicesDep, owner: OwnerDep, asked: Posted) -> Response:
    """Mark the sheet, keep the try, and show the marks."""
    report = grade(asked.variant, asked.answers)
    keep_try(services, owner, asked, report)
    return _work(request, services, owner, sheet_page(services, asked, report))


async def pressed(request: Request) -> HintLevel:
    """How far the hint goes that was asked for: 1 to 3, the first where the form says nothing that can be used."""
    async with request.form() as sent:
        level = sent.get("hint")
    return next((known for known in HINT_LEVELS if str(known) == level), HINT_LEVELS[0])


@router.post("/sheet/hint")
def show_sheet_hint(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    asked: Posted,
    level: Annotated[HintLevel, Depends(pressed)],
) -> Response:
    """Mark the sheet as a check does, with a hint; what was checked already is no second try."""
    report = grade(asked.variant, asked.answers)
    last = services.store.last_attempt(owner, sheet_key(asked.variant))
    if last is None or dict(last.answers) != dict(asked.answers):
        keep_try(services, owner, asked, report)
    return _work(
        request, services, owner, sheet_page(services, asked, report, hinted=write_hint(asked.variant, report, level))
    )


@router.post("/sheet/answers")
def show_sheet_answers(request: Request, services: ServicesDep, owner: OwnerDep, asked: Posted) -> Response:
    """The answers under the boxes, with the marks of the last try; without a try, only the advice to make one."""
    key = sheet_key(asked.variant)
    services.store.save_draft(owner, key, asked.draft)
    attempt = services.store.last_attempt(owner, key)
    report = grade(asked.variant, attempt.answers) if attempt else None
    notice = "" if attempt else services.library.wording.say("page", "try-first")
    return _work(request, services, owner, sheet_page(services, asked, report, report is not None, notice))


def _work(request: Request, services: Services, owner: Visitor, page: SheetPage) -> Response:
    """The sheet alone to a script, the whole page to a plain form."""
    alone, page = "hx-request" in request.headers, _looking_back(services, owner, page)
    response = (
        render("practice/_sheet_form.html", page)
        if alone
        else render("practice/sheet.html", _whole(request, services, page))
    )
    remember_visitor(request, response, owner)
    return response


def _whole(request: Request, services: Services, page: SheetPage) -> SheetPage:
    """With what stands around a sheet of practice."""
    return replace(page, practice=practice_around(request, services, page.variant)) if page.practising else page


def _looking_back(services: Services, visitor: Visitor, page: SheetPage) -> SheetPage:
    """Once the sheet is done, with the explanation of the misconception that the visitor's attempts showed last."""
    variant, report = page.variant, page.report
    if variant is None or not (page.answers_shown or (report and report.complete)):
        return page
    attempts = services.store.latest_attempts(visitor, sheet_key(variant), LOOKED_BACK)
    told = (explain_diagnosis(variant, grade(variant, attempt.answers), page.scale) for attempt in attempts)
    return replace(page, explanation=next(filter(None, told), None))


def sheet_page(
    services: Services,
    asked: Asked,
    report: Report | None,
    answers_shown: bool = False,
    notice: str = "",
    hinted: Hint | None = None,
) -> SheetPage:
    variant = asked.variant
    library = library_with_model(services.library, services.store, variant.model.key)
    pointed_at = hinted.boxes if hinted else ()
    return SheetPage(
        chooser=_chooser(library, variant.worksheet.key, variant.model.key, str(variant.tokens)),
        variant=variant,
        rows=row_views(variant, asked.answers, report, truth=variant if answers_shown else None, pointed_at=pointed_at),
        figures=drawn(variant, asked.answers, asked.scale),
        scale=asked.scale,
        report=report,
        answers_shown=answers_shown,
        notice=notice,
        gap=_gap(report, hinted) if report else "",
        hint=hinted,
        next_hint=None if answers_shown else next_hint_level(report, hinted),
        parameters=tuple(tensor.letter for tensor in variant.table.tensors if tensor.parameter),
        link=sheet_link(variant),
        print_link=sheet_link(variant, "show_handout"),
        run_button=variant.wording.sections["run-buttons"].get(variant.table.key, ""),
        saved_version=asked.draft.version,
        practising=asked.practising,
    )


def _gap(report: Report, hinted: Hint | None) -> str:
    """The first broken link in words, where neither diagnosis nor hint is about one of its two sides."""
    told = {*(report.diagnosis.explains if report.diagnosis else ()), *(hinted.boxes if hinted else ())}
    apart = report.first_mismatch
    return apart.message if apart and not {apart.left, apart.right} & told else ""


def _choices(library: Library, topic: str, chosen: str) -> Choices:
    sheets = (sheet for sheet in library.worksheets.values() if sheet.topic == topic)
    entries = tuple(Choice(sheet.key, sheet.title, sheet.key == chosen) for sheet in sheets)
    return Choices(library.wording.say("topics", topic), entries)


def _chooser(library: Library, worksheet: str, model: str, tokens: str | None, problem: str = "") -> Chooser:
    sheet = library.worksheets.get(worksheet)
    model = model or (sheet.model if sheet else "")
    return Chooser(
        sheet.key if sheet else "",
        tuple(_choices(library, topic, worksheet) for topic in library.topics),
        tuple(Choice(key, entry.name, key == model) for key, entry in library.models.items()),
        str(sheet.tokens) if tokens is None and sheet else tokens or "",
        problem,
    )
