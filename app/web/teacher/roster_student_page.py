"""/courses/C/students/S: a student's name, number and extra time, and ways to merge, release and remove them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import MAX_MINUTES
from app.classes.roster_check import rename_and_record
from app.classes.roster_lookup import names_with_numbers, sorted_by_likeness
from app.exchange.class_list import MAX_ENTRY_LENGTH
from app.names import RosterEntry
from app.store import Activity, AuditAction, Store, Student
from app.store.student_merge import MergePreview
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.forms import FormDep, whole_number
from app.web.shared.permissions import LARGEST_ID, EditableStudent, RosterStudentAccess
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ChosenMerge:
    """The student to merge another one into, and what that would do."""

    into: Student
    into_name: str  # as shown, with the number if others in the course have the same name
    preview: MergePreview
    replaced_grades: tuple[str, ...]  # titles of the activities


@dataclass(frozen=True)
class RosterStudentPage:
    """Everything that templates/teacher/roster_student.html shows."""

    access: Annotated[RosterStudentAccess, Doc("The course, and the teacher.")]
    student: Annotated[Student, Doc("The student.")]
    shown_name: Annotated[str, Doc("The name, with the number where others of the course have the same name.")]
    others: Annotated[tuple[tuple[int, str], ...], Doc("Ids and names of the other students, similar names first.")]
    merge: Annotated[ChosenMerge | None, Doc("The merge that was chosen and is not done yet; None for none.")]
    name: Annotated[str, Doc("The name as typed, to be corrected.")]
    version: Annotated[str, Doc("The version of name and number that the form was opened with.")]
    activities: Annotated[tuple[Activity, ...], Doc("The course's activities, with this student's extra time.")]
    number: Annotated[str, Doc("The number as typed, to be corrected.")]
    conflict: Annotated[Conflict | None, Doc("A newer version that somebody else saved.")] = None
    problem: Annotated[str, Doc("The sentence about name and number, empty where there is none.")] = ""
    time_problem: Annotated[str, Doc("The sentence about the extra time, empty where there is none.")] = ""
    chosen: Annotated[int, Doc("The id of the activity that was chosen for extra time; 0 for none.")] = 0
    minutes: Annotated[str, Doc("The extra time as typed, to be corrected.")] = ""


@router.get("/courses/{course_id:int}/students/{student_id:int}")
def show_roster_student(store: StoreDep, access: EditableStudent, merge: str = "") -> Response:
    """The page of a student on the roster; `merge` is the id of a student to preview a merge into, if any."""
    return render("teacher/roster_student.html", _student_page(store, access, merge=merge))


@router.post("/courses/{course_id:int}/students/{student_id:int}")
def rename_student(store: StoreDep, access: EditableStudent, form: FormDep) -> Response:
    """Change name and number, and go to the roster; 409 as typed if somebody else changed them first."""
    name, number = form.single_line("name", MAX_ENTRY_LENGTH), form.single_line("number", MAX_ENTRY_LENGTH)
    with store.transaction():
        store.courses.locked(access.course)
        newest = store.roster.find_student(access.student.id)
        if newest is None:
            raise HTTPException(404)
        is_newest = may_save(form, _version(newest), version_of(name, number or None))
        if is_newest and name and rename_and_record(store, access.teacher, newest, RosterEntry(name, number or None)):
            return _back_to_roster(access, "renamed")
    if name and not is_newest:
        page = _student_page(store, access, typed=(name, number))
        page = replace(page, version=form.raw("version"), conflict=_conflict(access, newest, name, number))
        return render("teacher/roster_student.html", page, 409)
    if not name:
        problem = _("Enter a name.")
    elif number:
        problem = _("Another student of this course has the number {number}.").format(number=number)
    else:
        problem = _(
            "Another student without a number is called {name}. Give one of them a number, or change this name."
        ).format(name=name)
    page = replace(_student_page(store, access, typed=(name, number), problem=problem), version=form.raw("version"))
    return render("teacher/roster_student.html", page, 422)


@router.post("/courses/{course_id:int}/students/{student_id:int}/extra-time")
def set_extra_time(store: StoreDep, access: EditableStudent, form: FormDep) -> Response:
    """Set a student's extra `minutes` in the form's `activity`; 0 removes them."""
    activity_id = whole_number(form.raw("activity"), LARGEST_ID, lowest=1)
    activity = store.activities.find(activity_id) if activity_id else None
    if activity is None or activity.course_id != access.course.id:
        raise HTTPException(404)
    typed = form.single_line("minutes")
    minutes = whole_number(typed, MAX_MINUTES)
    if minutes is None:
        problem = _("Enter a whole number of minutes from 0 to {most:,}.").format(most=MAX_MINUTES)
        page = replace(_student_page(store, access), time_problem=problem, chosen=activity.id, minutes=typed)
        return render("teacher/roster_student.html", page, 422)
    detail = f"activity {activity.id}: {minutes} min"
    with store.audit_log.recording(access.teacher, AuditAction.EXTRA_TIME_SET, access.student, detail):
        store.activities.set_extra_time(activity, access.student.id, minutes)
    address = url_for("show_roster_student", course_id=access.course.id, student_id=access.student.id)
    return RedirectResponse(f"{address}#extra-time", 303)


@router.post("/courses/{course_id:int}/students/{student_id:int}/merge")
def merge_student(store: StoreDep, access: EditableStudent, form: FormDep) -> Response:
    """Merge the student, with all their work, into another one of the course, and redirect to the roster."""
    into = _other_student(store, access, form.raw("into"))
    if into is None:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.STUDENTS_MERGED, into, f"student {access.student.id}"):
        if not store.student_merge.merge(into, access.student):
            raise HTTPException(404)
    return _back_to_roster(access, "merged")


@router.post("/courses/{course_id:int}/students/{student_id:int}/remove")
def remove_student(store: StoreDep, access: EditableStudent) -> Response:
    """Delete a student with all their work except anonymous exit-ticket answers, and redirect to the roster."""
    with store.audit_log.recording(
        access.teacher, AuditAction.STUDENT_REMOVED, access.course, f"student {access.student.id}"
    ):
        store.roster.remove_student(access.student)
    return _back_to_roster(access, "student-removed")


@router.post("/courses/{course_id:int}/students/{student_id:int}/free")
def release_student(store: StoreDep, access: EditableStudent) -> Response:
    """Let the student's name be claimed again after the wrong person took it; the work under it stays."""
    with store.audit_log.recording(access.teacher, AuditAction.STUDENT_RELEASED, access.student):
        store.roster.release_student(access.student)
    return _back_to_roster(access, "released")


