"""One page about an activity to begin the next meeting with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.classes.activity_results import (
    MisconceptionTotal,
    SheetResults,
    activity_results,
    misconception_totals,
    participants,
)
from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.frozen.misconception_words import misconception_words
from app.classes.ticket_groups import ChoiceCount, choice_counts, group_answers
from app.classes.written_answers import OpenQuestionResults, open_questions
from app.sheets.variant import Row
from app.store import Activity, Student, TicketAnswer
from app.store.exit_tickets import SHOWN_FROM
from app.web.shared import permissions
from app.web.shared.permissions import StaffActivity
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MAX_MISCONCEPTIONS_SHOWN, MAX_ROWS_SHOWN, MAX_CHOICES_SHOWN, MAX_SENTENCES_SHOWN = 3, 3, 3, 6


@dataclass(frozen=True)
class ExplainedMisconception:
    """A misconception to come back to, with its explanation."""

    total: MisconceptionTotal
    explanation: str


@dataclass(frozen=True)
class HardRow:
    """A row of a sheet in which some students made a separate mistake at the first attempt."""

    sheet: str  # its title
    row: Row
    share_at_first: float

    @property
    def percent_at_first(self) -> int:
        """The percentage of the class without such a mistake, rounded."""
        return round(100 * self.share_at_first)


@dataclass(frozen=True)
class AnsweredQuestion:
    """An open question with every student's last answer, in alphabetical order, which gives no names away."""

    question: OpenQuestionResults
    texts: tuple[str, ...]


@dataclass(frozen=True)
class ChosenQuestion:
    """A question of the exit ticket with how often each choice was made."""

    text: str
    choices: tuple[ChoiceCount, ...]


@dataclass(frozen=True)
class SummaryPage:
    """Everything that templates/teacher/summary.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    participants: Annotated[int, Doc("How many students took part.")]
    misconceptions: Annotated[
        tuple[ExplainedMisconception, ...], Doc("The most frequent misconceptions of the last attempts.")
    ]
    rows: Annotated[tuple[HardRow, ...], Doc("The rows that fewest had right at first, the lowest first.")]
    chosen: Annotated[tuple[ChosenQuestion, ...], Doc("The first questions of the exit ticket that were chosen from.")]
    sentences: Annotated[tuple[str, ...], Doc("Starred sentences of exit tickets.")]
    more: Annotated[int, Doc("How many starred sentences did not fit on the page.")]
    waiting: Annotated[int, Doc("How many anonymous tickets are in that nobody may read yet.")]
    questions: Annotated[tuple[AnsweredQuestion, ...], Doc("The open questions of the sheets.")]
    with_answers: Annotated[bool, Doc("Whether the answers to them are on the page, without names.")]
    shown_from: Annotated[int, Doc("How many must be in before any is shown.")] = SHOWN_FROM


@router.get("/activities/{activity_id:int}/summary")
def show_summary(services: ServicesDep, access: StaffActivity, answers: str = "") -> Response:
    """Remaining misconceptions, the hardest rows, exit-ticket choices and starred texts, and open questions."""
    store, activity = services.store, access.activity
    words = misconception_words(services.library, store, activity)
    sheets = activity_results(services.library, store, activity)
    left = [total for total in misconception_totals(words, sheets) if total.at_last]
    on_tickets = store.exit_tickets.answers(activity)
    starred = [group.text for group in group_answers(on_tickets) if group.starred and not group.hidden]
    students = participants(store, activity, access.course)
    page = SummaryPage(
        access=access,
        participants=len(students),
        misconceptions=tuple(
            ExplainedMisconception(total, words.explanation(total.key)) for total in left[:MAX_MISCONCEPTIONS_SHOWN]
        ),
        rows=_hard_rows(sheets)[:MAX_ROWS_SHOWN],
        chosen=_chosen_questions(activity, on_tickets)[:MAX_CHOICES_SHOWN],
        sentences=tuple(starred[:MAX_SENTENCES_SHOWN]),
        more=max(len(starred) - MAX_SENTENCES_SHOWN, 0),
        waiting=store.exit_tickets.waiting(activity),
        questions=tuple(_answered(each, students) for each in open_questions(store, activity, sheets)),
        with_answers=bool(answers),
    )
    return render("teacher/summary.html", page)


def _answered(question: OpenQuestionResults, students: Sequence[Student]) -> AnsweredQuestion:
    texts = (last.text for each in students if (last := question.last_of(each)))
    return AnsweredQuestion(question, tuple(sorted(texts, key=str.casefold)))


def _chosen_questions(activity: Activity, answers: Sequence[TicketAnswer]) -> tuple[ChosenQuestion, ...]:
    ticket = frozen_ticket(activity.content)
    counted = ((question, choice_counts(question, answers)) for question in ticket.questions) if ticket else ()
    return tuple(ChosenQuestion(question.text, choices) for question, choices in counted if choices and choices[0].of)


def _hard_rows(sheets: Sequence[SheetResults]) -> tuple[HardRow, ...]:
    rows = [
        HardRow(sheet.title, row, (statistics.right_at_first + statistics.following_at_first) / statistics.students)
        for sheet in sheets
        for row, statistics in zip(sheet.rows, sheet.statistics(), strict=True)
        if statistics.right_at_first + statistics.following_at_first < statistics.students
    ]
    return tuple(sorted(rows, key=lambda row: row.share_at_first))
