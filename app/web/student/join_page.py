"""/join and /resume: students come in with a join code and a name, or come back with a resume code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.names import name_key
from app.sheets.wording import Wording
from app.store import Activity, Course, Store, Student, Visitor
from app.store.activities import JOIN_CODE_LENGTH
from app.store.roster import CODE_LENGTH, normalised_code
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.rate_limits import RateLimits
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, MaybeVisitor, remember_visitor

router = APIRouter(include_in_schema=False)

MAX_CODE, MAX_NAME, MAX_ID = 40, 100, 12  # characters of what is typed


@dataclass(frozen=True)
class JoinPage:
    """Everything that templates/student/join.html shows."""

    code: Annotated[str, Doc("The code as typed.")] = ""
    problem: Annotated[str, Doc("The error message above the form; empty if there is none.")] = ""


@dataclass(frozen=True)
class NamePage:
    """Everything that templates/student/join_name.html shows."""

    activity: Annotated[Activity, Doc("The activity that the code opens.")]
    course: Annotated[Course, Doc("Its course.")]
    current_student: Annotated[Student | None, Doc("The student that this browser is in this course, or None.")]
    free: Annotated[tuple[Student, ...], Doc("The names on the roster that nobody has taken.")]
    form_secret: Annotated[str, Doc("A secret by which a form that is sent twice is known.")]
    name: Annotated[str, Doc("The name as typed.")] = ""
    problem: Annotated[str, Doc("The error message above the form; empty if there is none.")] = ""


@dataclass(frozen=True)
class JoinedPage:
    """Everything that templates/student/joined.html shows."""

    activity: Annotated[Activity, Doc("The activity.")]
    student: Annotated[Student, Doc("The student that this browser now works as.")]
    code: Annotated[str, Doc("Their resume code, shown this once.")]


@dataclass(frozen=True)
class ResumePage:
    """Everything that templates/student/resume.html shows."""

    code: Annotated[str, Doc("The code as typed.")] = ""
    problem: Annotated[str, Doc("The error message above the form; empty if there is none.")] = ""


class _NameRefusedError(Exception):
    """A student cannot join under this name; the message is a sentence for them."""


@router.get("/join")
def show_join_form() -> Response:
    """The form with one field for the join code."""
    return render("student/join.html", JoinPage())


@router.post("/join")
def enter_join_code(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Redirect to the names of the activity with that code; an unknown one comes back with a sentence (404).

    An unknown code counts as a failure of the network; after too many, 429.
    """
    typed = form.single_line("code", MAX_CODE)
    joinable = _find_by_code(request, services.store, services.limits, typed)
    if joinable is None:
        return _no_such_code(services.library.wording, typed)
    return RedirectResponse(url_for("show_name_form", code=joinable[0].join_code), 303)


@router.get("/join/{code}")
def show_name_form(request: Request, services: ServicesDep, visitor: MaybeVisitor, code: str) -> Response:
    """The names on the roster that nobody has taken, and a field for any other; for everybody who has the code.

    An unknown code leads to the form for the code (404) and counts as a failure of the network.
    """
    joinable = _find_by_code(request, services.store, services.limits, code)
    if joinable is None:
        return _no_such_code(services.library.wording, code)
    return render("student/join_name.html", _name_page(services.store, *joinable, visitor))


@router.post("/join/{code}")
def join_activity(request: Request, services: ServicesDep, visitor: MaybeVisitor, form: FormDep, code: str) -> Response:
    """Enrol this browser under the name that was picked or typed, and show the resume code if there is a new one.

    Without a new code, redirect to the activity. The same form sent twice enrols one student. A name that cannot be
    used comes back with a sentence (422), an unknown join code leads to the form for the code (404).
    """
    joinable = _find_by_code(request, services.store, services.limits, code)
    if joinable is None:
        return _no_such_code(services.library.wording, code)
    activity, course = joinable
    secret = FormSecret.of(form)
    try:
        owner, student, resume_code = _enrol(services, activity, course, visitor, form, secret)
    except _NameRefusedError as problem:
        page = _name_page(services.store, activity, course, visitor)
        name = form.single_line("name", MAX_NAME)
        typed = replace(page, name=name, form_secret=secret.secret, problem=str(problem))
        return render("student/join_name.html", typed, 422)
    response: Response = RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    if resume_code:
        response = render("student/joined.html", JoinedPage(activity, student, f"{resume_code[:5]}-{resume_code[5:]}"))
    remember_visitor(request, response, owner)
    return response


@router.get("/resume")
def show_resume_form() -> Response:
    """The form with one field for the resume code."""
    return render("student/resume.html", ResumePage())


