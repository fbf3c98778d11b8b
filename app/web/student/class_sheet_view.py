"""One sheet of an activity as its page shows it: what the rules and the time let a student see and do now."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_doc import Doc
from fastapi import Request, Response

from app.activities.activity import Feedback
from app.classes.activity_results import report_as_stored
from app.classes.promises import rules_in_words, sheet_promise
from app.figures.scale import ScaleName
from app.grading.explanations import MAX_ATTEMPTS_EXPLAINED, Explanation, explain_diagnosis
from app.grading.grade import Report, without_help
from app.grading.hints import Hint, HintLevel, next_hint_level, write_hint
from app.sheets.variant import Variant
from app.store import ClassAttempt
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.activity_steps import (
    ClosingNotice,
    NextStep,
    Step,
    activity_steps,
    closing_notice,
    next_step,
)
from app.web.shared.permissions import StudentAccess
from app.web.shared.services import Services
from app.web.shared.sheet_form import Drawing, draw_typed, kept_json, read_hint_level
from app.web.shared.sheet_view import (
    Note,
    QuestionView,
    RowView,
    all_boxes_right,
    changed_since_check,
    first_to_mend,
    question_views,
    row_views,
    run_button,
    sheet_notes,
)
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import url_for
from app.web.student.sheet_request import ClassSheetRequest, has_other_numbers, marks_visible, may_run

Said = Literal["", "checked", "nothing-read", "no-attempts-left", "handed-in", "empty", "new-rules"]  # after a press
Primary = Literal["check", "hand-in", "anyway", "next", ""]  # "anyway": hand in with empty boxes, after being asked


@dataclass(frozen=True)
class ClassSheetPage:
    """Everything that templates/student/class_sheet.html and its partials show."""

    access: Annotated[StudentAccess, Doc("The activity, its course and the student.")]
    closing: Annotated[ClosingNotice, Doc("When the activity closes, or that it has closed.")]
    writable: Annotated[bool, Doc("Whether the activity takes anything in from this page.")]
    steps: Annotated[tuple[Step, ...], Doc("The sheets of the activity.")]
    ticket_in: Annotated[bool, Doc("Whether the exit ticket is in.")]
    number: Annotated[int, Doc("Which sheet of the activity this is, counted from 1.")]
    keep: Annotated[str, Doc("What this browser keeps unsaved answers under.")]
    sheet_key: Annotated[str, Doc("What the work on this sheet is stored under, as its form sends it back.")]
    variant: Annotated[Variant, Doc("The sheet as this student has it.")]
    rows: Annotated[tuple[RowView, ...], Doc("The rows to fill in.")]
    questions: Annotated[tuple[QuestionView, ...], Doc("The open questions under the rows.")]
    drawing: Annotated[Drawing | None, Doc("What was typed, drawn; None where it is not shown.")]
    scale: Annotated[ScaleName, Doc("How lengths are drawn: by square root, or true.")]
    report: Annotated[Report | None, Doc("The last attempt's marks; None where they may not be seen yet.")]
    all_right: Annotated[bool, Doc("Whether every box is right, as it stands, and may be seen to be.")]
    explanation: Annotated[Explanation | None, Doc("The misconception behind an earlier attempt, once that is mended.")]
    stale: Annotated[bool, Doc("Whether a box has changed since the last attempt, which has these marks.")]
    notes: Annotated[tuple[Note, ...], Doc("What is said below rows; the last of it in the bar, too.")]
    hint: Annotated[Hint | None, Doc("The hint that was asked for.")]
    next_hint: Annotated[HintLevel | None, Doc("How far the next hint goes; none where there is none to have.")]
    last: Annotated[ClassAttempt | None, Doc("The last attempt, which counts; None before one.")]
    attempts_left: Annotated[int | None, Doc("How many attempts are left; None where any number is allowed.")]
    locked: Annotated[bool, Doc("Whether nothing can be typed into the boxes any more.")]
    kept_while_typing: Annotated[bool, Doc("Whether a box or an open question can be typed into, and is saved.")]
    can_hand_in: Annotated[bool, Doc("Whether the sheet can be handed in now.")]
    notice: Annotated[str, Doc("A sentence about the last press of a button, or nothing.")]
    form_id: Annotated[str, Doc("An id of this form, by which a request that is sent again is known.")]
    saved: Annotated[bool, Doc("Whether the server has a draft of this sheet.")]
    kept: Annotated[str, Doc("What the server has of this sheet (see kept_json).")]
    run_button: Annotated[str, Doc("What the button that runs the head says; nothing where it may not be run yet.")]
    promise: Annotated[str, Doc("The rules that this page tells, as its form sends them back.")]
    next: Annotated[NextStep, Doc("Where to go on after handing in.")]
    primary: Annotated[Primary, Doc("Which of the buttons is the one to press now.")]
    sees: Annotated[bool, Doc("Whether products lead to their exhibit.")] = False
    focused: Annotated[str, Doc("The box that has the focus as the page opens; none but after a check or a hint.")] = ""
    carried: Annotated[str, Doc("The attempts that the form of a preview carries; empty for a student.")] = ""


@dataclass(frozen=True)
class _SheetStatus:
    """What a student's attempts on a sheet, the policies and the time of the activity let them do now."""

    last: ClassAttempt | None
    attempts_left: int | None  # None where any number is allowed
    locked: bool
    can_hand_in: bool


