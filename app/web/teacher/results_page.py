"""The results of one sheet of an activity: each row's statistics, misconceptions, and every student's last attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.classes.activity_results import (
    MisconceptionTotal,
    SheetResults,
    WrongAnswer,
    activity_results,
    common_wrong_answers,
    misconception_totals,
    participants,
)
from app.grading.item_analysis import RowState, RowStatistics
from app.sheets.variant import Row
from app.store import Activity, Student
from app.web.shared import permissions
from app.web.shared.forms import clamped_number
from app.web.shared.permissions import StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class StudentLine:
    """One student in the table of marks; without an attempt the score is empty and every state is None."""

    student: Student
    attempts: int
    score: str
    handed_in: bool
    taken_in: bool  # the last attempt, at closing
    late: bool  # the last attempt
    states: tuple[RowState | None, ...]  # of the last attempt, row by row


@dataclass(frozen=True)
class RowLine:
    """One row in the table of statistics, with its numbers as they are written."""

    row: Row
    statistics: RowStatistics
    percent_at_first: int
    discrimination: str  # such as '−0.21', empty where it cannot be told
    wrong: WrongAnswer | None  # the commonest


@dataclass(frozen=True)
class ResultsPage:
    """Everything that templates/teacher/results.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    sheets: Annotated[tuple[SheetResults, ...], Doc("The sheets to choose from.")]
    number: Annotated[int, Doc("The number of the sheet that is shown, from 1; 0 where there is none.")]
    lines: Annotated[tuple[StudentLine, ...], Doc("Every student who took part, by name.")]
    rows: Annotated[tuple[RowLine, ...], Doc("The rows of the sheet, from top to bottom.")]
    attempted: Annotated[int, Doc("How many students have attempted it.")]
    misconceptions: Annotated[tuple[MisconceptionTotal, ...], Doc("The misconceptions that attempts on it showed.")]


@router.get("/activities/{activity_id:int}/results")
def show_results(services: ServicesDep, access: StaffActivity, sheet: str = "") -> Response:
    """The results of the sheet of that number, from 1; of the nearest one where no sheet has it.

    Text that is no number counts as 1. All students who took part are listed, also those without an attempt on the
    sheet.
    """
    library, store, activity = services.library, services.store, access.activity
    sheets = activity_results(library, store, activity)
    number = clamped_number(sheet, len(sheets))
    shown = sheets[number - 1] if sheets else None
    students = participants(store, activity, access.course, sheets)
    page = ResultsPage(
        access=access,
        sheets=sheets,
        number=number,
        lines=tuple(_student_line(shown, student) for student in students),
        rows=_row_lines(services, activity, shown) if shown else (),
        attempted=len(shown.attempts) if shown else 0,
        misconceptions=misconception_totals(shown.library.wording, (shown,)) if shown else (),
    )
    return render("teacher/results.html", page)


def _student_line(sheet: SheetResults | None, student: Student) -> StudentLine:
    """A student's attempts on the sheet: how many, whether any was handed in, and the last one's score and row states.

    Without a sheet or an attempt the score is empty and every state None.
    """
    attempts = sheet.attempts.get(student.id, ()) if sheet else ()
    if sheet is None or not attempts:
        return StudentLine(student, 0, "", False, False, False, (None,) * len(sheet.rows if sheet else ()))
    states = sheet.states(attempts[-1])
    handed_in = any(attempt.handed_in for attempt in attempts)
    last, row_states = attempts[-1], tuple(states[row.key] for row in sheet.rows)
    return StudentLine(student, len(attempts), f"{last.score:g}", handed_in, last.taken_in, last.late, row_states)


def _row_lines(services: Services, activity: Activity, sheet: SheetResults) -> tuple[RowLine, ...]:
    """Every row of the sheet, from top to bottom, with its statistics and its commonest wrong answer at first.

    Percentages are of the students who attempted the sheet, rounded.
    """
    wrong = common_wrong_answers(services.store, activity, sheet)
    return tuple(
        RowLine(
            row,
            statistics,
            round(100 * statistics.share_at_first),
            _signed(statistics.discrimination),
            wrong.get(row.key),
        )
        for row, statistics in zip(sheet.rows, sheet.statistics(), strict=True)
    )


def _signed(number: float | None) -> str:
    """A number with two decimals and a real minus sign; empty for None."""
    return "" if number is None else f"{number:.2f}".replace("-", "−")
