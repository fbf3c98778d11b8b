"""The record of practice, which travels in a cookie of the browser, and what a sheet adds to it.

The rules that read the record are in app/practice.
"""

from __future__ import annotations

import base64
import secrets

from fastapi import Request, Response

from app.classes.sheet_work import MAX_ATTEMPTS_READ, practice_sheet_key
from app.practice.record import MAX_COUNT, PracticeRecord, read_record, write_record, write_within
from app.practice.scheduler import next_sheet, record_with_sheet
from app.sheets.library import Library
from app.store import PracticeSheetKey, Store, Visitor
from app.web.shared.cookies import PRACTICE_COOKIE, set_private_cookie

MAX_COOKIE = 3600  # characters; browsers store cookies of up to 4096


def read_record_cookie(request: Request) -> PracticeRecord:
    """The record in this browser's cookie; a new, empty one with a random seed if there is none or it cannot be
    read.
    """
    text = request.cookies.get(PRACTICE_COOKIE, "")
    try:
        return read_record(base64.urlsafe_b64decode(text[:MAX_COOKIE].encode("ascii")).decode())
    except ValueError:  # no ASCII, no base64, or a RecordError
        return new_record()


def new_record() -> PracticeRecord:
    """An empty record with a random seed, so that browsers get different sheets."""
    return PracticeRecord(secrets.randbelow(MAX_COUNT))


def set_record_cookie(request: Request, response: Response, record: PracticeRecord) -> None:
    """Put the record into the browser's cookie, without its oldest results where it has grown too long for one."""
    set_private_cookie(request, response, PRACTICE_COOKIE, write_within(record, MAX_COOKIE, _encode))


def _encode(record: PracticeRecord) -> str:
    return base64.urlsafe_b64encode(write_record(record).encode()).decode("ascii")


def record_with_present_sheet(
    library: Library, store: Store, visitor: Visitor | None, record: PracticeRecord
) -> PracticeRecord:
    """The record with a visitor's result on the sheet that it asks for, from their last MAX_ATTEMPTS_READ attempts
    on it.
    """
    variant = next_sheet(library, record).variant
    key = visitor and PracticeSheetKey(visitor.id, practice_sheet_key(variant))
    attempts = store.classwork.latest_attempts(key, MAX_ATTEMPTS_READ) if key else ()
    return record_with_sheet(library, record, variant, [attempt.answers for attempt in attempts])


def record_with_right_sheet(
    library: Library, store: Store, visitor: Visitor | None, record: PracticeRecord
) -> PracticeRecord:
    """The record with the sheet that it asks for, if that is all right already; else the record itself."""
    after = record_with_present_sheet(library, store, visitor, record)
    return after if after.results != record.results and after.results[-1].right else record
