"""/sheet: choose a sheet, fill it in, have it saved, checked and, after an attempt, answered; /v opens a code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.algebra.number_text import format_number
from app.classes import sheet_actions
from app.classes.sheet_actions import Outcome
from app.exchange.imported_models import library_with_model, variant_from_code
from app.grading.explanations import MAX_ATTEMPTS_EXPLAINED, explain_diagnosis
from app.grading.grade import Report, grade
from app.grading.hints import Hint, next_hint_level, write_hint
from app.models.architecture import TokensError
from app.practice.lessons import lesson_with, lessons_of, worksheet_after
from app.sheets.library import Library
from app.sheets.replaced import REPLACED
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError, key_in, library_key, whole_key
from app.topics.requirements import TopicError
from app.translation import gettext as _
from app.web.practice.practice_place import practice_place
from app.web.practice.sheet_request import (
    FIRST_WORKSHEET,
    SheetRequest,
    find_variant,
    library_for,
    opened_sheet,
    posted_sheet,
    sheet_link,
)
from app.web.shared.errors import status_of
from app.web.shared.forms import FormDep
from app.web.shared.model_menu import AnswerChoice, ModelMenu, answer_choice, model_menu
from app.web.shared.permissions import require_practice
from app.web.shared.services import LibraryDep, Services, ServicesDep, StoreDep
from app.web.shared.sheet_form import Drawing, SavedFragment, draw_typed, read_hint_level, read_scale
from app.web.shared.sheet_form_fields import SheetFormPage
from app.web.shared.sheet_view import (
    all_boxes_right,
    changed_since_check,
    first_to_fix,
    in_steps,
    length_remark,
    progress,
    question_views,
    row_views,
    run_button,
    sheet_notes,
    step_asked,
)
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import url_for
from app.web.shared.visitor import FormSecret

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class Choice:
    """One entry of a list to choose from."""

    key: str
    name: str
    chosen: bool


@dataclass(frozen=True)
class TopicChoices:
    """The worksheets of one topic."""

    topic: str
    entries: tuple[Choice, ...]


@dataclass(frozen=True)
class Suggestion:
    """A sheet to open instead of an unusable one: the link's text and address."""

    text: str
    link: str


@dataclass(frozen=True)
class Chooser:
    """The choices above the sheet, as chosen or typed, and what is wrong with unusable ones."""

    worksheet: str
    worksheets: tuple[TopicChoices, ...]
    tokens: str
    problem: str = ""
    length_is_wrong: bool = False
    remark: str = ""  # on the length, if it can be used
    suggestions: tuple[Suggestion, ...] = ()
    code: str = ""
    code_problem: str = ""


@dataclass(frozen=True)
class LessonPlace:
    """The sheet's lesson, and the course whose teachers see the student's progress, or ""."""

    number: int
    title: str
    course: str


@dataclass(frozen=True, kw_only=True)
class SheetPage(SheetFormPage):
    """Everything that templates/practice/sheet.html and _sheet_form.html show."""

    chooser: Annotated[Chooser, Doc("The worksheets above the sheet, and what was chosen and typed.")]
    model_menu: Annotated[ModelMenu, Doc("The models that can be chosen for the worksheet.")]
    answer_choice: Annotated[AnswerChoice | None, Doc("Numbers or symbols; None where the worksheet decides.")]
    answers_shown: Annotated[bool, Doc("Whether the answers are shown under the boxes.")] = False
    link: Annotated[str, Doc("The address of this very sheet, without anything typed.")] = ""
    print_link: Annotated[str, Doc("The address of this sheet as a handout.")] = ""
    bug_link: Annotated[str, Doc("Where another bug is dealt; empty where none can be.")] = ""
    lesson: Annotated[LessonPlace | None, Doc("The lesson that has the sheet.")] = None
    next: Annotated[Suggestion | None, Doc("What follows a sheet that is all right.")] = None


