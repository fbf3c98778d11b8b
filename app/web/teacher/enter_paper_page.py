"""Entering an activity's paper answers: each line is shown with its marks, and stored by a second press."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.classes.paper_import import PaperImport, ReadLine, RejectedLine, WrongSheetError, students_handed_in
from app.classes.roster_lookup import RosterLookup
from app.classes.student_sheet import activity_variant, worksheet_titles
from app.grading.grade import AnswersError
from app.grading.paper_lines import blank_order, numbered_lines
from app.sheets.worksheet import WorksheetError
from app.store import AuditAction, Student
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import FormDep, FormReader, clamped_number
from app.web.shared.permissions import EditableActivity
from app.web.shared.request_guard import MAX_WORK
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MAX_CODE_LENGTH = 60  # characters of a typed sheet code


@dataclass(frozen=True)
class EnterPaperPage:
    """Everything that templates/teacher/enter_paper.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    is_draft: Annotated[bool, Doc("Whether the activity is a draft, of which there is no paper yet.")]
    sheets: Annotated[tuple[str, ...], Doc("The titles of its worksheets, in order.")]
    number: Annotated[int, Doc("The number of the worksheet that the lines are about, from 1.")]
    sheet_title: Annotated[str, Doc("Its title; empty where the activity has no worksheet.")]
    order: Annotated[tuple[Mapping[str, str], ...], Doc("Its blanks in the order in which they are typed.")]
    code: Annotated[str, Doc("The sheet code of all these papers as typed, empty for none.")]
    roster: Annotated[tuple[tuple[Student, bool], ...], Doc("The students, each with whether the sheet is handed in.")]
    typed: Annotated[str, Doc("The lines that are still to be stored.")] = ""
    problem: Annotated[str, Doc("The sentence about why no line was read, empty where there is none.")] = ""
    code_problem: Annotated[str, Doc("The sentence about a code that names no sheet here, empty for none.")] = ""
    picks: Annotated[
        tuple[tuple[str, str], ...], Doc("Labels with ids of students picked for them, where no line was read.")
    ] = ()
    rejected: Annotated[tuple[RejectedLine, ...], Doc("The lines that are not clear, in their order.")] = ()
    read: Annotated[tuple[ReadLine, ...], Doc("The lines that are clear and not stored yet, with their marks.")] = ()
    ticked: Annotated[frozenset[str], Doc("The tokens of those that are to be stored.")] = frozenset()
    unstored: Annotated[int, Doc("How many lines of both kinds there are.")] = 0
    already: Annotated[tuple[ReadLine, ...], Doc("The lines that had been stored before.")] = ()
    stored: Annotated[tuple[ReadLine, ...], Doc("The lines that were stored just now.")] = ()


@router.get("/activities/{activity_id:int}/paper")
def show_paper_form(services: ServicesDep, access: EditableActivity, sheet: str = "") -> Response:
    """The empty form for worksheet `sheet`, from 1: the nearest number that exists, the first for other text."""
    number = clamped_number(sheet, len(access.activity.content.items))
    return render("teacher/enter_paper.html", _enter_paper_page(services, access, number))


@router.post("/activities/{activity_id:int}/paper")
def enter_paper_answers(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Show the marks of each line and what it would replace."""
    paper_import = _paper_import(services, access, form)
    code, typed = paper_import.code, form.raw("typed", MAX_WORK)
    page = replace(_enter_paper_page(services, access, paper_import.sheet_number, code), typed=typed)
    unread = replace(page, picks=_picks(form))
    try:
        lines = numbered_lines(typed)
        if code and page.sheets:
            paper_import.sheet_by_code(code)
    except AnswersError as error:
        return render("teacher/enter_paper.html", replace(unread, problem=str(error)), 422)
    except (WrongSheetError, WorksheetError) as error:
        return render("teacher/enter_paper.html", replace(unread, code_problem=str(error)), 422)
    if page.is_draft or not page.sheets or not lines:
        problem = (
            _("This activity is a draft, so there are no paper answers yet. Open it first.")
            if page.is_draft
            else _("There is nothing to save yet: type one line per student.")
        )
        return render("teacher/enter_paper.html", replace(unread, problem=problem), 422)
    clear, rejected = paper_import.read_lines(line for _, line in lines)
    is_storing, ticked = form.raw("do") == "store", form.all("line")
    new = [line for line in clear if not line.already_stored]
    stored = [line for line in new if is_storing and line.token in ticked]
    if stored:
        log = services.store.audit_log
        with log.recording(access.teacher, AuditAction.PAPER_ANSWERS_ENTERED, access.activity):
            paper_import.store_lines(stored)
        # Read again: the hand-ins have changed.
        page = _enter_paper_page(services, access, paper_import.sheet_number, code)
    left = [line for line in new if line not in stored]
    nothing_ticked = bool(is_storing and left and not stored)
    page = replace(
        page,
        typed="\n".join([*(line.line for line in rejected), *(line.line for line in left)]),
        problem=_(
            "Nothing was stored: tick the lines to store. A line that was changed since it was shown is "
            "shown again first."
        )
        if nothing_ticked
        else "",
        rejected=rejected,
        read=tuple(left),
        ticked=frozenset(line.token for line in left if not (is_storing or line.is_doubtful)),
        unstored=len(rejected) + len(left),
        already=tuple(line for line in clear if line.already_stored),
        stored=tuple(stored),
    )
    return render("teacher/enter_paper.html", page, 422 if rejected or nothing_ticked else 200)


def _paper_import(services: Services, access: permissions.ActivityAccess, form: FormReader) -> PaperImport:
    chosen = dict[str, list[str]]()
    for label, student_id in _picks(form):
        chosen.setdefault(label, []).append(student_id)
    number = clamped_number(form.single_line("sheet"), len(access.activity.content.items))
    roster = RosterLookup(services.store.roster.students(access.course))
    code = form.single_line("code", MAX_CODE_LENGTH)
    return PaperImport(services.library, services.store, access.activity, roster, number, code, chosen)


def _picks(form: FormReader) -> tuple[tuple[str, str], ...]:
    return tuple(zip(form.all("label"), form.all("who"), strict=False))


def _enter_paper_page(
    services: Services, access: permissions.ActivityAccess, number: int, code: str = ""
) -> EnterPaperPage:
    activity, store = access.activity, services.store
    titles = worksheet_titles(activity.content)
    handed_in = students_handed_in(store, activity, number) if number else frozenset[int]()
    return EnterPaperPage(
        access=access,
        is_draft=activity.state == "draft",
        sheets=titles,
        number=number,
        sheet_title=titles[number - 1] if number else "",
        order=blank_order(activity_variant(services.library, store, activity, number)) if number else (),
        code=code,
        roster=tuple((student, student.id in handed_in) for student in store.roster.students(access.course)),
    )