def _sheet_status(asked: ClassSheetRequest, attempts: int, *, is_open: bool) -> _SheetStatus:
    """The last of this many attempts on the sheet, how many are left, and what is still allowed.

    The sheet is locked unless the activity is open and an attempt is left. It can be handed in while the activity is
    open, but not again once no attempt is left.
    """
    allowed = asked.activity.policies.max_attempts
    last = asked.work.last_attempt(asked.sheet.key) if attempts else None
    left = max(allowed - attempts, 0) if allowed else None
    handed_in = last is not None and last.handed_in
    return _SheetStatus(
        last, left, locked=not is_open or left == 0, can_hand_in=is_open and not (handed_in and left == 0)
    )


def render_class_sheet(request: Request, page: ClassSheetPage, status: int = 200) -> Response:
    """The sheet as HTML: its form alone for a script, which puts it in the place of the one it has sent."""
    template = "_class_sheet_form" if is_htmx(request) else "class_sheet"
    return render(f"student/{template}.html", page, status)


def make_class_sheet_page(
    services: Services, asked: ClassSheetRequest, ticket_in: bool, hinted: Hint | None = None
) -> ClassSheetPage:
    """The sheet with what the activity lets the student see and do at this moment.

    Marks are those of the last attempt, where they may be seen; answers are shown once the activity has closed.
    """
    access, variant, answers, key = asked.access, asked.variant, asked.answers, asked.sheet.key
    stored = asked.work.draft(key)
    policies, phase = asked.activity.policies, asked.access.phase
    progress = asked.work.progress(access.activity.id, access.student.id)
    attempts = progress[key.sheet_key].attempts if key.sheet_key in progress else 0
    status = _sheet_status(asked, attempts, is_open=asked.is_writable)
    last, locked = status.last, status.locked
    # The marks belong to a version of the sheet, which a regrade may have corrected.
    visible = last is not None and marks_visible(services, asked, last)
    marked, report = _stored_report(services, asked, last) if last and visible else (variant, None)
    helps = policies.gives_help(phase)
    if report and not helps:
        report = without_help(report)
    truth, pointed_at = marked if phase == "closed" else None, hinted.blanks if hinted else ()
    steps = activity_steps(access, progress, asked.number)
    shown = variant
    if marked.worksheet.tokens_are != variant.worksheet.tokens_are:  # corrected: boxes mean what they are marked as
        shown = replace(variant, worksheet=replace(variant.worksheet, tokens_are=marked.worksheet.tokens_are))
    notes = sheet_notes(shown, answers, report, hinted)
    rows = row_views(shown, answers, report, truth=truth, pointed_at=pointed_at, notes=notes)
    all_right = all_boxes_right(rows)
    return ClassSheetPage(
        access=access,
        closing=closing_notice(services.store, access),
        writable=asked.is_writable,
        steps=steps,
        ticket_in=ticket_in,
        number=asked.number,
        keep=f"{_address(asked)} {access.student.id} {key.sheet_key}",
        sheet_key=key.sheet_key,
        variant=variant,
        rows=rows,
        questions=question_views(variant, asked.draft.answers, locked=not status.can_hand_in),
        drawing=drawn_sheet(asked, marked if locked else variant),
        scale=asked.scale,
        report=report,
        all_right=all_right,
        explanation=_explanation(services, asked) if helps and (all_right or (truth and report)) else None,
        stale=report is not None and not locked and changed_since_check(rows),
        notes=notes,
        hint=hinted,
        next_hint=next_hint_level(variant, report, hinted) if _gives_hints(asked) and not locked else None,
        last=last,
        attempts_left=status.attempts_left,
        locked=locked,
        kept_while_typing=not locked or (status.can_hand_in and bool(variant.worksheet.questions)),
        can_hand_in=status.can_hand_in,
        notice=_notice(services, asked, last, marked),
        form_id=secrets.token_urlsafe(16),
        saved=stored is not None,
        kept=kept_json(stored, asked.draft.changed),
        run_button=run_button(variant) if may_run(services, asked, last) and not access.is_preview else "",
        promise=sheet_promise(asked.activity, asked.number),
        next=next_step(access, steps, ticket_in, asked.number),
        sees=_may_see(asked) and not status.locked,
        primary=_primary(policies.feedback, status, report) if asked.is_writable else "",
    )


