"""An activity as a student works on it: its sheets, checked and handed in as its rules say, and its exit ticket."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_results import report_as_stored
from app.classes.student_sheet import stored_marks, variant_of, worksheet_titles
from app.figures.figures import Figure
from app.figures.scale import ScaleName
from app.grading.grade import Report, grade
from app.grading.hints import HINT_LEVELS, Hint, HintLevel, next_hint_level, write_hint
from app.sheets.worksheet import Variant
from app.store import Activity, ClassAttempt, FrozenTicket, NoAttemptsLeftError, Phase, SheetProgress
from app.store.classwork import ClassDraft
from app.web.practice.sheet_request import read_scale
from app.web.shared import permissions
from app.web.shared.forms import MAX_TEXT, FormDep
from app.web.shared.permissions import StudentAccessDep
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_view import RowView, drawn, row_views
from app.web.shared.templating import render
from app.web.shared.urls import url_for
from app.web.student.sheet_request import AtSheet, Posted, Sheet, form_id, posted

router = APIRouter(include_in_schema=False)

GRACE = timedelta(seconds=30)  # what was on its way when the activity closed still counts


@dataclass(frozen=True)
class Step:
    """One sheet in the list of an activity, and how far a student is with it."""

    link: str
    title: str
    state: Literal["new", "begun", "checked", "handed-in"]
    here: bool = False


@dataclass(frozen=True)
class OverviewPage:
    """Everything that templates/student/activity.html shows."""

    access: Annotated[permissions.StudentAccess, Doc("The activity, its course and the student.")]
    phase: Annotated[Phase, Doc("What the activity is at this moment.")]
    steps: Annotated[tuple[Step, ...], Doc("Its sheets, each with how far the student is.")]
    ticket_in: Annotated[bool, Doc("Whether the exit ticket is in.")]
    opens: Annotated[str, Doc("When it opens, in the course's time zone, or nothing.")]


@dataclass(frozen=True)
class ClassSheetPage:
    """Everything that templates/student/class_sheet.html and its partials show."""

    access: Annotated[permissions.StudentAccess, Doc("The activity, its course and the student.")]
    steps: Annotated[tuple[Step, ...], Doc("The sheets of the activity.")]
    ticket_in: Annotated[bool, Doc("Whether the exit ticket is in.")]
    number: Annotated[int, Doc("Which sheet of the activity this is, counted from 1.")]
    keep: Annotated[str, Doc("What this browser keeps unsaved answers under.")]
    variant: Annotated[Variant, Doc("The sheet as this student has it.")]
    rows: Annotated[tuple[RowView, ...], Doc("The rows to fill in.")]
    figures: Annotated[tuple[Figure, ...], Doc("What was typed, drawn.")]
    scale: Annotated[ScaleName, Doc("How lengths are drawn: by square root, or true.")]
    report: Annotated[Report | None, Doc("The last try's marks, none where they may not be seen yet.")]
    hint: Annotated[Hint | None, Doc("The hint that was asked for.")]
    next_hint: Annotated[HintLevel | None, Doc("How far the next hint goes; none where there is none to have.")]
    parameters: Annotated[tuple[str, ...], Doc("The letters of the model's matrices, as hints write them.")]
    last: Annotated[ClassAttempt | None, Doc("The last try, which counts.")]
    attempts_left: Annotated[int | None, Doc("How many attempts are left, none where any number is allowed.")]
    locked: Annotated[bool, Doc("Whether nothing can be typed any more.")]
    can_hand_in: Annotated[bool, Doc("Whether the sheet can be handed in now.")]
    notice: Annotated[str, Doc("A sentence about the last press of a button, or nothing.")]
    form_id: Annotated[str, Doc("What tells a request that is sent again from another try.")]
    saved_version: Annotated[int, Doc("The browser's clock at the newest save the server has, 0 before one.")]
    run_button: Annotated[str, Doc("What the button that runs the head says; nothing where it may not be run yet.")]


@dataclass(frozen=True)
class TicketPage:
    """Everything that templates/student/exit_ticket.html shows."""

    access: Annotated[permissions.StudentAccess, Doc("The activity, its course and the student.")]
    steps: Annotated[tuple[Step, ...], Doc("The sheets of the activity.")]
    ticket: Annotated[FrozenTicket, Doc("The exit ticket.")]
    ticket_in: Annotated[bool, Doc("Whether this student's is in.")]
    phase: Annotated[Phase, Doc("What the activity is at this moment.")]
    longest: Annotated[int, Doc("How many characters an answer may have.")]
    form_id: Annotated[str, Doc("What tells a request that is sent again.")] = ""
    typed: Annotated[Mapping[str, str], Doc("The answers as typed.")] = field(default_factory=dict)
    problem: Annotated[str, Doc("Why nothing was handed in, or nothing.")] = ""


@dataclass(frozen=True)
class Drawn:
    """Everything that templates/shared/_figures.html shows."""

    figures: tuple[Figure, ...]


@router.get("/class/{activity_id:int}")
def show_class_activity(services: ServicesDep, access: StudentAccessDep) -> Response:
    """What there is to do; where that is one thing alone, that thing."""
    activity, phase = access.activity, access.activity.phase()
    services.store.classwork.arrive(activity.id, access.student.id)
    if phase == "open" and len(activity.content.items) == 1 and activity.content.ticket is None:
        return RedirectResponse(url_for("show_class_sheet", activity_id=activity.id, number=1), 303)
    if phase == "open" and not activity.content.items:
        return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)
    opens = activity.plan.opens_at
    shown = opens.astimezone(ZoneInfo(access.course.time_zone)).strftime("%d %B, %H:%M").lstrip("0") if opens else ""
    page = OverviewPage(access, phase, _steps(services, access), _ticket_in(services, access), shown)
    return render("student/activity.html", page)


@router.get("/class/{activity_id:int}/{number:int}")
def show_class_sheet(services: ServicesDep, at: AtSheet, scale: str = "root") -> Response:
    """The sheet as it was left, wherever that was."""
    access, number, found = at
    if access.activity.phase() == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=access.activity.id), 303)
    ticket_in = services.store.classwork.arrive(access.activity.id, access.student.id)
    sheet = Sheet(access, number, found, found.draft or ClassDraft({}, 0, found.sizes), read_scale(scale), "")
    return render("student/class_sheet.html", _page(services, sheet, ticket_in=ticket_in))


@router.post("/class/{activity_id:int}/{number:int}/save")
def save_class_sheet(request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int) -> Response:
    """Keep what was typed, and give back its drawing; asked for every second, and so in one turn of one thread."""
    sheet = posted(request, services, form, activity_id, number)
    _still_open(services, sheet.access.activity)
    services.store.classwork.save(sheet.assigned.key, sheet.sent)
    return render("shared/_figures.html", Drawn(drawn(sheet.assigned.variant, sheet.sent.answers, sheet.scale)))


@router.post("/class/{activity_id:int}/{number:int}/check")
def check_class_sheet(request: Request, services: ServicesDep, sheet: Posted) -> Response:
    """Mark the sheet and keep the try."""
    words, activity = services.library.wording, sheet.access.activity
    _still_open(services, activity)
    if activity.policies.feedback != "immediate":
        raise HTTPException(409, words.say("class", "no-checking"))
    report = grade(sheet.assigned.variant, sheet.sent.answers)
    if not report.tried:
        services.store.classwork.save(sheet.assigned.key, sheet.sent)
        return _work(request, services, sheet, words.say("class", "nothing-read"))
    try:
        _record(services, sheet, report, handed_in=False)
    except NoAttemptsLeftError:
        return _work(request, services, sheet, words.say("class", "no-attempts-left"))
    return _work(request, services, sheet)


@router.post("/class/{activity_id:int}/{number:int}/hint")
def show_class_sheet_hint(request: Request, services: ServicesDep, sheet: Posted, form: FormDep) -> Response:
    """A hint on the last try, where the activity has hints and its marks may be seen; asking costs no try."""
    words, activity = services.library.wording, sheet.access.activity
    _still_open(services, activity)
    last = services.store.classwork.last_attempt(sheet.assigned.key)
    seen = last is not None and activity.policies.marks_visible(activity.phase(), last.handed_in)
    if not activity.policies.hints or last is None or not seen or _elsewhere(services, sheet, last):
        raise HTTPException(409, words.say("class", "no-hint"))
    services.store.classwork.save(sheet.assigned.key, sheet.sent)
    level = next((known for known in HINT_LEVELS if str(known) == form.raw("hint")), HINT_LEVELS[0])
    found = write_hint(*_kept(services, sheet, last), level)
    return _work(request, services, sheet, hinted=found)


@router.post("/class/{activity_id:int}/{number:int}/hand-in")
def hand_in_class_sheet(request: Request, services: ServicesDep, sheet: Posted) -> Response:
    """Hand the sheet in: as the try that was just checked, or as one more; without a try left, the last one."""
    words, activity = services.library.wording, sheet.access.activity
    _still_open(services, activity)
    last = services.store.classwork.last_attempt(sheet.assigned.key)
    if last and not last.handed_in and last.answers == sheet.sent.answers:
        services.store.classwork.hand_in_last(sheet.assigned.key)
    else:
        try:
            _record(services, sheet, grade(sheet.assigned.variant, sheet.sent.answers), handed_in=True)
        except NoAttemptsLeftError:
            services.store.classwork.hand_in_last(sheet.assigned.key)
            return _work(request, services, sheet, words.say("class", "no-attempts-left"))
    later = activity.policies.feedback == "after_close"
    return _work(request, services, sheet, words.say("class", "handed-in-later" if later else "handed-in"))


@router.get("/class/{activity_id:int}/ticket")
def show_exit_ticket(services: ServicesDep, access: StudentAccessDep) -> Response:
    """The exit ticket, or that it is in."""
    if access.activity.phase() == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=access.activity.id), 303)
    services.store.classwork.arrive(access.activity.id, access.student.id)
    return render("student/exit_ticket.html", _ticket_page(services, access, secrets.token_urlsafe(16)))


@router.post("/class/{activity_id:int}/ticket")
def hand_in_exit_ticket(services: ServicesDep, access: StudentAccessDep, form: FormDep) -> Response:
    """Keep the exit ticket, once."""
    words, activity = services.library.wording, access.activity
    sent_id = form_id(form)
    page = _ticket_page(services, access, sent_id)
    typed = {key: form.multi_line(f"answer-{key}") for key, _ in page.ticket.questions}
    problem, status = "", 422
    if not any(typed.values()):
        problem = words.say("class", "write-something")
    elif activity.phase(datetime.now(UTC) - GRACE) != "open" and activity.phase() != "open":
        problem, status = words.say("class", "not-open"), 409
    if problem:
        return render("student/exit_ticket.html", _ticket_page(services, access, sent_id, typed, problem), status)
    services.store.classwork.arrive(activity.id, access.student.id)
    answers = {key: text for key, text in typed.items() if text}
    anonymous = activity.policies.ticket_anonymous
    services.store.classwork.hand_in_ticket(activity.id, access.student.id, sent_id, answers, anonymous=anonymous)
    return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)


def _still_open(services: Services, activity: Activity) -> None:
    """Raise 409 with a sentence where nothing is taken in any more; what was on its way at closing still is."""
    if activity.phase() != "open" and activity.phase(datetime.now(UTC) - GRACE) != "open":
        raise HTTPException(409, services.library.wording.say("class", "not-open"))


def _record(services: Services, sheet: Sheet, report: Report, *, handed_in: bool) -> ClassAttempt:
    allowed = sheet.access.activity.policies.max_attempts
    return services.store.classwork.record(
        sheet.assigned.key, sheet.client_id, sheet.sent, stored_marks(report), handed_in=handed_in, allowed=allowed
    )


def _work(request: Request, services: Services, sheet: Sheet, notice: str = "", hinted: Hint | None = None) -> Response:
    """The sheet alone to a script, the whole page to a plain form."""
    template = "student/_class_sheet_form.html" if "hx-request" in request.headers else "student/class_sheet.html"
    return render(template, _page(services, sheet, notice, hinted))


def _page(
    services: Services, sheet: Sheet, notice: str = "", hinted: Hint | None = None, ticket_in: bool | None = None
) -> ClassSheetPage:
    """The sheet as it stands; whether the exit ticket is in is looked up where it is not known."""
    access, variant, answers = sheet.access, sheet.assigned.variant, sheet.sent.answers
    policies, phase = access.activity.policies, access.activity.phase()
    progress = services.store.classwork.progress(access.activity.id, access.student.id)
    attempts = progress[sheet.assigned.key.sheet_key].attempts if sheet.assigned.key.sheet_key in progress else 0
    last = services.store.classwork.last_attempt(sheet.assigned.key) if attempts else None
    left = max(policies.max_attempts - attempts, 0) if policies.max_attempts else None
    elsewhere = last is not None and _elsewhere(services, sheet, last)
    told = last is not None and policies.marks_visible(phase, last.handed_in) and not elsewhere
    marked, report = _kept(services, sheet, last) if last and told else (variant, None)
    handed_in = last is not None and last.handed_in
    locked, truth = phase != "open" or left == 0, marked if phase == "closed" else None
    said = "on-paper" if elsewhere else "other-version" if marked is not variant else ""
    return ClassSheetPage(
        access=access,
        steps=_steps(services, access, progress, sheet.number),
        ticket_in=_ticket_in(services, access) if ticket_in is None else ticket_in,
        number=sheet.number + 1,
        keep=f"{sheet.action} {access.student.id} {sheet.assigned.key.sheet_key}",
        variant=variant,
        rows=row_views(variant, answers, report, truth=truth, pointed_at=hinted.boxes if hinted else ()),
        figures=drawn(marked if locked else variant, answers, sheet.scale),
        scale=sheet.scale,
        report=report,
        hint=hinted,
        next_hint=next_hint_level(report, hinted) if policies.hints and phase == "open" and left != 0 else None,
        parameters=tuple(tensor.letter for tensor in variant.table.tensors if tensor.parameter),
        last=last,
        attempts_left=left,
        locked=locked,
        can_hand_in=phase == "open" and not (handed_in and left == 0),
        notice=notice or (services.library.wording.say("class", said) if said else ""),
        form_id=secrets.token_urlsafe(16),
        saved_version=sheet.sent.version,
        run_button=_run_button(variant, policies.run == "before" or attempts > 0),
    )


def _kept(services: Services, sheet: Sheet, last: ClassAttempt) -> tuple[Variant, Report]:
    """The last try with its kept marks, and the sheet that they belong to."""
    activity, found = sheet.access.activity, sheet.assigned
    return report_as_stored(
        services.library, services.store, activity, activity.content.items[sheet.number], found.variant, last
    )


def _elsewhere(services: Services, sheet: Sheet, last: ClassAttempt) -> bool:
    """Whether the last try came on paper with other numbers, so that its marks are not for these boxes."""
    found = sheet.assigned
    return (
        last.variant != found.sizes
        and variant_of(services.library, services.store, found.variant.worksheet, last.variant).code
        != found.variant.code
    )


def _run_button(variant: Variant, allowed: bool) -> str:
    return str(variant.wording.sections["run-buttons"].get(variant.table.key, "")) if allowed else ""


def _steps(
    services: Services,
    access: permissions.StudentAccess,
    progress: Mapping[str, SheetProgress] | None = None,
    here: int = -1,
) -> tuple[Step, ...]:
    """The sheets of the activity, each with how far the student is."""
    activity = access.activity
    found = services.store.classwork.progress(activity.id, access.student.id) if progress is None else progress
    sheets = zip(activity.content.items, worksheet_titles(activity.content), strict=True)
    return tuple(
        Step(
            url_for("show_class_sheet", activity_id=activity.id, number=number + 1),
            title,
            _state(found.get(item.sheet_key)),
            number == here,
        )
        for number, (item, title) in enumerate(sheets)
    )


def _state(progress: SheetProgress | None) -> Literal["new", "begun", "checked", "handed-in"]:
    if progress is None:
        return "new"
    if progress.handed_in:
        return "handed-in"
    return "checked" if progress.attempts else "begun"


def _ticket_in(services: Services, access: permissions.StudentAccess) -> bool:
    return services.store.classwork.ticket_in(access.activity.id, access.student.id)


def _ticket_page(
    services: Services,
    access: permissions.StudentAccess,
    form_id: str,
    typed: Mapping[str, str] | None = None,
    problem: str = "",
) -> TicketPage:
    ticket = access.activity.content.ticket
    if ticket is None:
        raise HTTPException(404)
    return TicketPage(
        access,
        _steps(services, access),
        ticket,
        _ticket_in(services, access),
        access.activity.phase(),
        MAX_TEXT,
        form_id,
        typed or {},
        problem,
    )
