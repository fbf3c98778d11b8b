"""/class: an activity as its students work through it; /mine: what they did, and how they leave."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.work import counted_of
from app.classes import sheet_actions
from app.classes.frozen.misconception_words import MisconceptionWords, misconception_words
from app.classes.look_back import look_back
from app.classes.student_sheet import worksheet_titles
from app.classes.ticket_answers import answer_texts, ticket_problems
from app.grading.grade import MARK_KINDS
from app.practice.lessons import worksheet_after
from app.store import Activity, Attempt, Phase, Student
from app.translation import gettext as _
from app.web.shared.activity_steps import activity_steps, closing_notice, next_step, student_progress
from app.web.shared.cookies import (
    CLASS_COOKIE,
    SECRET_COOKIE,
    VISITOR_COOKIE,
    set_private_cookie,
)
from app.web.shared.example_view import ExampleRequest, example_names
from app.web.shared.exit_ticket_form import counted_answers, end_names, read_ticket_form, ticket_names
from app.web.shared.forms import FormDep
from app.web.shared.permissions import BrowserEnrolment, StudentAccess, StudentAccessDep
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.sheet_address import sheet_link
from app.web.shared.sheet_form import promised_otherwise
from app.web.shared.templating import local_time, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.shared.visitor import VisitorInClass, keep_resume_code, kept_resume_code
from app.web.sheet import press, save
from app.web.sheet_in_class import ClassSheet, class_example, opened_class_sheet, posted_class_sheet, require_open

router = APIRouter(include_in_schema=False)

MAX_BUSY_WHEN_DRAWN = 2  # busy class threads, including the save's own; with more, nothing is drawn
# held by the one save in this process that is drawn: two at once would take twice as long each
_drawing_save = threading.Lock()

_SheetId = tuple[int, str]  # activity id and sheet key


@router.get("/class/{activity_id:int}")
@in_threads("class")
def show_class_activity(services: ServicesDep, access: StudentAccessDep) -> Response:
    """Redirect (303) to where the student goes on, or look back; before the activity opens, say when it does."""
    activity, store = access.activity, services.store
    ticket_in = store.classwork.arrive(activity.id, access.student.id)
    if access.phase == "waiting":
        opens = activity.plan.opens_at
        opens_in_words = local_time(opens, access.course.time_zone) if opens else ""
        return render("student/waiting.html", access=access, opens=opens_in_words)
    steps = activity_steps(access, student_progress(store, access))
    goes_on = next_step(access, steps, ticket_in).link
    if goes_on != access.links.activity:
        return RedirectResponse(goes_on, 303)
    return render("student/end.html", **end_names(store, access, ticket_in) | _looking_back(services, access))


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
def show_exit_ticket(services: ServicesDep, access: StudentAccessDep) -> Response:
    """A look back, and the exit ticket or a note that it was handed in; the student counts as present."""
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=access.activity.id), 303)
    ticket_in = services.store.classwork.arrive(access.activity.id, access.student.id)
    names = ticket_names(services.store, access, ticket_in) | _looking_back(services, access)
    return render("student/end.html", **names)


@router.post("/class/{activity_id:int}/ticket")
@in_threads("class")
def hand_in_exit_ticket(services: ServicesDep, access: StudentAccessDep, form: FormDep) -> Response:
    """Store the answers that aren't blank, and redirect to the ticket; a student's second ticket stores nothing."""
    activity, store = access.activity, services.store
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    ticket_in = store.exit_tickets.is_handed_in(activity.id, access.student.id)
    names = ticket_names(store, access, ticket_in) | _looking_back(services, access)
    ticket = names["ticket"]
    names |= {"typed": read_ticket_form(form, ticket), "picks": form.all("pick")}
    answers = counted_answers(ticket, names["typed"], names["picks"])
    try:
        require_open(access)
    except HTTPException as closed:
        names["problem"] = closed.detail
        return render("student/end.html", status=closed.status_code, **names)
    if not ticket_in and promised_otherwise(form, names["promise"]):
        asked = {f"answer-{question.key}" for question in ticket.questions}
        others = [form.multi_line(name) for name in form.names("answer-") if name not in asked]
        names["unasked"] = "\n\n".join(filter(None, others))
        names["problem"] = _(
            "Your teacher has changed this ticket, so nothing was handed in. Read it again before you hand it in."
        )
        return render("student/end.html", status=422, **names)
    if not ticket_in and (problems := ticket_problems(ticket, answers)):
        names |= {"problem": problems.pop(""), "problems": problems}
        return render("student/end.html", status=422, **names)
    store.classwork.arrive(activity.id, access.student.id)
    texts, anonymous = answer_texts(ticket, answers), activity.policies.ticket_anonymous
    store.exit_tickets.hand_in(activity.id, access.student.id, texts, anonymous=anonymous)
    return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)


@router.get("/mine")
@in_threads("class")
def show_my_work(
    request: Request, services: ServicesDep, visitor: VisitorInClass, signed_out: str = "", code: str = ""
) -> Response:
    """Every course that this browser is enrolled in, with its activities, or an invitation to join.

    `code` is the id of the student whose resume code is shown at once.
    """
    store = services.store
    enrolments = store.roster.enrolments(visitor.id) if visitor else ()
    from_here = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    courses: list[dict[str, Any]] = [
        {
            "enrolment": enrolment,
            "lines": _activity_lines(services, enrolment.student),
            "code": kept_resume_code(request, store, enrolment.student),
            "shows_code": code == str(enrolment.student.id),
        }
        for enrolment in enrolments
    ]
    # After signing out, a script drops this browser's drafts: never because of a link elsewhere.
    # After a class, there is a way to practice; before, a student sees only the class.
    is_busy = any(line["phase"] == "open" and not line["is_done"] for each in courses for line in each["lines"])
    response = render(
        "student/my_work.html",
        courses=courses,
        signed_out=signed_out == "yes" and from_here,
        may_go_on=bool(courses) and not is_busy,
    )
    if enrolments and CLASS_COOKIE not in request.cookies:
        set_private_cookie(request, response, CLASS_COOKIE, "joined")
    return response


@router.post("/mine/{student_id:int}/code")
@in_threads("class")
def renew_resume_code(request: Request, store: StoreDep, access: BrowserEnrolment) -> Response:
    """Give the student a new resume code, which replaces the old one, and show it next to its course."""
    student, course = access.enrolment.student, access.enrolment.course
    page = url_for("show_my_work", code=student.id)
    response = RedirectResponse(f"{page}#course-{course.id}", 303)
    keep_resume_code(request, response, store.roster.renew_code(student))
    return response


@router.get("/mine/{student_id:int}/leave")
@in_threads("class")
def show_leave_form(request: Request, store: StoreDep, access: BrowserEnrolment) -> Response:
    """Ask whether to sign out, and whether the student has the resume code for coming back."""
    code = kept_resume_code(request, store, access.enrolment.student)
    return render("student/leave.html", enrolment=access.enrolment, code=code)


@router.post("/mine/{student_id:int}/leave")
@in_threads("class")
def leave_course(request: Request, store: StoreDep, access: BrowserEnrolment, form: FormDep) -> Response:
    """End this browser's enrolment, so that somebody else can join in it; the work stays."""
    if form.raw("wants") == "code":
        code = store.roster.renew_code(access.enrolment.student)
        response = RedirectResponse(url_for("show_leave_form", student_id=access.enrolment.student.id), 303)
        keep_resume_code(request, response, code)
        return response
    store.roster.leave(access.enrolment.student, access.visitor.id)
    response = RedirectResponse(url_for("show_my_work", signed_out="yes"), 303)
    response.headers["Clear-Site-Data"] = '"cache"'
    response.delete_cookie(SECRET_COOKIE, url_for("show_my_work"))
    if not store.roster.enrolments(access.visitor.id):
        response.delete_cookie(VISITOR_COOKIE)
        response.delete_cookie(CLASS_COOKIE)
    return response


