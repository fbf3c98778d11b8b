"""Every attempt of one student in an activity, and the points that count for it in the gradebook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_results import SheetResults, activity_results, report_as_stored
from app.classes.frozen.frozen_library import frozen_worksheet
from app.classes.frozen.misconception_words import MisconceptionWords, misconception_words
from app.classes.gradebook import GradebookColumn, gradebook_columns
from app.classes.student_sheet import best_scores, variant_of
from app.classes.written_answers import OpenQuestionResults, open_questions
from app.grading.item_analysis import RowState
from app.sheets.worksheet import WorksheetError
from app.store import Activity, Attempt, AuditAction, GradeChange, OldMarks, Store, Student
from app.store.grades import ChangeKind
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import FormDep
from app.web.shared.permissions import EditableStudentResults, StaffStudentResults
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import local_time, render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_REASON = 300  # characters


@dataclass(frozen=True)
class AttemptColumn:
    """One attempt as a column of the table, with its scores as they are written."""

    attempt: Attempt
    score: str
    misconceptions: tuple[str, ...]  # by their short names, the diagnosis first
    before: tuple[str, ...]  # earlier scores before each regrade, oldest first: '12.5 of 14 until 3 April, 09:05'
    states: Mapping[str, RowState]  # by the row's key
    losses: tuple[str, ...]  # a sentence for each mistake that makes more than one box wrong, and costs one


@dataclass(frozen=True)
class SheetHistory:
    """All attempts of one student on one sheet, in order of time."""

    sheet: SheetResults
    attempts: tuple[AttemptColumn, ...]
    written: tuple[OpenQuestionResults, ...]  # the answered ones


@dataclass(frozen=True)
class ChangeLine:
    """A change of a student's points: when, by whom and why, with the points before and after as written."""

    at: str
    by: str
    before: str
    after: str
    reason: str  # empty if a change was undone