def _version(student: Student) -> str:
    return version_of(student.name, student.roster_key)


def _conflict(access: RosterStudentAccess, newest: Student, name: str, number: str) -> Conflict:
    both = {"name": newest.name, "number": newest.roster_key or ""}, {"name": name, "number": number}
    newest_page = url_for("show_roster_student", course_id=access.course.id, student_id=newest.id)
    return Conflict(_version(newest), differences({"name": _("Name"), "number": _("Number")}, *both), newest_page)


def _back_to_roster(access: RosterStudentAccess, done: str) -> Response:
    return RedirectResponse(f"{url_for('show_course', course_id=access.course.id)}?done={done}#roster", 303)


def _other_student(store: Store, access: RosterStudentAccess, student_id: str) -> Student | None:
    number = whole_number(student_id, LARGEST_ID, lowest=1)
    other = store.roster.find_student(number) if number else None
    return other if other and other.course_id == access.course.id and other.id != access.student.id else None


def _student_page(
    store: Store,
    access: RosterStudentAccess,
    *,
    merge: str = "",
    typed: tuple[str, str] | None = None,
    problem: str = "",
) -> RosterStudentPage:
    student, everybody = access.student, store.roster.students(access.course)
    names = names_with_numbers(everybody)
    others = tuple((other.id, names[other.id]) for other in sorted_by_likeness(student, everybody))
    into = _other_student(store, access, merge)
    chosen = _chosen_merge(store, access, into, names[into.id]) if into else None
    name, number = typed or (student.name, student.roster_key or "")
    activities = store.activities.of_student(student)
    return RosterStudentPage(
        access, student, names[student.id], others, chosen, name, _version(student), activities, number, problem=problem
    )


def _chosen_merge(store: Store, access: RosterStudentAccess, into: Student, into_name: str) -> ChosenMerge:
    preview = store.student_merge.preview(into, access.student)
    titles = {activity.id: activity.plan.title for activity in store.activities.of_course(access.course)}
    return ChosenMerge(into, into_name, preview, tuple(titles[activity_id] for activity_id in preview.replaced_grades))
