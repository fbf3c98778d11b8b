"""Where a browser's practice takes place: on its own, with a record in its cookie, or for its student's course.

A course adds its own worksheets, and the record is stored with the student, where teachers see it. Nothing is stored
before the first sheet is checked.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response

from app.classes.course_settings import practice_library, practising
from app.practice.record import PracticeRecord, RecordError, read_record, write_record
from app.sheets.library import Library
from app.store import Enrolment, Store
from app.web.shared.cookies import PRACTICE_COOKIE, set_private_cookie
from app.web.shared.services import ServicesDep
from app.web.shared.visitor import MaybeVisitor

MAX_COOKIE = 4000  # characters; browsers store cookies of up to 4096


@dataclass(frozen=True)
class PracticePlace:
    """What a browser practises with, and its progress; `enrolment` is None outside of a course."""

    library: Library
    record: PracticeRecord
    enrolment: Enrolment | None = None

    @property
    def course(self) -> str:
        """The title of the course whose teachers see the record, or ""."""
        return self.enrolment.course.title if self.enrolment else ""

    def keep(self, request: Request, response: Response, store: Store, record: PracticeRecord) -> None:
        """Store the record if it has changed: with the student, or in the browser's cookie."""
        if record == self.record:
            return
        if self.enrolment is None:
            _set_record_cookie(request, response, record)
        else:
            store.roster.keep_practice_record(self.enrolment.student, write_record(record))


def practice_place(request: Request, services: ServicesDep, visitor: MaybeVisitor) -> PracticePlace:
    """Where this browser practises: for a course of its student that has practice, otherwise on its own."""
    if not visitor or not (found := practising(services.store, visitor)):
        return PracticePlace(services.library, _read_record_cookie(request, services.library))
    library, record = services.library, PracticeRecord()
    library = practice_library(library, services.store, found.enrolment.course, found.practice)
    with suppress(RecordError):
        record = read_record(library, found.record) if found.record else record
    return PracticePlace(library, record, found.enrolment)


PracticePlaceDep = Annotated[PracticePlace, Depends(practice_place)]


def _read_record_cookie(request: Request, library: Library) -> PracticeRecord:
    text = request.cookies.get(PRACTICE_COOKIE, "")
    try:
        return read_record(library, base64.urlsafe_b64decode(text[:MAX_COOKIE].encode("ascii")).decode())
    except ValueError:  # not ASCII, not Base64, or a RecordError
        return PracticeRecord()


def _set_record_cookie(request: Request, response: Response, record: PracticeRecord) -> None:
    text = base64.urlsafe_b64encode(write_record(record).encode()).decode("ascii")
    set_private_cookie(request, response, PRACTICE_COOKIE, text)
