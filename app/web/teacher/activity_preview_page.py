"""/activities/A/preview: an activity as its students see it, to be tried out; nothing of that is stored.

What was tried on a sheet is only in its form, so another sheet, or a reload, starts fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import GRACE, Activity
from app.activities.content import question_name
from app.activities.work import StudentDraft, UnfinishedWork
from app.classes import sheet_actions
from app.classes.frozen.offered_worksheets import content_to_open
from app.classes.materials import materials_for_course
from app.classes.promises import rules_in_words
from app.classes.sheet_actions import Action, Outcome, auto_submit, graded_attempt
from app.classes.sheet_work import PreviewWork
from app.classes.student_sheet import StudentSheet, sheet_with_sizes
from app.classes.ticket_answers import ticket_problems
from app.grading.explanations import MAX_ATTEMPTS_EXPLAINED
from app.grading.grade import grade
from app.grading.mistaken_sheets import mistaken_texts
from app.sheets.reading import MAX_BOX_TEXT
from app.sheets.variant import box_texts
from app.store import Student
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.activity_steps import NextStep, Step, activity_steps, next_step
from app.web.shared.example_view import ExampleRequest, make_example_page
from app.web.shared.forms import FormDep, FormReader, clamped_number
from app.web.shared.permissions import StaffActivity, StudentAccess
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import MAX_ANSWER, SavedFragment, read_scale, saved_json
from app.web.shared.templating import render
from app.web.student.class_sheet_view import (
    class_example,
    drawn_sheet,
    hint_on_last,
    make_class_sheet_page,
    page_after,
    raise_refusal,
    render_class_sheet,
)
from app.web.student.exit_ticket_view import make_ticket_page, read_ticket_form
from app.web.student.sheet_request import ClassSheetRequest, sent_class_sheet

router = APIRouter(include_in_schema=False)

MAX_EXAMPLES = 999  # made-up students


@dataclass(frozen=True)
class ActivityPreviewPage:
    """Everything that templates/teacher/activity_preview.html shows."""

    access: Annotated[permissions.StudentAccess, Doc("The activity as it will be open, and a made-up student.")]
    steps: Annotated[tuple[Step, ...], Doc("Its sheets.")]
    rules: Annotated[tuple[str, ...], Doc("The rules for handing in a sheet, a sentence each.")]
    next: Annotated[NextStep, Doc("Where a student begins.")]


def preview_access(services: ServicesDep, access: StaffActivity, example: str = "1") -> StudentAccess:
    """The activity as it will be once open, for its course's staff, with the made-up student number `example`."""
    number = clamped_number(example, MAX_EXAMPLES)
    name = _("Example student {number}") if access.activity.policies.variants == "per_student" else _("Example student")
    student = Student(-number, access.course.id, name.format(number=number), None, None)
    materials = materials_for_course(services.library, services.tickets, services.store, access.course, access.teacher)
    content = content_to_open(materials.library, materials.tickets, services.store, access.activity)
    activity = _at_a_time(replace(access.activity, content=content), access.now, closed=False)
    return StudentAccess(activity, access.course, student, access.now, example=number)


Preview = Annotated[StudentAccess, Depends(preview_access)]


@router.get("/activities/{activity_id:int}/preview")
def preview_activity(access: Preview) -> Response:
    """The list of sheets and the ticket, as students see it, with the rules; nothing is stored."""
    content = access.activity.content
    if len(content.items) == 1 and content.ticket is None:
        return RedirectResponse(access.links.sheet(1), 303)
    if not content.items:
        return RedirectResponse(access.links.ticket, 303)
    steps = activity_steps(access, {})
    page = ActivityPreviewPage(access, steps, rules_in_words(access.activity), next_step(access, steps, False))
    return render("teacher/activity_preview.html", page)


