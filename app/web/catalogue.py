"""/sheets: every sheet that can be practised."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from app.practice.lessons import lessons_of
from app.web.shared.permissions import require_practice
from app.web.shared.practice_place import PracticePlaceDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@router.get("/sheets")
def list_sheets(place: PracticePlaceDep) -> Response:
    library = place.library
    lessons = [
        (lesson, [library.worksheets[key] for key in lesson.worksheets if key in library.worksheets])
        for lesson in lessons_of(library)
    ]
    return render("practice/catalogue.html", lessons=lessons)
