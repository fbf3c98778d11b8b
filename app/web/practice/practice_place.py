"""Where a browser's practice takes place: on its own, with a record in its cookie, or for a course of its student.

For a course, sheets come from what the course practises, and the record is stored with the student, whose teachers see
it. Nothing is stored before the first sheet is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response

from app.classes.course_settings import first_draw, practice_library, practice_of, practising_enrolment
from app.practice.levels import practice_levels
from app.practice.record import (
    MAX_COUNT,
    MAX_RECORD_CHARACTERS,
    PracticeRecord,
    RecordError,
    read_record,
    write_within,
)
from app.sheets.library import Library
from app.store import Enrolment, Store, Visitor
from app.web.practice.practice_cookie import read_record_cookie, set_record_cookie
from app.web.shared.services import Services, ServicesDep
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
        """Keep how far it is now: in the browser's cookie, or with the student."""
        if self.enrolment is None:
            set_record_cookie(request, response, record)
        elif record != self.record:
            text = write_within(record, MAX_RECORD_CHARACTERS)
            store.roster.keep_practice_record(self.enrolment.student, text)


def practice_place(request: Request, services: ServicesDep, visitor: MaybeVisitor) -> PracticePlace:
    """Where this browser practises: for a course of its student that has switched that on, else on its own."""
    return (visitor and _place_in_course(services, visitor)) or PracticePlace(
        services.library, read_record_cookie(request)
    )


PracticePlaceDep = Annotated[PracticePlace, Depends(practice_place)]


def _place_in_course(services: Services, visitor: Visitor) -> PracticePlace | None:
    """The practice of the browser's student; None without one, and where the course has no sheet to practise."""
    enrolment = practising_enrolment(services.store, visitor.id)
    practice = practice_of(services.store, enrolment.course) if enrolment else None
    if enrolment is None or practice is None:
        return None
    library = practice_library(services.library, services.store, enrolment.course, practice)
    if not practice_levels(library):
        return None
    return PracticePlace(library, _stored_record(services.store, enrolment), enrolment)


def _stored_record(store: Store, enrolment: Enrolment) -> PracticeRecord:
    """The record that is stored with a student; a new one where there is none, or it cannot be read any more."""
    text = store.roster.practice_record(enrolment.student)
    try:
        if text:
            return read_record(text)
    except RecordError:
        pass
    return PracticeRecord(first_draw(enrolment.student, MAX_COUNT))
