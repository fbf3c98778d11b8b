"""The record of practice, which is kept in a browser's cookie. The rules that read it are in app/practice."""

from __future__ import annotations

import base64

from fastapi import Request, Response

from app.practice.record import PracticeRecord, read_record, write_record
from app.sheets.library import Library
from app.web.shared.cookies import PRACTICE_COOKIE, set_private_cookie

MAX_COOKIE = 4000  # characters; browsers store cookies of up to 4096


def read_record_cookie(request: Request, library: Library) -> PracticeRecord:
    """The record in this browser's cookie, empty if it is missing or unreadable."""
    text = request.cookies.get(PRACTICE_COOKIE, "")
    try:
        return read_record(library, base64.urlsafe_b64decode(text[:MAX_COOKIE].encode("ascii")).decode())
    except ValueError:  # not ASCII, not Base64, or a RecordError
        return PracticeRecord()


def set_record_cookie(request: Request, response: Response, record: PracticeRecord) -> None:
    """Put the record into the browser's cookie."""
    text = base64.urlsafe_b64encode(write_record(record).encode()).decode("ascii")
    set_private_cookie(request, response, PRACTICE_COOKIE, text)