@dataclass(frozen=True)
class StudentResultsPage:
    """Everything that templates/teacher/student_results.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    student: Annotated[Student, Doc("The student.")]
    histories: Annotated[tuple[SheetHistory, ...], Doc("The sheets that they have attempted.")]
    column: Annotated[GradebookColumn | None, Doc("The activity in the gradebook; None where it has no points.")]
    changes: Annotated[tuple[ChangeLine, ...], Doc("Every change of these points, the newest first.")]
    typed: Annotated[str, Doc("Points as typed, to be corrected.")] = ""
    reason: Annotated[str, Doc("The reason as typed.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""


@router.get("/activities/{activity_id:int}/results/{student_id:int}")
def show_student_results(services: ServicesDep, access: StaffStudentResults) -> Response:
    """Every attempt of this student, sheet by sheet, including sheets of earlier revisions, and their points."""
    return render("teacher/student_results.html", _student_results_page(services, access))


@router.post("/activities/{activity_id:int}/results/{student_id:int}/points")
def change_points(services: ServicesDep, access: EditableStudentResults, form: FormDep) -> Response:
    """Give the student other points in this activity, excuse them, or undo either, and redirect to their results."""
    if not _is_graded(access.at.activity):
        raise HTTPException(404)
    action, typed, reason = form.raw("action"), form.single_line("points"), form.single_line("reason", MAX_REASON)
    kind: ChangeKind = "undone" if action == "undo" else "points" if action == "change" else "excused"
    points = _read_points(typed) if kind == "points" else None
    if kind != "undone" and (not reason or (kind == "points" and points is None)):
        problem = (
            _("Type the points as a number from 0 to 9999, with at most two decimals.")
            if reason
            else _("Say why in a few words.")
        )
        page = replace(_student_results_page(services, access), typed=typed, reason=reason, problem=problem)
        return render("teacher/student_results.html", page, 422)
    _change_points(services, access, kind, points, "" if kind == "undone" else reason)
    address = url_for("show_student_results", activity_id=access.at.activity.id, student_id=access.student.id)
    return RedirectResponse(f"{address}#points", 303)


def _change_points(
    services: Services, access: permissions.StudentResultsAccess, kind: ChangeKind, points: float | None, reason: str
) -> None:
    """The activity is locked meanwhile."""
    store, student, teacher = services.store, access.student, access.at.teacher
    best = best_scores(services.library, store, access.at.activity.content)
    with store.transaction():
        activity = store.activities.locked(access.at.activity)  # no attempt and no other change comes in meanwhile
        column = _gradebook_column(store, activity, access, best) if activity else None
        if activity is None or column is None or (kind == "undone" and student.id not in column.overrides):
            return
        before = column.scores.get(student.id)
        store.grades.change(activity.id, student.id, teacher, kind, points, points_before=before, reason=reason)
        now = f"{points:g}" if points is not None else "excused" if kind == "excused" else "none"
        detail = f"{now}, activity {activity.id}"
        store.audit_log.record(teacher, AuditAction.POINTS_CHANGED, student, detail)


def _read_points(typed: str) -> float | None:
    return float(typed.replace(",", ".")) if re.fullmatch(r"[0-9]{1,4}([.,][0-9]{1,2})?", typed) else None


def _is_graded(activity: Activity) -> bool:
    return activity.state != "draft" and bool(activity.content.items)


def _student_results_page(services: Services, access: permissions.StudentResultsAccess) -> StudentResultsPage:
    store, activity, student = services.store, access.at.activity, access.student
    time_zone = access.at.course.time_zone
    old_marks = store.regrades.old_marks(activity.id, student.id)
    words = partial(misconception_words, services.library, store, activity)  # in the words of a sheet's revision
    results = activity_results(services.library, store, activity, student)
    questions = open_questions(store, activity, results)
    histories = tuple(
        SheetHistory(
            sheet,
            tuple(
                _attempt_column(
                    sheet,
                    attempt,
                    _losses(services, activity, sheet, attempt),
                    old_marks.get(attempt.id, ()),
                    words(sheet.library.wording),
                    time_zone,
                )
                for attempt in sheet.attempts[student.id]
            ),
            tuple(question for question in questions if question.sheet_number == sheet.number and question.of(student)),
        )
        for sheet in results
        if student.id in sheet.attempts
    )
    column, changes = None, list[GradeChange]()
    if _is_graded(activity):
        column = _gradebook_column(store, activity, access, best_scores(services.library, store, activity.content))
        changes += store.grades.changes(activity.id, student.id)
    return StudentResultsPage(access.at, student, histories, column, _changes(changes, time_zone))


def _gradebook_column(
    store: Store, activity: Activity, access: permissions.StudentResultsAccess, points: Sequence[int]
) -> GradebookColumn:
    scores = store.grades.last_scores([activity.id], access.student.id)
    overrides = store.grades.overrides([activity.id], access.student.id)
    [column] = gradebook_columns([activity], access.at.now, {activity.id: points}, scores, overrides)
    return column


def _changes(changes: Sequence[GradeChange], time_zone: str) -> tuple[ChangeLine, ...]:
    lines, before = list[ChangeLine](), ""
    for change in changes:
        before = before or _points_text(change.points_before)
        after = {"excused": _("excused"), "undone": _("as earned")}.get(change.kind) or _points_text(change.points)
        at = local_time(change.at, time_zone, year=True)
        lines.append(ChangeLine(at, change.by or _("a former teacher"), before, after, change.reason))
        before = after if change.kind == "excused" else ""
    return tuple(reversed(lines))


def _points_text(points: float | None) -> str:
    return "–" if points is None else f"{points:g}"


def _attempt_column(
    sheet: SheetResults,
    attempt: Attempt,
    losses: tuple[str, ...],
    old_marks: Sequence[OldMarks],
    words: MisconceptionWords,
    time_zone: str,
) -> AttemptColumn:
    before = tuple(
        _("{score:g} of {total} until {time}").format(
            score=old.graded.score, total=old.graded.out_of, time=local_time(old.until, time_zone)
        )
        for old in old_marks
    )
    return AttemptColumn(
        attempt,
        _("{score:g} of {total}").format(score=attempt.score, total=attempt.out_of),
        tuple(map(words.name, attempt.misconceptions)),
        before,
        sheet.states(attempt),
        losses,
    )


def _losses(services: Services, activity: Activity, sheet: SheetResults, attempt: Attempt) -> tuple[str, ...]:
    worksheet = frozen_worksheet(sheet.item, activity.policies)
    try:
        variant = variant_of(sheet.library, services.store, worksheet, attempt.variant)
    except WorksheetError:
        return ()
    _sheet, report = report_as_stored(services.library, services.store, activity, sheet.item, variant, attempt)
    return report.losses
