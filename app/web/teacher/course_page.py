"""Courses: the list, and each with its activities, roster and staff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from zoneinfo import available_timezones

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.exchange.roster import RosterError, read_roster
from app.store import Activity, AuditAction, Role, StaffMember, Student, TaughtCourse, Teacher
from app.store.people import as_email
from app.web.shared import permissions
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableCourse, EditableStudent, SignedIn, StaffCourse
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import public_url

router = APIRouter(include_in_schema=False)

MOST_STUDENTS = 2_000  # of one class list


@dataclass(frozen=True)
class CoursesPage:
    """Everything that templates/teacher/course_list.html shows."""

    teacher: Annotated[Teacher, Doc("Whoever is signed in.")]
    courses: Annotated[tuple[TaughtCourse, ...], Doc("Their courses, the newest first.")]
    zones: Annotated[tuple[str, ...], Doc("The time zones there are.")]
    title: Annotated[str, Doc("The title of a new course, as typed.")] = ""
    zone: Annotated[str, Doc("Its time zone, as typed.")] = ""
    problem: Annotated[str, Doc("What of the form cannot be used, or nothing.")] = ""


@dataclass(frozen=True)
class CoursePage:
    """Everything that templates/teacher/course.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, and who looks at it in which role.")]
    activities: Annotated[tuple[Activity, ...], Doc("Its activities, the newest first.")]
    students: Annotated[tuple[Student, ...], Doc("Its roster, by name.")]
    staff: Annotated[tuple[StaffMember, ...], Doc("Who teaches it.")]
    zones: Annotated[tuple[str, ...], Doc("The time zones there are.")]
    notice: Annotated[str, Doc("What was just done, or nothing.")] = ""
    problem: Annotated[str, Doc("What cannot be used, or nothing.")] = ""
    about: Annotated[str, Doc("Which form the problem is about: settings, roster or staff.")] = ""
    roster: Annotated[str, Doc("The roster as pasted.")] = ""
    invitation: Annotated[str, Doc("A link to pass on, shown once.")] = ""
    invited: Annotated[str, Doc("Whom it is for.")] = ""
    email: Annotated[str, Doc("An address as typed.")] = ""


@router.get("/courses")
def list_courses(services: ServicesDep, teacher: SignedIn) -> Response:
    """The courses of whoever is signed in."""
    return render("teacher/course_list.html", _courses_page(services, teacher))


@router.post("/courses")
def add_course(services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """A new course, led by whoever makes it."""
    title, zone = form.single_line("title"), form.single_line("zone", 64)
    if problem := _problem(services, title, zone):
        return render("teacher/course_list.html", _courses_page(services, teacher, title, zone, problem), 422)
    course = services.store.courses.add(title, zone, teacher)
    return RedirectResponse(f"/courses/{course.id}", 303)


@router.get("/courses/{course_id:int}")
def show_course(services: ServicesDep, access: StaffCourse) -> Response:
    """A course with its activities, roster and staff."""
    return render("teacher/course.html", _course_page(services, access))


@router.post("/courses/{course_id:int}")
def change_course(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Another title or time zone."""
    title, zone = form.single_line("title"), form.single_line("zone", 64)
    if problem := _problem(services, title, zone):
        return render("teacher/course.html", _course_page(services, access, problem=problem, about="settings"), 422)
    services.store.courses.change(access.course, title, zone)
    return RedirectResponse(f"/courses/{access.course.id}", 303)


@router.post("/courses/{course_id:int}/students")
def add_students(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Names from a file or from text, each added once."""
    words = services.library.wording
    try:
        entries = read_roster(form.file or form.raw("roster"), MOST_STUDENTS)
    except RosterError as error:
        page = _course_page(services, access, problem=str(error), about="roster", roster=form.raw("roster"))
        return render("teacher/course.html", page, 422)
    added = services.store.courses.add_students(access.course, entries)
    there = len(entries) - added
    notice = words.say("class", "roster-added-some" if there else "roster-added", added=added, there=there)
    return render("teacher/course.html", _course_page(services, access, notice=notice))


@router.post("/courses/{course_id:int}/students/{student_id:int}/remove")
def remove_student(services: ServicesDep, access: EditableStudent) -> Response:
    """Delete a student and what they did."""
    services.store.courses.remove_student(access.student)
    services.store.audit_log.record(access.teacher, AuditAction.STUDENT_REMOVED, access.student)
    return RedirectResponse(f"/courses/{access.course.id}#roster", 303)


@router.post("/courses/{course_id:int}/students/{student_id:int}/free")
def free_student(services: ServicesDep, access: EditableStudent) -> Response:
    """Let a name be taken again, after somebody took the wrong one."""
    services.store.courses.free_student(access.student)
    services.store.audit_log.record(access.teacher, AuditAction.STUDENT_RELEASED, access.student)
    return RedirectResponse(f"/courses/{access.course.id}#roster", 303)


@router.post("/courses/{course_id:int}/staff")
def invite(request: Request, services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """A link that brings somebody onto the staff."""
    email = as_email(form.single_line("email", 300))
    if email is None:
        problem, typed = services.library.wording.say("class", "no-email"), form.single_line("email", 300)
        page = _course_page(services, access, problem=problem, about="staff", email=typed)
        return render("teacher/course.html", page, 422)
    role: Role = "instructor" if form.raw("role") == "instructor" else "assistant"
    token = services.store.people.add_link("invite", email, access.course.id, role)
    services.store.audit_log.record(access.teacher, AuditAction.STAFF_INVITED, access.course, role)
    link = f"{public_url(request, services.settings)}/links/{token}"
    return render("teacher/course.html", _course_page(services, access, invitation=link, invited=email))


@router.post("/courses/{course_id:int}/staff/{teacher_id:int}/remove")
def remove_from_staff(services: ServicesDep, access: EditableCourse, teacher_id: int) -> Response:
    """Take somebody off the staff; the last instructor stays."""
    if teacher_id not in {member.teacher_id for member in services.store.courses.staff(access.course)}:
        raise HTTPException(404)
    if not services.store.courses.remove_from_staff(access.course, teacher_id):
        problem = services.library.wording.say("class", "last-instructor")
        return render("teacher/course.html", _course_page(services, access, problem=problem, about="staff"), 409)
    services.store.audit_log.record(access.teacher, AuditAction.STAFF_REMOVED, access.course)
    mine = teacher_id == access.teacher.id
    return RedirectResponse("/courses" if mine else f"/courses/{access.course.id}#staff", 303)


def _problem(services: Services, title: str, zone: str) -> str:
    """What of a course's settings cannot be used, as a sentence."""
    if not title:
        return services.library.wording.say("class", "no-title")
    return "" if zone in available_timezones() else services.library.wording.say("class", "no-zone", zone=zone)


def _zones() -> tuple[str, ...]:
    """Time zones by the names people know: areas with a blank, and UTC."""
    named = (zone for zone in available_timezones() if "/" in zone and not zone.startswith(("Etc/", "SystemV/", "US/")))
    return ("UTC", *sorted(named))


def _courses_page(
    services: Services, teacher: Teacher, title: str = "", zone: str = "", problem: str = ""
) -> CoursesPage:
    return CoursesPage(teacher, services.store.courses.taught_by(teacher), _zones(), title, zone, problem)


def _course_page(services: Services, access: permissions.CourseAccess, **said: str) -> CoursePage:
    store, course = services.store, access.course
    staff = store.courses.staff(course)
    return CoursePage(
        access, store.activities.of_course(course), store.courses.students(course), staff, _zones(), **said
    )
