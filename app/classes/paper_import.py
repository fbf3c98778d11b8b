"""Answers on paper, entered for an activity: each line becomes an attempt that its student handed in.

Entering the same line again stores nothing new. A line begins with the student's number or name, perhaps followed by a
sheet code: `1017: 100 4096 …` or `Kim Lee BHR-KQ-RM: 100 …`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Literal

from app.activities.work import Attempt, NewAttempt
from app.classes.frozen.frozen_library import freeze_model, frozen_worksheet, library_of
from app.classes.frozen.given_sheets import given_variant
from app.classes.roster_lookup import RosterLookup
from app.classes.student_sheet import (
    StudentSheet,
    activity_variant,
    sheet_with_sizes,
    sizes_of,
    stored_marks,
)
from app.exchange.imported_models import variant_from_code
from app.grading.grade import AnswersError
from app.grading.paper import MarkedPaper, mark_line, split_name
from app.names import clean_line
from app.sheets.codes import read_code
from app.sheets.library import Library
from app.sheets.variant import Variant, box_texts
from app.sheets.worksheet import CHOICE, WorksheetError, library_key
from app.store import Activity, Store, Student, VariantSizes
from app.translation import alternatives
from app.translation import gettext as _

PAPER = "paper."  # prefix for the client id of an attempt on paper
MAX_NAME_WORDS = 8  # in a name without a colon after it
MAX_LABEL_LENGTH = 60  # characters before the answers that a message quotes
MAX_STUDENTS_NAMED = 5  # in such a message
MAX_CHOICES = 10_000  # students in all lists of one page together


class PaperLineError(ValueError):
    """A line that can't be stored as it is: a sentence, the words before the answers, the students who may be meant,
    and the name if nobody on the roster has it.
    """

    def __init__(
        self, sentence: str, label: str = "", students: tuple[Student, ...] = (), unknown_name: str = ""
    ) -> None:
        super().__init__(sentence)
        self.label, self.students, self.unknown_name = label, students, unknown_name


class WrongSheetError(ValueError):
    """A sheet code that isn't a current sheet of this activity; the message says which sheet it is."""


@dataclass(frozen=True)
class ParsedLine:
    """A line taken apart: its student, its sheet code ('' for none), and the answers as typed.

    `picked_label` is how it begins if the student was picked from a list.
    """

    student: Student
    code: str
    answers: str
    picked_label: str = ""


@dataclass(frozen=True)
class ReplacedAttempt:
    """The attempt that counts until a line is stored: its score, its number of filled boxes, and its origin."""

    id: int  # 0 for an earlier line, which isn't stored either
    score: float
    out_of: int
    answered: int
    origin: Literal["screen", "paper", "line"]


@dataclass(frozen=True)
class ReadLine:
    """A clear line: its student, its marks, and what it replaces."""

    line: str
    student: Student
    sheet: StudentSheet
    paper: MarkedPaper
    picked_label: str  # how it begins if the student was picked from a list
    replaces: ReplacedAttempt | None
    already_stored: bool  # whether the same line was entered before, or appears earlier

    @cached_property
    def attempt(self) -> NewAttempt:
        """The line's answers, sizes and marks as a handed-in attempt without student or activity."""
        variant = self.sheet.variant
        answers = dict(zip(variant.blanks_by_name, self.paper.texts, strict=True))
        marks = stored_marks(variant, self.paper.report)
        return NewAttempt(answers, self.sheet.sizes, marks, _client_id(self.sheet, answers), handed_in=True)

    @property
    def token(self) -> str:
        """Identifies this line in a form: changes with the student, the answers, and the attempt that it replaces."""
        return f"{self.student.id}.{self.attempt.client_id}.{self.replaces.id if self.replaces else '-'}"

    @property
    def answered(self) -> int:
        return sum(bool(text) for text in self.paper.texts)

    @property
    def is_short(self) -> bool:
        """Whether answers are missing, so that one may have been skipped by mistake."""
        return self.paper.given < len(self.paper.texts)

    @property
    def lowers_score(self) -> bool:
        """Whether it replaces a better attempt."""
        return self.replaces is not None and self.paper.report.score < self.replaces.score

    @property
    def has_fewer_answers(self) -> bool:
        """Whether it replaces an attempt with more filled boxes."""
        return self.replaces is not None and self.answered < self.replaces.answered

    @property
    def is_doubtful(self) -> bool:
        """Whether it lacks answers, replaces a better or fuller attempt, or an earlier line of the same form."""
        in_batch = self.replaces is not None and self.replaces.origin == "line"
        return self.is_short or self.lowers_score or self.has_fewer_answers or in_batch


