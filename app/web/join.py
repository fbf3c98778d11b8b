"""/join and /resume: students come in with a join code and a name, or come back with a resume code."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.joining import NameChoice, choose_name, suggested_names
from app.store import Activity, Course, Store, Student, Visitor
from app.store.activities import JOIN_CODE_LENGTH
from app.store.roster import CODE_LENGTH, NameTakenError, normalised_code
from app.translation import gettext as _
from app.web.shared.cookies import CLASS_COOKIE, set_private_cookie
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.rate_limits import BudgetSpentError, RateLimits, TooManyGuessesError
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, VisitorInClass, keep_resume_code, remember_visitor

router = APIRouter(include_in_schema=False)

MAX_CODE, MAX_NAME = 40, 100  # typed characters


class _NameRefusedError(Exception):
    """A student can't join under this name yet; the message explains why, or is empty if only a choice is missing."""

    def __init__(
        self, sentence: str, choice: NameChoice | None = None, *, asks_new: bool = False, seconds: int = 0
    ) -> None:
        super().__init__(sentence)
        self.choice, self.asks_new, self.seconds = choice or NameChoice(), asks_new, seconds


@router.get("/join")
@in_threads("class")
def show_join_form() -> Response:
    return render("student/join.html", code="", problem="")


@router.post("/join")
@in_threads("class")
def enter_join_code(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Redirect (303) to the form for the name in the activity with that code."""
    typed = form.single_line("code", MAX_CODE)
    joinable = _find_by_code(request, services.store, services.limits, typed)
    if joinable is None:
        return _no_such_code(typed)
    return RedirectResponse(url_for("show_name_form", code=joinable[0].join_code), 303)


@router.get("/join/{code}")
@in_threads("class")
def show_name_form(request: Request, services: ServicesDep, visitor: VisitorInClass, code: str) -> Response:
    """A field for the name, with the unclaimed names if the activity lists them."""
    joinable = _find_by_code(request, services.store, services.limits, code)
    if joinable is None:
        return _no_such_code(code)
    return render("student/join_name.html", **_name_names(services.store, *joinable, visitor))


@router.get("/join/{code}/names")
@in_threads("class")
def suggest_names(request: Request, services: ServicesDep, code: str, name: str = "") -> Response:
    """The roster's names that match what is typed so far, as buttons."""
    joinable = _find_by_code(request, services.store, services.limits, code)
    if joinable is None:
        return _no_such_code(code)
    may_see = _may_see_names(services.limits, client_network(request), joinable[1])
    typed = name[:MAX_NAME]
    names = suggested_names(services.store.roster, joinable[1], typed) if may_see else ()
    return render("student/_join_names.html", name=typed, suggestions=names, asks_new=False)


@router.post("/join/{code}")
@in_threads("class")
def join_activity(
    request: Request, services: ServicesDep, visitor: VisitorInClass, form: FormDep, code: str
) -> Response:
    """Enrol this browser under the chosen name, and redirect (303) to the activity's first sheet."""
    joinable = _find_by_code(request, services.store, services.limits, code)
    if joinable is None:
        return _no_such_code(code)
    activity, course = joinable
    secret = FormSecret.of(form)
    try:
        owner, resume_code = _enrol(request, services, joinable, visitor, form, secret)
    except _NameRefusedError as problem:
        names = _name_names(services.store, activity, course, visitor) | {
            "name": _typed_name(form),
            "number": form.single_line("number", MAX_NAME),
            "asks_number": problem.choice.asks_number,
            "suggestions": problem.choice.suggestions,
            "asks_new": problem.asks_new,
            "form_secret": secret.secret,
            "problem": str(problem),
        }
        refused = render("student/join_name.html", status=429 if problem.seconds else 422, **names)
        if problem.seconds:
            refused.headers["Retry-After"] = str(problem.seconds)
        return refused
    response = RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    remember_visitor(request, response, owner)
    set_private_cookie(request, response, CLASS_COOKIE, "joined")
    if resume_code:
        keep_resume_code(request, response, resume_code)
    return response


@router.get("/resume")
@in_threads("class")
def show_resume_form() -> Response:
    return render("student/resume.html", code="", problem="")


@router.post("/resume")
@in_threads("class")
def resume_enrolment(request: Request, services: ServicesDep, visitor: VisitorInClass, form: FormDep) -> Response:
    """Enrol this browser as the student with that resume code, and redirect (303) to the page of all its courses."""
    network, typed = client_network(request), form.single_line("code", MAX_CODE)
    student = services.store.roster.find_by_resume_code(typed)
    if student is None:
        services.limits.check("resume", network)
        services.limits.record_failure("resume", network)
        problem = _(
            "That resume code doesn’t exist. Codes have {length} letters; check yours and try again, or ask "
            "your teacher."
        ).format(length=CODE_LENGTH)
        return render("student/resume.html", status=422, code=typed, problem=problem)
    owner = visitor or services.store.add_visitor()
    services.store.roster.resume(student, owner.id)
    response = RedirectResponse(url_for("show_my_work"), 303)
    remember_visitor(request, response, owner)
    set_private_cookie(request, response, CLASS_COOKIE, "joined")
    keep_resume_code(request, response, normalised_code(typed))
    return response


def _find_by_code(request: Request, store: Store, limits: RateLimits, typed: str) -> tuple[Activity, Course] | None:
    joinable = store.activities.by_code(typed) if normalised_code(typed) else None
    if joinable is None:
        network = client_network(request)
        limits.check("join", network)
        limits.record_failure("join", network)
    return joinable


def _may_see_names(limits: RateLimits, network: str, course: Course) -> bool:
    key = f"{network} {course.id}"
    try:
        limits.check("names", key)
    except TooManyGuessesError:
        return False
    limits.record_failure("names", key)
    return True


def _no_such_code(typed: str) -> Response:
    code = normalised_code(typed)[:12]
    problem = _("No class has the code “{code}”. Codes have {length} letters; check yours and try again.").format(
        code=code, length=JOIN_CODE_LENGTH
    )
    return render("student/join.html", status=404, code=code, problem=problem)


def _name_names(store: Store, activity: Activity, course: Course, visitor: Visitor | None) -> dict[str, Any]:
    listed = activity.policies.names_listed
    unclaimed = store.roster.unclaimed_names(course, limit=None if listed else 1)
    return {
        "activity": activity,
        "course": course,
        "current_student": store.roster.enrolled_student(visitor.id, course.id) if visitor else None,
        "has_closed": _has_closed(store, activity),
        "names": unclaimed if listed else (),
        "suggests_names": bool(unclaimed),
        "form_secret": FormSecret.new().secret,
        "name": "",
        "number": "",
        "asks_number": False,
        "suggestions": (),
        "asks_new": False,
        "problem": "",
    }


def _has_closed(store: Store, activity: Activity) -> bool:
    return activity.phase(store.now()) in ("closing", "closed")


def _typed_name(form: FormReader) -> str:
    fields = ("name", "picked") if form.raw("new") else ("suggested", "name", "picked")
    return next(filter(None, (form.single_line(field, MAX_NAME) for field in fields)), "")


def _enrol(
    request: Request,
    services: Services,
    joinable: tuple[Activity, Course],
    visitor: Visitor | None,
    form: FormReader,
    secret: FormSecret,
) -> tuple[Visitor, str]:
    """Enrol this browser under the form's name, and count the student as present, in one transaction."""
    (activity, course), network = joinable, client_network(request)
    typed = f"{form.single_line('number', MAX_NAME)} {_typed_name(form)}"
    with services.store.transaction():
        services.store.roster.lock_name(course, typed)  # the same form sent twice waits here for its first time
        owner = visitor or services.store.add_visitor(secret.token)
        student, code = _join_under_name(services, course, form, owner, secret.code(typed), network)
        services.store.classwork.arrive(activity.id, student.id)
        return owner, code


def _join_under_name(
    services: Services, course: Course, form: FormReader, visitor: Visitor, code: str, network: str
) -> tuple[Student, str]:
    roster, name = services.store.roster, _typed_name(form)
    current = roster.enrolled_student(visitor.id, course.id)
    if current and form.raw("stay"):
        return current, ""
    if current and roster.is_resume_code(current, code):
        return current, code
    if not name:
        raise _NameRefusedError(_("Choose your name, or type it."))
    choice = choose_name(roster, course, name, form.single_line("number", MAX_NAME))
    if choice.asks_number:
        raise _NameRefusedError(
            _(
                "Several students of this course are called {name}. Enter your number on the class list as well; "
                "your teacher can tell you."
            ).format(name=name),
            choice,
        )
    if choice.suggestions and not form.raw("new"):
        if not _may_see_names(services.limits, network, course):
            raise _NameRefusedError(
                _("Type your full name as it is on the class list. If you aren’t on the list, join as a new student."),
                asks_new=True,
            )
        raise _NameRefusedError("", choice, asks_new=True)
    if choice.is_near and not form.raw("new"):
        raise _NameRefusedError(
            _(
                "Someone in this course has a similar name. If that is you, type your full name, or enter your "
                "resume code if you have joined before."
            ),
            asks_new=True,
        )
    if choice.is_taken or (choice.student and not roster.claim_name(choice.student, visitor.id, code)):
        raise _NameRefusedError(
            _(
                "Someone named {name} has already joined. If that is you, enter your resume code; if not, add to "
                "your name, for example an initial."
            ).format(name=name)
        )
    if choice.student:
        return choice.student, code
    try:
        services.storage.charge_new_name(network)
    except BudgetSpentError as spent:
        raise _NameRefusedError(
            _(
                "Too many people who aren’t on the class list have joined from your network within an hour. Try "
                "again in a few minutes, or ask your teacher to add you to the list."
            ),
            seconds=spent.seconds,
        ) from spent
    try:
        return roster.enrol_new_student(course, name, visitor.id, code)
    except NameTakenError:  # just added to the roster: look again
        return _join_under_name(services, course, form, visitor, code, network)
