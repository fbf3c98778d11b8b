"""The gradebook of a course: every student's points in every activity, and the class means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.classes.course_files import course_files
from app.classes.gradebook import GradebookColumn, GradebookFilter, GradebookLine, GradebookOrder, gradebook_lines
from app.store import Activity
from app.web.shared import permissions
from app.web.shared.forms import Pager, cut_page
from app.web.shared.permissions import StaffCourse
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MAX_NAME_SEARCH = 100  # characters
GRADEBOOK_FILTERS: dict[str, GradebookFilter] = {"missing": "missing", "changed": "changed", "excused": "excused"}


@dataclass(frozen=True)
class GradebookPage:
    """Everything that templates/teacher/gradebook.html shows."""

    access: Annotated[permissions.CourseAccess, Doc("The course, the signed-in teacher and their role in it.")]
    columns: Annotated[tuple[GradebookColumn, ...], Doc("Its activities with worksheets, the oldest first.")]
    drafts: Annotated[tuple[Activity, ...], Doc("Its activities that are drafts, which have no column yet.")]
    lines: Annotated[tuple[GradebookLine, ...], Doc("The students of this page of the list.")]
    pager: Annotated[Pager, Doc("Which page of the list this is.")]
    order: Annotated[GradebookOrder, Doc("How the list is sorted and filtered.")]
    query: Annotated[dict[str, object], Doc("The same as values of the page's address, with the course's id.")]
    students: Annotated[int, Doc("How many students are on the roster.")]


@router.get("/courses/{course_id:int}/gradebook")
def show_gradebook(
    services: ServicesDep,
    access: StaffCourse,
    sort: str = "name",
    order: str = "",
    show: str = "",
    q: str = "",
    page: str = "",
) -> Response:
    """Every student's points in every activity with worksheets; drafts are listed separately."""
    files = course_files(services.library, services.store, access.course)
    columns, students = files.gradebook_columns, tuple(files.students.values())
    if sort not in ("total", *(str(column.activity_id) for column in columns)):
        sort = "name"
    words = "".join(char for char in q[:MAX_NAME_SEARCH] if char.isprintable()).strip()
    descending = {"up": False, "down": True}.get(order)
    wanted = GradebookOrder(sort, descending, GRADEBOOK_FILTERS.get(show, ""), words)
    lines, pager = cut_page(gradebook_lines(students, columns, wanted), page)
    query: dict[str, object] = {"course_id": access.course.id}
    order = order if descending is not None else ""
    texts = (("show", wanted.show), ("q", words), ("sort", sort if sort != "name" else ""), ("order", order))
    query |= {name: value for name, value in texts if value}
    drafts = tuple(activity for activity in files.activities if activity.state == "draft" and activity.content.items)
    return render(
        "teacher/gradebook.html", GradebookPage(access, columns, drafts, lines, pager, wanted, query, len(students))
    )
