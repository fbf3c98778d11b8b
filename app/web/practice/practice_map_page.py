"""/practice/map: every level of practice, how far one is, what comes before each, and a way to test out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Response

from app.practice.ideas import SHEETS_TO_SOLID
from app.practice.progress import LevelView, MisconceptionGroupView, group_views, level_views
from app.practice.scheduler import Practice
from app.web.practice.practice_cookie import record_with_right_sheet
from app.web.practice.practice_place import PracticePlaceDep
from app.web.shared.permissions import require_practice
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.visitor import MaybeVisitor

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class PracticeMap:
    """What the map shows beside its levels: the ideas, and the course that the student practises for, if any."""

    groups: tuple[MisconceptionGroupView, ...]
    course: str
    sheets_to_solid: int = SHEETS_TO_SOLID


@dataclass(frozen=True)
class PracticeMapPage:
    """Everything that templates/practice/practice_map.html shows."""

    levels: Annotated[tuple[LevelView, ...], Doc("Every level, the lowest first.")]
    passed: Annotated[int, Doc("How many of them are passed.")]
    begun: Annotated[bool, Doc("Whether any sheet is in the record.")]
    testing: Annotated[bool, Doc("Whether the sheet that waits tests out of the current level.")]
    practice: Annotated[PracticeMap, Doc("The ideas that were met, and whose practice it is.")]


@router.get("/practice/map")
def show_practice_map(store: StoreDep, visitor: MaybeVisitor, place: PracticePlaceDep) -> Response:
    """The levels with their progress, in their groups, and how many of them are passed."""
    record = record_with_right_sheet(place.library, store, visitor, place.record)
    practice = Practice(place.library, record)
    levels = level_views(practice)
    page = PracticeMapPage(
        levels=levels,
        passed=sum(level.key in record.passed for level in levels),
        begun=bool(record.results),
        testing=record.testing,
        practice=PracticeMap(group_views(practice), place.course),
    )
    return render("practice/practice_map.html", page)
