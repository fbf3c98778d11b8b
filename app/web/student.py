"""/class: an activity as its students work through it; /mine: what they did, and how they leave."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.work import counted_of
from app.classes import sheet_actions
from app.classes.promises import rules_in_words
from app.classes.student_sheet import worksheet_titles
from app.classes.ticket_answers import answer_texts, ticket_problems
from app.store import Activity, Attempt, Enrolment, Phase, Store
from app.translation import gettext as _
from app.web.shared.activity_steps import activity_steps, closing_notice, next_step, student_progress
from app.web.shared.cookies import (
    CLASS_COOKIE,
    SECRET_COOKIE,
    VISITOR_COOKIE,
    redirect_with_secret,
    set_private_cookie,
)
from app.web.shared.example_view import ExampleRequest, example_names
from app.web.shared.exit_ticket_form import read_ticket_form, ticket_names
from app.web.shared.forms import FormDep
from app.web.shared.permissions import BrowserEnrolment, StudentAccessDep
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.sheet_form import promised_otherwise
from app.web.shared.templating import local_time, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.shared.visitor import VisitorInClass, new_resume_code
from app.web.sheet import press, save
from app.web.sheet_in_class import ClassSheet, class_example, opened_class_sheet, posted_class_sheet, require_open

router = APIRouter(include_in_schema=False)

MAX_BUSY_WHEN_DRAWN = 2  # busy class threads, including the save's own; with more, nothing is drawn
# held by the one save in this process that is drawn: two at once would take twice as long each
_drawing_save = threading.Lock()

_SheetId = tuple[int, str]  # activity id and sheet key


@router.get("/class/{activity_id:int}")
@in_threads("class")
def show_class_activity(store: StoreDep, access: StudentAccessDep) -> Response:
    """An activity's overview in any phase; the student counts as present from now on."""
    activity, phase = access.activity, access.phase
    ticket_in = store.classwork.arrive(activity.id, access.student.id)
    if phase == "open" and len(activity.content.items) == 1 and activity.content.ticket is None:
        return RedirectResponse(url_for("show_class_sheet", activity_id=activity.id, number=1), 303)
    if phase == "open" and not activity.content.items:
        return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)
    opens = activity.plan.opens_at
    steps = activity_steps(access, student_progress(store, access))
    return render(
        "student/activity.html",
        access=access,
        phase=phase,
        writable=activity.is_writable(access.now),
        closing=closing_notice(store, access),
        steps=steps,
        ticket_in=ticket_in,
        opens=local_time(opens, access.course.time_zone) if opens else "",
        rules=rules_in_words(activity) if steps else (),
        next=next_step(access, steps, ticket_in),
    )


@router.get("/class/{activity_id:int}/closing")
@in_threads("class")
def show_closing(store: StoreDep, access: StudentAccessDep) -> Response:
    """When the activity closes or has closed for this student; open pages poll this."""
    return render("student/_closing.html", closing=closing_notice(store, access, is_update=True))


@in_threads("class")
def read_class_sheet(services: ServicesDep, access: StudentAccessDep, number: int) -> ClassSheet:
    return opened_class_sheet(services, access, number)


OpenedClassSheet = Annotated[ClassSheet, Depends(read_class_sheet)]


async def read_posted_class_sheet(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> Callable[[], ClassSheet]:
    # Handlers call it in their own turn: read in an earlier one, a sheet could wait for the next until after closing,
    # and be stored after the activity's drafts were auto-submitted (see SETTLING_TIME).
    return partial(posted_class_sheet, request, services, form, activity_id, number)


PostedClassSheet = Annotated[Callable[[], ClassSheet], Depends(read_posted_class_sheet)]


@router.get("/class/{activity_id:int}/{number:int}")
@in_threads("class")
def show_class_sheet(context: OpenedClassSheet, store: StoreDep, result: str = "", hint: str = "") -> Response:
    """The sheet as last saved on any device; the student counts as present from now on."""
    access = context.access
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=access.activity.id), 303)
    if not context.work.progress.has_arrived:
        store.classwork.arrive(access.activity.id, access.student.id)
    names = context.names(result, hint) if context.rules.is_writable else context.names()
    return render(context.page, **names)


