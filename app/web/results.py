"""An activity's results: sheet by sheet, student by student, written answers, a summary, and answers on paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.activity_results import (
    SheetResults,
    activity_results,
    activity_sheets,
    common_wrong_answers,
    misconception_totals,
    participants,
    report_as_stored,
    sheet_results,
)
from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.frozen.given_sheets import given_variant
from app.classes.frozen.misconception_words import MisconceptionWords, misconception_words
from app.classes.gradebook import GradebookColumn, counted_attempts, gradebook_columns
from app.classes.illustrations import Illustration
from app.classes.paper_import import PaperImport, WrongSheetError, students_handed_in
from app.classes.promises import rule_in_words
from app.classes.roster_lookup import RosterLookup
from app.classes.student_sheet import activity_variant, best_scores, worksheet_titles
from app.classes.ticket_groups import choice_counts, group_answers
from app.classes.written_answers import open_questions
from app.exchange.class_list import MAX_ENTRY_LENGTH
from app.grading.grade import AnswersError
from app.grading.paper import blank_order, numbered_lines
from app.sheets.variant import Row
from app.sheets.worksheet import MAX_MISCONCEPTION_KEY, WorksheetError
from app.store import Activity, Attempt, AuditAction, GradeChange, Store, Student
from app.store.exit_tickets import SHOWN_FROM
from app.store.grades import ChangeKind
from app.translation import gettext as _
from app.web.shared.forms import FormDep, FormReader, clamped_number, cut_page
from app.web.shared.paper_grid import GRID_ROWS, grid_rows, rows_to_fill
from app.web.shared.permissions import (
    ActivityAccess,
    EditableActivity,
    EditableStudentResults,
    StaffActivity,
    StaffStudentResults,
    StudentResultsAccess,
)
from app.web.shared.request_guard import MAX_WORK
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_MISCONCEPTIONS_SHOWN, MAX_ROWS_SHOWN, MAX_CHOICES_SHOWN, MAX_SENTENCES_SHOWN = 3, 3, 3, 6  # in a summary
MAX_REASON = 300  # characters
MAX_CODE_LENGTH = 60  # characters of a typed sheet code


@dataclass(frozen=True)
class ResultsOrder:
    """How students are sorted, by "help", "name", "score" or "attempts", and which are shown.

    `show` is "not-handed-in", or the key of a misconception in the last attempt; empty for everybody.
    """

    sort: str = "help"  # those first who need it: the lowest score that counts
    descending: bool = False
    show: str = ""

    @property
    def query(self) -> dict[str, str]:
        usual = self.sort in ("score", "attempts")
        order = "" if self.descending == usual else "down" if self.descending else "up"
        texts = {"sort": self.sort if self.sort != "help" else "", "show": self.show, "order": order}
        return {name: text for name, text in texts.items() if text}

    def includes(self, attempts: Sequence[Attempt]) -> bool:
        if self.show == "not-handed-in":
            return not any(attempt.handed_in for attempt in attempts)
        return not self.show or (bool(attempts) and self.show in attempts[-1].misconceptions)

    def sorted(self, sheet: SheetResults | None, students: Sequence[Student]) -> list[Student]:
        """The students in this order, from the order of their names; those without an attempt come last."""
        if self.sort == "name" or sheet is None:
            return list(reversed(students)) if self.descending else list(students)
        sign = -1 if self.descending else 1

        def place(student: Student) -> tuple[bool, float]:
            counted = sheet.counted.get(student.id)
            if counted is None:
                return True, 0.0
            return False, sign * (len(sheet.attempts[student.id]) if self.sort == "attempts" else counted.score)

        return sorted(students, key=place)


def results_order(sort: str = "", order: str = "", show: str = "") -> ResultsOrder:
    """The order that a query asks for; an unknown `sort` means "help"."""
    sort = sort if sort in ("name", "score", "attempts") else "help"
    descending = {"up": False, "down": True}.get(order, sort in ("score", "attempts"))
    return ResultsOrder(sort, descending, show[:MAX_MISCONCEPTION_KEY])


@router.get("/activities/{activity_id:int}/results")
def show_results(
    services: ServicesDep,
    access: StaffActivity,
    order: Annotated[ResultsOrder, Depends(results_order)],
    sheet: str = "",
    page: str = "",
) -> Response:
    """The results of sheet `sheet`, from 1: the nearest number that exists, the first for other text."""
    library, store, activity = services.library, services.store, access.activity
    sheets = activity_sheets(store, activity)
    number = clamped_number(sheet, len(sheets))
    shown = sheet_results(library, store, activity, sheets[number - 1]) if sheets else None
    students = participants(store, activity, access.course)
    attempts = shown.attempts if shown else {}
    included = [student for student in students if order.includes(attempts.get(student.id, ()))]
    listed, pager = cut_page(order.sorted(shown, included), page)
    words = misconception_words(library, store, activity)
    return render(
        "teacher/results.html",
        access=access,
        sheets=sheets,
        number=number,
        shown=shown,
        students=listed,
        pager=pager,
        order=order,
        query={"activity_id": activity.id, "sheet": number, **order.query},
        mean=_mean_score(list(shown.counted.values())) if shown else "",
        rows=tuple(zip(shown.rows, shown.statistics(), strict=True)) if shown else (),
        wrong_answers=common_wrong_answers(store, activity, shown) if shown else {},
        symbols=frozenset(map(shown.variant.notation.symbol, shown.variant.sizes)) if shown else frozenset(),
        misconceptions=misconception_totals(words, (shown,) if shown else ()),
        questions=open_questions(store, activity, (shown,) if shown else ()),
        everybody=students,
        rule=rule_in_words(activity.policies),
        links=store.lti_scores.links_of(activity.id),
        scores=store.lti_scores.of_activity(activity.id),
        names={student.id: student.name for student in store.roster.students(access.course)},
    )


@router.post("/activities/{activity_id:int}/results/send-again")
def send_grades_again(store: StoreDep, access: EditableActivity) -> Response:
    """Send all grades of the activity to its learning platforms again, including refused ones."""
    store.lti_scores.send_again(access.activity.id)
    return RedirectResponse(url_for("show_results", activity_id=access.activity.id) + "#grades", 303)


def _mean_score(counted: Sequence[Attempt]) -> str:
    if not counted:
        return ""
    if len({attempt.out_of for attempt in counted}) > 1:
        shares = [attempt.score / attempt.out_of for attempt in counted if attempt.out_of]
        return _("{percent}%").format(percent=round(100 * sum(shares) / len(shares)))
    score = sum(attempt.score for attempt in counted) / len(counted)
    return _("{score} of {total}").format(score=f"{score:.1f}", total=counted[0].out_of)


@router.get("/activities/{activity_id:int}/results/written")
def show_written_answers(
    services: ServicesDep, access: StaffActivity, sheet: str = "", question: str = "", page: str = ""
) -> Response:
    """A page of the last answers to one open question of sheet `sheet`, from 1, by the students' names."""
    store, activity = services.store, access.activity
    sheets = activity_results(services.library, store, activity)
    students = participants(store, activity, access.course)
    questions = open_questions(store, activity, sheets)
    wanted = [each for each in questions if (str(each.sheet_number), each.key) == (sheet, question)]
    shown = next(iter((*wanted, *questions)), None)
    answers = [(student, shown.last_of(student)) for student in students] if shown else []
    listed, pager = cut_page([(student, written) for student, written in answers if written], page)
    return render(
        "teacher/written_answers.html",
        access=access,
        questions=questions,
        shown=shown,
        sheet_title=sheets[shown.sheet_number - 1].title if shown else "",
        answers=listed,
        pager=pager,
        participants=len(students),
    )


