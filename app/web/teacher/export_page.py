"""Exporting a course, archiving and restoring it, deleting it for good, and the log of what its staff did."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Annotated
from zoneinfo import ZoneInfo

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from app.classes.course_files import CourseFiles, course_files
from app.classes.course_settings import copy_course
from app.classes.roster_lookup import names_with_numbers
from app.exchange.gradebook_csv import found_by_canvas, found_by_moodle
from app.exchange.spreadsheet import csv_lines
from app.names import clean_line
from app.store import AuditAction, Course, Store
from app.store.audit import ObjectKind
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import FormDep, Pager, cut_page
from app.web.shared.permissions import InstructorCourse
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_LOG_LINES = 2_000  # lines that are read; a page shows some of them
MAX_FILE_IN_MEMORY = 8_000_000  # bytes; a larger one is written to disk
PIECE = 65_536  # bytes sent at a time
MAX_FILE_NAME = 60  # characters of a course's title in a file's name

# The text of each file, in pieces; the ZIP of all of them is separate, since it is written to a file first.
CSV_FILES: dict[str, Callable[[CourseFiles], Iterable[str]]] = {
    "answers.csv": lambda files: csv_lines(files.answer_rows()),
    "attempts.csv": lambda files: csv_lines(files.attempt_rows()),
    "written-answers.csv": lambda files: csv_lines(files.written_rows()),
    "exit-tickets.csv": lambda files: csv_lines(files.ticket_rows()),
    "gradebook.csv": lambda files: csv_lines(files.gradebook_rows()),
    "gradebook-canvas.csv": lambda files: (files.canvas_csv(),),
    "gradebook-moodle.csv": lambda files: (files.moodle_csv(),),
}
ZIP_FILE = "course.zip"


@dataclass(frozen=True)
class LogLine:
    """An entry of the audit log as people read it; `about` is empty for the course itself."""

    at: str
    by: str
    action: str
    about: str


@dataclass(frozen=True)
class ExportPage:
    """Everything that templates/teacher/export.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, the signed-in teacher and their role in it.")]
    not_in_canvas: Annotated[int, Doc("How many students Canvas would take for others, and so are not in its file.")]
    not_in_moodle: Annotated[int, Doc("How many students are not in Moodle’s file: they have no number of its kind.")]
    moodle_title: Annotated[str, Doc("The title of the column by which Moodle finds the students.")]
    lines: Annotated[tuple[LogLine, ...], Doc("What the staff did, the newest first.")]
    pager: Annotated[Pager, Doc("Which page of the log this is.")]
    typed: Annotated[str, Doc("The title as typed to delete the course.")] = ""
    problem: Annotated[str, Doc("The sentence about why nothing was deleted, empty where there is none.")] = ""
    copy_problem: Annotated[str, Doc("The sentence about why nothing was copied, empty where there is none.")] = ""


@router.get("/courses/{course_id:int}/exports")
def show_exports(store: StoreDep, access: InstructorCourse, page: str = "") -> Response:
    """The files to export, the forms to copy, archive and delete the course, and page `page` of its log."""
    return render("teacher/export.html", _export_page(store, access, page=page))


@router.get("/courses/{course_id:int}/exports/{file_name}")
def export_file(services: ServicesDep, access: InstructorCourse, file_name: str, activity: str = "") -> Response:
    """Send one file about the course as it is now, a CSV file or the ZIP of everything."""
    if file_name not in CSV_FILES and file_name != ZIP_FILE:
        raise HTTPException(404)
    store, course = services.store, access.course
    files = course_files(services.library, store, course)
    prefix = _file_prefix(course.title, course.id)
    if activity:
        files = replace(files, activities=[each for each in files.activities if str(each.id) == activity])
        if not files.activities:
            raise HTTPException(404)
        prefix = f"{prefix}-{_file_prefix(files.activities[0].plan.title, files.activities[0].id)}"
    store.audit_log.record(access.teacher, AuditAction.COURSE_EXPORTED, course, file_name)
    content = _write_file(files, file_name)
    headers = {"Content-Disposition": f'attachment; filename="{prefix}-{file_name}"', "Cache-Control": "no-store"}
    kind = "application/zip" if file_name == ZIP_FILE else "text/csv; charset=utf-8"
    return StreamingResponse(_pieces(content), headers=headers, media_type=kind)


