"""/sheet: a practice sheet, to be filled in, saved, checked and answered; /v: its code; /practice: the lessons."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from app.algebra.number_text import format_number
from app.bugs.bank import BugKind
from app.classes import sheet_actions
from app.exchange.imported_models import library_with_model, variant_from_code
from app.figures.thumbnails import thumbnail
from app.models.architecture import TokensError
from app.practice.catalogue import short_name
from app.practice.lessons import lesson_with, lessons_of
from app.practice.progress import lesson_views, next_worksheet, to_repeat
from app.practice.record import WAITS, PracticeRecord
from app.sheets.library import Library
from app.sheets.replaced import REPLACED
from app.sheets.siblings import another_bug
from app.sheets.worksheet import WorksheetError, key_in, library_key, whole_key
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.web.shared.example_view import MAX_EXAMPLE_SEED, ExampleRequest, example_names, find_sibling
from app.web.shared.forms import FormDep
from app.web.shared.model_menu import answer_choice, model_menu
from app.web.shared.permissions import require_practice
from app.web.shared.practice_place import PracticePlaceDep, practice_place
from app.web.shared.services import LibraryDep, ServicesDep, StoreDep
from app.web.shared.sheet_address import FIRST_WORKSHEET, find_variant, library_for, sheet_link
from app.web.shared.sheet_view import length_remark
from app.web.shared.templating import render
from app.web.shared.urls import url_for
from app.web.sheet import press, save
from app.web.sheet_in_practice import PostedPracticeSheet, Suggestion, opened_practice_sheet

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@router.get("/sheet")
def show_sheet(
    request: Request,
    services: ServicesDep,
    worksheet: str = FIRST_WORKSHEET,
    model: str = "",
    tokens: str | None = None,
    decoded: str = "",
    checked: bool = False,
    hint: str = "",
    answers: bool = False,
) -> Response:
    """The sheet as this browser left it: the texts of the last save, and the marks of texts unchanged since a check."""
    library = library_with_model(library_for(request, services, worksheet), services.store, model)
    replaced = REPLACED.get(library_key(worksheet))
    if replaced and not library.find_worksheet(worksheet):
        sizes = {"tokens": tokens, "decoded": decoded or replaced.decoder_tokens}
        query = {name: size for name, size in sizes.items() if size}
        model = model or replaced.model
        address = url_for("show_sheet", worksheet=replaced.worksheet, **({"model": model} if model else {}), **query)
        return RedirectResponse(address, 303)
    try:
        variant = find_variant(library, worksheet, model, tokens, decoded)
    except (WorksheetError, TokensError, TopicError) as error:
        suggestions = tuple(_suggestions(library, worksheet, model, getattr(error, "tokens", None)))
        chooser = _chooser(library, worksheet, tokens, problem=str(error), suggestions=suggestions)
        chooser["length_is_wrong"] = isinstance(error, TokensError)
        return _render_chooser(library, worksheet, model, chooser, error.status)
    context = opened_practice_sheet(request, services, library, variant)
    result = "answers" if answers else "hint" if hint else "checked" if checked else ""
    place = practice_place(request, services, context.visitor)
    lesson = lesson_with(place.library, library_key(variant.worksheet.key))
    return render(
        context.page,
        **context.names(result, hint if context.work.draft else ""),
        chooser=_chooser(library, variant.worksheet.key, str(variant.tokens), remark=length_remark(variant)),
        model_menu=model_menu(library, variant.worksheet.whole, variant.model.key),
        answer_choice=answer_choice(library, variant.worksheet.whole, variant.model.key),
        lesson=lesson,
        lesson_number=1 + lessons_of(place.library).index(lesson) if lesson else 0,
        course=place.course,
    )


@router.post("/sheet/save")
def save_sheet(request: Request, context: PostedPracticeSheet) -> Response:
    return save(request, context)


@router.post("/sheet/check")
def check_sheet(request: Request, context: PostedPracticeSheet) -> Response:
    return press(request, context, sheet_actions.check)


@router.post("/sheet/hint")
def show_sheet_hint(request: Request, context: PostedPracticeSheet, form: FormDep) -> Response:
    return press(request, context, sheet_actions.hint, form.raw("hint"))


@router.post("/sheet/answers")
def show_sheet_answers(request: Request, context: PostedPracticeSheet) -> Response:
    return press(request, context, sheet_actions.show_answers)


@router.get("/v/{code}")
def open_sheet_code(library: LibraryDep, store: StoreDep, code: str) -> Response:
    """Redirect to the sheet with this code; raises WorksheetError for an unknown code."""
    return RedirectResponse(sheet_link(variant_from_code(library, store, code)), 303)


@router.get("/v")
def find_sheet_code(library: LibraryDep, store: StoreDep, code: str = "") -> Response:
    """Redirect (303) to the sheet with the typed code, ignoring case and hyphens."""
    try:
        return RedirectResponse(sheet_link(variant_from_code(library, store, code)), 303)
    except WorksheetError as error:
        chooser = _chooser(library, FIRST_WORKSHEET, None, code=code[:60], code_problem=str(error))
        return _render_chooser(library, FIRST_WORKSHEET, "", chooser, 404)


def read_example_request(
    request: Request,
    services: ServicesDep,
    worksheet: str = FIRST_WORKSHEET,
    model: str = "",
    tokens: str | None = None,
    decoded: str = "",
    kind: str = "worked",
    seed: str = "1",
) -> ExampleRequest:
    """The example that an address asks for; WorksheetError, TokensError or TopicError if it names no sheet."""
    library = library_with_model(library_for(request, services, worksheet), services.store, model)
    variant = find_variant(library, worksheet, model, tokens, decoded)
    return ExampleRequest(
        variant,
        library,
        kind,
        seed,
        sheet_link(variant),
        lambda kind, seed: sheet_link(variant, "show_example", kind=kind, seed=seed),
    )


ExampleRequestDep = Annotated[ExampleRequest, Depends(read_example_request)]


@router.get("/sheet/example")
def show_example(requested: ExampleRequestDep) -> Response:
    """A sheet like the one in the address, with other numbers; nothing is stored."""
    return render("shared/example.html", **example_names(requested))


@router.post("/sheet/example")
def check_example(requested: ExampleRequestDep, form: FormDep) -> Response:
    """A sheet like the one in the address, with the marks of what was typed on it."""
    return render("shared/example.html", **example_names(requested, form))


@router.get("/sheet/another")
def show_another(requested: ExampleRequestDep, bug: BugKind = "any") -> Response:
    """Redirect (303) to a random sheet like this one, or about another bug of a kind; 404 if there is none."""
    seed, variant = secrets.randbelow(MAX_EXAMPLE_SEED), requested.variant
    other = another_bug(requested.library, variant, seed, bug)
    other = other or find_sibling(requested, seed, variant.worksheet.answers)
    return RedirectResponse(sheet_link(other), 303)


@router.get("/practice")
def show_lessons(place: PracticePlaceDep) -> Response:
    """The lessons with what is done, what comes next and what to look at again."""
    library, record = place.library, place.record
    following = next_worksheet(library, record)
    return render(
        "practice/lessons.html",
        lessons=lesson_views(library, record),
        next=library.variant(following) if following else None,
        next_lesson=lesson_with(library, following),
        sheets=len(library.worksheets),
        short_name=short_name,
        drawing=lambda variant: Markup(thumbnail(variant)),  # noqa: S704 - of numbers alone
        repeats=to_repeat(library, record),
        begun=record != PracticeRecord(),
        course=place.course,
        waits=WAITS,
    )


@router.post("/practice/forget")
def reset_practice_record(request: Request, store: StoreDep, place: PracticePlaceDep) -> Response:
    """Replace the current record by an empty one."""
    response = RedirectResponse(url_for("show_lessons"), 303)
    place.keep(request, response, store, PracticeRecord())
    return response


def _render_chooser(library: Library, worksheet: str, model: str, chooser: dict[str, Any], status: int) -> Response:
    sheet, whole = library.find_worksheet(whole_key(worksheet)), whole_key(worksheet)
    possible = sheet and model in library.models and library.refusal(sheet.key, model) is None
    return render(
        "practice/sheet.html",
        status=status,
        chooser=chooser,
        model_menu=model_menu(library, whole, model if possible or not sheet else sheet.model),
        answer_choice=answer_choice(library, worksheet, model),
        variant=None,
        lesson=None,
    )


def _chooser(
    library: Library,
    worksheet: str,
    tokens: str | None,
    *,
    problem: str = "",
    remark: str = "",
    suggestions: tuple[Suggestion, ...] = (),
    code: str = "",
    code_problem: str = "",
) -> dict[str, Any]:
    """The choices above the sheet, as chosen or typed, and what is wrong with unusable ones."""
    chosen = library.worksheets.get(library_key(worksheet))
    return {
        "worksheet": whole_key(worksheet) if chosen else "",
        "tokens": str(chosen.tokens) if tokens is None and chosen else tokens or "",
        "length_is_wrong": False,
        "problem": problem,
        "remark": remark,
        "suggestions": suggestions,
        "code": code,
        "code_problem": code_problem,
    }


def _suggestions(library: Library, worksheet: str, model: str, tokens: int | None) -> Iterator[Suggestion]:
    try:
        sheet = library.worksheet(worksheet)
    except WorksheetError:
        if whole := library.worksheets.get(library_key(worksheet)):
            yield Suggestion(whole.title, sheet_link(library.variant(whole.key)))
        return
    chosen = library.models.get(model or sheet.model)
    if chosen and (tokens or library.refusal(sheet.key, chosen.key) is None):
        variant = library.variant(sheet.key, chosen.key, tokens)
        text = _("{model} with {tokens} tokens").format(model=chosen.name, tokens=format_number(variant.tokens))
        yield Suggestion(text, sheet_link(variant))
        return
    if library.refusal(sheet.key, sheet.model):
        in_numbers = library.variant(key_in(sheet.key, "numbers"))
        yield Suggestion(_("The same worksheet in numbers"), sheet_link(in_numbers))
    else:
        own = library.variant(sheet.key)
        yield Suggestion(_("This worksheet with {model}").format(model=own.model.name), sheet_link(own))
    if chosen:
        text = _("Worksheets for {model}").format(model=chosen.name)
        yield Suggestion(text, url_for("show_model", key=chosen.key))