# A student's results


@router.get("/activities/{activity_id:int}/results/{student_id:int}")
def show_student_results(services: ServicesDep, access: StaffStudentResults) -> Response:
    """Every attempt of this student, sheet by sheet, including sheets of earlier revisions, and their points."""
    return _render_student_results(services, access)


@router.post("/activities/{activity_id:int}/results/{student_id:int}/points")
def change_points(services: ServicesDep, access: EditableStudentResults, form: FormDep) -> Response:
    """Give the student other points in this activity, excuse them, or undo either."""
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
        return _render_student_results(services, access, 422, typed, reason, problem)
    _change_points(services, access, kind, points, "" if kind == "undone" else reason)
    address = url_for("show_student_results", activity_id=access.at.activity.id, student_id=access.student.id)
    return RedirectResponse(f"{address}#points", 303)


def _change_points(
    services: Services, access: StudentResultsAccess, kind: ChangeKind, points: float | None, reason: str
) -> None:
    store, student, teacher = services.store, access.student, access.at.teacher
    best = best_scores(services.library, store, access.at.activity)
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


def _render_student_results(
    services: Services,
    access: StudentResultsAccess,
    status: int = 200,
    typed: str = "",
    reason: str = "",
    problem: str = "",
) -> Response:
    library, store, activity, student = services.library, services.store, access.at.activity, access.student
    results = activity_results(library, store, activity, student)
    sheets = [sheet for sheet in results if student.id in sheet.attempts]
    attempts = [attempt for sheet in sheets for attempt in sheet.attempts[student.id]]
    is_graded = _is_graded(activity)
    best = best_scores(library, store, activity) if is_graded else ()
    return render(
        "teacher/student_results.html",
        status=status,
        access=access.at,
        student=student,
        sheets=sheets,
        # in the words of each sheet's revision
        words={sheet.number: misconception_words(library, store, activity) for sheet in sheets},
        losses={
            attempt.id: _losses(services, activity, sheet, attempt)
            for sheet in sheets
            for attempt in sheet.attempts[student.id]
        },
        counted={attempt.id for attempt in counted_attempts(activity, attempts).values()},
        rule=rule_in_words(activity.policies),
        old_marks=store.regrades.old_marks(activity.id, student.id),
        questions=[question for question in open_questions(store, activity, results) if question.of(student)],
        column=_gradebook_column(store, activity, access, best) if is_graded else None,
        scores=store.lti_scores.of_activity(activity.id, student.id),
        changes=_changes(store.grades.changes(activity.id, student.id)) if is_graded else (),
        typed=typed,
        reason=reason,
        problem=problem,
    )