@router.post("/resume")
def resume_enrolment(request: Request, services: ServicesDep, visitor: MaybeVisitor, form: FormDep) -> Response:
    """Enrol this browser as the student with that resume code, and redirect to the page of all their courses.

    An unknown code comes back with a sentence (422), stores nothing, and counts as a failure of the network; after too
    many, 429.
    """
    network, typed = client_network(request), form.single_line("code", MAX_CODE)
    student = services.store.roster.find_by_resume_code(typed)
    if student is None:
        services.limits.check("resume", network)
        services.limits.record_failure("resume", network)
        problem = services.library.wording.say("class", "no-resume", length=CODE_LENGTH)
        return render("student/resume.html", ResumePage(typed, problem), 422)
    owner = visitor or services.store.add_visitor()
    services.store.roster.resume(student, owner.id)
    response = RedirectResponse(url_for("show_my_work"), 303)
    remember_visitor(request, response, owner)
    return response


def _find_by_code(request: Request, store: Store, limits: RateLimits, typed: str) -> tuple[Activity, Course] | None:
    """The activity with that join code, however it is typed, and its course; None for an unknown code.

    Drafts and archived courses count as unknown. An unknown code counts as a failure of the client's network; after too
    many of them it raises TooManyGuessesError, while a right code passes: a whole class may be behind one address.
    """
    joinable = store.activities.by_code(typed) if normalised_code(typed) else None
    if joinable is None:
        network = client_network(request)
        limits.check("join", network)
        limits.record_failure("join", network)
    return joinable


def _no_such_code(wording: Wording, typed: str) -> Response:
    """The form for the join code with a sentence (404)."""
    code = normalised_code(typed)[:12]
    problem = wording.say("class", "no-code", code=code, length=JOIN_CODE_LENGTH)
    return render("student/join.html", JoinPage(code, problem), 404)


def _name_page(store: Store, activity: Activity, course: Course, visitor: Visitor | None) -> NamePage:
    """The page of names with nothing typed and a new secret."""
    enrolled = store.roster.enrolled_student(visitor.id, course.id) if visitor else None
    return NamePage(activity, course, enrolled, store.roster.unclaimed_students(course), FormSecret.new().secret)


def _enrol(
    services: Services,
    activity: Activity,
    course: Course,
    visitor: Visitor | None,
    form: FormReader,
    secret: FormSecret,
) -> tuple[Visitor, Student, str]:
    """Enrol this browser under the name of the form, and count the student as present in the activity.

    Returns the visitor, who is added if None is given; the student; and their resume code, empty if they keep the one
    they have. The secret decides the new visitor's token and the code. One transaction: all of it is stored, or
    nothing, where _NameRefusedError is raised.
    """
    typed = f"{form.single_line('student', MAX_ID)} {form.single_line('name', MAX_NAME)}"
    with services.store.transaction():
        services.store.roster.lock_name(course, typed)  # the same form sent twice waits here for its first time
        owner = visitor or services.store.add_visitor(secret.token)
        page = _name_page(services.store, activity, course, owner)
        student, code = _join_under_name(services, page, form, owner, secret.code(typed))
        services.store.classwork.arrive(activity.id, student.id)
        return owner, student, code


def _join_under_name(
    services: Services, page: NamePage, form: FormReader, visitor: Visitor, code: str
) -> tuple[Student, str]:
    """Enrol the visitor under the name of the form: the student, and their resume code, empty if it stays as it was.

    In this order: the student that this browser works as already, if asked to stay or if the same form was sent
    before; a free name of the roster, typed in whatever case or picked with nothing typed; a new student. `code`
    becomes the resume code, except where they were asked to stay. Raises _NameRefusedError where the name is taken or
    missing.
    """
    roster, wording = services.store.roster, services.library.wording
    name, picked = form.single_line("name", MAX_NAME), form.single_line("student", MAX_ID)
    if page.current_student and form.raw("stay"):
        return page.current_student, ""
    if page.current_student and roster.is_resume_code(page.current_student, code):
        return page.current_student, code
    wanted = next((student for student in page.free if str(student.id) == picked and not name), None)
    wanted = wanted or next((student for student in page.free if name_key(student.name) == name_key(name)), None)
    if wanted:
        if not roster.claim_name(wanted, visitor.id, code):
            raise _NameRefusedError(wording.say("class", "name-taken", name=wanted.name))
        return wanted, code
    if not name:
        raise _NameRefusedError(wording.say("class", "pick-name"))
    if roster.name_exists(page.course, name):
        raise _NameRefusedError(wording.say("class", "name-taken", name=name))
    return roster.enrol_new_student(page.course, name, visitor.id, code)
