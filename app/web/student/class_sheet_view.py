"""One sheet of an activity as its page shows it: what the rules and the time let a student see and do now."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_doc import Doc
from fastapi import HTTPException, Request, Response

from app.activities.rules import Rules
from app.classes.activity_results import report_as_stored
from app.classes.promises import rules_in_words, sheet_promise
from app.classes.sheet_actions import Outcome, can_hint, empty_boxes, marks_visible, may_run, may_see_example
from app.classes.student_sheet import models_of
from app.grading.explanations import MAX_ATTEMPTS_EXPLAINED, Explanation, explain_diagnosis
from app.grading.grade import Report, without_help
from app.grading.hints import Hint, next_hint_level, write_hint
from app.grading.mistaken_sheets import misconception_names
from app.sheets.variant import Variant
from app.store import Attempt
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.activity_steps import ClosingNotice, NextStep, Step, activity_steps, closing_notice, next_step
from app.web.shared.example_view import ExampleRequest
from app.web.shared.permissions import StudentAccess
from app.web.shared.services import Services
from app.web.shared.sheet_form import Drawing, draw_typed, read_hint_level, saved_json
from app.web.shared.sheet_form_fields import SheetFormPage
from app.web.shared.sheet_view import (
    all_boxes_right,
    changed_since_check,
    first_to_fix,
    progress,
    question_views,
    row_views,
    run_button,
    sheet_notes,
    step_asked,
)
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import url_for
from app.web.student.sheet_request import ClassSheetRequest, not_open

Primary = Literal["check", "hand-in", "anyway", "next", ""]  # "anyway": hand in with empty boxes, after being asked


@dataclass(frozen=True, kw_only=True)
class ClassSheetPage(SheetFormPage):
    """Everything that templates/student/class_sheet.html and _class_sheet_form.html show."""

    access: Annotated[StudentAccess, Doc("The activity, its course and the student.")]
    variant: Annotated[Variant, Doc("The sheet as this student has it.")]
    closing: Annotated[ClosingNotice, Doc("When the activity closes, or that it has closed.")]
    writable: Annotated[bool, Doc("Whether the activity takes anything in from this page.")]
    steps: Annotated[tuple[Step, ...], Doc("The sheets of the activity.")]
    ticket_in: Annotated[bool, Doc("Whether the exit ticket is in.")]
    number: Annotated[int, Doc("Which sheet of the activity this is, counted from 1.")]
    last: Annotated[Attempt | None, Doc("The last attempt, which counts; None before one.")]
    attempts_left: Annotated[int | None, Doc("How many attempts are left; None where any number is allowed.")]
    can_hand_in: Annotated[bool, Doc("Whether the sheet can be handed in now.")]
    next: Annotated[NextStep, Doc("Where to go on after handing in.")]
    primary: Annotated[Primary, Doc("Which of the buttons is the one to press now.")]
    misconceptions: Annotated[
        Mapping[str, str], Doc("The names of those that a preview can be filled in by, by key; none elsewhere.")
    ]
    held: Annotated[str, Doc("The one that has filled in this preview, or nothing.")] = ""


def render_class_sheet(request: Request, page: ClassSheetPage, status: int = 200) -> Response:
    """The sheet as HTML: for htmx only its form, otherwise the whole page."""
    template = "_class_sheet_form" if is_htmx(request) else "class_sheet"
    return render(f"student/{template}.html", page, status)


def make_class_sheet_page(
    services: Services, requested: ClassSheetRequest, hinted: Hint | None = None
) -> ClassSheetPage:
    """The sheet with what the activity lets the student see and do at this moment."""
    access, variant, answers, key = requested.access, requested.variant, requested.answers, requested.sheet.key
    rules, work = requested.rules, requested.work
    last, locked = work.last, rules.is_locked(work.attempts)
    can_hand_in = rules.can_hand_in(work.attempts, handed_in=last is not None and last.handed_in)
    # The marks belong to a version of the sheet, which a regrade may have corrected.
    marked, report = (
        _stored_report(services, requested, last) if last and marks_visible(work, rules) else (variant, None)
    )
    if report and not rules.gives_help:
        report = without_help(report)
    truth, pointed_at = marked if rules.shows_answers else None, hinted.blanks if hinted else ()
    steps = activity_steps(access, work.progress.sheets, requested.number)
    notes = sheet_notes(variant, answers, report, hinted)
    hints = rules.gives_hints
    # Next to a right answer, a row's reason may give away another answer, as hints do.
    explains = hints or (rules.gives_help and report is not None and report.complete)
    one_at_a_time = _is_one_at_a_time(requested)
    rows = row_views(
        variant,
        answers,
        report,
        truth=truth,
        pointed_at=pointed_at,
        notes=notes,
        explains=explains,
        one_at_a_time=one_at_a_time,
    )
    so_far = progress(variant, answers, report) if one_at_a_time else None
    all_right = all_boxes_right(rows)
    is_explained = rules.gives_help and (all_right or (truth and report))
    notice, has_example = _notice(requested, marked), may_see_example(variant, rules)
    address = url_for("show_class_sheet", activity_id=requested.activity.id, number=requested.number)
    return ClassSheetPage(
        access=access,
        closing=closing_notice(services.store, access),
        writable=rules.is_writable,
        steps=steps,
        ticket_in=work.progress.ticket_in,
        number=requested.number,
        in_class=True,
        action=access.links.press(requested.number, "hand-in"),
        save_action=access.links.press(requested.number, "save"),
        run_action=access.links.press(requested.number, "run"),
        hidden_fields={
            "form_id": secrets.token_urlsafe(16),
            "promise": sheet_promise(requested.activity, requested.number),
            "sheet": key.sheet_key,
        },
        autosave_key="" if access.is_preview else f"{address} {access.student.id} {key.sheet_key}",
        shows_score=report is not None,
        remark=_remark(last) if last and not report and not notice else "",
        slide_query={"activity": requested.activity.id, "number": requested.number},
        variant=variant,
        rows=rows,
        progress=so_far,
        questions=question_views(variant, requested.typed, locked=not can_hand_in),
        drawing=drawn_sheet(requested, marked if locked else variant),
        scale=requested.scale,
        report=report,
        all_right=all_right,
        explanation=_explanation(services, requested) if is_explained else None,
        stale=report is not None and not locked and changed_since_check(rows),
        notes=notes,
        hint=hinted,
        next_hint=next_hint_level(variant, report, hinted) if hints and not locked else None,
        last=last,
        attempts_left=rules.attempts_left(work.attempts),
        locked=locked,
        autosaves=not locked or (can_hand_in and bool(variant.worksheet.questions)),
        can_hand_in=can_hand_in,
        notice=notice,
        saved=work.draft is not None,
        saved_state=saved_json(work.draft, requested.edits),
        example=access.links.sheet_like(requested.number, "worked") if has_example else "",
        another=access.links.sheet_like(requested.number, "another") if has_example and (all_right or truth) else "",
        run_button=run_button(variant) if may_run(work, rules) and not access.is_preview else "",
        next=next_step(access, steps, work.progress.ticket_in, requested.number),
        # An exhibit shows mismatches and names sizes, as hints do.
        sees=hints
        and rules.shows_marks_of_checks
        and not access.is_preview
        and not locked
        and (all_right or not so_far),
        primary=_primary(rules, last, report, locked=locked, can_hand_in=can_hand_in) if rules.is_writable else "",
        misconceptions=misconception_names(variant) if access.is_preview and not locked else {},
    )


def as_it_counts(requested: ClassSheetRequest) -> ClassSheetRequest:
    """Once the activity has closed, the sheet with the last attempt's answers instead of the last saved ones."""
    last = requested.work.last if requested.rules.shows_answers else None
    return requested if last is None or requested.work.has_other_numbers else replace(requested, typed=last.answers)


