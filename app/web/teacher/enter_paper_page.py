"""Paper of an activity, typed in line by line: each line becomes an attempt that its student handed in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response

from app.classes.roster_lookup import RosterLookup
from app.classes.student_sheet import (
    StudentSheet,
    frozen_worksheet,
    own_variant,
    stored_marks,
    student_sheet,
    variant_of,
    worksheet_titles,
)
from app.exchange.imported_models import variant_coded
from app.grading.grade import AnswersError
from app.grading.paper_lines import MarkedPaper, blank_order, mark_line, numbered_lines, split_name
from app.sheets.codes import read_code
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError
from app.store import Activity, AuditAction, Student, VariantSizes
from app.store.classwork import ClassDraft
from app.web.shared import permissions
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import EditableActivity
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MOST_WORDS = 8  # of a name that has no colon after it


@dataclass(frozen=True)
class Unclear:
    """A line that was not stored: why, what stands before its answers, and who may be meant."""

    line: str
    problem: str
    label: str = ""
    people: tuple[Student, ...] = ()


@dataclass(frozen=True)
class Stored:
    """A line that is a try now: whose, with its marks; `again` where it was there before."""

    student: Student
    variant: Variant
    paper: MarkedPaper
    again: bool


@dataclass(frozen=True)
class PapersPage:
    """Everything that templates/teacher/enter_paper.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and who types.")]
    drafted: Annotated[bool, Doc("Whether the activity is a draft still, of which there is no paper.")]
    sheets: Annotated[tuple[str, ...], Doc("What its worksheets are called.")]
    number: Annotated[int, Doc("Which worksheet the lines are of, from 1.")]
    order: Annotated[tuple[Mapping[str, str], ...], Doc("Its boxes in the order in which they are typed.")]
    code: Annotated[str, Doc("The code of all the papers as typed, or nothing.")]
    roster: Annotated[tuple[tuple[Student, bool], ...], Doc("The students, each with whether the sheet is handed in.")]
    typed: Annotated[str, Doc("The lines that are still to be stored.")] = ""
    problem: Annotated[str, Doc("Why no line could be looked at, or nothing.")] = ""
    code_problem: Annotated[str, Doc("Why the code opens no sheet here, or nothing.")] = ""
    unclear: Annotated[tuple[Unclear, ...], Doc("The lines that were not stored, in their order.")] = ()
    stored: Annotated[tuple[Stored, ...], Doc("The lines that were stored, with their marks.")] = ()


class PaperError(ValueError):
    """A line that cannot be stored as it is; one sentence, and who may be meant by its first words."""

    def __init__(self, sentence: str, label: str = "", people: tuple[Student, ...] = ()) -> None:
        super().__init__(sentence)
        self.label, self.people = label, people


@dataclass(frozen=True)
class Named:
    """A line taken apart: whose it is, the code that it names or nothing, and the answers."""

    student: Student
    code: str
    answers: str


