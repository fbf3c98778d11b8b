"""What came of an activity: students and rows in tables, each student's attempts, and one page for the next meeting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

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
from app.store import ClassAttempt, OldMarks, Student
from app.web.shared import permissions
from app.web.shared.permissions import StaffActivity, StaffStudentResults
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

TOP_MISCONCEPTIONS, LOW_ROWS, SENTENCES = 3, 3, 6


@dataclass(frozen=True)
class Line:
    """One student in the table: how many attempts, the score of the last one, and how each row of it stands."""

    student: Student
    attempts: int
    score: str
    handed_in: bool
    states: tuple[RowState | None, ...]


@dataclass(frozen=True)
class RowLine:
    """One row of the sheet with what its statistics say, as numbers are written."""

    row: Row
    statistics: RowStatistics
    share: int
    discrimination: str
    wrong: WrongAnswer | None


@dataclass(frozen=True)
class ResultsPage:
    """Everything that templates/teacher/results.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    outcomes: Annotated[tuple[SheetResults, ...], Doc("The sheets to choose from.")]
    number: Annotated[int, Doc("Which of them is looked at, from 1; 0 where there is none.")]
    lines: Annotated[tuple[Line, ...], Doc("Everybody who took part, by name.")]
    rows: Annotated[tuple[RowLine, ...], Doc("The rows of the sheet.")]
    tried: Annotated[int, Doc("How many students have tried it.")]
    misconceptions: Annotated[tuple[MisconceptionTotal, ...], Doc("What was believed on it.")]


@dataclass(frozen=True)
class OneTry:
    """A try in a student's history: when, what it got, and what it had before a regrade."""

    one: ClassAttempt
    at: str
    score: str
    misconceptions: tuple[str, ...]
    before: tuple[str, ...]
    states: Mapping[str, RowState]


@dataclass(frozen=True)
class History:
    """All attempts of one student on one sheet."""

    outcome: SheetResults
    attempts: tuple[OneTry, ...]


@dataclass(frozen=True)
class WorkPage:
    """Everything that templates/teacher/student_results.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    student: Annotated[Student, Doc("Whose work it is.")]
    histories: Annotated[tuple[History, ...], Doc("The sheets that they have tried.")]


@dataclass(frozen=True)
class MisconceptionLine:
    """A misconception to come back to, with its explanation."""

    misconception: MisconceptionTotal
    explanation: str


@dataclass(frozen=True)
class LowRow:
    """A row that few had right at first."""

    sheet: str
    row: Row
    statistics: RowStatistics
    share: int


@dataclass(frozen=True)
class SummaryPage:
    """Everything that templates/teacher/summary.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who looks at it in which role.")]
    came: Annotated[int, Doc("How many students took part.")]
    misconceptions: Annotated[tuple[MisconceptionLine, ...], Doc("What most of them believed.")]
    rows: Annotated[tuple[LowRow, ...], Doc("The rows that fewest had right at first.")]
    sentences: Annotated[tuple[str, ...], Doc("Starred sentences of exit tickets.")]
    more: Annotated[int, Doc("How many starred sentences did not fit on the page.")]


@router.get("/activities/{activity_id:int}/results")
def show_results(services: ServicesDep, access: StaffActivity, sheet: str = "") -> Response:
    """Students and rows of one sheet, the first unless another is asked for."""
    found = activity_results(services.library, services.store, access.activity)
    number = int(sheet) if sheet.isascii() and sheet.isdigit() and len(sheet) < 4 else 1
    number = min(max(number, 1), len(found))
    outcome = found[number - 1] if found else None
    people = participants(services.store, access.activity, access.course, found)
    page = ResultsPage(
        access=access,
        outcomes=found,
        number=number,
        lines=tuple(_line(outcome, student) for student in people),
        rows=_row_lines(services, access, outcome) if outcome else (),
        tried=len(outcome.attempts) if outcome else 0,
        misconceptions=misconception_totals(services.library.wording, (outcome,)) if outcome else (),
    )
    return render("teacher/results.html", page)


