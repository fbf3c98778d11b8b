"""The courses of a teacher; a course's activities, roster, staff, settings and practice; the sample course."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.course_settings import (
    MAX_PRACTICE_SHEETS,
    MAX_TIME_ZONE_LENGTH,
    CoursePractice,
    course_worksheets,
    practice_library,
    practice_of,
    settings_problem,
    time_zone_names,
)
from app.classes.sample_course import add_sample_course
from app.practice.lessons import lessons_of
from app.practice.progress import ideas_to_repeat
from app.practice.record import PracticeRecord, RecordError, read_record
from app.sheets.library import Library
from app.store import AuditAction, Course, Role, Store, Teacher
from app.store.people import parse_email
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.cookies import SECRET_COOKIE, redirect_with_secret
from app.web.shared.forms import FormDep, cut_page, whole_number
from app.web.shared.permissions import CourseAccess, EditableCourse, InstructorCourse, SignedIn, StaffCourse
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.teacher_session import MAX_EMAIL_INPUT
from app.web.shared.templating import render
from app.web.shared.urls import public_url, url_for

router = APIRouter(include_in_schema=False)

MAX_ROSTER_COUNT = 9_999  # in an address
UNDO_OFFERED = timedelta(days=2)  # after an import


@router.get("/courses")
def list_courses(store: StoreDep, teacher: SignedIn, done: str = "") -> Response:
    return _render_courses(store, teacher, done=done)


@router.post("/courses")
def add_course(store: StoreDep, teacher: SignedIn, form: FormDep) -> Response:
    title, zone = form.single_line("title"), form.single_line("zone", MAX_TIME_ZONE_LENGTH)
    if problem := settings_problem(title, zone):
        return _render_courses(store, teacher, 422, title=title, zone=zone, problem=problem)
    course = store.courses.add(title, zone, teacher)
    return RedirectResponse(url_for("show_course", course_id=course.id), 303)


def _render_courses(store: Store, teacher: Teacher, status: int = 200, **shown: str) -> Response:
    names: dict[str, Any] = {"title": "", "zone": "", "done": "", "problem": "", **shown}
    courses = store.courses.taught_by(teacher)
    return render(
        "teacher/course_list.html", status=status, teacher=teacher, courses=courses, zones=time_zone_names(), **names
    )


@router.post("/courses/sample")
def add_sample(services: ServicesDep, teacher: SignedIn) -> Response:
    course = add_sample_course(services.library, services.tickets, services.store, teacher)
    return RedirectResponse(url_for("show_course", course_id=course.id), 303)


@router.post("/courses/{course_id:int}/remove-sample")
def delete_sample(store: StoreDep, access: InstructorCourse) -> Response:
    if not access.course.sample:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.SAMPLE_COURSE_DELETED, access.course):
        store.courses.delete(access.course)
    return RedirectResponse(url_for("list_courses"), 303)


# A course


@router.get("/courses/{course_id:int}")
def show_course(request: Request, services: ServicesDep, access: StaffCourse, done: str = "") -> Response:
    notices = {
        "restored": _("The course is restored."),
        "copied": _("This is the copy. Its activities are drafts until you open them."),
        "activity-deleted": _("The activity is deleted, with everything that was done in it."),
        "renamed": _("The student’s name and number are saved."),
        "merged": _("The two students have been merged."),
        "released": _("The name can be joined again."),
        "student-removed": _("The student is removed, with all their work."),
    }
    store, query = services.store, request.query_params
    shown: dict[str, Any] = {"notice": notices.get(done, "") or _roster_notice(query), "page": query.get("page", "")}
    token = request.cookies.get(SECRET_COOKIE, "") if access.can_edit else ""
    link = store.people.find_link(token) if token else None
    if link and link.email and link.course_id == access.course.id:
        address = public_url(request, services.settings) + url_for("show_account_link", token=token)
        shown |= {"invitation": address, "invited": link.email}
    return _render_course(store, access, **shown)


@router.post("/courses/{course_id:int}")
def change_course(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    title, zone = form.single_line("title"), form.single_line("zone", MAX_TIME_ZONE_LENGTH)
    typed: dict[str, Any] = {"problem_form": "settings", "title": title, "zone": zone, "version": form.raw("version")}
    if problem := settings_problem(title, zone):
        return _render_course(store, access, 422, problem=problem, **typed)
    with store.transaction():
        newest = store.courses.locked(access.course)
        if newest is None:
            raise HTTPException(404)
        is_newest = may_save(form, _version(newest), version_of(title, zone))
        if is_newest:
            store.courses.change(newest, title, zone)
    here = url_for("show_course", course_id=newest.id)
    if is_newest:
        return RedirectResponse(here, 303)
    both = {"title": newest.title, "zone": newest.time_zone}, {"title": title, "zone": zone}
    differing = differences({"title": _("Title"), "zone": _("Time zone")}, *both)
    return _render_course(store, access, 409, conflict=Conflict(_version(newest), differing, here), **typed)


@router.post("/courses/{course_id:int}/unlink")
def unlink_course(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Let a teacher choose anew what a learning platform's course and its links open."""
    contexts = {str(context.id): context for context in store.lti.courses_of(access.course)}
    if (context := contexts.get(form.raw("context"))) is None:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.LMS_COURSE_UNLINKED, access.course):
        store.lti.unlink_course(context)
    return RedirectResponse(url_for("show_course", course_id=access.course.id), 303)


