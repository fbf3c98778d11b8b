"""Every attempt of one student in an activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.classes.activity_results import SheetResults, activity_results, misconception_name
from app.grading.item_analysis import RowState
from app.sheets.wording import Wording
from app.store import ClassAttempt, OldMarks, Student
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.permissions import StaffStudentResults
from app.web.shared.services import ServicesDep
from app.web.shared.templating import local_time, render

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class AttemptColumn:
    """One attempt as a column of the table, with its time and scores as they are written."""

    attempt: ClassAttempt
    at: str
    score: str
    misconceptions: tuple[str, ...]  # by their short names, the diagnosis first
    before: tuple[str, ...]  # what it had before each regrade, the oldest first: '12.5 of 14 until 3 April, 09:05'
    states: Mapping[str, RowState]  # by the row's key


@dataclass(frozen=True)
class SheetHistory:
    """All attempts of one student on one sheet, in order of time."""

    sheet: SheetResults
    attempts: tuple[AttemptColumn, ...]


@dataclass(frozen=True)
class StudentResultsPage:
    """Everything that templates/teacher/student_results.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    student: Annotated[Student, Doc("The student.")]
    histories: Annotated[tuple[SheetHistory, ...], Doc("The sheets that they have attempted.")]


@router.get("/activities/{activity_id:int}/results/{student_id:int}")
def show_student_results(services: ServicesDep, access: StaffStudentResults) -> Response:
    """Every attempt of this student, sheet by sheet, also on sheets of earlier revisions.

    Sheets without an attempt of theirs are left out.
    """
    store, activity, student = services.store, access.at.activity, access.student
    wording, time_zone = services.library.wording, access.at.course.time_zone
    old_marks = store.regrades.old_marks(activity.id, student.id)
    histories = tuple(
        SheetHistory(
            sheet,
            tuple(
                _attempt_column(wording, sheet, attempt, old_marks.get(attempt.id, ()), time_zone)
                for attempt in sheet.attempts[student.id]
            ),
        )
        for sheet in activity_results(services.library, store, activity)
        if student.id in sheet.attempts
    )
    return render("teacher/student_results.html", StudentResultsPage(access.at, student, histories))


def _attempt_column(
    wording: Wording, sheet: SheetResults, attempt: ClassAttempt, old_marks: Sequence[OldMarks], time_zone: str
) -> AttemptColumn:
    """One attempt as a column: its time, score, misconceptions and row states, and the score before each regrade.

    `old_marks` are those of this attempt, oldest first; times are on the clocks of `time_zone`.
    """
    before = tuple(
        _("{score:g} of {total} until {time}").format(
            score=old.graded.score, total=old.graded.out_of, time=local_time(old.until, time_zone)
        )
        for old in old_marks
    )
    return AttemptColumn(
        attempt,
        local_time(attempt.created_at, time_zone),
        _("{score:g} of {total}").format(score=attempt.score, total=attempt.out_of),
        tuple(misconception_name(wording, key) for key in attempt.misconceptions),
        before,
        sheet.states(attempt),
    )
