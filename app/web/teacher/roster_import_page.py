"""/courses/C/students/preview: what a class list would add, before it is added; and removing many students at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.roster_check import CheckedEntry, check_entries, rename_and_record
from app.exchange.class_list import (
    Choice,
    Columns,
    RosterError,
    read_roster_rows,
    sure_entries,
    write_roster,
)
from app.store import AuditAction, Store, Student
from app.web.shared.forms import MAX_TEXT, FormDep, FormReader, whole_number
from app.web.shared.permissions import LARGEST_ID, CourseAccess, EditableCourse
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_ROSTER_STUDENTS = 2_000  # per class list
MAX_ODD = 200  # rows with a choice; nobody would check more
MAX_COLUMN = 1_000


@dataclass(frozen=True)
class RosterImportPage:
    """Everything that templates/teacher/roster_import.html shows."""

    access: Annotated[CourseAccess, Doc("The course, and the teacher.")]
    entries: Annotated[tuple[CheckedEntry, ...], Doc("The rows of the class list, odd ones first.")] = ()
    counts: Annotated[Mapping[str, int], Doc("How many rows are new, known and odd.")] = field(default_factory=dict)
    left_out: Annotated[tuple[str, ...], Doc("Rows that are no students, such as the points possible.")] = ()
    columns: Annotated[Columns | None, Doc("The columns of the list and which are taken; None without titles.")] = None
    guessed: Annotated[bool, Doc("Whether the titles of the columns were only guessed.")] = False
    new: Annotated[str, Doc("The new students as a class list, to be added.")] = ""
    odd: Annotated[tuple[tuple[str, CheckedEntry], ...], Doc("Odd rows, each as a class list of its own.")] = ()
    roster: Annotated[str, Doc("The class list as pasted, to be corrected or read by other columns.")] = ""
    problem: Annotated[str, Doc("The sentence about why it cannot be read, empty where there is none.")] = ""


@router.post("/courses/{course_id:int}/students/preview")
def preview_students(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Show what an uploaded or pasted class list would add to the roster; nothing is stored."""
    try:
        rows = read_roster_rows(form.file or form.raw("roster", MAX_BODY), MAX_ROSTER_STUDENTS, _chosen(form))
    except RosterError as error:
        return _refuse(access, form, error)
    checked = check_entries(rows.entries, store.roster.students(access.course))
    if rows.guessed_titles:
        checked = (CheckedEntry(rows.guessed_titles, "odd", "titles"), *checked)
    odd = [each for each in checked if each.kind == "odd"][:MAX_ODD]
    page = RosterImportPage(
        access,
        tuple(sorted(checked, key=lambda each: ("odd", "new", "known").index(each.kind))),
        Counter(each.kind for each in checked),
        rows.left_out,
        rows.columns,
        rows.guessed_titles is not None,
        write_roster(each.entry for each in checked if each.kind == "new"),
        tuple((write_roster([each.entry]), each) for each in odd),
        rows.text,
    )
    return render("teacher/roster_import.html", page)


@router.post("/courses/{course_id:int}/students")
def add_students(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Add the students of a previewed class list, and do what was chosen for each of its odd rows."""
    choices = [form.raw(name, MAX_TEXT).partition("\n") for name in form.names("odd-")]
    try:
        pasted = form.file or form.optional("roster", MAX_BODY)  # empty if a preview had nobody new
        entries = [] if pasted == "" else list(sure_entries(read_roster_rows(pasted or "", MAX_ROSTER_STUDENTS)))
        entries += [
            entry
            for choice, _line, row in choices
            if choice.strip() == "add"
            for entry in read_roster_rows(row).entries
        ]
        changes = [
            (student, entry)
            for choice, _line, row in choices
            if (student := _student(store, access, choice))
            for entry in read_roster_rows(row).entries
        ]
    except RosterError as error:
        return _refuse(access, form, error)
    with store.transaction():
        renamed = numbered = 0
        for student, entry in {student.id: (student, entry) for student, entry in changes}.values():
            if rename_and_record(store, access.teacher, student, entry):
                renamed += entry.name != student.name
                numbered += entry.number != student.roster_key
        added = store.roster.add_students(access.course, entries)
        if added:
            store.audit_log.record(access.teacher, AuditAction.STUDENTS_ADDED, access.course, f"{added}")
    return _back_to_roster(access, added=added, known=len(entries) - added, renamed=renamed, numbered=numbered)


@router.post("/courses/{course_id:int}/students/undo-import")
def undo_import(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Remove an import's students from the roster, except those who have joined, opened an activity or have work."""
    with store.transaction():
        removed, kept = store.roster.undo_import(access.course, form.single_line("import", 32))
        if removed or kept:
            store.audit_log.record(access.teacher, AuditAction.IMPORT_UNDONE, access.course, f"{removed}")
    return _back_to_roster(access, removed=removed, kept=kept)


@router.post("/courses/{course_id:int}/students/remove-idle")
def remove_idle_newcomers(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Remove the students who joined with the code, aren't on the roster, and have no work."""
    newest = whole_number(form.raw("newest"), LARGEST_ID) or 0
    with store.transaction():
        removed = store.roster.remove_idle_newcomers(access.course, newest)
        store.audit_log.record(access.teacher, AuditAction.NEWCOMERS_REMOVED, access.course, f"{removed}")
    return _back_to_roster(access, removed=removed)


def _chosen(form: FormReader) -> Choice | None:
    if form.optional("number") is None:
        return None
    first, last, number = (whole_number(form.raw(name), MAX_COLUMN) for name in ("first", "last", "number"))
    return first, last, number


def _student(store: Store, access: CourseAccess, student_id: str) -> Student | None:
    number = whole_number(student_id.strip(), LARGEST_ID, lowest=1)
    student = store.roster.find_student(number) if number else None
    return student if student and student.course_id == access.course.id else None


def _refuse(access: CourseAccess, form: FormReader, error: RosterError) -> Response:
    page = RosterImportPage(access, roster=form.raw("roster", MAX_BODY), problem=str(error))
    return render("teacher/roster_import.html", page, 422)


def _back_to_roster(access: CourseAccess, **counts: int) -> Response:
    return RedirectResponse(url_for("show_course", course_id=access.course.id, **counts) + "#roster", 303)