@router.post("/courses/{course_id:int}/archive")
def archive_course(store: StoreDep, access: InstructorCourse) -> Response:
    """Archive the course, with an audit entry, and go to the list of courses."""
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_ARCHIVED, access.course):
        store.courses.archive(access.course)
    return RedirectResponse(url_for("list_courses", done="archived"), 303)


@router.post("/courses/{course_id:int}/bring-back")
def restore_course(store: StoreDep, access: InstructorCourse) -> Response:
    """Make an archived course editable again, with an audit entry, and go to it."""
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_RESTORED, access.course):
        store.courses.archive(access.course, archived=False)
        store.activities.note_restored(access.course)
    return RedirectResponse(url_for("show_course", course_id=access.course.id, done="restored"), 303)


@router.post("/courses/{course_id:int}/copy")
def copy_this_course(store: StoreDep, access: InstructorCourse, form: FormDep) -> Response:
    """Copy the course under another title, with materials, practice and activities (as drafts), without students."""
    title = form.single_line("title")
    if not title:
        return render("teacher/export.html", _export_page(store, access, copy_problem=_("Enter a title.")), 422)
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_COPIED, access.course):
        copy = copy_course(store, access.course, title, access.teacher)
    return RedirectResponse(url_for("show_course", course_id=copy.id, done="copied"), 303)


@router.post("/courses/{course_id:int}/delete")
def delete_course(store: StoreDep, access: InstructorCourse, form: FormDep) -> Response:
    """Delete the course for good with everything in it and an audit entry, and redirect to the list of courses."""
    typed = form.single_line("title")
    if typed != clean_line(access.course.title):
        problem = _("That isn’t the title of this course, so nothing was deleted. Type it exactly as shown above.")
        return render("teacher/export.html", _export_page(store, access, typed=typed, problem=problem), 422)
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_DELETED, access.course):
        store.courses.delete(access.course)
    return RedirectResponse(url_for("list_courses", done="deleted"), 303)


def _export_page(store: Store, access: permissions.CourseAccess, page: str = "", **texts: str) -> ExportPage:
    students = store.roster.students(access.course)
    title, in_moodle = found_by_moodle(students)
    not_in_canvas, not_in_moodle = len(students) - len(found_by_canvas(students)), len(students) - len(in_moodle)
    lines, pager = cut_page(_log_lines(store, access.course), page)
    return ExportPage(access, not_in_canvas, not_in_moodle, title, lines, pager, **texts)


def _log_lines(store: Store, course: Course) -> tuple[LogLine, ...]:
    names: dict[ObjectKind, dict[int, str]] = {
        "course": {course.id: ""},
        "activity": {activity.id: activity.plan.title for activity in store.activities.of_course(course)},
        "material": store.materials.titles(course),
        "student": names_with_numbers(store.roster.students(course)),
    }
    staff = {member.teacher_id: member.name or member.email for member in store.courses.staff(course)}
    entries = store.audit_log.entries(names, course.created_at, MAX_LOG_LINES)
    return tuple(
        LogLine(
            f"{entry.at.astimezone(ZoneInfo(course.time_zone)):%Y-%m-%d %H:%M}",
            staff.get(entry.actor_id or 0) or f"{entry.actor_kind} {entry.actor_id or ''}".strip(),
            f"{entry.action} {entry.detail}".strip(),
            names[entry.object_kind][entry.object_id or 0] if entry.object_kind else "",
        )
        for entry in entries
    )


def _write_file(files: CourseFiles, file_name: str) -> IO[bytes]:
    content = tempfile.SpooledTemporaryFile(MAX_FILE_IN_MEMORY)  # noqa: SIM115 - `_pieces` closes it
    try:
        if file_name == ZIP_FILE:
            files.write_zip(content)
        else:
            content.writelines(text.encode() for text in CSV_FILES[file_name](files))
    except BaseException:
        content.close()
        raise
    content.seek(0)
    return content


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    with content:
        while piece := content.read(PIECE):
            yield piece


def _file_prefix(title: str, number: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:MAX_FILE_NAME].strip("-") or str(number)