def _gradebook_column(
    store: Store, activity: Activity, access: StudentResultsAccess, points: Sequence[int]
) -> GradebookColumn:
    scores = store.grades.counted_scores({activity.id: activity.policies.counting}, access.student.id)
    overrides = store.grades.overrides([activity.id], access.student.id)
    [column] = gradebook_columns([activity], access.at.now, {activity.id: points}, scores, overrides)
    return column


def _changes(changes: Sequence[GradeChange]) -> list[tuple[GradeChange, str, str]]:
    """The changes with the points before and after as written, the newest first."""
    lines, before = list[tuple[GradeChange, str, str]](), ""
    for change in changes:
        before = before or _points_text(change.points_before)
        after = {"excused": _("excused"), "undone": _("as earned")}.get(change.kind) or _points_text(change.points)
        lines.append((change, before, after))
        before = after if change.kind == "excused" else ""
    return lines[::-1]


def _points_text(points: float | None) -> str:
    return "–" if points is None else f"{points:g}"


def _losses(services: Services, activity: Activity, sheet: SheetResults, attempt: Attempt) -> tuple[str, ...]:
    """A sentence for each mistake that makes more than one box wrong, and costs one."""
    store = services.store
    try:
        variant = given_variant(services.library, store, activity, sheet.content, sheet.item, attempt.variant)
    except WorksheetError:
        return ()
    _sheet, report = report_as_stored(services.library, services.store, activity, sheet.item, variant, attempt)
    return report.losses


