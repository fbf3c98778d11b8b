"""A course: its activities, its roster, its staff and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.course_settings import MAX_TIME_ZONE_LENGTH, settings_problem, time_zone_names
from app.store import Activity, AuditAction, Course, Phase, Role, StaffMember, Store, Student
from app.store.people import parse_email
from app.store.roster import RosterImport
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared import permissions
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.cookies import SECRET_COOKIE, redirect_with_secret
from app.web.shared.forms import FormDep, Pager, cut_page, whole_number
from app.web.shared.permissions import EditableCourse, StaffCourse
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.teacher_session import MAX_EMAIL_INPUT
from app.web.shared.templating import render
from app.web.shared.urls import public_url, url_for

router = APIRouter(include_in_schema=False)

NAMES_SHOWN = 12  # students who could be removed
MAX_ROSTER_COUNT = 9_999  # in an address
UNDO_OFFERED = timedelta(days=2)  # after an import


@dataclass(frozen=True)
class IdleNewcomers:
    """Students who joined with the code and have done nothing: how many, the first names, and how many others.

    `newest` is the highest of their ids.
    """

    count: int
    names: tuple[str, ...]
    others: int
    newest: int


@dataclass(frozen=True)
class CoursePage:
    """Everything that templates/teacher/course.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, the signed-in teacher and their role in it.")]
    activities: Annotated[tuple[tuple[Activity, Phase], ...], Doc("Its activities with their phases, newest first.")]
    students: Annotated[tuple[Student, ...], Doc("Its roster, by name: those on this page of it.")]
    pager: Annotated[Pager, Doc("Which page of the roster this is.")]
    joined: Annotated[int, Doc("How many of all students have joined.")]
    staff: Annotated[tuple[StaffMember, ...], Doc("Its teachers and assistants.")]
    zones: Annotated[tuple[str, ...], Doc("The time zones to choose from.")]
    last_import: Annotated[RosterImport | None, Doc("Students added together of late, to be undone; None for none.")]
    idle: Annotated[
        IdleNewcomers | None, Doc("Students who joined with the code and have done nothing, if there are any.")
    ]
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""
    problem_form: Annotated[str, Doc("Which form the problem is about: settings or staff.")] = ""
    invitation: Annotated[str, Doc("The link of a new invitation, which is shown for some minutes.")] = ""
    invited: Annotated[str, Doc("The e-mail address that the invitation is for.")] = ""
    email: Annotated[str, Doc("The e-mail address as typed, to be corrected.")] = ""
    title: Annotated[str, Doc("The course's title, or what was typed in its place, to be corrected.")] = ""
    zone: Annotated[str, Doc("The same of its time zone.")] = ""
    version: Annotated[str, Doc("The version of title and time zone that the form was opened with.")] = ""
    conflict: Annotated[Conflict | None, Doc("A newer version that somebody else saved.")] = None


@router.get("/courses/{course_id:int}")
def show_course(request: Request, services: ServicesDep, access: StaffCourse, done: str = "") -> Response:
    """A course's page for its staff, with a sentence for `done` or about the roster."""
    notices = {
        "restored": _("The course is restored."),
        "copied": _("This is the copy. Its activities are drafts until you open them."),
        "activity-deleted": _("The activity is deleted, with everything that was done in it."),
        "renamed": _("The student’s name and number are saved."),
        "merged": _("The two students have been merged."),
        "released": _("The name can be joined again."),
        "student-removed": _("The student is removed, with all their work."),
    }
    store, settings = services.store, services.settings
    notice = notices.get(done, "") or _roster_notice(request.query_params)
    page = _course_page(store, access, request.query_params.get("page", ""), notice=notice)
    token = request.cookies.get(SECRET_COOKIE, "") if access.can_edit else ""
    link = store.people.find_link(token) if token else None
    if link and link.email and link.course_id == access.course.id:
        address = public_url(request, settings) + url_for("show_account_link", token=token)
        page = replace(page, invitation=address, invited=link.email)
    return render("teacher/course.html", page)


