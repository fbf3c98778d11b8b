"""POST /practice: on to the next sheet, each chosen from the record of those before it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from app.classes import sheet_actions
from app.practice.record import PracticeRecord
from app.practice.scheduler import Practice, counts, next_sheet, record_with_sheet
from app.store import Store
from app.web.practice.practice_cookie import new_record, record_with_present_sheet
from app.web.practice.practice_place import PracticePlace, PracticePlaceDep, practice_place
from app.web.practice.sheet_request import posted_sheet, sheet_link
from app.web.shared.forms import FormDep
from app.web.shared.permissions import require_practice
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.visitor import MaybeVisitor

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@router.post("/practice")
def finish_practice_sheet(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Save what is in the boxes, add the result of the sheet's attempts to the record, and redirect (303) to the
    sheet that comes next.
    """
    requested = posted_sheet(request, services, form, adds_visitor=False)
    if requested.work:
        _outcome, requested = requested.done(sheet_actions.save)
    place = practice_place(request, services, requested.visitor)
    record = place.record
    if counts(place.library, record, requested.variant):
        attempts = requested.work.newest_attempts if requested.work else ()
        record = record_with_sheet(place.library, record, requested.variant, [attempt.answers for attempt in attempts])
    return _redirect_to_next(request, services.store, place, record)


@router.post("/practice/level")
def choose_practice_level(
    request: Request,
    store: StoreDep,
    visitor: MaybeVisitor,
    place: PracticePlaceDep,
    level: Annotated[str, Form(max_length=60)] = "",
    test: Annotated[str, Form(max_length=60)] = "",
    answers: Annotated[str, Form(max_length=60)] = "",
) -> Response:
    """Add the result of the present sheet to the record, or skip that sheet if it has none, change to `level`, and
    redirect (303) to the record's next sheet.
    """
    record = record_with_present_sheet(place.library, store, visitor, place.record)
    if level in (each.key for each in Practice(place.library, record).open_levels):
        in_letters = {"letters": True, "numbers": False}.get(answers)
        record = record.at_level(level, testing=bool(test), in_letters=in_letters)
    return _redirect_to_next(request, store, place, record)


@router.post("/practice/forget")
def reset_practice_record(request: Request, store: StoreDep, place: PracticePlaceDep) -> Response:
    """Store an empty record in place of the present one, and redirect to its first sheet."""
    return _redirect_to_next(request, store, place, new_record())


def _redirect_to_next(request: Request, store: Store, place: PracticePlace, record: PracticeRecord) -> Response:
    variant = next_sheet(place.library, record).variant
    response = RedirectResponse(sheet_link(variant, practice=1), 303)
    place.keep(request, response, store, record)
    return response