@router.get("/activities/{activity_id:int}/preview/{number:int}")
def preview_sheet(
    request: Request, services: ServicesDep, access: Preview, number: int, scale: str = "root"
) -> Response:
    """One sheet with empty boxes; 404 if the activity has fewer sheets."""
    sheet = _sheet(services, access, number)
    requested = ClassSheetRequest(access, number, sheet, PreviewWork(sheet, (), access.now), {}, read_scale(scale))
    return render_class_sheet(request, make_class_sheet_page(services, requested))


@router.get("/activities/{activity_id:int}/preview/{number:int}/example")
def preview_example(
    services: ServicesDep, access: Preview, number: int, kind: str = "worked", seed: str = "1"
) -> Response:
    """A sheet like sheet `number`, as students get it; 404 if the rules give them none, or there are fewer sheets."""
    return render("shared/example.html", make_example_page(_example(services, access, number, kind, seed)))


@router.post("/activities/{activity_id:int}/preview/{number:int}/example")
def check_preview_example(
    services: ServicesDep, access: Preview, form: FormDep, number: int, kind: str = "worked", seed: str = "1"
) -> Response:
    """A sheet like sheet `number` with the marks of what was typed on it; 404 as for `preview_example`."""
    return render("shared/example.html", make_example_page(_example(services, access, number, kind, seed), form))


@router.post("/activities/{activity_id:int}/preview/{number:int}/{what}")
def press_in_preview(
    request: Request, services: ServicesDep, access: Preview, form: FormDep, number: int, what: str
) -> Response:
    """The sheet after a button was pressed, as a student would get it; nothing is stored."""
    requested = _posted(services, access, form, number)
    held = form.single_line("misconception")
    if what == "fill":
        requested = _filled_in(requested, held)
        can_check = access.rules.can_check and not access.rules.is_locked(requested.work.attempts)
        what = "check" if can_check else "open"
    if what == "save":
        return render("shared/_saved.html", SavedFragment(drawn_sheet(requested, requested.variant), saved_json(None)))
    carried = requested.work
    if what in _ACTIONS:
        outcome, requested = requested.done(_ACTIONS[what])
        if outcome.is_refused:
            return raise_refusal(request, services, requested, outcome)
        carried, result = requested.work, outcome.result
    elif what in ("closed", "open"):  # so that one can go back to an earlier phase
        requested, result = _closed(requested) if what == "closed" else requested, "saved"
    else:
        raise HTTPException(404)
    hinted = hint_on_last(services, requested, form.raw("hint")) if result == "hint" else None
    page = replace(page_after(requested, make_class_sheet_page(services, requested, hinted), result), held=held)
    # The attempts, oldest first, as carried in the form.
    if attempts := [[dict(each.answers), each.handed_in] for each in reversed(carried.newest_attempts)]:
        carried_json = json.dumps(attempts, separators=(",", ":"))
        page = replace(page, hidden_fields={**page.hidden_fields, "carried": carried_json})
    return render_class_sheet(request, page)


@router.get("/activities/{activity_id:int}/preview/ticket")
def preview_ticket(services: ServicesDep, access: Preview) -> Response:
    """The exit ticket, to be filled in; 404 without one."""
    return render("student/exit_ticket.html", make_ticket_page(services.store, access, False))


@router.post("/activities/{activity_id:int}/preview/ticket")
def press_ticket_in_preview(services: ServicesDep, access: Preview, form: FormDep) -> Response:
    """The ticket's page after handing in, as a student sees it; nothing is stored. 404 without an exit ticket."""
    page = make_ticket_page(services.store, access, False)
    typed = read_ticket_form(form, page.ticket)
    if problems := ticket_problems(page.ticket, typed):
        page = replace(page, typed=typed, problem=problems.pop(""), problems=problems)
        return render("student/exit_ticket.html", page, 422)
    return render("student/exit_ticket.html", make_ticket_page(services.store, access, True))