def _looking_back(services: Services, access: StudentAccess) -> dict[str, Any]:
    """What templates/student/end.html says about the student's own work, and where they can go on."""
    seen = look_back(services.library, services.store, access.activity, access.student, access.rules)
    return {"look_back": seen, "further": tuple(_further(services, access))}


def _further(services: Services, access: StudentAccess) -> Iterator[dict[str, str]]:
    """Two sheets for practice: another like the activity's last one, and the one after it in the lessons."""
    library, keys = services.library, [item.key for item in access.activity.content.items]
    if not keys or keys[-1] not in library.worksheets or not (services.settings.practice and access.rules.gives_help):
        return
    last, following = library.variant(keys[-1]), worksheet_after(library, keys[-1])
    about = _("{title}, with other numbers").format(title=last.title)
    yield {"title": _("Another like this"), "about": about, "link": sheet_link(last, "show_another")}
    if following and following not in keys:
        after = library.variant(following)
        yield {"title": _("The next one"), "about": after.title, "link": sheet_link(after)}


def _activity_lines(services: Services, student: Student) -> list[dict[str, Any]]:
    """The activities that are open or that the student came to, newest first, with the student's work."""
    store, now = services.store, services.store.now()
    attended = store.classwork.attended(student.id)  # by activity: whether the exit ticket was handed in
    made = defaultdict[_SheetId, list[Attempt]](list)
    for attempt in store.classwork.attempts_of_student(student.id):
        made[attempt.activity_id, attempt.sheet_key].append(attempt)
    drafts = store.classwork.sheets_with_draft(student.id)
    lines = list[dict[str, Any]]()
    for activity in store.activities.of_student(student):
        phase = activity.phase(now)
        if phase in ("open", "waiting") or (phase != "draft" and activity.id in attended):
            words = misconception_words(services.library, store, activity)
            lines.append(
                {
                    "activity": activity,
                    "phase": phase,
                    "sheets": _sheet_lines(activity, phase, made, drafts, words) if phase != "waiting" else [],
                    "ticket_in": attended.get(activity.id, False),
                    "is_done": _is_done(activity, made),
                }
            )
    return lines


