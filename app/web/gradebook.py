"""The gradebook of a course: every student's points in every activity, and the class means."""

from __future__ import annotations

from fastapi import APIRouter, Response

from app.classes.gradebook import GradebookFilter, GradebookOrder, gradebook_lines, gradebook_of
from app.web.shared.forms import cut_page
from app.web.shared.permissions import StaffCourse
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MAX_NAME_SEARCH = 100  # characters
GRADEBOOK_FILTERS: dict[str, GradebookFilter] = {"missing": "missing", "changed": "changed", "excused": "excused"}


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
    store = services.store
    activities, students = store.activities.of_course(access.course)[::-1], store.roster.students(access.course)
    columns = gradebook_of(services.library, store, activities, {student.id for student in students}, store.now())
    if sort not in ("total", *(str(column.activity_id) for column in columns)):
        sort = "name"
    words = "".join(char for char in q[:MAX_NAME_SEARCH] if char.isprintable()).strip()
    descending = {"up": False, "down": True}.get(order)
    wanted = GradebookOrder(sort, descending, GRADEBOOK_FILTERS.get(show, ""), words)
    lines, pager = cut_page(gradebook_lines(students, columns, wanted), page)
    texts = {
        "show": wanted.show,
        "q": words,
        "sort": sort if sort != "name" else "",
        "order": order if descending is not None else "",
    }
    return render(
        "teacher/gradebook.html",
        access=access,
        columns=columns,
        drafts=[each for each in activities if each.state == "draft" and each.content.items],
        lines=lines,
        pager=pager,
        order=wanted,
        query={"course_id": access.course.id} | {name: value for name, value in texts.items() if value},
        students=len(students),
    )
