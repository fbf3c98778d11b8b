"""/practice: the lessons, the student's progress, and what to repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.practice.progress import LessonView, Repetition, lesson_views, next_worksheet, to_repeat
from app.practice.record import WAITS, PracticeRecord
from app.sheets.variant import Variant
from app.web.practice.practice_place import PracticePlaceDep
from app.web.shared.permissions import require_practice
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class LessonsPage:
    """Everything that templates/practice/lessons.html shows."""

    lessons: Annotated[tuple[LessonView, ...], Doc("The lessons, in the order in which they are best done.")]
    next: Annotated[Variant | None, Doc("The sheet to go on with; None once all of the rows are done.")]
    repeats: Annotated[tuple[Repetition, ...], Doc("What to repeat now.")]
    begun: Annotated[bool, Doc("Whether anything is in the record.")]
    course: Annotated[str, Doc("The course whose teachers see the record; empty for practice of one's own.")]
    waits: Annotated[tuple[int, ...], Doc("After how many sheets something comes back.")] = WAITS


@router.get("/practice")
def show_lessons(place: PracticePlaceDep) -> Response:
    """The lessons with what is done, what comes next and what to look at again."""
    library, record = place.library, place.record
    following = next_worksheet(library, record)
    page = LessonsPage(
        lessons=lesson_views(library, record),
        next=library.variant(following) if following else None,
        repeats=to_repeat(library, record),
        begun=record != PracticeRecord(),
        course=place.course,
    )
    return render("practice/lessons.html", page)


@router.post("/practice/forget")
def reset_practice_record(request: Request, store: StoreDep, place: PracticePlaceDep) -> Response:
    """Replace the current record by an empty one."""
    response = RedirectResponse(url_for("show_lessons"), 303)
    place.keep(request, response, store, PracticeRecord())
    return response
