"""/activities/A/preview: an activity as its students see it, to be tried out; nothing of that is stored.

What was tried on a sheet is in its form alone, so that another sheet, or a reload, begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.frozen.offered_worksheets import content_to_open
from app.classes.materials import materials_for_course
from app.classes.promises import rules_in_words
from app.classes.student_sheet import stored_marks
from app.classes.ticket_answers import ticket_problems
from app.grading.explanations import MAX_ATTEMPTS_EXPLAINED
from app.grading.grade import grade
from app.sheets.reading import MAX_BOX_TEXT
from app.store import Activity, ClassAttempt, ClassSheetKey, SheetProgress, Student
from app.store.activities import GRACE
from app.store.classwork import ClassDraft
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.activity_steps import NextStep, Step, activity_steps, next_step
from app.web.shared.forms import FormDep, FormReader, clamped_number
from app.web.shared.permissions import StaffActivity, StudentAccess
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import ServicesDep
from app.web.shared.sheet_form import SavedFragment, kept_json
from app.web.shared.templating import render
from app.web.shared.urls import Press, StudentLinks, url_for
from app.web.student.class_sheet_view import (
    Said,
    after_press,
    drawn_sheet,
    empty_boxes,
    hint_on_last,
    make_class_sheet_page,
    render_class_sheet,
)
from app.web.student.exit_ticket_view import make_ticket_page, read_ticket_form
from app.web.student.sheet_request import ClassSheetRequest, SheetWork, posted_class_sheet, saved_class_sheet

router = APIRouter(include_in_schema=False)

MAX_EXAMPLES = 999  # made-up students


@dataclass(frozen=True)
class PreviewLinks(StudentLinks):
    """The addresses of the same pages in a preview; `example` is the made-up student whose numbers it shows."""

    example: int

    @property
    def activity(self) -> str:
        """The list of the sheets."""
        return url_for("preview_activity", activity_id=self.activity_id, example=self.example)

    @property
    def ticket(self) -> str:
        """The exit ticket."""
        return url_for("preview_ticket", activity_id=self.activity_id, example=self.example)

    @property
    def work(self) -> str:
        """The list of the sheets again: nobody's work is stored."""
        return self.activity

    def sheet(self, number: int) -> str:
        """A sheet, counted from 1."""
        return url_for("preview_sheet", activity_id=self.activity_id, number=number, example=self.example)

    def press(self, number: int, what: Press) -> str:
        """Where a button of that sheet sends its form."""
        return url_for("press_in_preview", activity_id=self.activity_id, number=number, what=what, example=self.example)


@dataclass(frozen=True)
class PreviewAccess(StudentAccess):
    """An activity as one made-up student has it, shown to a member of its staff."""

    example: int
    closed: bool = False  # it is shown as it will be after it has closed

    @property
    def links(self) -> StudentLinks:
        """Where the pages of the preview lead."""
        return PreviewLinks(self.activity.id, self.example)

    @property
    def next_example(self) -> int:
        """Another made-up student, with other numbers where each has their own."""
        return self.example + 1

    @property
    def is_preview(self) -> bool:
        """It is one."""
        return True


@dataclass(frozen=True)
class ActivityPreviewPage:
    """Everything that templates/materials/activity_preview.html shows."""

    access: Annotated[permissions.StudentAccess, Doc("The activity as it will be open, and a made-up student.")]
    steps: Annotated[tuple[Step, ...], Doc("Its sheets.")]
    rules: Annotated[tuple[str, ...], Doc("The rules for handing in a sheet, a sentence each.")]
    next: Annotated[NextStep, Doc("Where a student begins.")]


@dataclass(frozen=True)
class PreviewWork:
    """The attempts that the form of a preview carries, asked for like those in the database."""

    made: tuple[ClassAttempt, ...]  # the oldest first

    def draft(self, _key: ClassSheetKey) -> ClassDraft | None:
        """Nothing: no draft is stored."""
        return None

    def progress(self, _activity_id: int, _student_id: int) -> Mapping[str, SheetProgress]:
        """How many attempts there are."""
        handed_in = any(attempt.handed_in for attempt in self.made)
        return {attempt.sheet_key: SheetProgress(len(self.made), handed_in) for attempt in self.made}

    def last_attempt(self, _key: ClassSheetKey) -> ClassAttempt | None:
        """The newest attempt."""
        return self.made[-1] if self.made else None

    def attempts(self, _key: ClassSheetKey) -> Sequence[ClassAttempt]:
        """All of them."""
        return self.made