# One page to begin the next meeting with


@router.get("/activities/{activity_id:int}/summary")
def show_summary(services: ServicesDep, access: StaffActivity, answers: str = "") -> Response:
    """Remaining misconceptions, the hardest rows, exit-ticket choices and starred texts, and open questions."""
    store, activity = services.store, access.activity
    words = misconception_words(services.library, store, activity)
    sheets = activity_results(services.library, store, activity)
    left = [total for total in misconception_totals(words, sheets) if total.at_last]
    ticket, on_tickets = frozen_ticket(activity.content), store.exit_tickets.answers(activity)
    chosen = [(question, choice_counts(question, on_tickets)) for question in (ticket.questions if ticket else ())]
    starred = [group.text for group in group_answers(on_tickets) if group.starred and not group.hidden]
    students = participants(store, activity, access.course)
    return render(
        "teacher/summary.html",
        access=access,
        participants=len(students),
        misconceptions=[
            (total, _illustration(services, words, activity, sheets, total.key))
            for total in left[:MAX_MISCONCEPTIONS_SHOWN]
        ],
        rows=_hard_rows(sheets)[:MAX_ROWS_SHOWN],
        chosen=[(each, choices) for each, choices in chosen if choices and choices[0].of][:MAX_CHOICES_SHOWN],
        sentences=starred[:MAX_SENTENCES_SHOWN],
        more=max(len(starred) - MAX_SENTENCES_SHOWN, 0),
        waiting=store.exit_tickets.waiting(activity),
        shown_from=SHOWN_FROM,
        questions=[(each, each.last_texts(students)) for each in open_questions(store, activity, sheets)],
        with_answers=bool(answers),
    )


def _illustration(
    services: Services, words: MisconceptionWords, activity: Activity, sheets: Sequence[SheetResults], key: str
) -> Illustration:
    """A misconception explained for the first sheet whose last attempts show it."""
    sheet = next(each for each in sheets if any(key in attempt.misconceptions for attempt in each.last))
    content, sheet_key = activity.content, sheet.item.sheet_key
    return services.illustrations.get(services.library, words, content, sheet_key, sheet.variant, key)


def _hard_rows(sheets: Sequence[SheetResults]) -> list[tuple[SheetResults, Row, float]]:
    """The rows where some students made a mistake at first, with the share of those who made none; lowest first."""
    rows = list[tuple[SheetResults, Row, float]]()
    for sheet in sheets:
        for row, statistics in zip(sheet.rows, sheet.statistics(), strict=True):
            faultless = statistics.right_at_first + statistics.following_at_first
            if faultless < statistics.students:
                rows.append((sheet, row, faultless / statistics.students))
    return sorted(rows, key=lambda row: row[2])


# Answers on paper: each line is shown with its marks, and stored by a second press


@router.get("/activities/{activity_id:int}/paper")
def show_paper_form(services: ServicesDep, access: EditableActivity, sheet: str = "") -> Response:
    """The empty form for worksheet `sheet`, from 1: the nearest number that exists, the first for other text."""
    number = clamped_number(sheet, len(access.activity.content.items))
    return _render_paper(services, access, number)