@router.get("/activities/{activity_id:int}/results/{student_id:int}")
def show_work(services: ServicesDep, access: StaffStudentResults) -> Response:
    """Every try of one student in this activity."""
    old = services.store.regrades.old_marks(access.at.activity.id, access.student.id)
    zone = ZoneInfo(access.at.course.time_zone)
    histories = tuple(
        History(outcome, tuple(_one_try(services, outcome, one, old.get(one.id, ()), zone) for one in attempts))
        for outcome in activity_results(services.library, services.store, access.at.activity)
        if (attempts := outcome.attempts.get(access.student.id))
    )
    return render("teacher/student_results.html", WorkPage(access.at, access.student, histories))


@router.get("/activities/{activity_id:int}/summary")
def show_summary(services: ServicesDep, access: StaffActivity) -> Response:
    """One page to begin the next meeting with."""
    found, words = activity_results(services.library, services.store, access.activity), services.library.wording
    misconceptions = [
        misconception
        for misconception in misconception_totals(services.library.wording, found)
        if misconception.at_last
    ][:TOP_MISCONCEPTIONS]
    low = [
        LowRow(outcome.title, row, statistics, round(100 * statistics.share_at_first))
        for outcome in found
        for row, statistics in zip(outcome.rows, outcome.statistics(), strict=True)
        if statistics.students and statistics.right_at_first < statistics.students
    ]
    low.sort(key=lambda row: row.statistics.share_at_first)
    tickets = services.store.classwork.tickets(access.activity.id)
    starred = [answer.text for answer in tickets if answer.starred and not answer.hidden]
    page = SummaryPage(
        access,
        len(participants(services.store, access.activity, access.course, found)),
        tuple(
            MisconceptionLine(misconception, words.misconception(misconception.key, "explanation"))
            for misconception in misconceptions
        ),
        tuple(low[:LOW_ROWS]),
        tuple(starred[:SENTENCES]),
        max(len(starred) - SENTENCES, 0),
    )
    return render("teacher/summary.html", page)


def _line(outcome: SheetResults | None, student: Student) -> Line:
    attempts = outcome.attempts.get(student.id, ()) if outcome else ()
    if outcome is None or not attempts:
        return Line(student, 0, "", False, (None,) * len(outcome.rows if outcome else ()))
    states = outcome.states(attempts[-1])
    handed_in = any(one.handed_in for one in attempts)
    return Line(
        student, len(attempts), f"{attempts[-1].score:g}", handed_in, tuple(states[row.key] for row in outcome.rows)
    )


def _row_lines(services: Services, access: permissions.ActivityAccess, outcome: SheetResults) -> tuple[RowLine, ...]:
    wrong = common_wrong_answers(services.library, services.store, access.activity, outcome)
    return tuple(
        RowLine(
            row,
            one,
            round(100 * one.share_at_first),
            "" if one.discrimination is None else f"{one.discrimination:.2f}".replace("-", "−"),
            wrong.get(row.key),
        )
        for row, one in zip(outcome.rows, outcome.statistics(), strict=True)
    )


def _one_try(
    services: Services, outcome: SheetResults, one: ClassAttempt, old: tuple[OldMarks, ...], zone: ZoneInfo
) -> OneTry:
    names = services.library.wording.sections["misconception-names"]
    before = tuple(f"{was.graded.score:g} of {was.graded.out_of} until {_written(was.until, zone)}" for was in old)
    misconceptions = tuple(names.get(key, key) for key in one.misconceptions)
    score = f"{one.score:g} of {one.out_of}"
    return OneTry(one, _written(one.created_at, zone), score, misconceptions, before, outcome.states(one))


def _written(at: datetime, zone: ZoneInfo) -> str:
    return at.astimezone(zone).strftime("%d %B, %H:%M").lstrip("0")