def preview_access(services: ServicesDep, access: StaffActivity, example: str = "1") -> PreviewAccess:
    """The activity as it will be once it is open, for the staff of its course; `example` numbers a made-up student."""
    number = clamped_number(example, MAX_EXAMPLES)
    name = _("Example student {number}") if access.activity.policies.variants == "per_student" else _("Example student")
    student = Student(-number, access.course.id, name.format(number=number), None, None)
    own = materials_for_course(services.library, services.tickets, services.store, access.course, access.teacher)
    content = content_to_open(own.library, own.tickets, services.store, access.activity)
    activity = _at_a_time(replace(access.activity, content=content), access.now, closed=False)
    return PreviewAccess(activity, access.course, student, access.now, number)


Preview = Annotated[PreviewAccess, Depends(preview_access)]


@router.get("/activities/{activity_id:int}/preview")
def preview_activity(access: Preview) -> Response:
    """The list of sheets and the exit ticket; redirects if there is only one sheet and no ticket, or only a ticket."""
    content = access.activity.content
    if len(content.items) == 1 and content.ticket is None:
        return RedirectResponse(access.links.sheet(1), 303)
    if not content.items:
        return RedirectResponse(access.links.ticket, 303)
    steps = activity_steps(access, {})
    page = ActivityPreviewPage(access, steps, rules_in_words(access.activity), next_step(access, steps, False))
    return render("materials/activity_preview.html", page)


@router.get("/activities/{activity_id:int}/preview/{number:int}")
def preview_sheet(request: Request, services: ServicesDep, access: Preview, number: int) -> Response:
    """One sheet with empty boxes; 404 where the activity has fewer sheets."""
    asked = replace(saved_class_sheet(services, access, number), work=PreviewWork(()))
    return render_class_sheet(request, make_class_sheet_page(services, asked, False))


@router.post("/activities/{activity_id:int}/preview/{number:int}/{what}")
def press_in_preview(
    request: Request, services: ServicesDep, access: Preview, form: FormDep, number: int, what: str
) -> Response:
    """The sheet after a button was pressed, as a student would get it; `what` is the button, else 404.

    "save" answers with the drawing alone; "closed" shows the sheet as it will be after the activity has closed, and
    "open" as it was before that.
    """
    asked = posted_class_sheet(services, access, form, number)
    asked = replace(asked, work=PreviewWork(_carried_attempts(form, asked)))
    if what == "save":
        return render("shared/_saved.html", SavedFragment(drawn_sheet(asked, asked.variant), kept_json(None)))
    if what not in _PRESSED:
        raise HTTPException(404)
    before = asked.work
    asked, said = _PRESSED[what](asked, form)
    hinted = hint_on_last(services, asked, form.raw("hint")) if what == "hint" else None
    page = after_press(asked, make_class_sheet_page(services, asked, False, hinted), said)
    carried = before if what == "closed" else asked.work  # so that one can go back to the time before
    return render_class_sheet(request, replace(page, carried=_json_of(carried)))


@router.get("/activities/{activity_id:int}/preview/ticket")
def preview_ticket(services: ServicesDep, access: Preview) -> Response:
    """The exit ticket, to be filled in; 404 where the activity has none."""
    return render("student/exit_ticket.html", make_ticket_page(services.store, access, "", False))


@router.post("/activities/{activity_id:int}/preview/ticket")
def press_ticket_in_preview(services: ServicesDep, access: Preview, form: FormDep) -> Response:
    """What a student sees after handing in; a ticket whose answers do not suffice comes back (422)."""
    page = make_ticket_page(services.store, access, "", False)
    typed = read_ticket_form(form, page.ticket)
    if problems := ticket_problems(page.ticket, typed):
        page = replace(page, typed=typed, problem=problems.pop(""), problems=problems)
        return render("student/exit_ticket.html", page, 422)
    return render("student/exit_ticket.html", make_ticket_page(services.store, access, "", True))


def _at_a_time(activity: Activity, now: datetime, *, closed: bool) -> Activity:
    """The activity as it is while it is open, up to its closing time where it has one, or after it has closed."""
    plan = activity.plan
    closes_at = plan.closes_at if plan.closes_at and plan.closes_at > now else None
    if closed:
        closes_at = now - timedelta(minutes=plan.policies.late_minutes) - 2 * GRACE
    plan = replace(plan, opens_at=None, closes_at=closes_at)
    taken_at = now if closed else None
    return replace(activity, state="open", plan=plan, longest_extra=0, answers_shown_at=None, drafts_taken_at=taken_at)


# What the buttons do to a sheet of the preview, and what is said of it


def _check(asked: ClassSheetRequest, _form: FormReader) -> tuple[ClassSheetRequest, Said]:
    """One more attempt, unless nothing can be read or none is left."""
    if not grade(asked.variant, asked.answers).has_readable_answer:
        return asked, "nothing-read"
    return (asked, "no-attempts-left") if _none_left(asked) else (_with_attempt(asked), "checked")


