"""The results of one sheet of an activity: rows, misconceptions, every student's last attempt, and written answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Response

from app.classes.activity_results import (
    ActivitySheet,
    MisconceptionTotal,
    SheetResults,
    WrongAnswer,
    activity_results,
    activity_sheets,
    common_wrong_answers,
    misconception_totals,
    participants,
    sheet_results,
)
from app.classes.frozen.misconception_words import misconception_words
from app.classes.written_answers import OpenQuestionResults, WrittenText, open_questions
from app.figures.heat_map import decimal
from app.grading.item_analysis import RowState, RowStatistics
from app.sheets.variant import Row
from app.sheets.worksheet import MAX_MISCONCEPTION_KEY
from app.store import Activity, Store, Student
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import Pager, clamped_number, cut_page
from app.web.shared.permissions import StaffActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class StudentLine:
    """One student in the table of marks; without an attempt the score is "" and every state is None."""

    student: Student
    attempts: int
    score: str  # such as '11 of 14'
    handed_in: bool  # any attempt
    auto_submitted: bool  # the last attempt, at closing
    late: bool  # the last attempt
    states: tuple[RowState | None, ...]  # the last attempt's, row by row


@dataclass(frozen=True)
class RowLine:
    """One row in the table of statistics, with its numbers as they are written."""

    row: Row
    statistics: RowStatistics
    percent_at_first: int
    discrimination: str  # such as '−0.21', empty if it can't be computed
    wrong: WrongAnswer | None  # the most common one
    symbols: Collection[str]  # all the sheet's sizes, in its notation


@dataclass(frozen=True)
class ResultsOrder:
    """How students are sorted, by "name", "score" or "attempts", and which are shown.

    `show` is "not-handed-in", or the key of a misconception in the last attempt; empty for everybody.
    """

    sort: str = "name"
    descending: bool = False
    show: str = ""

    def includes(self, sheet: SheetResults | None, student: Student) -> bool:
        attempts = sheet.attempts.get(student.id, ()) if sheet else ()
        if self.show == "not-handed-in":
            return not any(attempt.handed_in for attempt in attempts)
        return not self.show or (bool(attempts) and self.show in attempts[-1].misconceptions)


def results_order(sort: str = "name", order: str = "", show: str = "") -> ResultsOrder:
    """The order that a query asks for; an unknown `sort` means "name"."""
    sort = sort if sort in ("score", "attempts") else "name"
    descending = {"up": False, "down": True}.get(order, sort != "name")
    return ResultsOrder(sort, descending, show[:MAX_MISCONCEPTION_KEY])


ResultsOrderDep = Annotated[ResultsOrder, Depends(results_order)]


@dataclass(frozen=True)
class QuestionLine:
    """An open question and how many students who took part have answered it."""

    question: OpenQuestionResults
    answered: int


@dataclass(frozen=True)
class WrittenAnswersPage:
    """Everything that templates/teacher/written_answers.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    questions: Annotated[tuple[QuestionLine, ...], Doc("Every open question of the activity, to choose from.")]
    shown: Annotated[QuestionLine | None, Doc("The question whose answers are listed; None without any question.")]
    sheet_title: Annotated[str, Doc("The title of its sheet.")]
    lines: Annotated[tuple[tuple[Student, WrittenText], ...], Doc("The answers on this page of the list, by name.")]
    pager: Annotated[Pager, Doc("Which page of the list this is.")]
    participants: Annotated[int, Doc("How many students took part.")]


