"""Students come in: with a join code and a name, or back with a resume code; and their own page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.student_sheet import worksheet_titles
from app.store import Activity, ClassAttempt, Course, Enrolment, Phase, Student, Visitor
from app.store.activities import JOIN_LENGTH
from app.store.courses import CODE_LENGTH, as_code
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import OwnEnrolment
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, MaybeVisitor, remember_visitor

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class JoinPage:
    """Everything that templates/student/join.html shows."""

    code: Annotated[str, Doc("The code as typed.")] = ""
    problem: Annotated[str, Doc("Why nobody came in, or nothing.")] = ""


@dataclass(frozen=True)
class NamePage:
    """Everything that templates/student/join_name.html shows."""

    activity: Annotated[Activity, Doc("The activity that the code opens.")]
    course: Annotated[Course, Doc("Its course.")]
    current_student: Annotated[Student | None, Doc("As whom this browser sits in the course already.")]
    free: Annotated[tuple[Student, ...], Doc("The names of the roster that nobody has taken.")]
    form_secret: Annotated[str, Doc("A secret that tells a form that is sent again from another.")]
    name: Annotated[str, Doc("The name as typed.")] = ""
    problem: Annotated[str, Doc("Why nobody came in, or nothing.")] = ""


@dataclass(frozen=True)
class JoinedPage:
    """Everything that templates/student/joined.html shows."""

    activity: Annotated[Activity, Doc("The activity.")]
    student: Annotated[Student, Doc("As whom this browser sits now.")]
    code: Annotated[str, Doc("Their resume code, shown this once.")]


@dataclass(frozen=True)
class ResumePage:
    """Everything that templates/student/resume.html shows."""

    code: Annotated[str, Doc("The code as typed.")] = ""
    problem: Annotated[str, Doc("Why nobody came in, or nothing.")] = ""


@dataclass(frozen=True)
class Stand:
    """How one sheet stands: its last try, and the score of it where marks may be seen."""

    title: str
    last: ClassAttempt | None
    score: str


@dataclass(frozen=True)
class Done:
    """An activity on a student's own page: what it is now, and how each sheet stands."""

    activity: Activity
    phase: Phase
    sheets: tuple[Stand, ...]
    ticket_in: bool


@dataclass(frozen=True)
class MyCourse:
    """A course on a student's own page."""

    enrolment: Enrolment
    done: tuple[Done, ...]
    waiting: tuple[Done, ...]
    code: str = ""


@dataclass(frozen=True)
class MinePage:
    """Everything that templates/student/my_work.html shows."""

    courses: Annotated[tuple[MyCourse, ...], Doc("The courses that this browser sits in.")]


class _NotEnrolledError(Exception):
    """Why nobody came in, as a sentence."""


@router.get("/join")
def show_join_form(services: ServicesDep) -> Response:
    """One field for the code."""
    return render("student/join.html", JoinPage())


