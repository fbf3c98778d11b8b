"""Exporting a course, copying it, archiving and restoring it, deleting it, and the log of what its staff did."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import IO
from zoneinfo import ZoneInfo

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from app.classes.course_files import CSV_FILES, CourseFiles, course_files
from app.classes.course_settings import copy_course
from app.classes.roster_lookup import names_with_numbers
from app.exchange.gradebook_csv import found_by_canvas, found_by_moodle
from app.names import clean_line
from app.store import AuditAction, Course, Store
from app.store.audit import ObjectKind
from app.translation import gettext as _
from app.web.shared.forms import FormDep, cut_page
from app.web.shared.permissions import CourseAccess, InstructorCourse
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.templating import render, render_text
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_LOG_LINES = 2_000  # lines that are read; a page shows some of them
MAX_FILE_IN_MEMORY = 8_000_000  # bytes; a larger one is written to disk
PIECE = 65_536  # bytes sent at a time
MAX_FILE_NAME = 60  # characters of a course's title in a file's name
ZIP_FILE = "course.zip"


@router.get("/courses/{course_id:int}/exports")
def show_exports(store: StoreDep, access: InstructorCourse, page: str = "") -> Response:
    return _render_exports(store, access, page=page)


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
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_ARCHIVED, access.course):
        store.courses.archive(access.course)
    return RedirectResponse(url_for("list_courses", done="archived"), 303)


@router.post("/courses/{course_id:int}/bring-back")
def restore_course(store: StoreDep, access: InstructorCourse) -> Response:
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_RESTORED, access.course):
        store.courses.archive(access.course, archived=False)
        store.activities.note_restored(access.course)
    return RedirectResponse(url_for("show_course", course_id=access.course.id, done="restored"), 303)


@router.post("/courses/{course_id:int}/copy")
def copy_this_course(store: StoreDep, access: InstructorCourse, form: FormDep) -> Response:
    """Copy the course under another title, with materials, practice and activities (as drafts), without students."""
    title = form.single_line("title")
    if not title:
        return _render_exports(store, access, 422, copy_problem=_("Enter a title."))
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_COPIED, access.course):
        copy = copy_course(store, access.course, title, access.teacher)
    return RedirectResponse(url_for("show_course", course_id=copy.id, done="copied"), 303)


@router.post("/courses/{course_id:int}/delete")
def delete_course(store: StoreDep, access: InstructorCourse, form: FormDep) -> Response:
    """Delete the course for good, with everything in it, if its title was typed."""
    typed = form.single_line("title")
    if typed != clean_line(access.course.title):
        problem = _("That isn’t the title of this course, so nothing was deleted. Type it exactly as shown above.")
        return _render_exports(store, access, 422, typed=typed, problem=problem)
    with store.audit_log.recording(access.teacher, AuditAction.COURSE_DELETED, access.course):
        store.courses.delete(access.course)
    return RedirectResponse(url_for("list_courses", done="deleted"), 303)


def _render_exports(
    store: Store,
    access: CourseAccess,
    status: int = 200,
    *,
    page: str = "",
    typed: str = "",
    problem: str = "",
    copy_problem: str = "",
) -> Response:
    students = store.roster.students(access.course)
    moodle_title, in_moodle = found_by_moodle(students)
    lines, pager = cut_page(_log_lines(store, access.course), page)
    return render(
        "teacher/export.html",
        status=status,
        access=access,
        not_in_canvas=len(students) - len(found_by_canvas(students)),
        not_in_moodle=len(students) - len(in_moodle),
        moodle_title=moodle_title,
        lines=lines,
        pager=pager,
        typed=typed,
        problem=problem,
        copy_problem=copy_problem,
    )


def _log_lines(store: Store, course: Course) -> list[tuple[datetime, str, str, str]]:
    """What the staff did, the newest first: when, who, what, and with what, "" for the course itself."""
    titles: dict[ObjectKind, dict[int, str]] = {
        "course": {course.id: ""},
        "activity": {activity.id: activity.plan.title for activity in store.activities.of_course(course)},
        "material": store.materials.titles(course),
        "student": names_with_numbers(store.roster.students(course)),
    }
    staff = {member.teacher_id: member.name or member.email for member in store.courses.staff(course)}
    return [
        (
            entry.at.astimezone(ZoneInfo(course.time_zone)),
            staff.get(entry.actor_id or 0) or f"{entry.actor_kind} {entry.actor_id or ''}".strip(),
            f"{entry.action} {entry.detail}".strip(),
            titles[entry.object_kind][entry.object_id or 0] if entry.object_kind else "",
        )
        for entry in store.audit_log.entries(titles, course.created_at, MAX_LOG_LINES)
    ]


def _write_file(files: CourseFiles, file_name: str) -> IO[bytes]:
    content = tempfile.SpooledTemporaryFile(MAX_FILE_IN_MEMORY)  # noqa: SIM115 - `_pieces` closes it
    try:
        if file_name == ZIP_FILE:
            files.write_zip(content, render_text("teacher/export_readme.txt", course=files.course))
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