@dataclass
class Pile:
    """The papers of one form: which activity they belong to, which sheet they are of where no code says otherwise."""

    services: Services
    activity: Activity
    roll: RosterLookup
    number: int
    code: str
    chosen: dict[str, list[str]] = field(default_factory=dict)  # ids of students, by what a line begins with
    known: dict[str, tuple[int, VariantSizes]] = field(default_factory=dict)

    def store(self, line: str, at: int) -> Stored:
        """Keep one line as a try; raises PaperError and AnswersError, which call it by that number."""
        named = self._named(line, at)
        sheet = self._sheet(named, at)
        if not named.answers.split():
            raise PaperError(self.services.library.wording.say("paper", "no-answers", at=at, name=named.student.name))
        paper = mark_line(sheet.variant, named.student.name, named.answers, at)
        return Stored(named.student, sheet.variant, paper, _keep(self.services, sheet, paper))

    def coded(self, code: str) -> tuple[int, VariantSizes]:
        """Which sheet of the activity has this code, and its sizes; raises PaperError, WorksheetError."""
        if code not in self.known:
            self.known[code] = _coded(self.services, self.activity, code)
        return self.known[code]

    def _sheet(self, named: Named, at: int) -> StudentSheet:
        try:
            number, sizes = self.coded(named.code or self.code) if named.code or self.code else (self.number, None)
        except (PaperError, WorksheetError) as error:
            say = self.services.library.wording.say
            raise PaperError(say("paper", "wrong-code", at=at, problem=error)) from None
        own = student_sheet(self.services.library, self.services.store, self.activity, named.student, number + 1)
        if sizes is None or sizes == own.sizes:
            return own
        worksheet = frozen_worksheet(self.activity.content.items[number], self.activity.policies)
        return StudentSheet(
            own.key, sizes, variant_of(self.services.library, self.services.store, worksheet, sizes), own.draft
        )

    def _named(self, line: str, at: int) -> Named:
        label, answers = split_name(line)
        label = " ".join(label.split())
        if not label:
            return self._without_colon(line, at)
        found, code = self._found(label)
        picked = self._chosen(label)
        if picked or len(found) == 1:
            return Named(picked or found[0], code, answers)
        say = self.services.library.wording.say
        if not found:
            raise PaperError(say("paper", "nobody", at=at, name=label[:60]), label, self.roll.students)
        people = " or ".join(f"{one.name} ({one.roster_key})" if one.roster_key else one.name for one in found[:5])
        raise PaperError(say("paper", "several", at=at, name=label[:60], people=people), label, found)

    def _found(self, label: str) -> tuple[tuple[Student, ...], str]:
        """Who may be meant, and the code behind the name if there is one."""
        if found := self.roll.find(label):
            return found, ""
        name, _, code = label.rpartition(" ")
        return (self.roll.find(name), code) if name and read_code(code) else ((), "")

    def _chosen(self, label: str) -> Student | None:
        """Who was chosen from the list for the next line that begins so."""
        ids = self.chosen.get(label)
        return self.roll.by_id(ids.pop(0)) if ids else None

    def _without_colon(self, line: str, at: int) -> Named:
        """A line whose first words are one student's, and behind them as many answers as there are boxes."""
        words = line.split()
        for count in range(min(MOST_WORDS, len(words)), 0, -1):
            found, code = self._found(" ".join(words[:count]))
            boxes = own_variant(self.services.library, self.services.store, self.activity, self.number + 1).blanks
            if len(found) == 1 and len(words) - count == len(boxes):
                return Named(found[0], code, " ".join(words[count:]))
        raise PaperError(self.services.library.wording.say("paper", "no-name", at=at))


@router.get("/activities/{activity_id:int}/paper")
def show_papers(services: ServicesDep, access: EditableActivity, sheet: str = "") -> Response:
    """The form for the lines, of the first worksheet unless another is asked for."""
    return render("teacher/enter_paper.html", _page(services, access, _number(access.activity, sheet)))