def as_it_counts(services: Services, asked: ClassSheetRequest) -> ClassSheetRequest:
    """Once the activity has closed, the sheet with the answers that count, which may not be those of the last save.

    A paper may have been entered since, or what was typed after handing in was not taken in.
    """
    last = asked.work.last_attempt(asked.sheet.key) if asked.access.phase == "closed" else None
    if last is None or has_other_numbers(services, asked, last):
        return asked
    return replace(asked, draft=replace(asked.draft, answers=last.answers))


def _primary(feedback: Feedback, status: _SheetStatus, report: Report | None) -> Primary:
    """The button to press now: check until all is right, where a check shows marks; then hand in; then go on."""
    if status.last is not None and status.last.handed_in:
        return "next"
    if feedback == "immediate" and not status.locked and not (report and report.complete):
        return "check"
    return "hand-in" if status.can_hand_in else ""


def _gives_hints(asked: ClassSheetRequest) -> bool:
    """Whether the activity and the worksheet let a student ask for hints now."""
    policies = asked.activity.policies
    return asked.variant.worksheet.show_hints and policies.hints and policies.gives_help(asked.access.phase)


def _may_see(asked: ClassSheetRequest) -> bool:
    """Whether an exhibit may show the student's numbers now: it says what does not fit and names sizes, as hints do."""
    shows_marks = asked.activity.policies.marks_visible(asked.access.phase, handed_in=False)
    return _gives_hints(asked) and shows_marks and not asked.access.is_preview


def hinted_attempt(services: Services, asked: ClassSheetRequest) -> ClassAttempt | None:
    """The last attempt, where hints on it may be had: the activity gives some, and its marks can be seen."""
    last = asked.work.last_attempt(asked.sheet.key) if _gives_hints(asked) else None
    return last if last and marks_visible(services, asked, last) else None


def hint_on_last(services: Services, asked: ClassSheetRequest, level: str) -> Hint | None:
    """A hint of that level on the last attempt; None where there is none to have."""
    last = hinted_attempt(services, asked)
    return write_hint(*_stored_report(services, asked, last), read_hint_level(level)) if last else None