@router.post("/activities/{activity_id:int}/paper")
def enter_paper_answers(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Show the marks of each line and what it would replace, or store the ticked ones."""
    if added := form.single_line("add", MAX_ENTRY_LENGTH):
        with services.store.audit_log.recording(access.teacher, AuditAction.STUDENTS_ADDED, access.course, "1"):
            services.store.roster.add_students(access.course, [(added, None)])
    paper_import, typed = _paper_import(services, access, form), form.raw("typed", MAX_WORK)
    number, code = paper_import.sheet_number, paper_import.code
    columns = len(paper_import.variant.blanks) if number else 0
    grid, to_fill = grid_rows(form, columns), rows_to_fill(form, columns)
    problem = code_problem = ""
    try:
        lines = numbered_lines("\n".join([*grid, typed]))
        if code and number:
            paper_import.sheet_by_code(code)
        if access.activity.state == "draft":
            problem = _("This activity is a draft, so there are no paper answers yet. Open it first.")
        elif not number or not lines:
            problem = _("There is nothing to save yet: type one line per student.")
    except AnswersError as error:
        problem = str(error)
    except (WrongSheetError, WorksheetError) as error:
        code_problem = str(error)
    if problem or code_problem:
        unread: dict[str, Any] = {"typed": typed, "grid": [*grid.values(), *to_fill], "picks": _picks(form)}
        return _render_paper(services, access, number, code, 422, problem=problem, code_problem=code_problem, **unread)
    clear, rejected = paper_import.read_lines(line for _, line in lines)
    is_storing, ticked = form.raw("do") == "store", form.all("line")
    new = [line for line in clear if not line.already_stored]
    stored = [line for line in new if is_storing and line.token in ticked]
    if stored:
        log = services.store.audit_log
        with log.recording(access.teacher, AuditAction.PAPER_ANSWERS_ENTERED, access.activity):
            paper_import.store_lines(stored)
    left = [line for line in new if line not in stored]
    nothing_ticked = is_storing and left and not stored
    if nothing_ticked:
        problem = _(
            "Nothing was stored: tick the lines to store. A line that was changed since it was shown is "
            "shown again first."
        )
    shown_again = [*(line.line for line in rejected), *(line.line for line in left)]
    return _render_paper(
        services,
        access,
        number,
        code,
        422 if rejected or nothing_ticked else 200,
        typed="\n".join(line for line in shown_again if line not in grid),
        grid=[*(grid[line] for line in shown_again if line in grid), *to_fill],
        problem=problem,
        rejected=rejected,
        read=left,
        unstored=len(rejected) + len(left),
        ticked={line.token for line in left if not (is_storing or line.is_doubtful)},
        already=[line for line in clear if line.already_stored],
        stored=stored,
    )


def _paper_import(services: Services, access: ActivityAccess, form: FormReader) -> PaperImport:
    chosen = dict[str, list[str]]()
    for label, student_id in _picks(form):
        chosen.setdefault(label, []).append(student_id)
    number = clamped_number(form.single_line("sheet"), len(access.activity.content.items))
    roster = RosterLookup(services.store.roster.students(access.course))
    code = form.single_line("code", MAX_CODE_LENGTH)
    return PaperImport(services.library, services.store, access.activity, roster, number, code, chosen)


def _picks(form: FormReader) -> list[tuple[str, str]]:
    """The labels with ids of students picked for them."""
    return list(zip(form.all("label"), form.all("who"), strict=False))


def _render_paper(
    services: Services, access: ActivityAccess, number: int, code: str = "", status: int = 200, **shown: Any
) -> Response:
    activity, store = access.activity, services.store
    titles = worksheet_titles(activity.content)
    names: dict[str, Any] = {
        "is_draft": activity.state == "draft",
        "sheets": titles,
        "number": number,
        "sheet_title": titles[number - 1] if number else "",
        "order": blank_order(activity_variant(services.library, store, activity, number)) if number else (),
        "code": code,
        "roster": store.roster.students(access.course),
        "handed_in": students_handed_in(store, activity, number) if number else frozenset[int](),
        "typed": "",
        "grid": (),
        "problem": "",
        "code_problem": "",
        "picks": (),
        "rejected": (),
        "read": (),
        "unstored": 0,
        "ticked": frozenset[str](),
        "already": (),
        "stored": (),
    }
    names |= shown
    names["blank_rows"] = range(max(GRID_ROWS - len(names["grid"]), 1))
    return render("teacher/enter_paper.html", status=status, access=access, **names)
