"""/practice: one sheet after another, each chosen from this browser's record of those before it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from app.practice.record import PracticeRecord
from app.practice.scheduler import next_sheet
from app.sheets.library import Library
from app.web.practice.practice_cookie import new_record, read_record_cookie, record_with_sheet, set_record_cookie
from app.web.practice.sheet_request import PostedSheet, sheet_key, sheet_link
from app.web.shared.services import LibraryDep, StoreDep
from app.web.shared.visitor import MaybeVisitor

router = APIRouter(include_in_schema=False)


@router.get("/practice")
def continue_practice(request: Request, library: LibraryDep) -> Response:
    """Redirect to the sheet that comes next for this browser's record: the first one, or the one that was left."""
    return _redirect_to_next(request, library, read_record_cookie(request))


@router.post("/practice")
def finish_practice_sheet(
    request: Request, library: LibraryDep, store: StoreDep, visitor: MaybeVisitor, asked: PostedSheet
) -> Response:
    """Save what stands in the boxes, take the result of the sheet's attempts into the record, and redirect to the next.

    A sheet that is not the one the record asks for, such as an earlier one, leaves the record as it is. A browser
    without a visitor saves nothing.
    """
    if visitor:
        store.save_draft(visitor, sheet_key(asked.variant), asked.draft)
    record = read_record_cookie(request)
    if next_sheet(library, record).variant == asked.variant:
        record = record_with_sheet(library, store, visitor, record, asked.variant)
    return _redirect_to_next(request, library, record)


@router.post("/practice/level")
def choose_practice_level(
    request: Request,
    library: LibraryDep,
    store: StoreDep,
    visitor: MaybeVisitor,
    level: Annotated[str, Form(max_length=60)] = "",
) -> Response:
    """Take the result of the present sheet into the record, and go on with the level that was chosen."""
    record = read_record_cookie(request)
    record = record_with_sheet(library, store, visitor, record, next_sheet(library, record).variant)
    return _redirect_to_next(request, library, record.at_level(level))


@router.post("/practice/forget")
def reset_practice_record(request: Request, library: LibraryDep) -> Response:
    """Begin with an empty record."""
    return _redirect_to_next(request, library, new_record())


def _redirect_to_next(request: Request, library: Library, record: PracticeRecord) -> Response:
    """Redirect to the sheet that this record asks for, with the record in the cookie."""
    variant = next_sheet(library, record).variant
    response = RedirectResponse(sheet_link(variant, practice=1), 303)
    set_record_cookie(request, response, record)
    return response
