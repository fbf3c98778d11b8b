"""Practice: one sheet after another, each drawn from this browser's record of those before it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from app.practice.record import PracticeRecord, first_readable_answers, sheet_result
from app.practice.scheduler import next_sheet, record_result
from app.sheets.worksheet import Variant
from app.store import Visitor
from app.web.practice.practice_cookie import keep_record, kept_record, new_record
from app.web.practice.sheet_request import Posted, sheet_key, sheet_link
from app.web.shared.services import Services, ServicesDep
from app.web.shared.visitor import MaybeVisitor

router = APIRouter(include_in_schema=False)

LOOKED_AT = 50  # attempts of one sheet


@router.get("/practice")
def continue_practice(request: Request, services: ServicesDep) -> Response:
    """The sheet that comes next for this browser: the first one, or the one that was left."""
    return _to_next(request, services, kept_record(request))


@router.post("/practice")
def finish_practice_sheet(request: Request, services: ServicesDep, visitor: MaybeVisitor, asked: Posted) -> Response:
    """Keep what stands in the boxes, take the sheet into the record, and give the next one.

    A sheet that the record did not draw, such as one from before, changes nothing in it.
    """
    if visitor:
        services.store.save_draft(visitor, sheet_key(asked.variant), asked.draft)
    record = kept_record(request)
    if next_sheet(services.library, record).variant == asked.variant:
        record = _taken_in(services, visitor, record, asked.variant)
    return _to_next(request, services, record)


@router.post("/practice/level")
def choose_practice_level(
    request: Request, services: ServicesDep, visitor: MaybeVisitor, level: Annotated[str, Form(max_length=60)] = ""
) -> Response:
    """Go on with a level of one's own choice."""
    record = kept_record(request)
    record = _taken_in(services, visitor, record, next_sheet(services.library, record).variant)
    return _to_next(request, services, record.at_level(level))


@router.post("/practice/forget")
def reset_practice_record(request: Request, services: ServicesDep) -> Response:
    """Forget the record."""
    return _to_next(request, services, new_record())


def _taken_in(services: Services, visitor: Visitor | None, record: PracticeRecord, variant: Variant) -> PracticeRecord:
    """The record with what the first answers say; of a sheet that comes again, those of the last try."""
    attempts = services.store.latest_attempts(visitor, sheet_key(variant), LOOKED_AT) if visitor else []
    if any(result.code == variant.code for result in record.results):
        attempts = attempts[:1]
    result = sheet_result(variant, first_readable_answers(variant, (made.answers for made in reversed(attempts))))
    return record_result(services.library, record, result) if result else record.after_skipping()


def _to_next(request: Request, services: Services, record: PracticeRecord) -> Response:
    coming = next_sheet(services.library, record).variant
    response = RedirectResponse(f"{sheet_link(coming, practice=1)}#main", 303)
    keep_record(request, response, record)
    return response
