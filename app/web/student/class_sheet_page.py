"""/class/N/M: one sheet of an activity, as a student fills it in, checks it and hands it in."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Literal, cast, get_args

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from app.classes.activity_results import report_as_stored
from app.classes.promises import rules_in_words, sheet_promise
from app.classes.student_sheet import stored_marks
from app.figures.figures import Figure
from app.figures.scale import ScaleName
from app.grading.explanations import MAX_ATTEMPTS_EXPLAINED, Explanation, explain_diagnosis
from app.grading.grade import Report, grade, without_help
from app.grading.hints import Hint, HintLevel, next_hint_level, write_hint
from app.sheets.variant import Variant
from app.store import ClassAttempt, NoAttemptsLeftError, Store
from app.store.activities import Feedback
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.activity_steps import (
    ClosingNotice,
    NextStep,
    Step,
    activity_steps,
    closing_notice,
    next_step,
    student_progress,
)
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import StudentAccess, require_student
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import kept_json, read_hint_level
from app.web.shared.sheet_view import (
    FiguresFragment,
    RowView,
    SavedFragment,
    all_boxes_right,
    draw_typed,
    first_to_mend,
    hint_letters,
    repeated_sentence,
    row_views,
    run_button,
)
from app.web.shared.templating import is_htmx, render, render_text
from app.web.shared.urls import url_for
from app.web.student.sheet_request import (
    ClassSheetRequest,
    PostedClassSheet,
    SavedClassSheet,
    has_other_numbers,
    marks_visible,
    may_run,
    posted_class_sheet,
    promised_otherwise,
    request_id,
    require_open,
)

router = APIRouter(include_in_schema=False)

MAX_DRAWING_SAVES = 6  # at one time in this process: a drawing takes longer than all the rest of a save
_drawing_saves = threading.BoundedSemaphore(MAX_DRAWING_SAVES)
MAX_DRAWINGS = 256  # of about 15 kB that are kept

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
    variant: Annotated[Variant, Doc("The sheet as this student has it.")]
    rows: Annotated[tuple[RowView, ...], Doc("The rows to fill in.")]
    figures: Annotated[tuple[Figure, ...], Doc("What was typed, drawn.")]
    scale: Annotated[ScaleName, Doc("How lengths are drawn: by square root, or true.")]
    report: Annotated[Report | None, Doc("The last attempt's marks; None where they may not be seen yet.")]
    all_right: Annotated[bool, Doc("Whether every box is right, as it stands, and may be seen to be.")]
    explanation: Annotated[Explanation | None, Doc("The misconception behind an earlier attempt, once that is mended.")]
    repeated: Annotated[str, Doc("The sentence that many unreadable boxes share, or nothing.")]
    hint: Annotated[Hint | None, Doc("The hint that was asked for.")]
    next_hint: Annotated[HintLevel | None, Doc("How far the next hint goes; none where there is none to have.")]
    parameters: Annotated[tuple[str, ...], Doc("The letters of the model's matrices, as hints write them.")]
    last: Annotated[ClassAttempt | None, Doc("The last attempt, which counts; None before one.")]
    attempts_left: Annotated[int | None, Doc("How many attempts are left; None where any number is allowed.")]
    locked: Annotated[bool, Doc("Whether nothing can be typed any more.")]
    can_hand_in: Annotated[bool, Doc("Whether the sheet can be handed in now.")]
    notice: Annotated[str, Doc("A sentence about the last press of a button, or nothing.")]
    form_id: Annotated[str, Doc("An id of this form, by which a request that is sent again is known.")]
    saved: Annotated[bool, Doc("Whether the server has a draft of this sheet.")]
    kept: Annotated[str, Doc("What the server has of this sheet (see kept_json).")]
    run_button: Annotated[str, Doc("What the button that runs the head says; nothing where it may not be run yet.")]
    promise: Annotated[str, Doc("The rules that this page tells, as its form sends them back.")]
    next: Annotated[NextStep, Doc("Where to go on after handing in.")]
    primary: Annotated[Primary, Doc("Which of the buttons is the one to press now.")]
    focused: Annotated[str, Doc("The box that has the focus as the page opens; none before a check.")] = ""


@router.get("/class/{activity_id:int}/{number:int}")
def show_class_sheet(services: ServicesDep, asked: SavedClassSheet, said: str = "", hint: str = "") -> Response:
    """The sheet as it was last saved, on whatever device; the student counts as present from now on.

    `said` and `hint` are what a button has done: a form sent without script leads here. Before the activity opens, a
    redirect to the activity's own page.
    """
    activity = asked.activity
    if activity.phase() == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    ticket_in = services.store.classwork.arrive(activity.id, asked.access.student.id)
    hinted = _hint(services, asked, hint) if hint and activity.is_writable() else None
    page = _class_sheet_page(services, asked, ticket_in, hinted)
    if said in get_args(Said) and activity.is_writable():
        page = _after_press(services, asked, page, cast(Said, said))
    return render("student/class_sheet.html", page)


@router.post("/class/{activity_id:int}/{number:int}/save")
def save_class_sheet(request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int) -> Response:
    """Merge what was typed into the stored draft, and answer with what is stored and its drawing; nothing is marked.

    Under exam conditions the answer holds no drawing, and neither while MAX_DRAWING_SAVES are under way: then the page
    asks for it a little later, so that answers are written down first. 409 unless the activity accepts work.
    """
    # The hot path: a class sends this every second. FastAPI would run each of these two dependencies in a thread of
    # its own, one after the other; called directly, a save takes one thread, once.
    may_draw = _drawing_saves.acquire(blocking=False)
    try:
        access = require_student(request, services, activity_id)
        asked = posted_class_sheet(services, access, form, number)
        require_open(services.library.wording, asked.activity)
        stored = services.store.classwork.save(asked.sheet.key, asked.draft, asked.sheet.draft)
        drawing = _drawing(_DrawnSheet.of(replace(asked, draft=stored))) if may_draw else Markup("")
    finally:
        if may_draw:
            _drawing_saves.release()
    response = render("shared/_saved.html", SavedFragment(drawing, kept_json(stored, asked.draft.changed)))
    if not may_draw:
        response.headers.update({"HX-Reswap": "none", "X-Drawing": "later"})
    return response


@router.post("/class/{activity_id:int}/{number:int}/check")
def check_class_sheet(request: Request, services: ServicesDep, asked: PostedClassSheet, form: FormDep) -> Response:
    """Mark the sheet and store an attempt; what holds no readable answer is only saved, and costs no attempt.

    With no attempt left, nothing is stored and the page says so. If the rules have changed since the page was made, it
    comes back with the new ones. 409 unless the activity is open and its feedback is immediate.
    """
    wording, activity = services.library.wording, asked.activity
    if turned_back := _turn_back(request, services, asked, form):
        return turned_back
    if activity.policies.feedback != "immediate":
        raise HTTPException(409, wording.say("class", "no-checking"))
    report = grade(asked.variant, asked.answers)
    if not report.has_readable_answer:
        services.store.classwork.save(asked.sheet.key, asked.draft)
        return _respond(request, services, asked, "nothing-read")
    try:
        _store_attempt(services, asked, report, request_id(form, asked.answers), handed_in=False)
    except NoAttemptsLeftError:
        return _respond(request, services, asked, "no-attempts-left")
    return _respond(request, services, asked, "checked")


@router.post("/class/{activity_id:int}/{number:int}/hint")
def show_class_sheet_hint(request: Request, services: ServicesDep, asked: PostedClassSheet, form: FormDep) -> Response:
    """Save what was typed, and show a hint on the last attempt, of the level that the form asks for.

    It costs no attempt. 409 unless the activity is open and gives hints, under exam conditions, and where the last
    attempt has no marks that this page may show.
    """
    wording = services.library.wording
    require_open(wording, asked.activity)
    if _hinted_attempt(services, asked) is None:
        raise HTTPException(409, wording.say("class", "no-hint"))
    services.store.classwork.save(asked.sheet.key, asked.draft)
    return _respond(request, services, asked, hinted=_hint(services, asked, form.raw("hint")))


@router.post("/class/{activity_id:int}/{number:int}/hand-in")
def hand_in_class_sheet(request: Request, services: ServicesDep, asked: PostedClassSheet, form: FormDep) -> Response:
    """Hand the sheet in; the button that asks about empty boxes only saves it where there are any, and asks.

    Where the last attempt has these very answers and was not handed in, that attempt is handed in; otherwise a new one
    is made. With no attempt left, the last one is handed in as it is. If the rules have changed since the page was
    made, it comes back with the new ones. 409 unless the activity is open.
    """
    classwork = services.store.classwork
    if turned_back := _turn_back(request, services, asked, form):
        return turned_back
    if form.raw("empty") == "ask" and _empty_boxes(asked):
        classwork.save(asked.sheet.key, asked.draft)
        return _respond(request, services, asked, "empty")
    last = classwork.last_attempt(asked.sheet.key)
    if last and not last.handed_in and last.answers == asked.answers:
        classwork.hand_in_last(asked.sheet.key)
    else:
        report = grade(asked.variant, asked.answers)
        try:
            _store_attempt(services, asked, report, request_id(form, asked.answers), handed_in=True)
        except NoAttemptsLeftError:
            classwork.hand_in_last(asked.sheet.key)
            return _respond(request, services, asked, "no-attempts-left")
    return _respond(request, services, asked, "handed-in")


def _store_attempt(
    services: Services, asked: ClassSheetRequest, report: Report, client_id: str, *, handed_in: bool
) -> None:
    """Store the draft, and its answers with their marks as one more attempt; nothing for a client_id stored before.

    Raises NoAttemptsLeftError where the activity allows no more attempts; then nothing is stored.
    """
    allowed, late = asked.activity.policies.max_attempts, asked.activity.is_late()
    services.store.classwork.record(
        asked.sheet.key, client_id, asked.draft, stored_marks(report), handed_in=handed_in, allowed=allowed, late=late
    )


def _respond(
    request: Request, services: Services, asked: ClassSheetRequest, said: Said = "", hinted: Hint | None = None
) -> Response:
    """The sheet after a button was pressed: its form for htmx, else a redirect to the page.

    The address it leads to has what was pressed, so that a reload shows the same and sends nothing again.
    """
    if not is_htmx(request):
        shown = {"said": said, "hint": hinted.level if hinted else "", "scale": asked.scale.replace("root", "")}
        query = {name: value for name, value in shown.items() if value}
        return RedirectResponse(
            url_for("show_class_sheet", activity_id=asked.activity.id, number=asked.number, **query), 303
        )
    page = _class_sheet_page(services, asked, _ticket_in(services, asked), hinted)
    return render("student/_class_sheet_form.html", _after_press(services, asked, page, said))


def _after_press(services: Services, asked: ClassSheetRequest, page: ClassSheetPage, said: Said) -> ClassSheetPage:
    """The page with the sentence about what a button has done, and with the button to press next."""
    wording, handed_in = services.library.wording, page.last is not None and page.last.handed_in
    if said == "checked":
        return replace(page, focused=first_to_mend(page.rows))
    if said == "empty" and (empty := _empty_boxes(asked)):
        question = ngettext("{count} box is empty. Hand in anyway?", "{count} boxes are empty. Hand in anyway?", empty)
        return replace(page, notice=question.format(count=empty), primary="anyway")
    if said == "new-rules":
        changed = _("Your instructor has changed this activity, so nothing was handed in or marked.")
        kept = _("Your answers are still in the boxes.")
        return replace(page, notice=" ".join((changed, *rules_in_words(asked.activity), kept)))
    if said == "handed-in" and handed_in:
        later = asked.activity.policies.feedback == "after_close"
        return replace(page, notice=wording.say("class", "handed-in-later" if later else "handed-in"))
    if said in ("nothing-read", "no-attempts-left"):
        return replace(page, notice=wording.say("class", said))
    return page


def _ticket_in(services: Services, asked: ClassSheetRequest) -> bool:
    return services.store.exit_tickets.is_handed_in(asked.activity.id, asked.access.student.id)


def _empty_boxes(asked: ClassSheetRequest) -> int:
    """How many boxes are empty."""
    return sum(not asked.answers.get(str(blank), "").strip() for blank in asked.variant.blanks)


def _turn_back(request: Request, services: Services, asked: ClassSheetRequest, form: FormReader) -> Response | None:
    """The sheet as typed with the reason why a press does nothing: the activity has closed, or its rules have changed.

    None where neither is so. For a script, and before the activity opens, the 409 of a closed one is raised instead:
    the page that the script is on has what was typed.
    """
    try:
        require_open(services.library.wording, asked.activity)
    except HTTPException as refused:
        if is_htmx(request) or asked.activity.phase() == "waiting":
            raise
        page = _class_sheet_page(services, asked, _ticket_in(services, asked))
        return render("student/class_sheet.html", replace(page, notice=refused.detail), refused.status_code)
    if promised_otherwise(form, sheet_promise(asked.activity, asked.number)):
        services.store.classwork.save(asked.sheet.key, asked.draft)
        return _respond(request, services, asked, "new-rules")
    return None


@dataclass(frozen=True)
class _SheetStatus:
    """What a student's attempts on a sheet, the policies and the time of the activity let them do now."""

    last: ClassAttempt | None
    attempts_left: int | None  # None where any number is allowed
    locked: bool
    can_hand_in: bool