@router.post("/activities/{activity_id:int}/paper")
def type_in(services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Store every line that is clear, once however often it is form, and give the others back with what they lack."""
    pile = _pile(services, access, form)
    page = _page(services, access, pile.number, form.single_line("code", 60))
    typed, words = form.raw("typed"), services.library.wording
    try:
        lines = numbered_lines(typed)
        if page.code and page.sheets:
            pile.coded(page.code)
    except AnswersError as error:
        return render("teacher/enter_paper.html", replace(page, typed=typed, problem=str(error)), 422)
    except (PaperError, WorksheetError) as error:
        return render("teacher/enter_paper.html", replace(page, typed=typed, code_problem=str(error)), 422)
    if page.drafted or not page.sheets or not lines:
        problem = words.say("paper", "draft" if page.drafted else "none")
        return render("teacher/enter_paper.html", replace(page, typed=typed, problem=problem), 422)
    stored, unclear = _store(pile, [line for _, line in lines])
    if any(not one.again for one in stored):
        services.store.audit_log.record(access.teacher, AuditAction.PAPER_ANSWERS_ENTERED, access.activity)
    left = "\n".join(one.line for one in unclear)
    shown = replace(_page(services, access, pile.number, page.code), typed=left, unclear=unclear, stored=stored)
    return render("teacher/enter_paper.html", shown, 422 if unclear else 200)


def _store(pile: Pile, lines: list[str]) -> tuple[tuple[Stored, ...], tuple[Unclear, ...]]:
    """What was stored and what was not; the lines left are called by the numbers they have among themselves."""
    stored, unclear = list[Stored](), list[Unclear]()
    for line in lines:
        try:
            stored.append(pile.store(line, len(unclear) + 1))
        except PaperError as error:
            unclear.append(Unclear(line, str(error), error.label, error.people))
        except AnswersError as error:
            unclear.append(Unclear(line, str(error)))
    return tuple(stored), tuple(unclear)


def _keep(services: Services, sheet: StudentSheet, paper: MarkedPaper) -> bool:
    """Keep one paper as a try that was handed in; whether it was there before."""
    work, key = services.store.classwork, sheet.key
    answers = dict(zip(map(str, sheet.variant.blanks), paper.texts, strict=True))
    client_id = _client_id(sheet, answers)
    again = any(one.client_id == client_id for one in work.attempts(key))
    draft = work.draft(key)
    work.arrive(key.activity_id, key.student_id)
    # What a student types on the screen with other numbers stays there.
    keep = draft is None or draft.variant == sheet.sizes
    work.record(
        key, client_id, ClassDraft(answers, 0, sheet.sizes), stored_marks(paper.report), handed_in=True, keep_draft=keep
    )
    return again


def _client_id(sheet: StudentSheet, answers: Mapping[str, str]) -> str:
    """The same for the same paper of a student, however often it is typed in."""
    whole = [sheet.key.activity_id, sheet.key.sheet_key, asdict(sheet.sizes), answers]
    return f"paper.{hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:40]}"


def _coded(services: Services, activity: Activity, code: str) -> tuple[int, VariantSizes]:
    """The sheet of the activity that a code names, as it was frozen; raises PaperError, WorksheetError."""
    sheets = [frozen_worksheet(item, activity.policies) for item in activity.content.items]
    numbers = {sheet.key: number for number, sheet in enumerate(sheets)}
    frozen = Library({sheet.key: sheet for sheet in sheets}, services.library.models, services.library.wording)
    try:
        variant = variant_coded(frozen, services.store, code)
    except WorksheetError:
        other = variant_coded(services.library, services.store, code)  # which says it for a code of no sheet whatever
        newer = "other-version" if other.worksheet.key in numbers else "other-sheet"
        told = services.library.wording.say("paper", newer, code=other.code, title=other.worksheet.title)
        raise PaperError(told) from None
    number = numbers[variant.worksheet.key]
    decoded = variant.decoder_tokens or sheets[number].decoder_tokens
    return number, VariantSizes(variant.model.key, variant.tokens, decoded)


def _pile(services: Services, access: permissions.ActivityAccess, form: FormReader) -> Pile:
    chosen = dict[str, list[str]]()
    for label, who in zip(form.all("label"), form.all("who"), strict=False):
        chosen.setdefault(label, []).append(who)
    number = _number(access.activity, form.single_line("sheet", 9))
    roll = RosterLookup(services.store.courses.students(access.course))
    return Pile(services, access.activity, roll, number, form.single_line("code", 60), chosen)


def _number(activity: Activity, sheet: str) -> int:
    """Which worksheet is asked for, from 0: the first for what is no number of one."""
    number = int(sheet) if sheet.isascii() and sheet.isdigit() and len(sheet) < 4 else 1
    return number - 1 if 1 <= number <= len(activity.content.items) else 0


def _page(services: Services, access: permissions.ActivityAccess, number: int, code: str = "") -> PapersPage:
    activity, drafted = access.activity, access.activity.state == "draft"
    sheets = worksheet_titles(activity.content)
    order = blank_order(own_variant(services.library, services.store, activity, number + 1)) if sheets else ()
    kept = activity.content.items[number].sheet_key if sheets else ""
    attempts = services.store.classwork.attempts_of_activity(activity.id)
    handed_in = {one.student_id for one in attempts if one.handed_in and one.sheet_key == kept}
    students = services.store.courses.students(access.course)
    roster = tuple((student, student.id in handed_in) for student in students)
    return PapersPage(access, drafted, sheets, number + 1, order, code, roster)
