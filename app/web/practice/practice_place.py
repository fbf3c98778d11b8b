"""Where a browser's practice takes place: on its own, with a record in its cookie, or for a course of its student.

For a course, sheets come from what the course practises, and the record is stored with the student, whose teachers see
it. Nothing is stored before the first sheet is done.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response

from app.classes.course_settings import Practising, first_draw, practice_library, practising
from app.practice.levels import practice_levels
from app.practice.record import MAX_COUNT, MAX_RECORD_CHARACTERS, PracticeRecord, RecordError, read_record, write_within
from app.sheets.library import Library
from app.store import Enrolment, Store
from app.web.practice.practice_cookie import read_record_cookie, set_record_cookie
from app.web.shared.services import ServicesDep
from app.web.shared.visitor import MaybeVisitor


@dataclass(frozen=True)
class PracticePlace:
    """What a browser practises with, and how far it is; `enrolment` is None for practice of its own."""

    library: Library
    record: PracticeRecord
    enrolment: Enrolment | None = None

    @property
    def course(self) -> str:
        """The title of the course whose teachers see the record; empty for practice of its own."""
        return self.enrolment.course.title if self.enrolment else ""

    def keep(self, request: Request, response: Response, store: Store, record: PracticeRecord) -> None:
        """Store `record`, without its oldest results if it is too long: with the student if practice is for a
        course, and only if it differs from the place's record.
        """
        if self.enrolment is None:
            set_record_cookie(request, response, record)
        elif record != self.record:
            text = write_within(record, MAX_RECORD_CHARACTERS)
            store.roster.keep_practice_record(self.enrolment.student, text)


def practice_place(request: Request, services: ServicesDep, visitor: MaybeVisitor) -> PracticePlace:
    """Where this browser practises, with its library and record: for a course of its student, if it does so (see
    `practising`), with the course's sheets and the student's record.
    """
    if visitor and (found := practising(services.store, visitor)):
        library = practice_library(services.library, services.store, found.enrolment.course, found.practice)
        if practice_levels(library):
            return PracticePlace(library, _record_of(found), found.enrolment)
    return PracticePlace(services.library, read_record_cookie(request))


PracticePlaceDep = Annotated[PracticePlace, Depends(practice_place)]


def _record_of(found: Practising) -> PracticeRecord:
    with suppress(RecordError):
        if found.record:
            return read_record(found.record)
    return PracticeRecord(first_draw(found.enrolment.student, MAX_COUNT))