@router.post("/courses/{course_id:int}")
def change_course(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Change title and time zone, and redirect to the course; 409 as typed if somebody else changed them first."""
    title, zone = form.single_line("title"), form.single_line("zone", MAX_TIME_ZONE_LENGTH)
    version = form.raw("version")
    if problem := settings_problem(title, zone):
        page = _course_page(store, access, problem=problem, problem_form="settings", title=title, zone=zone)
        return render("teacher/course.html", replace(page, version=version), 422)
    with store.transaction():
        newest = store.courses.locked(access.course)
        if newest is None:
            raise HTTPException(404)
        is_newest = may_save(form, _version(newest), version_of(title, zone))
        if is_newest:
            store.courses.change(newest, title, zone)
    if not is_newest:
        both = {"title": newest.title, "zone": newest.time_zone}, {"title": title, "zone": zone}
        differing = differences({"title": _("Title"), "zone": _("Time zone")}, *both)
        conflict = Conflict(_version(newest), differing, url_for("show_course", course_id=newest.id))
        page = _course_page(store, access, problem_form="settings", title=title, zone=zone)
        return render("teacher/course.html", replace(page, version=version, conflict=conflict), 409)
    return RedirectResponse(url_for("show_course", course_id=access.course.id), 303)


@router.post("/courses/{course_id:int}/staff")
def invite_to_staff(request: Request, services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Make an invitation to the staff, with an audit entry, and redirect to the course, which shows its link."""
    store, typed = services.store, form.single_line("email", MAX_EMAIL_INPUT)
    email = parse_email(typed)
    if email is None:
        problem = _("Enter an e-mail address, such as ada@example.org.")
        page = _course_page(store, access, problem=problem, problem_form="staff", email=typed)
        return render("teacher/course.html", page, 422)
    role: Role = "instructor" if form.raw("role") == "instructor" else "assistant"
    with store.audit_log.recording(access.teacher, AuditAction.STAFF_INVITED, access.course, role):
        token = store.people.add_link("invite", email, access.course.id, role)
    address = url_for("show_course", course_id=access.course.id)
    return redirect_with_secret(request, f"{address}#staff", token, address)


@router.post("/courses/{course_id:int}/staff/{teacher_id:int}/remove")
def remove_from_staff(store: StoreDep, access: EditableCourse, teacher_id: int) -> Response:
    """Take a teacher off the staff, with an audit entry, and redirect to the course."""
    if teacher_id not in {member.teacher_id for member in store.courses.staff(access.course)}:
        raise HTTPException(404)
    with store.transaction():
        removed = store.courses.remove_from_staff(access.course, teacher_id)
        if removed:
            store.audit_log.record(access.teacher, AuditAction.STAFF_REMOVED, access.course)
    if not removed:
        problem = _("A course needs at least one teacher.")
        return render("teacher/course.html", _course_page(store, access, problem=problem, problem_form="staff"), 409)
    if teacher_id == access.teacher.id:
        return RedirectResponse(url_for("list_courses"), 303)
    return RedirectResponse(url_for("show_course", course_id=access.course.id) + "#staff", 303)


def _version(course: Course) -> str:
    return version_of(course.title, course.time_zone)


def _roster_notice(counts: Mapping[str, str]) -> str:
    numbers = {name: whole_number(text, MAX_ROSTER_COUNT) or 0 for name, text in counts.items()}
    if "added" in counts:
        added, named, numbered = (numbers.get(key, 0) for key in ("added", "renamed", "numbered"))
        done = [ngettext("{count} student added", "{count} students added", added).format(count=added)]
        if named:
            done.append(ngettext("{count} name changed", "{count} names changed", named).format(count=named))
        if numbered:
            done.append(ngettext("{count} number added", "{count} numbers added", numbered).format(count=numbered))
        sentence = ", ".join(done) + "."
        if known := numbers.get("known"):
            sentence += " " + _("Already on the roster: {there}.").format(there=known)
        return sentence
    if "removed" in counts:
        kept = numbers.get("kept")
        sentence = _("Removed: {gone}. Kept, because they have joined or have work: {kept}.")
        return (sentence if kept else _("Removed: {gone}.")).format(gone=numbers["removed"], kept=kept)
    return ""


def _idle_newcomers(students: Sequence[Student]) -> IdleNewcomers | None:
    if not students:
        return None
    names = tuple(student.name for student in students[:NAMES_SHOWN])
    newest = max(student.id for student in students)
    return IdleNewcomers(len(students), names, len(students) - len(names), newest)


def _course_page(store: Store, access: permissions.CourseAccess, page: str = "", **texts: Any) -> CoursePage:
    course, now = access.course, store.now()
    activities = tuple((activity, activity.phase(now)) for activity in store.activities.of_course(course))
    students, joined = store.roster.count(course)
    numbers, pager = cut_page(range(students), page)
    listed = store.roster.students(course, numbers[0], len(numbers)) if numbers else ()
    last_import = store.roster.last_import(course) if access.can_edit else None
    if last_import and now - last_import.at > UNDO_OFFERED:
        last_import = None
    idle = _idle_newcomers(store.roster.idle_newcomers(course)) if access.can_edit else None
    staff = store.courses.staff(course)
    texts = {"title": course.title, "zone": course.time_zone, "version": _version(course), **texts}
    return CoursePage(access, activities, listed, pager, joined, staff, time_zone_names(), last_import, idle, **texts)