@router.post("/join")
def enter_join_code(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """On to the names, or the field again with what was typed."""
    typed = form.single_line("code", 40)
    found = _by_code(request, services, typed)
    return (
        RedirectResponse(url_for("show_name_form", code=found[0].join_code), 303)
        if found
        else _no_such_code(services, typed)
    )


@router.get("/join/{code}")
def show_name_form(request: Request, services: ServicesDep, visitor: MaybeVisitor, code: str) -> Response:
    """Who are you? For whoever has the code: the free names of the roster, and a field for any other."""
    found = _by_code(request, services, code)
    if found is None:
        return _no_such_code(services, code)
    return render("student/join_name.html", _name_page(services, *found, visitor))


@router.post("/join/{code}")
def join_activity(request: Request, services: ServicesDep, visitor: MaybeVisitor, form: FormDep, code: str) -> Response:
    """Join as a student, and be shown the resume code; the same form sent again is the same person."""
    found = _by_code(request, services, code)
    if found is None:
        return _no_such_code(services, code)
    form_secret = FormSecret.of(form)
    try:
        owner, student, resume_code = _sit_down(services, found, visitor, form, form_secret)
    except _NotEnrolledError as problem:
        page = _name_page(services, *found, visitor)
        typed = replace(page, name=form.single_line("name", 100), form_secret=form_secret.secret, problem=str(problem))
        return render("student/join_name.html", typed, 422)
    response: Response = RedirectResponse(url_for("show_class_activity", activity_id=found[0].id), 303)
    if resume_code:
        response = render("student/joined.html", JoinedPage(found[0], student, _in_fives(resume_code)))
    remember_visitor(request, response, owner)
    return response


@router.get("/resume")
def show_resume_form(services: ServicesDep) -> Response:
    """One field for the resume code."""
    return render("student/resume.html", ResumePage())


@router.post("/resume")
def resume(request: Request, services: ServicesDep, visitor: MaybeVisitor, form: FormDep) -> Response:
    """Sit down again, in this browser too."""
    where, typed = client_network(request), form.single_line("code", 40)
    services.limits.check("resume", where)
    owner = visitor or services.store.add_visitor()
    if services.store.courses.resume(typed, owner.id) is None:
        services.limits.record_failure("resume", where)
        problem = services.library.wording.say("class", "no-resume", length=CODE_LENGTH)
        return render("student/resume.html", ResumePage(typed, problem), 422)
    response = RedirectResponse(url_for("show_my_work"), 303)
    remember_visitor(request, response, owner)
    return response


@router.get("/mine")
def show_my_work(services: ServicesDep, visitor: MaybeVisitor) -> Response:
    """What somebody did and can do in the courses that this browser sits in."""
    return render("student/my_work.html", MinePage(_my_courses(services, visitor)))


@router.post("/mine/{student_id:int}/code")
def renew_resume_code(services: ServicesDep, access: OwnEnrolment) -> Response:
    """A new resume code, shown once; the old one is void."""
    code = _in_fives(services.store.courses.renew_code(access.enrolment.student))
    return render(
        "student/my_work.html", MinePage(_my_courses(services, access.visitor, access.enrolment.student.id, code))
    )


@router.post("/mine/{student_id:int}/leave")
def leave_course(services: ServicesDep, access: OwnEnrolment) -> Response:
    """Get up, so that somebody else can sit at this browser."""
    services.store.courses.leave(access.enrolment.student, access.visitor.id)
    return RedirectResponse(url_for("show_my_work"), 303)


def _by_code(request: Request, services: Services, typed: str) -> tuple[Activity, Course] | None:
    """The activity of a join code and its course; wrong ones are counted."""
    where = client_network(request)
    services.limits.check("join", where)
    found = services.store.activities.by_code(typed) if as_code(typed) else None
    if found is None:
        services.limits.record_failure("join", where)
    return found


def _no_such_code(services: Services, typed: str) -> Response:
    shown = as_code(typed)[:12]
    problem = services.library.wording.say("class", "no-code", code=shown, length=JOIN_LENGTH)
    return render("student/join.html", JoinPage(shown, problem), 404)


def _name_page(services: Services, activity: Activity, course: Course, visitor: Visitor | None) -> NamePage:
    student = services.store.courses.enrolled_student(visitor.id, course.id) if visitor else None
    return NamePage(activity, course, student, services.store.courses.free(course), FormSecret.new().secret)


def _sit_down(
    services: Services,
    found: tuple[Activity, Course],
    visitor: Visitor | None,
    form: FormReader,
    form_secret: FormSecret,
) -> tuple[Visitor, Student, str]:
    """Whoever sits now, as whom, and their resume code if it is new; all of it is kept, or nothing."""
    who = f"{form.single_line('student', 12)} {form.single_line('name', 100)}"
    with services.store.together():
        services.store.courses.queue(found[1], who)
        owner = visitor or services.store.add_visitor(form_secret.token)
        page = _name_page(services, *found, owner)
        student, code = _take(services, page, form, owner, form_secret.code(who))
        services.store.classwork.arrive(found[0].id, student.id)
        return owner, student, code


def _take(services: Services, page: NamePage, form: FormReader, visitor: Visitor, code: str) -> tuple[Student, str]:
    """The student and their resume code, empty for one who was enrolled here already; raises _NotEnrolledError."""
    courses, words = services.store.courses, services.library.wording
    name, picked = form.single_line("name", 100), form.single_line("student", 12)
    if page.current_student and form.raw("stay"):
        return page.current_student, ""
    if page.current_student and courses.resumes(page.current_student, code):  # the same form was sent before
        return page.current_student, code
    wanted = next((student for student in page.free if str(student.id) == picked and not name), None)
    wanted = wanted or next((student for student in page.free if student.name.casefold() == name.casefold()), None)
    if wanted:
        if not courses.take(wanted, visitor.id, code):
            raise _NotEnrolledError(words.say("class", "name-taken", name=wanted.name))
        return wanted, code
    if not name:
        raise _NotEnrolledError(words.say("class", "pick-name"))
    if courses.is_there(page.course, name):
        raise _NotEnrolledError(words.say("class", "name-taken", name=name))
    return courses.enrol(page.course, name, visitor.id, code)


def _my_courses(services: Services, visitor: Visitor | None, shown: int = 0, code: str = "") -> tuple[MyCourse, ...]:
    enrolments = services.store.courses.enrolments(visitor.id) if visitor else ()
    return tuple(
        _my_course(services, enrolment, code if enrolment.student.id == shown else "") for enrolment in enrolments
    )


def _my_course(services: Services, enrolment: Enrolment, code: str) -> MyCourse:
    attended = dict(services.store.classwork.attended(enrolment.student.id))
    activities = [a for a in services.store.activities.of_course(enrolment.course) if a.state != "draft"]
    attempts = services.store.classwork.attempts_of_student(enrolment.student.id)
    all_ = [_done(services, activity, attempts, attended.get(activity.id, False)) for activity in activities]
    done = tuple(one for one in all_ if one.activity.id in attended)
    waiting = tuple(one for one in all_ if one.activity.id not in attended and one.phase in ("open", "waiting"))
    return MyCourse(enrolment, done, waiting, code)


def _done(services: Services, activity: Activity, attempts: Sequence[ClassAttempt], ticket_in: bool) -> Done:
    phase, last = activity.phase(), {(found.activity_id, found.sheet_key): found for found in attempts}
    sheets = zip(activity.content.items, worksheet_titles(activity.content), strict=True)
    stands = (_stand(activity, phase, title, last.get((activity.id, item.sheet_key))) for item, title in sheets)
    return Done(activity, phase, tuple(stands), ticket_in)


def _stand(activity: Activity, phase: Phase, title: str, last: ClassAttempt | None) -> Stand:
    told = last is not None and activity.policies.marks_visible(phase, last.handed_in)
    return Stand(title, last, f"{last.score:g} of {last.out_of}" if last and told else "")


def _in_fives(code: str) -> str:
    """A code in two halves, as it is easier to copy."""
    return f"{code[:5]}-{code[5:]}"
