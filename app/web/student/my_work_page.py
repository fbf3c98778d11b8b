"""/mine: what a student did and can do, in every course that this browser is enrolled in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response

from app.classes.student_sheet import worksheet_titles
from app.store import Activity, Attempt, Enrolment, Phase, Store
from app.translation import gettext as _
from app.web.shared.cookies import CLASS_COOKIE, redirect_with_secret, set_private_cookie
from app.web.shared.permissions import BrowserEnrolment
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.shared.visitor import VisitorInClass, new_resume_code

router = APIRouter(include_in_schema=False)

_SheetId = tuple[int, str]  # activity id and sheet key


@dataclass(frozen=True)
class SheetLine:
    """One sheet of an activity: its title, its state, and the last attempt's score if marks may be seen."""

    title: str
    state: str  # 'saved, not handed in'
    score: str  # '8 of 14'; empty without an attempt, or while marks are hidden


@dataclass(frozen=True)
class ActivityLine:
    """An activity: whether it waits, is open or has closed, and the student's progress with each sheet."""

    activity: Activity
    phase: Phase
    sheets: tuple[SheetLine, ...]
    ticket_in: bool


@dataclass(frozen=True)
class CourseSection:
    """A course that this browser is enrolled in."""

    enrolment: Enrolment
    done: tuple[ActivityLine, ...]  # opened by the student
    waiting: tuple[ActivityLine, ...]  # open now or later, and not yet opened by the student
    code: str = ""  # a new resume code, shown for some minutes


@dataclass(frozen=True)
class MyWorkPage:
    """Everything that templates/student/my_work.html shows."""

    courses: Annotated[tuple[CourseSection, ...], Doc("The courses that this browser is enrolled in.")]
    signed_out: Annotated[bool, Doc("Whether somebody has just signed out, so that their drafts are to go.")] = False


@router.get("/mine")
@in_threads("class")
def show_my_work(request: Request, store: StoreDep, visitor: VisitorInClass, signed_out: str = "") -> Response:
    """Every course that this browser is enrolled in, with its activities, or an invitation to join."""
    enrolments = store.roster.enrolments(visitor.id) if visitor else ()
    from_here = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    sections = tuple(_course_section(request, store, enrolment) for enrolment in enrolments)
    page = MyWorkPage(sections, signed_out == "yes" and from_here)
    response = render("student/my_work.html", page)
    if enrolments and CLASS_COOKIE not in request.cookies:
        set_private_cookie(request, response, CLASS_COOKIE, "joined")
    return response


@router.post("/mine/{student_id:int}/code")
@in_threads("class")
def renew_resume_code(request: Request, store: StoreDep, access: BrowserEnrolment) -> Response:
    """Give the student a new resume code, which replaces the old one, and show it next to its course."""
    code, course = store.roster.renew_code(access.enrolment.student), access.enrolment.course
    page = url_for("show_my_work")
    return redirect_with_secret(request, f"{page}#course-{course.id}", code, page)


def _course_section(request: Request, store: Store, enrolment: Enrolment) -> CourseSection:
    student = enrolment.student
    attended = dict(store.classwork.attended(student.id))  # by activity: whether the exit ticket was handed in
    last = {
        (attempt.activity_id, attempt.sheet_key): attempt for attempt in store.classwork.attempts_of_student(student.id)
    }
    drafts = store.classwork.sheets_with_draft(student.id)
    now = store.now()
    lines = [
        _activity_line(activity, activity.phase(now), last, drafts, attended.get(activity.id, False))
        for activity in store.activities.of_student(student)
        if activity.state != "draft"
    ]
    done = tuple(line for line in lines if line.activity.id in attended)
    waiting = tuple(line for line in lines if line.activity.id not in attended and line.phase in ("open", "waiting"))
    return CourseSection(enrolment, done, waiting, new_resume_code(request, store, student))


def _activity_line(
    activity: Activity, phase: Phase, last: Mapping[_SheetId, Attempt], drafts: Collection[_SheetId], ticket_in: bool
) -> ActivityLine:
    lines, items = list[SheetLine](), activity.content.items if phase != "waiting" else ()
    for item, title in zip(items, worksheet_titles(activity.content), strict=False):
        attempt, has_draft = last.get((activity.id, item.sheet_key)), (activity.id, item.sheet_key) in drafts
        score = ""
        if attempt and activity.policies.marks_visible(phase, attempt.handed_in):
            score = _("{score:g} of {total}").format(score=attempt.score, total=attempt.out_of)
        lines.append(SheetLine(title, _sheet_state(attempt, has_draft), score))
    return ActivityLine(activity, phase, tuple(lines), ticket_in)


def _sheet_state(last: Attempt | None, has_draft: bool) -> str:
    if last is None:
        return _("saved, not handed in") if has_draft else _("not started")
    if last.auto_submitted:
        return _("auto-submitted at closing")
    if not last.handed_in:
        return _("checked, not handed in")
    return _("handed in late") if last.late else _("handed in")