@router.post("/class/{activity_id:int}/{number:int}/save")
@in_threads("class")
def save_class_sheet(request: Request, services: ServicesDep, posted: PostedClassSheet) -> Response:
    """Save what was typed; while many work, its drawing comes later."""
    is_calm = services.threads["class"].working <= MAX_BUSY_WHEN_DRAWN
    may_draw = is_calm and _drawing_save.acquire(blocking=False)
    try:
        response = save(request, posted(), is_drawn=may_draw)
    finally:
        if may_draw:
            _drawing_save.release()
    if not may_draw:
        response.headers.update({"HX-Reswap": "none", "X-Drawing": "later"})
    return response


@router.post("/class/{activity_id:int}/{number:int}/check")
@in_threads("class")
def check_class_sheet(request: Request, posted: PostedClassSheet) -> Response:
    return press(request, posted(), sheet_actions.check)


@router.post("/class/{activity_id:int}/{number:int}/hint")
@in_threads("class")
def hint_class_sheet(request: Request, posted: PostedClassSheet, form: FormDep) -> Response:
    return press(request, posted(), sheet_actions.hint, form.raw("hint"))


@router.post("/class/{activity_id:int}/{number:int}/hand-in")
@in_threads("class")
def hand_in_class_sheet(request: Request, posted: PostedClassSheet) -> Response:
    return press(request, posted(), sheet_actions.hand_in)


@in_threads("class")
def read_class_example(context: OpenedClassSheet, kind: str = "worked", seed: str = "1") -> ExampleRequest:
    return class_example(context, kind, seed)


ClassExample = Annotated[ExampleRequest, Depends(read_class_example)]


@router.get("/class/{activity_id:int}/{number:int}/example")
@in_threads("class")
def show_class_example(requested: ClassExample) -> Response:
    """A sheet with other numbers, if the activity's rules allow that; nothing is stored."""
    return render("shared/example.html", **example_names(requested))


@router.post("/class/{activity_id:int}/{number:int}/example")
@in_threads("class")
def check_class_example(requested: ClassExample, form: FormDep) -> Response:
    """A sheet with other numbers, with the marks of what was typed on it."""
    return render("shared/example.html", **example_names(requested, form))


@router.get("/class/{activity_id:int}/ticket")
@in_threads("class")
def show_exit_ticket(store: StoreDep, access: StudentAccessDep) -> Response:
    """The exit ticket, or a note that it was handed in; the student counts as present."""
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=access.activity.id), 303)
    ticket_in = store.classwork.arrive(access.activity.id, access.student.id)
    return render("student/exit_ticket.html", **ticket_names(store, access, ticket_in))


@router.post("/class/{activity_id:int}/ticket")
@in_threads("class")
def hand_in_exit_ticket(store: StoreDep, access: StudentAccessDep, form: FormDep) -> Response:
    """Store the answers that aren't blank, and redirect to the ticket; a student's second ticket stores nothing."""
    activity = access.activity
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    ticket_in = store.exit_tickets.is_handed_in(activity.id, access.student.id)
    names = ticket_names(store, access, ticket_in)
    ticket = names["ticket"]
    typed = names["typed"] = read_ticket_form(form, ticket)
    try:
        require_open(access)
    except HTTPException as closed:
        names["problem"] = closed.detail
        return render("student/exit_ticket.html", status=closed.status_code, **names)
    if not ticket_in and promised_otherwise(form, names["promise"]):
        asked = {f"answer-{question.key}" for question in ticket.questions}
        others = [form.multi_line(name) for name in form.names("answer-") if name not in asked]
        names["unasked"] = "\n\n".join(filter(None, others))
        names["problem"] = _(
            "Your teacher has changed this ticket, so nothing was handed in. Read it again before you hand it in."
        )
        return render("student/exit_ticket.html", status=422, **names)
    if not ticket_in and (problems := ticket_problems(ticket, typed)):
        names |= {"problem": problems.pop(""), "problems": problems}
        return render("student/exit_ticket.html", status=422, **names)
    store.classwork.arrive(activity.id, access.student.id)
    anonymous, answers = activity.policies.ticket_anonymous, answer_texts(ticket, typed)
    store.exit_tickets.hand_in(activity.id, access.student.id, answers, anonymous=anonymous)
    return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)