def _hand_in(asked: ClassSheetRequest, form: FormReader) -> tuple[ClassSheetRequest, Said]:
    """The last attempt handed in where it has these very answers or none is left, else one more that is."""
    if form.raw("empty") == "ask" and empty_boxes(asked):
        return asked, "empty"
    last = asked.work.last_attempt(asked.sheet.key)
    none_left = _none_left(asked)
    if last and (none_left or (not last.handed_in and last.answers == asked.answers)):
        earlier = tuple(asked.work.attempts(asked.sheet.key))[:-1]
        handed_in = PreviewWork((*earlier, replace(last, handed_in=True)))
        return replace(asked, work=handed_in), "no-attempts-left" if none_left else "handed-in"
    return _with_attempt(asked, handed_in=True), "handed-in"


def _close(asked: ClassSheetRequest, _form: FormReader) -> tuple[ClassSheetRequest, Said]:
    """The sheet after the activity has closed, what was typed taken in where the rules say so."""
    last, policies = asked.work.last_attempt(asked.sheet.key), asked.activity.policies
    has_news = any(text.strip() for text in asked.answers.values()) and (last is None or last.answers != asked.answers)
    if policies.take_in_drafts and has_news and not _none_left(asked):
        asked = _with_attempt(asked, taken_in=True)
    access = replace(asked.access, activity=_at_a_time(asked.activity, asked.access.now, closed=True))
    return replace(asked, access=replace(access, closed=True) if isinstance(access, PreviewAccess) else access), ""


def _as_it_is(asked: ClassSheetRequest, _form: FormReader) -> tuple[ClassSheetRequest, Said]:
    """The sheet without anything done to it."""
    return asked, ""


_PRESSED: Mapping[str, Callable[[ClassSheetRequest, FormReader], tuple[ClassSheetRequest, Said]]] = {
    "check": _check,
    "hint": _as_it_is,
    "hand-in": _hand_in,
    "closed": _close,
    "open": _as_it_is,
}


def _none_left(asked: ClassSheetRequest) -> bool:
    """Whether the rules allow no more attempts."""
    allowed = asked.activity.policies.max_attempts
    return bool(allowed) and len(asked.work.attempts(asked.sheet.key)) >= allowed


def _with_attempt(asked: ClassSheetRequest, *, handed_in: bool = False, taken_in: bool = False) -> ClassSheetRequest:
    """The sheet with what stands in its boxes as one more attempt."""
    made = (*asked.work.attempts(asked.sheet.key), _attempt(asked, asked.answers, handed_in or taken_in))
    return replace(asked, work=PreviewWork((*made[:-1], replace(made[-1], taken_in=taken_in))))


def _attempt(asked: ClassSheetRequest, answers: Mapping[str, str], handed_in: bool) -> ClassAttempt:
    """An attempt on the sheet with these answers, marked."""
    key, graded = asked.sheet.key, stored_marks(asked.variant, grade(asked.variant, answers))
    return ClassAttempt(
        0,
        key.student_id,
        key.activity_id,
        key.revision,
        key.sheet_number,
        key.sheet_key,
        "",
        asked.sheet.sizes,
        answers,
        graded.marks,
        graded.misconceptions,
        graded.score,
        graded.out_of,
        handed_in,
        asked.access.now,
        marked_by=key.sheet_key,
    )


def _json_of(work: SheetWork) -> str:
    """The attempts as the form carries them: of each its answers, and whether it was handed in."""
    made = work.made if isinstance(work, PreviewWork) else ()
    return json.dumps([[dict(each.answers), each.handed_in] for each in made], separators=(",", ":")) if made else ""


def _carried_attempts(form: FormReader, asked: ClassSheetRequest) -> tuple[ClassAttempt, ...]:
    """The attempts that the form carries, without anything that this page would not have written into it.

    Where any number is allowed, only the last ones stay, which a page can explain.
    """
    try:
        carried: Any = json.loads(form.raw("carried", MAX_BODY) or "[]")
    except (ValueError, RecursionError):
        return ()
    pairs = carried if isinstance(carried, list) else []
    made = [
        (_known_answers(asked, pair[0]), bool(pair[1]))
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict)
    ]
    shown = made[-(asked.activity.policies.max_attempts or MAX_ATTEMPTS_EXPLAINED) :]
    return tuple(_attempt(asked, answers, handed_in) for answers, handed_in in shown)


def _known_answers(asked: ClassSheetRequest, texts: Mapping[object, object]) -> Mapping[str, str]:
    """The text of every box of the sheet."""
    return {name: str(texts.get(name, ""))[:MAX_BOX_TEXT] for name in asked.variant.blanks_by_name}
