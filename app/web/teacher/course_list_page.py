"""The courses of a teacher, and the form that adds one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.course_settings import MAX_TIME_ZONE_LENGTH, settings_problem, time_zone_names
from app.store import TaughtCourse, Teacher
from app.web.shared.forms import FormDep
from app.web.shared.permissions import SignedIn
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class CourseListPage:
    """Everything that templates/teacher/course_list.html shows."""

    teacher: Annotated[Teacher, Doc("The teacher who is signed in.")]
    courses: Annotated[tuple[TaughtCourse, ...], Doc("Their courses, the newest first, archived ones too.")]
    zones: Annotated[tuple[str, ...], Doc("The time zones to choose from.")]
    title: Annotated[str, Doc("The title of a new course, as typed.")] = ""
    zone: Annotated[str, Doc("Its time zone, as typed.")] = ""
    done: Annotated[str, Doc("What was just done: archived, deleted or password; any other text says nothing.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""


@router.get("/courses")
def list_courses(store: StoreDep, teacher: SignedIn, done: str = "") -> Response:
    """Every course where the teacher is on the staff, archived ones included, and the form that adds one."""
    page = CourseListPage(teacher, store.courses.taught_by(teacher), time_zone_names(), done=done)
    return render("teacher/course_list.html", page)


@router.post("/courses")
def add_course(store: StoreDep, teacher: SignedIn, form: FormDep) -> Response:
    """Add a course, with the teacher as its instructor, and redirect to its page, without an audit entry."""
    title, zone = form.single_line("title"), form.single_line("zone", MAX_TIME_ZONE_LENGTH)
    if problem := settings_problem(title, zone):
        page = CourseListPage(
            teacher, store.courses.taught_by(teacher), time_zone_names(), title, zone, problem=problem
        )
        return render("teacher/course_list.html", page, 422)
    course = store.courses.add(title, zone, teacher)
    return RedirectResponse(url_for("show_course", course_id=course.id), 303)