def _is_done(activity: Activity, made: Mapping[_SheetId, Sequence[Attempt]]) -> bool:
    sheets = [made.get((activity.id, item.sheet_key), ()) for item in activity.content.items]
    return all(any(attempt.handed_in for attempt in attempts) for attempts in sheets)


def _sheet_lines(
    activity: Activity,
    phase: Phase,
    made: Mapping[_SheetId, Sequence[Attempt]],
    drafts: Collection[_SheetId],
    words: MisconceptionWords,
) -> list[dict[str, Any]]:
    """The title and state of each sheet and, if its marks may be seen, the score that counts and what went wrong."""
    lines = list[dict[str, Any]]()
    for item, title in zip(activity.content.items, worksheet_titles(activity.content), strict=True):
        sheet_id = activity.id, item.sheet_key
        attempts, policies = made.get(sheet_id, ()), activity.policies
        state = _sheet_state(attempts[-1] if attempts else None, sheet_id in drafts)
        line = {"title": title, "state": state, "score": "", "marks": [], "ideas": [], "goes_on": False}
        counted = counted_of(attempts, policies.counting) if attempts else None
        if counted and policies.marks_visible(phase, counted.handed_in):
            line["score"] = _("{score:g} of {total}").format(score=counted.score, total=counted.out_of)
            line["marks"] = sorted(counted.marks.values(), key=MARK_KINDS.index)
            if policies.gives_help(phase):
                seen = [each for each in attempts if policies.marks_visible(phase, each.handed_in)]
                shown = (*seen[0].misconceptions, *seen[-1].misconceptions)
                line["ideas"] = [words.name(key) for key in dict.fromkeys(shown)]
                line["goes_on"] = bool(seen[-1].misconceptions)
        lines.append(line)
    return lines


def _sheet_state(last: Attempt | None, has_draft: bool) -> str:
    if last is None:
        return _("saved, not handed in") if has_draft else _("not started")
    if last.auto_submitted:
        return _("auto-submitted at closing")
    if not last.handed_in:
        return _("checked, not handed in")
    return _("handed in late") if last.late else _("handed in")
