"""Taking a course home, putting it away, deleting it for good, and the log of what its staff did."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated
from zoneinfo import ZoneInfo

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from app.classes.student_sheet import blank_counts
from app.exchange.course_files import CourseFiles
from app.exchange.spreadsheet import csv_lines
from app.store import AuditAction, Course
from app.store.audit import ObjectKind
from app.web.shared import permissions
from app.web.shared.forms import FormDep
from app.web.shared.permissions import InstructorCourse
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

LINES_SHOWN = 200
IN_MEMORY, PIECE = 8_000_000, 65_536  # bytes


@dataclass(frozen=True)
class LogLine:
    """A line of the log as people read it; `about` is nothing where it is the course, or gone."""

    when: str
    who: str
    what: str
    about: str


@dataclass(frozen=True)
class ExportsPage:
    """Everything that templates/teacher/export.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, and who looks at it in which role.")]
    without_number: Annotated[int, Doc("How many students have no number, so that Moodle cannot find them.")]
    lines: Annotated[tuple[LogLine, ...], Doc("What the staff did, the newest first.")]
    typed: Annotated[str, Doc("The title as typed to delete the course.")] = ""
    problem: Annotated[str, Doc("Why nothing was deleted, or nothing.")] = ""


def _answers(files: CourseFiles, _parts: Services) -> Iterator[bytes]:
    return (line.encode() for line in csv_lines(files.answer_rows()))


def _attempts(files: CourseFiles, _parts: Services) -> Iterator[bytes]:
    return (line.encode() for line in csv_lines(files.attempt_rows()))


def _tickets(files: CourseFiles, _parts: Services) -> Iterator[bytes]:
    return (line.encode() for line in csv_lines(files.ticket_rows()))


def _canvas(files: CourseFiles, _parts: Services) -> Iterator[bytes]:
    yield files.canvas_csv().encode()


def _moodle(files: CourseFiles, _parts: Services) -> Iterator[bytes]:
    yield files.moodle_csv().encode()


def _whole(files: CourseFiles, services: Services) -> Iterator[bytes]:
    readme = services.library.wording.say("exports", "readme", course=files.course.title, zone=files.course.time_zone)
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        files.write_zip(file, readme)
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece


EXPORTS: dict[str, Callable[[CourseFiles, Services], Iterator[bytes]]] = {
    "answers.csv": _answers,
    "attempts.csv": _attempts,
    "exit-tickets.csv": _tickets,
    "gradebook-canvas.csv": _canvas,
    "gradebook-moodle.csv": _moodle,
    "course.zip": _whole,
}


@router.get("/courses/{course_id:int}/exports")
def show_exports(services: ServicesDep, access: InstructorCourse) -> Response:
    """What can be taken home, and the ways to put the course away."""
    return render("teacher/export.html", _page(services, access))


@router.get("/courses/{course_id:int}/exports/{name}")
def export(services: ServicesDep, access: InstructorCourse, name: str) -> Response:
    """One file, made while it is sent."""
    if name not in EXPORTS:
        raise HTTPException(404)
    activities = services.store.activities.of_course(access.course)[::-1]  # the oldest first
    points = {activity.id: blank_counts(services.library, services.store, activity.content) for activity in activities}
    files = CourseFiles(services.store, access.course, activities, points)
    services.store.audit_log.record(access.teacher, AuditAction.COURSE_EXPORTED, access.course, name)
    headers = {
        "Content-Disposition": f'attachment; filename="{_slug(access.course)}-{name}"',
        "Cache-Control": "no-store",
    }
    kind = "application/zip" if name.endswith(".zip") else "text/csv; charset=utf-8"
    return StreamingResponse(EXPORTS[name](files, services), headers=headers, media_type=kind)


@router.post("/courses/{course_id:int}/archive")
def archive(services: ServicesDep, access: InstructorCourse) -> Response:
    """Put the course away: it can be read and not changed."""
    services.store.courses.archive(access.course)
    services.store.audit_log.record(access.teacher, AuditAction.COURSE_ARCHIVED, access.course)
    return RedirectResponse("/courses", 303)


@router.post("/courses/{course_id:int}/bring-back")
def bring_back(services: ServicesDep, access: InstructorCourse) -> Response:
    """Let an archived course go on."""
    services.store.courses.archive(access.course, archived=False)
    services.store.audit_log.record(access.teacher, AuditAction.COURSE_RESTORED, access.course)
    return RedirectResponse(f"/courses/{access.course.id}", 303)


@router.post("/courses/{course_id:int}/delete")
def delete(services: ServicesDep, access: InstructorCourse, form: FormDep) -> Response:
    """Delete the course for good, once its title was typed."""
    typed = form.single_line("title")
    if typed != " ".join(access.course.title.split()):
        problem = services.library.wording.say("class", "other-title")
        return render("teacher/export.html", _page(services, access, typed, problem), 422)
    services.store.courses.delete(access.course)
    services.store.audit_log.record(access.teacher, AuditAction.COURSE_DELETED, access.course)
    return RedirectResponse("/courses", 303)


def _page(services: Services, access: permissions.CourseAccess, typed: str = "", problem: str = "") -> ExportsPage:
    unknown = sum(1 for student in services.store.courses.students(access.course) if not student.roster_key)
    return ExportsPage(access, unknown, _log(services, access.course), typed, problem)


def _log(services: Services, course: Course) -> tuple[LogLine, ...]:
    """What was done to the course and to what is in it now, since it was made."""
    store, zone = services.store, ZoneInfo(course.time_zone)
    names: dict[ObjectKind, dict[int, str]] = {
        "course": {course.id: ""},
        "activity": {activity.id: activity.plan.title for activity in store.activities.of_course(course)},
        "student": {student.id: student.name for student in store.courses.students(course)},
    }
    staff = {member.teacher_id: member.name or member.email for member in store.courses.staff(course)}
    entries = store.audit_log.entries(names, store.courses.made_at(course), LINES_SHOWN)
    return tuple(
        LogLine(
            f"{entry.at.astimezone(zone):%Y-%m-%d %H:%M}",
            staff.get(entry.actor_id or 0, f"{entry.actor_kind} {entry.actor_id or ''}".strip()),
            f"{entry.action} {entry.detail}".strip(),
            names[entry.object_kind][entry.object_id or 0] if entry.object_kind else "",
        )
        for entry in entries
    )


def _slug(course: Course) -> str:
    """The title as the beginning of a file's name."""
    plain = re.sub(r"[^a-z0-9]+", "-", course.title.lower()).strip("-")[:60]
    return plain or f"course-{course.id}"