@router.get("/mine")
@in_threads("class")
def show_my_work(request: Request, store: StoreDep, visitor: VisitorInClass, signed_out: str = "") -> Response:
    """Every course that this browser is enrolled in, with its activities, or an invitation to join."""
    enrolments = store.roster.enrolments(visitor.id) if visitor else ()
    from_here = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    courses = [_course_section(request, store, enrolment) for enrolment in enrolments]
    # After signing out, a script drops this browser's drafts: never because of a link elsewhere.
    response = render("student/my_work.html", courses=courses, signed_out=signed_out == "yes" and from_here)
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


@router.get("/mine/{student_id:int}/leave")
@in_threads("class")
def show_leave_form(request: Request, store: StoreDep, access: BrowserEnrolment) -> Response:
    """Ask whether to sign out, and whether the student has the resume code for coming back."""
    code = new_resume_code(request, store, access.enrolment.student)
    return render("student/leave.html", enrolment=access.enrolment, code=code)


@router.post("/mine/{student_id:int}/leave")
@in_threads("class")
def leave_course(request: Request, store: StoreDep, access: BrowserEnrolment, form: FormDep) -> Response:
    """End this browser's enrolment, so that somebody else can join in it; the work stays."""
    if form.raw("wants") == "code":
        student, mine = access.enrolment.student, url_for("show_my_work")
        page = url_for("show_leave_form", student_id=student.id)
        return redirect_with_secret(request, page, store.roster.renew_code(student), mine)
    store.roster.leave(access.enrolment.student, access.visitor.id)
    response = RedirectResponse(url_for("show_my_work", signed_out="yes"), 303)
    response.headers["Clear-Site-Data"] = '"cache"'
    response.delete_cookie(SECRET_COOKIE, url_for("show_my_work"))
    if not store.roster.enrolments(access.visitor.id):
        response.delete_cookie(VISITOR_COOKIE)
        response.delete_cookie(CLASS_COOKIE)
    return response


def _course_section(request: Request, store: Store, enrolment: Enrolment) -> dict[str, Any]:
    student, now = enrolment.student, store.now()
    attended = dict(store.classwork.attended(student.id))  # by activity: whether the exit ticket was handed in
    attempts = store.classwork.attempts_of_student(student.id)
    made = defaultdict[_SheetId, list[Attempt]](list)
    for attempt in attempts:
        made[attempt.activity_id, attempt.sheet_key].append(attempt)
    drafts = store.classwork.sheets_with_draft(student.id)
    done, waiting = [], []
    for activity in store.activities.of_student(student):
        phase = activity.phase(now)
        line = {
            "activity": activity,
            "phase": phase,
            "sheets": _sheet_lines(activity, phase, made, drafts),
            "ticket_in": attended.get(activity.id, False),
        }
        if phase != "draft" and activity.id in attended:
            done.append(line)
        elif phase in ("open", "waiting"):
            waiting.append(line)
    code = new_resume_code(request, store, student)
    return {"enrolment": enrolment, "done": done, "waiting": waiting, "code": code}


def _sheet_lines(
    activity: Activity, phase: Phase, made: Mapping[_SheetId, Sequence[Attempt]], drafts: Collection[_SheetId]
) -> list[dict[str, str]]:
    """The title and state of each sheet, and the score that counts if its marks may be seen."""
    lines, items = [], activity.content.items if phase != "waiting" else ()
    for item, title in zip(items, worksheet_titles(activity.content), strict=False):
        attempts, has_draft = made.get((activity.id, item.sheet_key), ()), (activity.id, item.sheet_key) in drafts
        counted, score = counted_of(attempts, activity.policies.counting) if attempts else None, ""
        if counted and activity.policies.marks_visible(phase, counted.handed_in):
            score = _("{score:g} of {total}").format(score=counted.score, total=counted.out_of)
        state = _sheet_state(attempts[-1] if attempts else None, has_draft)
        lines.append({"title": title, "state": state, "score": score})
    return lines


def _sheet_state(last: Attempt | None, has_draft: bool) -> str:
    if last is None:
        return _("saved, not handed in") if has_draft else _("not started")
    if last.auto_submitted:
        return _("auto-submitted at closing")
    if not last.handed_in:
        return _("checked, not handed in")
    return _("handed in late") if last.late else _("handed in")