@dataclass(frozen=True)
class ResultsPage:
    """Everything that templates/teacher/results.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    sheets: Annotated[tuple[ActivitySheet, ...], Doc("The sheets to choose from.")]
    number: Annotated[int, Doc("The number of the sheet that is shown, from 1; 0 where there is none.")]
    lines: Annotated[tuple[StudentLine, ...], Doc("The students who took part and are not filtered out, in order.")]
    pager: Annotated[Pager, Doc("Which page of the list of students this is.")]
    order: Annotated[ResultsOrder, Doc("How the list of students is sorted and filtered.")]
    query: Annotated[dict[str, object], Doc("The same as values of the page's address, with activity and sheet.")]
    participants: Annotated[int, Doc("How many students took part.")]
    mean: Annotated[str, Doc("The mean of the scores of all who attempted the sheet, empty where nobody has.")]
    rows: Annotated[tuple[RowLine, ...], Doc("The rows of the sheet, from top to bottom.")]
    attempted: Annotated[int, Doc("How many students have attempted it.")]
    misconceptions: Annotated[tuple[MisconceptionTotal, ...], Doc("The misconceptions that attempts on it showed.")]
    questions: Annotated[tuple[QuestionLine, ...], Doc("Its open questions.")]


@router.get("/activities/{activity_id:int}/results")
def show_results(
    services: ServicesDep, access: StaffActivity, wanted: ResultsOrderDep, sheet: str = "", page: str = ""
) -> Response:
    """The results of sheet `sheet`, from 1: the nearest number that exists, the first for other text."""
    library, store, activity = services.library, services.store, access.activity
    sheets = activity_sheets(store, activity)
    number = clamped_number(sheet, len(sheets))
    shown = sheet_results(library, store, activity, sheets[number - 1]) if sheets else None
    students = participants(store, activity, access.course)
    included = [student for student in students if wanted.includes(shown, student)]
    listed, pager = cut_page(_in_order(shown, included, wanted), page)
    usual = results_order(wanted.sort, show=wanted.show)
    texts = (("sort", wanted.sort if wanted.sort != "name" else ""), ("show", wanted.show),
             ("order", "" if wanted == usual else "down" if wanted.descending else "up"))  # fmt: skip
    query: dict[str, object] = {"activity_id": activity.id, "sheet": number}
    words = misconception_words(services.library, store, activity, shown.library.wording if shown else None)
    results = ResultsPage(
        access=access,
        sheets=sheets,
        number=number,
        lines=tuple(_student_line(shown, student) for student in listed),
        pager=pager,
        order=wanted,
        query=query | {name: value for name, value in texts if value},
        participants=len(students),
        mean=_mean_score(shown),
        rows=_row_lines(services, activity, shown) if shown else (),
        attempted=len(shown.attempts) if shown else 0,
        misconceptions=misconception_totals(words, (shown,) if shown else ()),
        questions=_question_lines(store, activity, (shown,) if shown else (), students),
    )  # fmt: skip
    return render("teacher/results.html", results)


@router.get("/activities/{activity_id:int}/results/written")
def show_written_answers(
    services: ServicesDep, access: StaffActivity, sheet: str = "", question: str = "", page: str = ""
) -> Response:
    """A page of the last answers to one open question of sheet `sheet`, from 1, by the students' names."""
    store, activity = services.store, access.activity
    sheets = activity_results(services.library, store, activity)
    students = participants(store, activity, access.course)
    questions = _question_lines(store, activity, sheets, students)
    wanted = [line for line in questions if (str(line.question.sheet_number), line.question.key) == (sheet, question)]
    shown = next(iter((*wanted, *questions)), None)
    answers = [(student, shown.question.last_of(student)) for student in students] if shown else []
    listed, pager = cut_page([(student, written) for student, written in answers if written], page)
    written_answers = WrittenAnswersPage(
        access=access,
        questions=questions,
        shown=shown,
        sheet_title=sheets[shown.question.sheet_number - 1].title if shown else "",
        lines=listed,
        pager=pager,
        participants=len(students),
    )
    return render("teacher/written_answers.html", written_answers)


def _question_lines(
    store: Store, activity: Activity, sheets: Sequence[SheetResults], students: Sequence[Student]
) -> tuple[QuestionLine, ...]:
    return tuple(
        QuestionLine(question, sum(question.last_of(student) is not None for student in students))
        for question in open_questions(store, activity, sheets)
    )


def _in_order(sheet: SheetResults | None, students: Sequence[Student], wanted: ResultsOrder) -> list[Student]:
    if wanted.sort == "name" or sheet is None:
        return list(reversed(students)) if wanted.descending else list(students)
    sign = -1 if wanted.descending else 1

    def place(student: Student) -> tuple[bool, float]:
        attempts = sheet.attempts.get(student.id, ())
        value = 0.0 if not attempts else attempts[-1].score if wanted.sort == "score" else len(attempts)
        return not attempts, sign * value

    return sorted(students, key=place)


def _mean_score(sheet: SheetResults | None) -> str:
    last = sheet.last if sheet else []
    if not last:
        return ""
    if len({attempt.out_of for attempt in last}) > 1:
        shares = [attempt.score / attempt.out_of for attempt in last if attempt.out_of]
        return _("{percent}%").format(percent=round(100 * sum(shares) / len(shares)))
    score = sum(attempt.score for attempt in last) / len(last)
    return _("{score} of {total}").format(score=f"{score:.1f}", total=last[0].out_of)


def _student_line(sheet: SheetResults | None, student: Student) -> StudentLine:
    attempts = sheet.attempts.get(student.id, ()) if sheet else ()
    if sheet is None or not attempts:
        return StudentLine(student, 0, "", False, False, False, (None,) * len(sheet.rows if sheet else ()))
    last, handed_in = attempts[-1], any(attempt.handed_in for attempt in attempts)
    score = _("{score:g} of {total}").format(score=last.score, total=last.out_of)
    states = tuple(sheet.states(last).values())
    return StudentLine(student, len(attempts), score, handed_in, last.auto_submitted, last.late, states)


def _row_lines(services: Services, activity: Activity, sheet: SheetResults) -> tuple[RowLine, ...]:
    wrong = common_wrong_answers(services.store, activity, sheet)
    symbols = frozenset(map(sheet.variant.notation.symbol, sheet.variant.sizes))
    return tuple(
        RowLine(
            row,
            statistics,
            round(100 * statistics.share_at_first),
            _signed(statistics.discrimination),
            wrong.get(row.key),
            symbols,
        )
        for row, statistics in zip(sheet.rows, sheet.statistics(), strict=True)
    )


def _signed(number: float | None) -> str:
    return "" if number is None else decimal(number, 2)
