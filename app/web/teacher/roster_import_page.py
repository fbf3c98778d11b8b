"""/courses/C/students/preview: what a class list would add, before it is added; and removing many students at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.roster_check import CheckedEntry, check_entries
from app.exchange.class_list import RosterError, read_roster, read_roster_rows, write_roster
from app.store import AuditAction
from app.web.shared.forms import FormDep, FormReader, whole_number
from app.web.shared.permissions import LARGEST_ID, CourseAccess, EditableCourse
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_ROSTER_STUDENTS = 2_000  # of one class list
MAX_ODD = 200  # rows that can be ticked; more would be a list that nobody checks


@dataclass(frozen=True)
class RosterImportPage:
    """Everything that templates/teacher/roster_import.html shows."""

    access: Annotated[CourseAccess, Doc("The course, and the teacher.")]
    entries: Annotated[tuple[CheckedEntry, ...], Doc("The rows of the class list, odd ones first.")] = ()
    counts: Annotated[Mapping[str, int], Doc("How many rows are new, known and odd.")] = field(default_factory=dict)
    left_out: Annotated[tuple[str, ...], Doc("Rows that are no students, such as the points possible.")] = ()
    new: Annotated[str, Doc("The new students as a class list, to be added.")] = ""
    odd: Annotated[tuple[tuple[str, CheckedEntry], ...], Doc("Odd rows, each as a class list of its own.")] = ()
    roster: Annotated[str, Doc("The class list as pasted, to be corrected.")] = ""
    problem: Annotated[str, Doc("The sentence about why it cannot be read, empty where there is none.")] = ""


@router.post("/courses/{course_id:int}/students/preview")
def preview_students(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Show what an uploaded class list, or without one the pasted one, would add to the roster; nothing is stored.

    The rows are listed as odd, new or known, in this order, with how many of each; rows that Canvas or Moodle added,
    which are no students, are named apart. The page's form adds the new ones, and of the first MAX_ODD odd ones those
    that are ticked. 422 with the pasted list if it cannot be read or has more than MAX_ROSTER_STUDENTS names.
    """
    try:
        rows = read_roster_rows(form.file or form.raw("roster", MAX_BODY), MAX_ROSTER_STUDENTS)
    except RosterError as error:
        return _refuse(access, form, error)
    checked = check_entries(rows.entries, store.roster.students(access.course))
    odd = [entry for entry in checked if entry.kind == "odd"][:MAX_ODD]
    page = RosterImportPage(
        access,
        tuple(sorted(checked, key=lambda entry: ("odd", "new", "known").index(entry.kind))),
        Counter(entry.kind for entry in checked),
        rows.left_out,
        write_roster(entry.entry for entry in checked if entry.kind == "new"),
        tuple((write_roster([entry.entry]), entry) for entry in odd),
    )
    return render("teacher/roster_import.html", page)


@router.post("/courses/{course_id:int}/students")
def add_students(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Add the students of an uploaded or else pasted class list to the roster, and record their number in the audit
    log, unless it is 0.

    The odd rows ticked in a preview, each a class list in a field "anyway", are added, too; with any of these, there
    need be no other list. Students already on the roster are left as they are. Redirects to the roster, which says how
    many were added and how many were there already; the second time in a list counts as that. 422 with the pasted list,
    and nobody is added, if a list cannot be read or has more than MAX_ROSTER_STUDENTS names.
    """
    ticked = form.all("anyway")
    try:
        pasted = form.file or form.raw("roster", MAX_BODY)
        entries = [] if ticked and not pasted else list(read_roster(pasted, MAX_ROSTER_STUDENTS))
        for row in ticked:
            entries += read_roster(row)
    except RosterError as error:
        return _refuse(access, form, error)
    with store.transaction():
        added = store.roster.add_students(access.course, entries)
        if added:
            store.audit_log.record(access.teacher, AuditAction.STUDENTS_ADDED, access.course, f"{added}")
    return _back_to_roster(access, added=added, known=len(entries) - added)


@router.post("/courses/{course_id:int}/students/undo-import")
def undo_import(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Remove from the roster the students whom the import with the key in the form's `import` added, except those who
    have joined, opened an activity or have work.

    The audit log has how many were removed, even 0, unless nobody counts as added by that import, such as the second
    time. Redirects to the roster, which says how many were removed and kept; for an unknown key, both are 0.
    """
    with store.transaction():
        removed, kept = store.roster.undo_import(access.course, form.single_line("import", 32))
        if removed or kept:
            store.audit_log.record(access.teacher, AuditAction.IMPORT_UNDONE, access.course, f"{removed}")
    return _back_to_roster(access, removed=removed, kept=kept)


@router.post("/courses/{course_id:int}/students/remove-idle")
def remove_idle_newcomers(store: StoreDep, access: EditableCourse, form: FormDep) -> Response:
    """Remove the students who joined with the code under names not on the roster and have done nothing; having opened
    an activity is nothing.

    The form's `newest` is the highest id that its page has counted: whoever joined later stays, and everybody stays if
    it is no number. Records how many were removed, even 0, in the audit log, and redirects to the roster, which says
    it, too.
    """
    newest = whole_number(form.raw("newest"), LARGEST_ID) or 0
    with store.transaction():
        removed = store.roster.remove_idle_newcomers(access.course, newest)
        store.audit_log.record(access.teacher, AuditAction.NEWCOMERS_REMOVED, access.course, f"{removed}")
    return _back_to_roster(access, removed=removed)


def _refuse(access: CourseAccess, form: FormReader, error: RosterError) -> Response:
    """The page with the list as pasted and the reason why it cannot be read (422)."""
    page = RosterImportPage(access, roster=form.raw("roster", MAX_BODY), problem=str(error))
    return render("teacher/roster_import.html", page, 422)


def _back_to_roster(access: CourseAccess, **counts: int) -> Response:
    """Redirect to the course's roster, with the counts that it mentions in the query."""
    return RedirectResponse(url_for("show_course", course_id=access.course.id, **counts) + "#roster", 303)