def _sheet_status(store: Store, asked: ClassSheetRequest, attempts: int, *, is_open: bool) -> _SheetStatus:
    """The last of this many attempts on the sheet, how many are left, and what is still allowed.

    The sheet is locked unless the activity is open and an attempt is left. It can be handed in while the activity is
    open, but not again once no attempt is left.
    """
    allowed = asked.activity.policies.max_attempts
    last = store.classwork.last_attempt(asked.sheet.key) if attempts else None
    left = max(allowed - attempts, 0) if allowed else None
    handed_in = last is not None and last.handed_in
    return _SheetStatus(
        last, left, locked=not is_open or left == 0, can_hand_in=is_open and not (handed_in and left == 0)
    )


def _class_sheet_page(
    services: Services, asked: ClassSheetRequest, ticket_in: bool, hinted: Hint | None = None
) -> ClassSheetPage:
    """The sheet with what the activity lets the student see and do at this moment.

    Marks are those of the last attempt, where they may be seen; answers are shown once the activity has closed.
    """
    access, variant, answers, key = asked.access, asked.variant, asked.answers, asked.sheet.key
    stored = services.store.classwork.draft(key)
    policies, phase = asked.activity.policies, asked.activity.phase()
    progress = student_progress(services.store, access)
    attempts = progress[key.sheet_key].attempts if key.sheet_key in progress else 0
    status = _sheet_status(services.store, asked, attempts, is_open=asked.activity.is_writable())
    last, locked = status.last, status.locked
    # The marks belong to a version of the sheet, which a regrade may have corrected.
    visible = last is not None and marks_visible(services, asked, last)
    marked, report = _stored_report(services, asked, last) if last and visible else (variant, None)
    helps = policies.gives_help(phase)
    if report and not helps:
        report = without_help(report)
    truth, pointed_at = marked if phase == "closed" else None, hinted.boxes if hinted else ()
    steps = activity_steps(access, progress, asked.number)
    rows = row_views(variant, answers, report, truth=truth, pointed_at=pointed_at)
    all_right = all_boxes_right(rows)
    return ClassSheetPage(
        access=access,
        closing=closing_notice(services.store, access),
        writable=asked.activity.is_writable(),
        steps=steps,
        ticket_in=ticket_in,
        number=asked.number,
        keep=f"{_address(asked)} {access.student.id} {key.sheet_key}",
        variant=variant,
        rows=rows,
        figures=_figures(asked, marked if locked else variant),
        scale=asked.scale,
        report=report,
        all_right=all_right,
        explanation=_explanation(services, asked) if helps and (all_right or (truth and report)) else None,
        repeated=repeated_sentence(report),
        hint=hinted,
        next_hint=next_hint_level(report, hinted) if _gives_hints(asked) and not locked else None,
        parameters=hint_letters(variant),
        last=last,
        attempts_left=status.attempts_left,
        locked=locked,
        can_hand_in=status.can_hand_in,
        notice=_notice(services, asked, last, marked),
        form_id=secrets.token_urlsafe(16),
        saved=stored is not None,
        kept=kept_json(stored, asked.draft.changed),
        run_button=run_button(variant) if may_run(services, asked, last) else "",
        promise=sheet_promise(asked.activity, asked.number),
        next=next_step(access, steps, ticket_in, asked.number),
        primary=_primary(policies.feedback, status, report) if asked.activity.is_writable() else "",
    )