@dataclass(frozen=True)
class RejectedLine:
    """A line that wasn't stored: the line, a sentence that says why, its label, and the students to choose from."""

    line: str
    problem: str
    label: str = ""
    students: tuple[Student, ...] = ()
    unknown_name: str = ""


@dataclass
class PaperImport:
    """One form's lines and their context: an activity, its roster, and the sheet for lines without a code."""

    library: Library
    store: Store
    activity: Activity
    roster: RosterLookup
    sheet_number: int = 1
    code: str = ""  # for lines without a code of their own
    chosen: dict[str, list[str]] = field(default_factory=dict)
    _coded: dict[str, tuple[int, VariantSizes]] = field(default_factory=dict)

    @cached_property
    def variant(self) -> Variant:
        """The sheet `sheet_number` with the activity's own sizes; answers without a colon are counted by it."""
        return activity_variant(self.library, self.store, self.activity, self.sheet_number)

    @cached_property
    def saved_sizes(self) -> dict[tuple[int, str], VariantSizes]:
        """The sizes of each draft in the activity, by student and sheet key."""
        drafts = self.store.classwork.drafts_of_activity(self.activity.id)
        return {(each.student_id, each.sheet_key): each.variant for each in drafts}

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt in the activity, oldest first."""
        return self.store.classwork.attempts_of_activity(self.activity.id)

    def read_lines(self, lines: Iterable[str]) -> tuple[tuple[ReadLine, ...], tuple[RejectedLine, ...]]:
        """Every clear line with its marks, and the rejected ones, each in order; nothing is stored."""
        read, rejected = list[ReadLine](), list[RejectedLine]()
        stored = {(attempt.student_id, attempt.client_id) for attempt in self.attempts}
        last = {(attempt.student_id, attempt.sheet_key): attempt for attempt in self.attempts}
        above, choices = dict[tuple[int, str], ReplacedAttempt](), 0
        for line in lines:
            try:
                parsed, sheet, paper = self._mark(line, len(rejected) + 1)
            except PaperLineError as error:
                choices += len(error.students)
                offered = error.students if choices <= MAX_CHOICES or not rejected else ()
                rejected.append(RejectedLine(line, str(error), error.label, offered, error.unknown_name))
                continue
            except AnswersError as error:
                rejected.append(RejectedLine(line, str(error)))
                continue
            place = (parsed.student.id, sheet.key.sheet_key)
            replaces = above.get(place) or (_replaced(sheet.variant, last[place]) if place in last else None)
            new = ReadLine(line, parsed.student, sheet, paper, parsed.picked_label, replaces, already_stored=False)
            identity = (parsed.student.id, new.attempt.client_id)
            read.append(replace(new, already_stored=identity in stored))
            stored.add(identity)
            above[place] = ReplacedAttempt(0, paper.report.score, paper.report.out_of, new.answered, "line")
        return tuple(read), tuple(rejected)

    def store_lines(self, lines: Sequence[ReadLine]) -> None:
        """Store lines as handed-in attempts, all in one transaction; a line stored before isn't added again."""
        self.store.classwork.hand_in_papers([(line.sheet.key, line.attempt) for line in lines])

    def _mark(self, line: str, line_number: int) -> tuple[ParsedLine, StudentSheet, MarkedPaper]:
        parsed = self._parse_line(line, line_number)
        sheet = self._sheet_of(parsed, line_number)
        if not parsed.answers.split():
            problem = _("Line {at}: there are no answers for {name}. Type a dash for an empty box.")
            raise PaperLineError(problem.format(at=line_number, name=parsed.student.name))
        paper = mark_line(sheet.variant, parsed.student.name, parsed.answers, line_number)
        return parsed, sheet, paper

    def sheet_by_code(self, code: str) -> tuple[int, VariantSizes]:
        """The number, from 1, of the activity's sheet with this code, and the code's sizes; cached."""
        if code in self._coded:
            return self._coded[code]
        sheets = [frozen_worksheet(item, self.activity.policies) for item in self.activity.content.items]
        numbers = {sheet.key: number for number, sheet in enumerate(sheets, start=1)}
        models = library_of(self.library, self.activity.content).models
        frozen = Library({sheet.key: sheet for sheet in sheets}, models, self.library.wording)
        try:
            variant = variant_from_code(frozen, self.store, code)
        except WorksheetError:
            other = variant_from_code(self.library, self.store, code)  # raises the sentence about an unknown code
            problem = _("{code} is a code of “{title}”, which isn’t in this activity.")
            if {other.worksheet.key, library_key(other.worksheet.key)} & numbers.keys():
                problem = _("Your marks are for another version of this sheet; they are the ones that count.")
            raise WrongSheetError(problem.format(code=other.code, title=other.worksheet.title)) from None
        dealt = f"{CHOICE}{variant.worksheet.dealt_bug}" if variant.worksheet.dealt_bug else ""
        number = numbers[variant.worksheet.key.removesuffix(dealt)]
        self._coded[code] = number, sizes_of(variant)
        return self._coded[code]

    def _sheet_of(self, parsed: ParsedLine, line_number: int) -> StudentSheet:
        number, sizes = self.sheet_number, None
        if code := parsed.code or self.code:
            try:
                number, sizes = self.sheet_by_code(code)
            except (WrongSheetError, WorksheetError) as error:
                raise PaperLineError(_("Line {at}: {problem}").format(at=line_number, problem=error)) from None
        saved = self.saved_sizes.get((parsed.student.id, self.activity.content.items[number - 1].sheet_key))
        sheet = sheet_with_sizes(self.library, self.store, self.activity, parsed.student, number, saved)
        if sizes is None or sizes == sheet.sizes:
            return sheet
        freeze_model(self.library, self.store, self.activity, sizes.model)
        content, item = self.activity.content, self.activity.content.items[number - 1]
        variant = given_variant(self.library, self.store, self.activity, content, item, sizes)
        return StudentSheet(sheet.key, sizes, variant)

    def _parse_line(self, line: str, line_number: int) -> ParsedLine:
        label, answers = split_name(line)
        label = clean_line(label)
        if not label:
            return self._parse_without_colon(line, line_number)
        students, code = self._find_students(label)
        picked = self._picked(label)
        if picked or len(students) == 1:
            return ParsedLine(picked or students[0], code, answers, label if picked else "")
        problem = _(
            "Line {at}: no one on the roster has the name or number “{name}”. Correct the line, or choose a student."
        )
        if students:
            problem = _("Line {at}: “{name}” could be {people}. Type the number or the full name, or choose a student.")
        people = alternatives(
            f"{student.name} ({student.roster_key})" if student.roster_key else student.name
            for student in students[:MAX_STUDENTS_NAMED]
        )
        sentence = problem.format(at=line_number, name=label[:MAX_LABEL_LENGTH], people=people)
        unknown = "" if students or not any(map(str.isalpha, label)) else _without_code(label)
        raise PaperLineError(sentence, label, students or self.roster.students, unknown)

    def _parse_without_colon(self, line: str, line_number: int) -> ParsedLine:
        words = line.split()
        for count in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
            students, code = self._find_students(" ".join(words[:count]))
            if len(students) == 1 and len(words) - count == len(self.variant.blanks):
                return ParsedLine(students[0], code, " ".join(words[count:]))
        problem = _("Line {at} doesn’t begin with a name: type a name or number, a colon, and then the answers.")
        raise PaperLineError(problem.format(at=line_number))

    def _find_students(self, label: str) -> tuple[tuple[Student, ...], str]:
        if students := self.roster.find(label):
            return students, ""
        name, _, code = label.rpartition(" ")
        return (self.roster.find(name), code) if name and read_code(code) else ((), "")

    def _picked(self, label: str) -> Student | None:
        student_ids = self.chosen.get(label)
        return self.roster.by_id(student_ids.pop(0)) if student_ids else None


def _without_code(label: str) -> str:
    name, _, code = label.rpartition(" ")
    return name if name and read_code(code) else label


def students_handed_in(store: Store, activity: Activity, sheet_number: int) -> frozenset[int]:
    """The ids of the students who handed in sheet `sheet_number`, from 1, on screen or on paper."""
    key = activity.content.items[sheet_number - 1].sheet_key
    attempts = store.classwork.attempts_of_activity(activity.id)
    return frozenset(attempt.student_id for attempt in attempts if attempt.handed_in and attempt.sheet_key == key)


def _replaced(variant: Variant, attempt: Attempt) -> ReplacedAttempt:
    answered = sum(bool(text.strip()) for text in box_texts(variant, attempt.answers).values())
    origin: Literal["screen", "paper"] = "paper" if attempt.client_id.startswith(PAPER) else "screen"
    return ReplacedAttempt(attempt.id, attempt.score, attempt.out_of, answered, origin)


def _client_id(sheet: StudentSheet, answers: Mapping[str, str]) -> str:
    whole = [sheet.key.activity_id, sheet.key.sheet_key, asdict(sheet.sizes), answers]
    return f"{PAPER}{hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:40]}"
