"""A course's students: class lists with a preview, and each student's name, number, extra time, merging and removal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import MAX_MINUTES
from app.classes.roster_check import CheckedEntry, check_entries, rename_and_record
from app.classes.roster_lookup import names_with_numbers, sorted_by_likeness
from app.exchange.class_list import (
    MAX_ENTRY_LENGTH,
    ChosenColumns,
    RosterError,
    read_roster_rows,
    sure_entries,
    write_roster,
)
from app.lti.roster import fetch_roster
from app.lti.services import PlatformError
from app.names import RosterEntry
from app.store import AuditAction, Course, Store, Student
from app.translation import gettext as _
from app.web.shared.conflicts import Conflict, differences, may_save, version_of
from app.web.shared.forms import MAX_TEXT, FormDep, FormReader, whole_number
from app.web.shared.permissions import LARGEST_ID, CourseAccess, EditableCourse, EditableStudent, RosterStudentAccess
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_ROSTER_STUDENTS = 2_000  # per class list
MAX_ODD = 200  # rows with a choice; nobody would check more
MAX_COLUMN = 1_000


# Class lists


@router.post("/courses/{course_id:int}/students/preview")
def preview_students(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Show what an uploaded or pasted class list would add to the roster; nothing is stored."""
    try:
        rows = read_roster_rows(form.file or form.raw("roster", MAX_BODY), MAX_ROSTER_STUDENTS, _chosen_columns(form))
    except RosterError as error:
        return _refuse_list(access, form, error)
    checked = check_entries(rows.entries, store.roster.students(access.course))
    if rows.guessed_titles:
        checked = (CheckedEntry(rows.guessed_titles, "odd", "titles"), *checked)
    odd = [each for each in checked if each.kind == "odd"][:MAX_ODD]
    return render(
        "teacher/roster_import.html",
        access=access,
        entries=sorted(checked, key=lambda each: ("odd", "new", "known").index(each.kind)),
        counts=Counter(each.kind for each in checked),
        left_out=rows.left_out,
        columns=rows.columns,
        guessed=rows.guessed_titles is not None,
        new=write_roster(each.entry for each in checked if each.kind == "new"),
        odd=[(write_roster([each.entry]), each) for each in odd],
        roster=rows.text,
        problem="",
    )