def _primary(feedback: Feedback, status: _SheetStatus, report: Report | None) -> Primary:
    """The button to press now: check until all is right, where a check shows marks; then hand in; then go on."""
    if status.last is not None and status.last.handed_in:
        return "next"
    if feedback == "immediate" and not status.locked and not (report and report.complete):
        return "check"
    return "hand-in" if status.can_hand_in else ""


def _gives_hints(asked: ClassSheetRequest) -> bool:
    """Whether the activity lets a student ask for hints now."""
    return asked.activity.policies.hints and asked.activity.policies.gives_help(asked.activity.phase())


def _hinted_attempt(services: Services, asked: ClassSheetRequest) -> ClassAttempt | None:
    """The last attempt, where hints on it may be had: the activity gives some, and its marks can be seen."""
    last = services.store.classwork.last_attempt(asked.sheet.key) if _gives_hints(asked) else None
    return last if last and marks_visible(services, asked, last) else None


def _hint(services: Services, asked: ClassSheetRequest, level: str) -> Hint | None:
    """A hint of that level on the last attempt; None where there is none to have."""
    last = _hinted_attempt(services, asked)
    return write_hint(*_stored_report(services, asked, last), read_hint_level(level)) if last else None


def _figures(asked: ClassSheetRequest, variant: Variant) -> tuple[Figure, ...]:
    """What was typed, drawn as shapes of this version of the sheet; nothing under exam conditions.

    Until the activity is closed, sizes are named and coloured only where every check shows marks, since a name says
    that a number is one of the model's. Without hints, nothing is said until then of what does not fit: beside a right
    answer that would tell the other one.
    """
    policies, phase = asked.activity.policies, asked.activity.phase()
    if not policies.gives_help(phase):
        return ()
    names_sizes = policies.marks_visible(phase, handed_in=False)
    figures = draw_typed(variant, asked.answers, asked.scale, names_sizes=names_sizes)
    if policies.hints or phase == "closed":
        return figures
    return tuple(replace(figure, mismatches=()) for figure in figures)