def drawn_sheet(asked: ClassSheetRequest, variant: Variant) -> Drawing | None:
    """What was typed, drawn as shapes of this version of the sheet; None under exam conditions.

    Until the activity is closed, sizes are named and coloured only where every check shows marks, since a name says
    that a number is one of the model's. Without hints, nothing is said until then of what does not fit: beside a right
    answer that would tell the other one.
    """
    policies, phase = asked.activity.policies, asked.access.phase
    if not policies.gives_help(phase):
        return None
    return draw_typed(
        variant,
        asked.answers,
        asked.scale,
        names_sizes=policies.marks_visible(phase, handed_in=False),
        tells_mismatches=policies.hints or phase == "closed",
    )


def after_press(asked: ClassSheetRequest, page: ClassSheetPage, said: Said) -> ClassSheetPage:
    """The page with the sentence about what a button has done, and with the button to press next."""
    handed_in = page.last is not None and page.last.handed_in
    if said == "checked":
        return replace(page, focused=first_to_mend(page.rows))
    if said == "empty" and (empty := empty_boxes(asked)):
        question = ngettext("{count} box is empty. Hand in anyway?", "{count} boxes are empty. Hand in anyway?", empty)
        return replace(page, notice=question.format(count=empty), primary="anyway")
    if said == "new-rules":
        changed = _("Your instructor has changed this activity, so nothing was handed in or marked.")
        kept = _("Your answers are still in the boxes.")
        return replace(page, notice=" ".join((changed, *rules_in_words(asked.activity), kept)))
    if said == "handed-in" and handed_in:
        later = asked.activity.policies.feedback == "after_close"
        return replace(
            page,
            notice=(
                _("Handed in. Marks and answers are shown after the activity closes.") if later else _("Handed in.")
            ),
        )
    if said == "nothing-read":
        return replace(page, notice=_("There is nothing to grade yet: fill in a box."))
    if said == "no-attempts-left":
        return replace(page, notice=_("You have no attempts left. Your last one counts."))
    return page


def empty_boxes(asked: ClassSheetRequest) -> int:
    """How many boxes are empty."""
    return sum(not asked.answers.get(box, "").strip() for box in asked.variant.blanks_by_name)


def _notice(services: Services, asked: ClassSheetRequest, last: ClassAttempt | None, marked: Variant) -> str:
    """What a student should know about the marks: they are for numbers on paper, or for an older version of the sheet.

    Empty where the marks are those of the sheet on this page.
    """
    if last is not None and has_other_numbers(services, asked, last):
        return _("Your last attempt was on paper, with different numbers. Your instructor has its marks.")
    return (
        _("Your marks are for another version of this sheet; they are the ones that count.")
        if marked is not asked.variant
        else ""
    )


def _stored_report(services: Services, asked: ClassSheetRequest, last: ClassAttempt) -> tuple[Variant, Report]:
    """The marks that are stored with an attempt, as a report, and the version of the sheet that gave them."""
    item = asked.activity.content.items[asked.number - 1]
    return report_as_stored(services.library, services.store, asked.activity, item, asked.variant, last)


def _explanation(services: Services, asked: ClassSheetRequest) -> Explanation | None:
    """The latest misconception that can be explained in the student's attempts on this sheet; None without one.

    It shows answers, so it is for a sheet that is all right, or whose answers are shown.
    """
    attempts = asked.work.attempts(asked.sheet.key)[-MAX_ATTEMPTS_EXPLAINED:]
    for attempt in reversed(attempts):
        if not has_other_numbers(services, asked, attempt):
            marked, report = _stored_report(services, asked, attempt)
            if explanation := explain_diagnosis(marked, report, asked.scale):
                return explanation
    return None


def _address(asked: ClassSheetRequest) -> str:
    return url_for("show_class_sheet", activity_id=asked.activity.id, number=asked.number)