def _at_a_time(activity: Activity, now: datetime, *, closed: bool) -> Activity:
    plan = activity.plan
    closes_at = plan.closes_at if plan.closes_at and plan.closes_at > now else None
    if closed:
        closes_at = now - timedelta(minutes=plan.policies.late_minutes) - 2 * GRACE
    return replace(
        activity,
        state="open",
        plan=replace(plan, opens_at=None, closes_at=closes_at),
        longest_extra=0,
        answers_shown_at=None,
        auto_submitted_at=now if closed else None,
    )


_ACTIONS: Mapping[str, Action] = {
    "check": sheet_actions.check,
    "hint": sheet_actions.hint,
    "hand-in": sheet_actions.hand_in,
}


def _sheet(services: Services, access: StudentAccess, number: int) -> StudentSheet:
    if not 1 <= number <= len(access.activity.content.items):
        raise HTTPException(404)
    return sheet_with_sizes(services.library, services.store, access.activity, access.student, number, None)


def _posted(services: Services, access: StudentAccess, form: FormReader, number: int) -> ClassSheetRequest:
    sheet = _sheet(services, access, number)
    work = PreviewWork(sheet, (), access.now - timedelta(seconds=1))
    for answers, handed_in in _carried(form, access.activity, sheet):
        report = grade(sheet.variant, box_texts(sheet.variant, answers))
        attempt = graded_attempt(sheet.variant, answers, access.rules, report, sheet.sizes)
        work = work.kept(Outcome("checked", answers, attempt=replace(attempt, handed_in=handed_in)))
    return sent_class_sheet(access, form, number, sheet, replace(work, now=access.now, report=None))


def _filled_in(requested: ClassSheetRequest, misconception: str) -> ClassSheetRequest:
    """The sheet as sent by a student with the misconception, with that student's texts in its boxes."""
    answers = {**requested.typed, **mistaken_texts(requested.variant).get(misconception, {})}
    sent = replace(requested.sent, answers=answers) if requested.sent else None
    return replace(requested, typed=answers, sent=sent)


def _example(services: Services, access: StudentAccess, number: int, kind: str, seed: str) -> ExampleRequest:
    return class_example(services, access, _sheet(services, access, number).variant, number, kind, seed)


def _closed(requested: ClassSheetRequest) -> ClassSheetRequest:
    work, last, key, access = requested.work, requested.work.last, requested.sheet.key, requested.access
    typed = StudentDraft(key.student_id, key.sheet_key, requested.sheet.sizes, requested.typed, access.now)
    unfinished = UnfinishedWork(
        typed,
        work.attempts,
        last_id=last.id if last else 0,
        last_answers=last.answers if last else None,
        last_at=last.created_at if last else None,
        handed_in_on_time=False,
    )
    outcome = auto_submit(requested.variant, unfinished, requested.rules)
    access = replace(access, activity=_at_a_time(requested.activity, access.now, closed=True), closed=True)
    return replace(requested, work=work.kept(outcome), access=access)


def _carried(form: FormReader, activity: Activity, sheet: StudentSheet) -> Sequence[tuple[Mapping[str, str], bool]]:
    try:
        carried: Any = json.loads(form.raw("carried", MAX_BODY) or "[]")
    except (ValueError, RecursionError):
        return ()
    pairs = carried if isinstance(carried, list) else []
    attempts = [
        (_known_answers(sheet, pair[0]), bool(pair[1]))
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict)
    ]
    return attempts[-(activity.policies.max_attempts or MAX_ATTEMPTS_EXPLAINED) :]


def _known_answers(sheet: StudentSheet, texts: Mapping[object, object]) -> Mapping[str, str]:
    boxes = {name: str(texts.get(name, ""))[:MAX_BOX_TEXT] for name in sheet.variant.blanks_by_name}
    questions = (question_name(question.key) for question in sheet.variant.worksheet.questions)
    return boxes | {name: str(texts.get(name, ""))[:MAX_ANSWER] for name in questions}