@router.post("/courses/{course_id:int}/staff")
def invite_to_staff(request: Request, services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Make an invitation, and redirect to the course, which shows its link."""
    store, typed = services.store, form.single_line("email", MAX_EMAIL_INPUT)
    email = parse_email(typed)
    if email is None:
        problem = _("Enter an e-mail address, such as ada@example.org.")
        return _render_course(store, access, 422, problem=problem, problem_form="staff", email=typed)
    role: Role = "instructor" if form.raw("role") == "instructor" else "assistant"
    with store.audit_log.recording(access.teacher, AuditAction.STAFF_INVITED, access.course, role):
        token = store.people.add_link("invite", email, access.course.id, role)
    address = url_for("show_course", course_id=access.course.id)
    return redirect_with_secret(request, f"{address}#staff", token, address)


@router.post("/courses/{course_id:int}/staff/{teacher_id:int}/remove")
def remove_from_staff(store: StoreDep, access: EditableCourse, teacher_id: int) -> Response:
    if teacher_id not in {member.teacher_id for member in store.courses.staff(access.course)}:
        raise HTTPException(404)
    with store.transaction():
        removed = store.courses.remove_from_staff(access.course, teacher_id)
        if removed:
            store.audit_log.record(access.teacher, AuditAction.STAFF_REMOVED, access.course)
    if not removed:
        problem = _("A course needs at least one teacher.")
        return _render_course(store, access, 409, problem=problem, problem_form="staff")
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


def _render_course(store: Store, access: CourseAccess, status: int = 200, *, page: str = "", **shown: Any) -> Response:
    course, now = access.course, store.now()
    students, joined = store.roster.count(course)
    numbers, pager = cut_page(range(students), page)
    last_import = store.roster.last_import(course) if access.can_edit else None
    idle = store.roster.idle_newcomers(course) if access.can_edit else ()
    platforms = {platform.id: platform.name for platform in store.lti.platforms()}
    names: dict[str, Any] = {
        "contexts": [
            (context, platforms[context.platform_id]) for context in store.lti.courses_of(course) if access.can_edit
        ],
        "activities": [(activity, activity.phase(now)) for activity in store.activities.of_course(course)],
        "students": store.roster.students(course, numbers[0], len(numbers)) if numbers else (),
        "pager": pager,
        "joined": joined,
        "staff": store.courses.staff(course),
        "zones": time_zone_names(),
        "last_import": last_import if last_import and now - last_import.at <= UNDO_OFFERED else None,
        "idle": idle,
        "newest_idle": max((student.id for student in idle), default=0),
        "notice": "",
        "problem": "",
        "problem_form": "",
        "invitation": "",
        "invited": "",
        "email": "",
        "title": course.title,
        "zone": course.time_zone,
        "version": _version(course),
        "conflict": None,
    }
    return render("teacher/course.html", status=status, access=access, **(names | shown))


# What is practised for a course


@router.get("/courses/{course_id:int}/practice")
def show_course_practice(services: ServicesDep, access: StaffCourse, done: str = "") -> Response:
    notices = {
        "saved": _(
            "Saved. Students who practise in the browser they joined with are told that you see their progress."
        ),
        "ended": _("This course’s practice has ended, and its students’ progress is deleted."),
    }
    practice = practice_of(services.store, access.course)
    return _render_practice(services, access, practice, notice=notices.get(done, ""))


@router.post("/courses/{course_id:int}/practice")
def save_course_practice(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Save what is practised or, with `end`, delete the practice and the students' progress in it."""
    store, course = services.store, access.course
    if form.raw("end"):
        with store.audit_log.recording(access.teacher, AuditAction.PRACTICE_ENDED, course):
            store.courses.set_practice(course, None)
        return RedirectResponse(url_for("show_course_practice", course_id=course.id, done="ended"), 303)
    titles = {each.key: each.title for each in course_worksheets(store, course)}
    practice = CoursePractice(tuple(dict.fromkeys(key for key in form.all("worksheet") if key in titles)))
    typed: dict[str, Any] = {"ticked": practice.worksheets, "version": form.raw("version")}
    if problem := _practice_problem(practice_library(services.library, store, course, practice), practice, titles):
        return _render_practice(services, access, practice_of(store, course), 422, problem=problem, **typed)
    with store.transaction():
        store.courses.locked(course)
        newest = practice_of(store, course)
        is_newest = may_save(form, _practice_version(newest), _practice_version(practice))
        if is_newest:
            store.courses.set_practice(course, practice.as_json)
            store.audit_log.record(access.teacher, AuditAction.PRACTICE_SET, course)
    if is_newest:
        return RedirectResponse(url_for("show_course_practice", course_id=course.id, done="saved"), 303)
    both = (
        {"worksheets": "\n".join(titles.get(key, key) for key in each.worksheets)}
        for each in (newest or CoursePractice(), practice)
    )
    differing = differences({"worksheets": _("Worksheets")}, *both)
    here = url_for("show_course_practice", course_id=course.id)
    conflict = Conflict(_practice_version(newest), differing, here)
    return _render_practice(services, access, newest, 409, conflict=conflict, **typed)


def _practice_version(practice: CoursePractice | None) -> str:
    return version_of(practice and practice.as_json)


def _practice_problem(library: Library, practice: CoursePractice, titles: Mapping[str, str]) -> str:
    if len(practice.worksheets) > MAX_PRACTICE_SHEETS:
        return _("Choose at most {most} own worksheets.").format(most=MAX_PRACTICE_SHEETS)
    if unusable := [titles[key] for key in practice.worksheets if key not in library.worksheets]:
        sentence = _("These can’t be used any more; their pages say why: {titles}.")
        return sentence.format(titles=", ".join(unusable))
    return ""


def _render_practice(
    services: Services, access: CourseAccess, practice: CoursePractice | None, status: int = 200, **shown: Any
) -> Response:
    store, course = services.store, access.course
    roster, records = store.roster.students(course), store.roster.practice_records(course)
    library = practice_library(services.library, store, course, practice) if practice else services.library
    students = [(each, *_progress(library, records[each.id])) for each in roster if each.id in records]
    names: dict[str, Any] = {
        "is_on": practice is not None,
        "worksheets": course_worksheets(store, course),
        "ticked": practice.worksheets if practice else (),
        "lessons": lessons_of(library),
        "students": students,
        "ideas": Counter(idea for _student, _done, again in students for idea in again).most_common(),
        "enrolled": len(roster),
        "version": _practice_version(practice),
        "conflict": None,
        "notice": "",
        "problem": "",
    }
    return render("teacher/course_practice.html", status=status, access=access, **(names | shown))


def _progress(library: Library, text: str) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """How many sheets of each lesson a student has done, of how many; and what to repeat."""
    try:
        record = read_record(library, text)
    except RecordError:
        record = PracticeRecord()
    done = [(len(set(lesson.sheets) & set(record.done)), len(lesson.sheets)) for lesson in lessons_of(library)]
    return done, ideas_to_repeat(library, record)