@dataclass(frozen=True)
class _DrawnSheet:
    """A sheet as it is drawn: two that are equal have the same drawing."""

    facts: tuple[object, ...]
    answers: tuple[str, ...]
    asked: ClassSheetRequest = field(compare=False)

    @classmethod
    def of(cls, asked: ClassSheetRequest) -> _DrawnSheet:
        """The drawing that answers a save."""
        activity, key = asked.activity, asked.sheet.key
        facts = (activity.id, activity.policies, activity.phase(), key.revision, key.sheet_key, asked.sheet.sizes)
        texts = tuple(asked.answers.get(str(blank), "") for blank in asked.variant.blanks)
        return cls((*facts, asked.scale), texts, asked)


@lru_cache(MAX_DRAWINGS)
def _drawing(drawn: _DrawnSheet) -> Markup:
    """What was typed, drawn, as HTML. Kept for a while: in a class, many students type the same into the same sheet."""
    return render_text("shared/_figures.html", FiguresFragment(_figures(drawn.asked, drawn.asked.variant)))


def _notice(services: Services, asked: ClassSheetRequest, last: ClassAttempt | None, marked: Variant) -> str:
    """What a student should know about the marks: they are for numbers on paper, or for an older version of the sheet.

    Empty where the marks are those of the sheet on this page.
    """
    if last is not None and has_other_numbers(services, asked, last):
        return services.library.wording.say("class", "on-paper")
    return services.library.wording.say("class", "other-version") if marked is not asked.variant else ""


def _stored_report(services: Services, asked: ClassSheetRequest, last: ClassAttempt) -> tuple[Variant, Report]:
    """The marks that are stored with an attempt, as a report, and the version of the sheet that gave them."""
    item = asked.activity.content.items[asked.number - 1]
    return report_as_stored(services.library, services.store, asked.activity, item, asked.variant, last)


def _explanation(services: Services, asked: ClassSheetRequest) -> Explanation | None:
    """The latest misconception that can be explained in the student's attempts on this sheet; None without one.

    It shows answers, so it is for a sheet that is all right, or whose answers are shown.
    """
    attempts = services.store.classwork.attempts(asked.sheet.key)[-MAX_ATTEMPTS_EXPLAINED:]
    for attempt in reversed(attempts):
        if not has_other_numbers(services, asked, attempt):
            marked, report = _stored_report(services, asked, attempt)
            if explanation := explain_diagnosis(marked, report, asked.scale):
                return explanation
    return None


def _address(asked: ClassSheetRequest) -> str:
    return url_for("show_class_sheet", activity_id=asked.activity.id, number=asked.number)
