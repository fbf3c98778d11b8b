"""/activities/A/preview: an activity as its students see it, to be tried out; nothing of that is stored.

What was tried on a sheet is only in its form, so another sheet, or a reload, starts fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import GRACE, Activity
from app.activities.content import question_name
from app.activities.work import Attempt, StudentDraft, UnfinishedWork
from app.classes import sheet_actions
from app.classes.frozen.offered_worksheets import content_to_open
from app.classes.materials import materials_for_course
from app.classes.promises import sheet_promise
from app.classes.sheet_actions import Action, Outcome, auto_submit, graded_attempt
from app.classes.sheet_work import PreviewWork
from app.classes.student_sheet import StudentSheet, sheet_with_sizes
from app.classes.ticket_answers import ticket_problems
from app.grading.explain import MAX_ATTEMPTS_EXPLAINED
from app.grading.grade import grade
from app.grading.mistaken_sheets import misconception_names, mistaken_texts
from app.sheets.answers import MAX_BOX_TEXT
from app.sheets.variant import box_texts
from app.store import Student
from app.translation import gettext as _
from app.web.shared.activity_steps import activity_steps, next_step
from app.web.shared.example_view import ExampleRequest, example_names
from app.web.shared.exit_ticket_form import counted_answers, read_ticket_form, ticket_names, ticket_of
from app.web.shared.forms import FormDep, FormReader, clamped_number
from app.web.shared.permissions import StaffActivity, StudentAccess
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import ServicesDep
from app.web.shared.sheet_form import MAX_ANSWER, read_sheet
from app.web.shared.templating import render, render_page_or_fragment
from app.web.sheet import press, save
from app.web.sheet_in_class import ClassSheet, class_example, require_sheet

router = APIRouter(include_in_schema=False)

MAX_EXAMPLES = 999  # made-up students


@dataclass(frozen=True, kw_only=True)
class PreviewSheet(ClassSheet):
    """A sheet as a made-up student has it; `held` is the misconception that has filled it in."""

    work: PreviewWork
    held: str = ""
    made_before: tuple[Attempt, ...] | None = None  # after closing: the attempts to go back to

    def respond(self, request: Request, result: str, level: str) -> Response:
        return render_page_or_fragment(request, self.page, self.form, **self.names(result, level))

    def names(self, result: str = "", level: str = "") -> dict[str, Any]:
        names = super().names(result, level) | {
            "autosave_key": "",
            "run_button": "",
            "sees": False,
            "misconceptions": {} if self.is_locked else misconception_names(self.variant),
            "held": self.held,
        }
        made = self.work.made if self.made_before is None else self.made_before
        if attempts := [[dict(each.answers), each.handed_in] for each in made]:
            names["hidden_fields"]["carried"] = json.dumps(attempts, separators=(",", ":"))
        return names


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


def read_preview_sheet(services: ServicesDep, access: Preview, number: int) -> PreviewSheet:
    """Sheet `number`, from 1, with empty boxes."""
    require_sheet(access, number)
    library, store = services.library, services.store
    sheet = sheet_with_sizes(library, store, access.activity, access.student, number, None, gives=False)
    return PreviewSheet(
        services=services,
        variant=sheet.variant,
        work=PreviewWork(sheet, (), access.now, access.activity.policies.counting),
        rules=access.rules,
        typed={},
        access=access,
        number=number,
        sheet=sheet,
    )


OpenedPreview = Annotated[PreviewSheet, Depends(read_preview_sheet)]


def read_posted_preview(context: OpenedPreview, form: FormDep) -> PreviewSheet:
    """The sheet with the sent form, and with the attempts that it carries."""
    access, sheet = context.access, context.sheet
    work = replace(context.work, now=access.now - timedelta(seconds=1))
    for answers, handed_in in _carried(form, access.activity, sheet):
        report = grade(sheet.variant, box_texts(sheet.variant, answers))
        attempt = graded_attempt(sheet.variant, answers, access.rules, report, sheet.sizes)
        work = work.kept(Outcome("checked", answers, attempt=replace(attempt, handed_in=handed_in)))
    sent = read_sheet(form, sheet.variant, sheet_promise(access.activity, context.number))
    work = replace(work, now=access.now, report=None)
    return replace(context, work=work, typed=sent.answers, sent=sent)


PostedPreview = Annotated[PreviewSheet, Depends(read_posted_preview)]


@router.get("/activities/{activity_id:int}/preview")
def preview_activity(access: Preview) -> Response:
    """Redirect (303) to the first page, as for a student who has just joined."""
    return RedirectResponse(next_step(access, activity_steps(access, {}), False).link, 303)


@router.get("/activities/{activity_id:int}/preview/{number:int}")
def preview_sheet(request: Request, context: OpenedPreview) -> Response:
    return context.respond(request, "", "")


def read_preview_example(context: OpenedPreview, kind: str = "worked", seed: str = "1") -> ExampleRequest:
    return class_example(context, kind, seed)


PreviewExample = Annotated[ExampleRequest, Depends(read_preview_example)]


@router.get("/activities/{activity_id:int}/preview/{number:int}/example")
def preview_example(requested: PreviewExample) -> Response:
    """A sheet with other numbers, as students get it; 404 if the rules give them none."""
    return render("shared/example.html", **example_names(requested))


@router.post("/activities/{activity_id:int}/preview/{number:int}/example")
def check_preview_example(requested: PreviewExample, form: FormDep) -> Response:
    """A sheet with other numbers, with the marks of what was typed on it."""
    return render("shared/example.html", **example_names(requested, form))


_ACTIONS: Mapping[str, Action] = {
    "check": sheet_actions.check,
    "hint": sheet_actions.hint,
    "hand-in": sheet_actions.hand_in,
}


@router.post("/activities/{activity_id:int}/preview/{number:int}/{what}")
def press_in_preview(request: Request, context: PostedPreview, form: FormDep, what: str) -> Response:
    """The sheet after a button was pressed, as a student would get it; nothing is stored."""
    context = replace(context, held=form.single_line("misconception"))
    if what == "fill":
        context = _filled_in(context)
        what = "check" if context.rules.can_check and not context.rules.is_locked(context.work.attempts) else "open"
    if what == "save":
        return save(request, context)
    if what in _ACTIONS:
        return press(request, context, _ACTIONS[what], form.raw("hint"))
    if what == "closed":
        return _closed(context).respond(request, "saved", "")
    if what == "open":  # so that one can go back to an earlier phase
        return context.respond(request, "saved", "")
    raise HTTPException(404)


@router.get("/activities/{activity_id:int}/preview/ticket")
def preview_ticket(services: ServicesDep, access: Preview) -> Response:
    """The exit ticket, to be filled in; 404 without one."""
    return render("student/end.html", **ticket_names(services.store, access, False))


@router.post("/activities/{activity_id:int}/preview/ticket")
def press_ticket_in_preview(services: ServicesDep, access: Preview, form: FormDep) -> Response:
    """The ticket's page after handing in, as a student sees it; nothing is stored."""
    ticket = ticket_of(access)
    typed, picked = read_ticket_form(form, ticket), form.all("pick")
    problems = ticket_problems(ticket, counted_answers(ticket, typed, picked))
    names = ticket_names(services.store, access, ticket_in=not problems)
    if not problems:
        return render("student/end.html", **names)
    names |= {"typed": typed, "picks": picked, "problem": problems.pop(""), "problems": problems}
    return render("student/end.html", status=422, **names)


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


def _filled_in(context: PreviewSheet) -> PreviewSheet:
    """The sheet as sent by a student with the held misconception."""
    answers = {**context.typed, **mistaken_texts(context.variant).get(context.held, {})}
    sent = replace(context.sent, answers=answers) if context.sent else None
    return replace(context, typed=answers, sent=sent)


def _closed(context: PreviewSheet) -> PreviewSheet:
    work, last, key, access = context.work, context.work.last, context.sheet.key, context.access
    typed = StudentDraft(key.student_id, key.sheet_key, context.sheet.sizes, context.typed, access.now)
    unfinished = UnfinishedWork(
        typed,
        work.attempts,
        last_id=last.id if last else 0,
        last_answers=last.answers if last else None,
        last_at=last.created_at if last else None,
        handed_in_on_time=False,
    )
    outcome = auto_submit(context.variant, unfinished, context.rules)
    access = replace(access, activity=_at_a_time(context.activity, access.now, closed=True), closed=True)
    closed = work.kept(outcome)
    return replace(context, work=closed, made_before=work.made, access=access, rules=access.rules)


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