def _primary(rules: Rules, last: Attempt | None, report: Report | None, *, locked: bool, can_hand_in: bool) -> Primary:
    """The button to press next: "next" once the last attempt is handed in."""
    if last is not None and last.handed_in:
        return "next"
    if rules.can_check and not locked and not (report and report.complete):
        return "check"
    return "hand-in" if can_hand_in else ""


def hint_on_last(services: Services, requested: ClassSheetRequest, level: str) -> Hint | None:
    """A hint of that level on the stored marks of the last attempt."""
    last = requested.work.last if can_hint(requested.variant, requested.work, requested.rules) else None
    return write_hint(*_stored_report(services, requested, last), read_hint_level(level)) if last else None


def drawn_sheet(requested: ClassSheetRequest, variant: Variant) -> Drawing | None:
    """A drawing of what was typed, with the shapes of this version of the sheet."""
    rules, last = requested.rules, requested.work.last
    if not rules.gives_help:
        return None
    checked = last.answers if last else None
    step = step_asked(variant, requested.answers, checked) if _is_one_at_a_time(requested) else ""
    return draw_typed(
        variant,
        requested.answers,
        requested.scale,
        explains=rules.shows_marks_of_checks and last is not None,
        names_sizes=rules.shows_marks_of_checks,
        shows_mismatches=rules.shows_mismatches,
        step=step,
    )