@router.post("/courses/{course_id:int}/students")
def add_students(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Add the students of a previewed class list, and do what was chosen for each of its odd rows."""
    try:
        choices = list(_read_odd_choices(form))
        pasted = form.file or form.optional("roster", MAX_BODY)  # empty if a preview had nobody new
        entries = [] if pasted == "" else list(sure_entries(read_roster_rows(pasted or "", MAX_ROSTER_STUDENTS)))
        entries += [entry for choice, entry in choices if choice == "add"]
        changes = [
            (student, entry) for choice, entry in choices if (student := _find_student(store, access.course, choice))
        ]
    except RosterError as error:
        return _refuse_list(access, form, error)
    with store.transaction():
        renamed = numbered = 0
        for student, entry in {student.id: (student, entry) for student, entry in changes}.values():
            if rename_and_record(store, access.teacher, student, entry):
                renamed += entry.name != student.name
                numbered += entry.number != student.roster_key
        added = store.roster.add_students(access.course, entries)
        if added:
            store.audit_log.record(access.teacher, AuditAction.STUDENTS_ADDED, access.course, f"{added}")
    known = len(entries) - added
    return _back_to_roster(access.course, added=added, known=known, renamed=renamed, numbered=numbered)


@router.post("/courses/{course_id:int}/students/undo-import")
def undo_import(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Remove an import's students from the roster, except those who have joined, opened an activity or have work."""
    with store.transaction():
        removed, kept = store.roster.undo_import(access.course, form.single_line("import", 32))
        if removed or kept:
            store.audit_log.record(access.teacher, AuditAction.IMPORT_UNDONE, access.course, f"{removed}")
    return _back_to_roster(access.course, removed=removed, kept=kept)


@router.post("/courses/{course_id:int}/students/remove-idle")
def remove_idle_newcomers(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Remove the students who joined with the code, aren't on the roster, and have no work."""
    newest = whole_number(form.raw("newest"), LARGEST_ID) or 0
    with store.transaction():
        removed = store.roster.remove_idle_newcomers(access.course, newest)
        store.audit_log.record(access.teacher, AuditAction.NEWCOMERS_REMOVED, access.course, f"{removed}")
    return _back_to_roster(access.course, removed=removed)


@router.post("/courses/{course_id:int}/students/fetch")
@in_threads("roster")
def fetch_students(services: ServicesDep, access: EditableCourse, form: FormDep) -> Response:
    """Add the students of the learning platform's course that belongs to this one."""
    store, asked = services.store, whole_number(form.raw("context"), LARGEST_ID)
    context = next((each for each in store.lti.courses_of(access.course) if each.id == asked), None)
    platform = store.lti.platform(context.platform_id) if context else None
    if context is None or platform is None:
        raise HTTPException(404)
    shown: dict[str, Any] = {"access": access, "platform": platform.name, "context": context}
    try:
        fetched = fetch_roster(store, services.platform_services, platform, context, access.course)
    except PlatformError as error:
        return render("teacher/roster_fetched.html", status=409, fetched=None, problem=str(error), **shown)
    if fetched.added:
        store.audit_log.record(access.teacher, AuditAction.STUDENTS_ADDED, access.course, f"{fetched.added}")
    return render("teacher/roster_fetched.html", fetched=fetched, problem="", **shown)


def _read_odd_choices(form: FormReader) -> Iterator[tuple[str, RosterEntry]]:
    """What to do with each odd row, "add" or the id of a student to change; its field has that above the row."""
    for name in form.names("odd-"):
        choice, _line, row = form.raw(name, MAX_TEXT).partition("\n")
        if row:  # there is none if the row is left out
            yield from ((choice.strip(), entry) for entry in read_roster_rows(row).entries)


def _chosen_columns(form: FormReader) -> ChosenColumns | None:
    if form.optional("number") is None:
        return None
    first, last, number = (whole_number(form.raw(name), MAX_COLUMN) for name in ("first", "last", "number"))
    return first, last, number


def _refuse_list(access: CourseAccess, form: FormReader, error: RosterError) -> Response:
    roster = form.raw("roster", MAX_BODY)
    return render("teacher/roster_import.html", status=422, access=access, roster=roster, problem=str(error))


def _find_student(store: Store, course: Course, student_id: str) -> Student | None:
    number = whole_number(student_id, LARGEST_ID, lowest=1)
    student = store.roster.find_student(number) if number else None
    return student if student and student.course_id == course.id else None


def _back_to_roster(course: Course, **done: str | int) -> Response:
    return RedirectResponse(url_for("show_course", course_id=course.id, **done) + "#roster", 303)


# A student


@router.get("/courses/{course_id:int}/students/{student_id:int}")
def show_roster_student(store: StoreDep, access: EditableStudent, merge: str = "") -> Response:
    """The page of a student on the roster; `merge` is the id of a student to preview a merge into, if any."""
    return _render_student(store, access, merge=merge)


@router.post("/courses/{course_id:int}/students/{student_id:int}")
def rename_student(store: StoreDep, access: EditableStudent, form: FormDep) -> Response:
    name, number = form.single_line("name", MAX_ENTRY_LENGTH), form.single_line("number", MAX_ENTRY_LENGTH)
    with store.transaction():
        store.courses.locked(access.course)
        newest = store.roster.find_student(access.student.id)
        if newest is None:
            raise HTTPException(404)
        is_newest = may_save(form, _version(newest), version_of(name, number or None))
        if is_newest and name and rename_and_record(store, access.teacher, newest, RosterEntry(name, number or None)):
            return _back_to_roster(access.course, done="renamed")
    typed: dict[str, Any] = {"name": name, "number": number, "version": form.raw("version")}
    if name and not is_newest:
        return _render_student(store, access, 409, conflict=_conflict(access, newest, name, number), **typed)
    if not name:
        problem = _("Enter a name.")
    elif number:
        problem = _("Another student of this course has the number {number}.").format(number=number)
    else:
        problem = _(
            "Another student without a number is called {name}. Give one of them a number, or change this name."
        ).format(name=name)
    return _render_student(store, access, 422, problem=problem, **typed)


@router.post("/courses/{course_id:int}/students/{student_id:int}/extra-time")
def set_extra_time(store: StoreDep, access: EditableStudent, form: FormDep) -> Response:
    activity_id = whole_number(form.raw("activity"), LARGEST_ID, lowest=1)
    activity = store.activities.find(activity_id) if activity_id else None
    if activity is None or activity.course_id != access.course.id:
        raise HTTPException(404)
    typed = form.single_line("minutes")
    minutes = whole_number(typed, MAX_MINUTES)
    if minutes is None:
        problem = _("Enter a whole number of minutes from 0 to {most:,}.").format(most=MAX_MINUTES)
        return _render_student(store, access, 422, time_problem=problem, chosen=activity.id, minutes=typed)
    detail = f"activity {activity.id}: {minutes} min"
    with store.audit_log.recording(access.teacher, AuditAction.EXTRA_TIME_SET, access.student, detail):
        store.activities.set_extra_time(activity, access.student.id, minutes)
    address = url_for("show_roster_student", course_id=access.course.id, student_id=access.student.id)
    return RedirectResponse(f"{address}#extra-time", 303)


@router.post("/courses/{course_id:int}/students/{student_id:int}/merge")
def merge_student(store: StoreDep, access: EditableStudent, form: FormDep) -> Response:
    """Merge the student, with all their work, into another one of the course."""
    into = _other_student(store, access, form.raw("into"))
    if into is None:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.STUDENTS_MERGED, into, f"student {access.student.id}"):
        if not store.student_merge.merge(into, access.student):
            raise HTTPException(404)
    return _back_to_roster(access.course, done="merged")


@router.post("/courses/{course_id:int}/students/{student_id:int}/remove")
def remove_student(store: StoreDep, access: EditableStudent) -> Response:
    """Delete a student with all their work except anonymous exit-ticket answers."""
    detail = f"student {access.student.id}"
    with store.audit_log.recording(access.teacher, AuditAction.STUDENT_REMOVED, access.course, detail):
        store.roster.remove_student(access.student)
    return _back_to_roster(access.course, done="student-removed")


@router.post("/courses/{course_id:int}/students/{student_id:int}/free")
def release_student(store: StoreDep, access: EditableStudent) -> Response:
    """Let the student's name be claimed again after the wrong person took it; the work under it stays."""
    with store.audit_log.recording(access.teacher, AuditAction.STUDENT_RELEASED, access.student):
        store.roster.release_student(access.student)
    return _back_to_roster(access.course, done="released")


def _version(student: Student) -> str:
    return version_of(student.name, student.roster_key)


def _conflict(access: RosterStudentAccess, newest: Student, name: str, number: str) -> Conflict:
    both = {"name": newest.name, "number": newest.roster_key or ""}, {"name": name, "number": number}
    newest_page = url_for("show_roster_student", course_id=access.course.id, student_id=newest.id)
    return Conflict(_version(newest), differences({"name": _("Name"), "number": _("Number")}, *both), newest_page)


def _other_student(store: Store, access: RosterStudentAccess, student_id: str) -> Student | None:
    other = _find_student(store, access.course, student_id)
    return other if other and other.id != access.student.id else None


def _render_student(
    store: Store, access: RosterStudentAccess, status: int = 200, *, merge: str = "", **shown: Any
) -> Response:
    student, everybody = access.student, store.roster.students(access.course)
    shown_names = names_with_numbers(everybody)
    names: dict[str, Any] = {
        "student": student,
        "shown_names": shown_names,
        "others": sorted_by_likeness(student, everybody),
        "activities": store.activities.of_student(student),
        "into": None,
        "name": student.name,
        "number": student.roster_key or "",
        "version": _version(student),
        "conflict": None,
        "problem": "",
        "time_problem": "",
        "chosen": 0,
        "minutes": "",
    }
    if into := _other_student(store, access, merge):
        preview = store.student_merge.preview(into, student)
        titles = {activity.id: activity.plan.title for activity in store.activities.of_course(access.course)}
        replaced = [titles[activity_id] for activity_id in preview.replaced_grades]
        names |= {"into": into, "preview": preview, "replaced_grades": replaced}
    return render("teacher/roster_student.html", status=status, access=access, **(names | shown))