@router.get("/sheet")
def show_sheet(
    request: Request,
    services: ServicesDep,
    worksheet: str = FIRST_WORKSHEET,
    model: str = "",
    tokens: str | None = None,
    decoded: str = "",
    scale: str = "root",
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
        chooser = replace(
            _chooser(library, worksheet, tokens),
            problem=str(error),
            length_is_wrong=isinstance(error, TokensError),
            suggestions=tuple(_suggestions(library, worksheet, model, getattr(error, "tokens", None))),
        )
        page = SheetPage(
            chooser=chooser,
            model_menu=_menu(library, worksheet, model),
            answer_choice=answer_choice(library, worksheet, model),
        )
        return render("practice/sheet.html", page, status_of(error))
    requested = opened_sheet(request, services.store, library, variant)
    requested = replace(requested, scale=read_scale(scale))
    return _open_sheet(request, services, requested, checked=checked, hint=hint, answers=answers)


def _open_sheet(
    request: Request,
    services: Services,
    requested: SheetRequest,
    *,
    checked: bool = False,
    hint: str = "",
    answers: bool = False,
) -> Response:
    variant = requested.variant
    draft, attempt = (requested.work.draft, requested.work.last) if requested.work else (None, None)
    report = grade(variant, attempt.answers) if attempt else None
    hinted = None
    if draft and (checked or hint):  # a check without anything readable isn't an attempt
        report = grade(variant, requested.answers)
        hinted = write_hint(variant, report, read_hint_level(hint)) if hint else None
    notice = _try_first() if answers and not attempt else ""
    page = _sheet_page(requested, report, answers_shown=answers and attempt is not None, notice=notice, hinted=hinted)
    page = replace(page, focused=first_to_fix(page.rows) if checked or hinted else "")
    if requested.work is None:
        page = replace(page, hidden_fields={**page.hidden_fields, "form_secret": FormSecret.new().secret})
    place = practice_place(request, services, requested.visitor)
    if lesson := lesson_with(place.library, library_key(variant.worksheet.key)):
        number = 1 + lessons_of(place.library).index(lesson)
        page = replace(page, lesson=LessonPlace(number, _(lesson.title), place.course))
    return render("practice/sheet.html", _with_explanation(requested, page))


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
        chooser = replace(_chooser(library, FIRST_WORKSHEET, None), code=code[:60], code_problem=str(error))
        page = SheetPage(
            chooser=chooser,
            model_menu=_menu(library, FIRST_WORKSHEET, ""),
            answer_choice=answer_choice(library, FIRST_WORKSHEET, ""),
        )
        return render("practice/sheet.html", page, 404)


@router.post("/sheet/save")
def save_sheet(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Merge what was typed into the stored draft; answer with the draft, its drawing and the visitor's cookie."""
    _outcome, requested = posted_sheet(request, services, form).done(sheet_actions.save)
    drawing = _drawing(requested)
    return requested.with_cookie(request, render("shared/_saved.html", SavedFragment(drawing, requested.saved_state)))


@router.post("/sheet/check")
def check_sheet(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Mark the sheet, store the attempt, and show the marks; without any readable answer, only the draft is stored."""
    outcome, requested = posted_sheet(request, services, form).done(sheet_actions.check)
    response = _respond(request, requested, _sheet_page(requested, outcome.report))
    return _recorded(request, services, requested, outcome, response)


@router.post("/sheet/hint")
def show_sheet_hint(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Check the sheet, and show the marks and a hint of the level that the form asks for."""
    outcome, requested = posted_sheet(request, services, form).done(sheet_actions.hint)
    report = outcome.report or grade(requested.variant, requested.answers)
    hinted = write_hint(requested.variant, report, read_hint_level(form.raw("hint")))
    response = _respond(request, requested, _sheet_page(requested, report, hinted=hinted))
    return _recorded(request, services, requested, outcome, response)


@router.post("/sheet/answers")
def show_sheet_answers(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Save the draft, and show the right answers with the marks of the last attempt, not of the draft."""
    outcome, requested = posted_sheet(request, services, form).done(sheet_actions.show_answers)
    last = requested.work.last if requested.work else None
    if last is None or outcome.result == "try-first":
        return _respond(request, requested, _sheet_page(requested, None, notice=_try_first()))
    report = grade(requested.variant, last.answers)
    return _respond(request, requested, _sheet_page(requested, report, answers_shown=True))


def _respond(request: Request, requested: SheetRequest, page: SheetPage) -> Response:
    if is_htmx(request):
        response: Response = render("practice/_sheet_form.html", _with_explanation(requested, page))
    else:
        response = RedirectResponse(_link_after(requested, page), 303)
    return requested.with_cookie(request, response)


def _recorded(
    request: Request, services: Services, requested: SheetRequest, outcome: Outcome, response: Response
) -> Response:
    if outcome.attempt is None or outcome.report is None:
        return response
    place = practice_place(request, services, requested.visitor)
    attempts = requested.work.newest_attempts if requested.work and outcome.report.complete else ()
    right = [attempt for attempt in attempts if grade(requested.variant, attempt.answers).complete]
    record = place.record.after_check(requested.variant, outcome.report, first_time_right=len(right) == 1)
    place.keep(request, response, services.store, record)
    return response


def _try_first() -> str:
    return _("Try it first: check your answers once. Then you can see the right ones.")


def _link_after(requested: SheetRequest, page: SheetPage) -> str:
    shown: dict[str, object] = {"checked": 1}
    if page.hint:
        shown = {"hint": page.hint.level}
    elif page.answers_shown or page.notice:
        shown = {"answers": 1}
    if requested.scale != "root":
        shown["scale"] = requested.scale
    return sheet_link(requested.variant, "show_sheet", **shown)


def _with_explanation(requested: SheetRequest, page: SheetPage) -> SheetPage:
    variant, report = requested.variant, page.report
    if requested.work is None or not (page.answers_shown or (report and report.complete)):
        return page
    attempts = requested.work.newest_attempts[:MAX_ATTEMPTS_EXPLAINED]
    explanations = (explain_diagnosis(variant, grade(variant, attempt.answers), page.scale) for attempt in attempts)
    return replace(page, explanation=next(filter(None, explanations), None))


def _sheet_page(
    requested: SheetRequest,
    report: Report | None,
    *,
    answers_shown: bool = False,
    notice: str = "",
    hinted: Hint | None = None,
) -> SheetPage:
    variant, answers, library = requested.variant, requested.answers, requested.library
    truth, pointed_at = variant if answers_shown else None, hinted.blanks if hinted else ()
    notes = sheet_notes(variant, answers, report, hinted, mismatch=True)
    rows = row_views(
        variant, answers, report, truth=truth, pointed_at=pointed_at, notes=notes, explains=True, one_at_a_time=True
    )
    all_right, has_siblings = all_boxes_right(rows), not variant.problem.case
    offers_another = has_siblings and (all_right or answers_shown)
    return SheetPage(
        chooser=replace(_chooser(library, variant.worksheet.key, str(variant.tokens)), remark=length_remark(variant)),
        model_menu=model_menu(library, variant.worksheet.whole, variant.model.key),
        answer_choice=answer_choice(library, variant.worksheet.whole, variant.model.key),
        variant=variant,
        rows=rows,
        progress=progress(variant, answers, report),
        questions=question_views(variant, requested.typed),
        drawing=_drawing(requested),
        scale=requested.scale,
        report=report,
        all_right=all_right,
        answers_shown=answers_shown,
        notice=notice,
        stale=report is not None and changed_since_check(rows),
        notes=notes,
        hint=hinted,
        next_hint=None if answers_shown else next_hint_level(variant, report, hinted),
        shows_score=report is not None and not notice,
        action=url_for("check_sheet"),
        save_action=url_for("save_sheet"),
        run_action=url_for("start_run"),
        autosave_key=sheet_link(variant),
        sees=all_right or not in_steps(variant),
        link=sheet_link(variant),
        print_link=sheet_link(variant, "show_handout"),
        example=sheet_link(variant, "show_example") if has_siblings else "",
        another=sheet_link(variant, "show_another") if offers_another else "",
        bug_link=sheet_link(variant, "show_another") if _deals_bugs(library, variant) else "",
        run_button=run_button(variant),
        saved=requested.work is not None and requested.work.draft is not None,
        saved_state=requested.saved_state,
        next=_next_worksheet(library, variant) if all_right else None,
    )


def _deals_bugs(library: Library, variant: Variant) -> bool:
    sheet = library.worksheets.get(library_key(variant.worksheet.key))
    return sheet is not None and sheet.bugs != "one"


def _drawing(requested: SheetRequest) -> Drawing | None:
    checked = requested.work.last if requested.work else None
    step = step_asked(requested.variant, requested.answers, checked.answers if checked else None)
    return draw_typed(requested.variant, requested.answers, requested.scale, explains=requested.was_checked, step=step)


def _next_worksheet(library: Library, variant: Variant) -> Suggestion:
    if in_steps(variant):
        whole = library.variant(FIRST_WORKSHEET, variant.model.key, variant.tokens)
        return Suggestion(_("Now the whole sheet"), sheet_link(whole))
    if following := worksheet_after(library, key_in(variant.worksheet.key, "numbers")):
        sheet = library.variant(following)
        return Suggestion(_("Next: {title}").format(title=sheet.title), sheet_link(sheet))
    return Suggestion(_("Back to the lessons"), url_for("show_lessons"))


def _chooser(library: Library, worksheet: str, tokens: str | None) -> Chooser:
    chosen = library.worksheets.get(library_key(worksheet))
    choices = {topic: list[Choice]() for topic in library.topics}
    for each in library.worksheets.values():
        choices[each.topic].append(Choice(each.key, each.title, each is chosen))
    return Chooser(
        worksheet=whole_key(worksheet) if chosen else "",
        worksheets=tuple(
            TopicChoices(library.wording.topics[topic].name, tuple(entries)) for topic, entries in choices.items()
        ),
        tokens=str(chosen.tokens) if tokens is None and chosen else tokens or "",
    )


def _menu(library: Library, worksheet: str, model: str) -> ModelMenu:
    sheet = library.find_worksheet(whole_key(worksheet))
    possible = sheet and model in library.models and library.refusal(sheet.key, model) is None
    return model_menu(library, whole_key(worksheet), model if possible or not sheet else sheet.model)


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