def _is_one_at_a_time(requested: ClassSheetRequest) -> bool:
    # With few attempts, or marks that come later, nobody could go from one step to the next.
    return requested.rules.policies.checks_freely and not requested.rules.is_locked(requested.work.attempts)


def raise_refusal(request: Request, services: Services, requested: ClassSheetRequest, outcome: Outcome) -> Response:
    """The sheet as typed, with the reason why a button did nothing, as a response with 409."""
    if outcome.result == "marks-later":
        raise HTTPException(409, _("In this activity, marks are shown after you hand in."))
    if outcome.result == "no-hint":
        raise HTTPException(
            409,
            _("There is no hint for this: hints are about answers you have checked, in activities that allow them."),
        )
    refused = not_open(requested.access)
    if is_htmx(request) or requested.access.phase == "waiting":
        raise refused
    page = make_class_sheet_page(services, requested)
    return render_class_sheet(request, replace(page, notice=refused.detail, remark=""), refused.status_code)


def page_after(requested: ClassSheetRequest, page: ClassSheetPage, result: str) -> ClassSheetPage:
    """The page with a sentence about an action's result: "empty", "new-rules", "handed-in", "nothing-read" or
    "no-attempts-left".
    """
    handed_in = page.last is not None and page.last.handed_in
    if result == "checked":
        return replace(page, focused=first_to_fix(page.rows))
    if result == "empty" and (empty := empty_boxes(requested.variant, requested.answers)):
        question = ngettext("{count} box is empty. Hand in anyway?", "{count} boxes are empty. Hand in anyway?", empty)
        notice = question.format(count=empty)
        return replace(page, notice=notice, primary="anyway", shows_score=False, remark="")
    if result == "new-rules":
        changed = _("Your teacher has changed this activity, so nothing was handed in or marked.")
        kept = _("Your answers are still in the boxes.")
        return replace(page, notice=" ".join((changed, *rules_in_words(requested.activity), kept)), remark="")
    if result == "handed-in" and handed_in:
        later = requested.activity.policies.feedback == "after_close"
        notice = _("Handed in. Marks and answers are shown after the activity closes.") if later else _("Handed in.")
        return replace(page, notice=notice, remark="")
    if result == "nothing-read":
        return replace(page, notice=_("There is nothing to grade yet: fill in a box."), remark="")
    if result == "no-attempts-left":
        return replace(page, notice=_("You have no attempts left. Your last one counts."), remark="")
    return page


def _remark(last: Attempt) -> str:
    if not last.handed_in:
        return ""
    return _("Auto-submitted at closing.") if last.auto_submitted else _("Handed in.")


def _notice(requested: ClassSheetRequest, marked: Variant) -> str:
    if requested.work.has_other_numbers:
        return _("Your last attempt was on paper, with different numbers. Your teacher has its marks.")
    return (
        _("Your marks are for another version of this sheet; they are the ones that count.")
        if marked is not requested.variant
        else ""
    )


def _stored_report(services: Services, requested: ClassSheetRequest, attempt: Attempt) -> tuple[Variant, Report]:
    if attempt is requested.work.last and requested.work.report:  # just graded
        return requested.variant, requested.work.report
    item = requested.activity.content.items[requested.number - 1]
    return report_as_stored(services.library, services.store, requested.activity, item, requested.variant, attempt)


def _explanation(services: Services, requested: ClassSheetRequest) -> Explanation | None:
    """Shows answers; the caller must make sure that the sheet is all right, or its answers are shown."""
    for attempt in requested.work.newest_attempts[:MAX_ATTEMPTS_EXPLAINED]:
        if not requested.work.answers_other_numbers(attempt):
            marked, report = _stored_report(services, requested, attempt)
            if explanation := explain_diagnosis(marked, report, requested.scale):
                return explanation
    return None


def class_example(
    services: Services, access: StudentAccess, variant: Variant, number: int, kind: str, seed: str
) -> ExampleRequest:
    """The request for an example like a student's sheet `number`, with models that the activity doesn't ask about."""
    if access.phase == "waiting" or not may_see_example(variant, access.rules):
        raise HTTPException(404)
    # Another sheet of the activity may ask the same about another model.
    requested = {key for item in access.activity.content.items for key in models_of(item)}
    models = {key: model for key, model in services.library.models.items() if key not in requested}
    library = replace(services.library, models=models)
    links = access.links
    return ExampleRequest(
        variant, library, kind, seed, links.sheet(number), lambda kind, seed: links.sheet_like(number, kind, seed=seed)
    )
