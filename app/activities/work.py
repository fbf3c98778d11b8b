"""Work on a sheet, in an activity or in practice: drafts, which merge box by box, and attempts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from app.activities.activity import Counting

MAX_TABS = 30  # browser tabs whose edit numbers a draft remembers: the latest ones

Answers = Mapping[str, str]  # what is typed in each blank, {"queries.rows": "100"}, and written for each open question


class Edit(NamedTuple):
    """The change of one box in one browser tab: the tab's id, and the edit's running number."""

    tab: str
    number: int


@dataclass(frozen=True)
class VariantSizes:
    """What makes a worksheet one student's variant: a model, the numbers of tokens, and the bug."""

    model: str
    tokens: int
    decoder_tokens: int | None = None
    bug: str = ""  # as `freeze_bug` writes it, since the bank may change while an activity is open


@dataclass(frozen=True)
class ClassSheetKey:
    """One sheet of one student in an activity: sheet `sheet_number`, from 1, of that revision.

    Drafts and attempts are stored under `sheet_key` (see FrozenWorksheet), which survives revisions with unchanged
    questions.
    """

    student_id: int
    activity_id: int
    revision: int
    sheet_number: int
    sheet_key: str


@dataclass(frozen=True)
class PracticeSheetKey:
    """One visitor's practice sheet, under which drafts and attempts are stored.

    `sheet_key` names worksheet, model and lengths: 'llama-7b/llama-7b/100'.
    """

    visitor_id: int
    sheet_key: str


SheetKey = ClassSheetKey | PracticeSheetKey


@dataclass(frozen=True)
class Draft:
    """What is typed on a sheet, as stored; `version` counts the saves that changed it, `variant` never changes.

    `tab_versions` has the highest edit number taken from each tab.
    """

    answers: Answers
    version: int
    variant: VariantSizes
    tab_versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StudentDraft:
    """A draft in an activity with its student, its sheet and its time."""

    student_id: int
    sheet_key: str
    variant: VariantSizes
    answers: Answers
    saved_at: datetime


@dataclass(frozen=True)
class UnfinishedWork:
    """A draft, and the attempts on the same sheet: how many, and the id and answers of the last one.

    Before the first attempt the id is 0, and `last_answers` and `last_at` are None.
    """

    draft: StudentDraft
    attempts: int
    last_id: int
    last_answers: Answers | None
    last_at: datetime | None
    handed_in_on_time: bool

    @property
    def sheet(self) -> tuple[int, str]:
        """The student's id and the sheet key."""
        return self.draft.student_id, self.draft.sheet_key

    def writes(self, questions: Collection[str]) -> bool:
        """Whether the draft answers any of these questions (`question_name`s)."""
        return any(name in questions for name in _typed(self.draft.answers))

    @property
    def has_news(self) -> bool:
        """Whether the draft is newer than the last attempt and differs from it; True without an attempt."""
        if self.last_answers is None or self.last_at is None:
            return True
        return self.draft.saved_at > self.last_at and _typed(self.draft.answers) != _typed(self.last_answers)


@dataclass(frozen=True)
class Graded:
    """An attempt's marks: the kind of mark by blank, misconceptions with the diagnosis first, and the score."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    score: float
    out_of: int


@dataclass(frozen=True)
class NewAttempt:
    """An attempt to be stored, with its marks; a `client_id` that its student has used before stores nothing.

    In practice it is "", and every attempt is stored.
    """

    answers: Answers
    variant: VariantSizes
    graded: Graded
    client_id: str = ""
    handed_in: bool = False
    late: bool = False
    auto_submitted: bool = False

    def stored(self, key: SheetKey, attempt_id: int, at: datetime) -> Attempt:
        """The attempt as stored under `key`, with this id, created at `at`."""
        owner = key if isinstance(key, ClassSheetKey) else ClassSheetKey(0, 0, 0, 0, key.sheet_key)
        return Attempt(
            attempt_id,
            **vars(owner),
            **vars(self.graded),
            client_id=self.client_id,
            variant=self.variant,
            answers=self.answers,
            handed_in=self.handed_in,
            created_at=at,
            marked_by=key.sheet_key,
            auto_submitted=self.auto_submitted,
            late=self.late,
        )


@dataclass(frozen=True)
class Attempt:
    """One check of a sheet, stored for good; a submission if it was handed in.

    In practice `student_id`, `activity_id`, `revision` and `sheet_number` are 0, `client_id` is "", and only the score
    is stored.
    """

    id: int
    student_id: int
    activity_id: int
    revision: int
    sheet_number: int
    sheet_key: str
    client_id: str
    variant: VariantSizes
    answers: Answers
    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    score: float
    out_of: int
    handed_in: bool
    created_at: datetime
    marked_by: str
    auto_submitted: bool = False
    late: bool = False


class Scored(Protocol):
    """An attempt with its score, or a row of a database that has these columns."""

    @property
    def id(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def out_of(self) -> int: ...
    @property
    def late(self) -> bool: ...


A = TypeVar("A", bound=Scored)


def counted_of(attempts: Iterable[A], counting: Counting) -> A:
    """The attempt that counts, of a student's attempts on one worksheet.

    Of two equally good ones, the one on time counts; of two of those, the later. `app.store.classwork.counted_ids`
    says the same in SQL.
    """
    if counting == "best":
        return max(attempts, key=lambda each: (each.score / each.out_of if each.out_of else 0, not each.late, each.id))
    in_order = sorted(attempts, key=lambda each: each.id)
    return in_order[0] if counting == "first" else in_order[-1]


@dataclass(frozen=True)
class SheetProgress:
    """A student's number of attempts on one sheet, and whether one was handed in."""

    attempts: int
    handed_in: bool


@dataclass(frozen=True)
class ActivityProgress:
    """A student's progress in an activity: the sheets they typed on, by sheet key, and the exit ticket."""

    sheets: Mapping[str, SheetProgress] = field(default_factory=dict)
    has_arrived: bool = False
    ticket_in: bool = False


@dataclass(frozen=True)
class WorkDone:
    """The work on a sheet so far: the draft, the number of attempts, and the last one."""

    draft: Draft | None = None
    attempts: int = 0
    last: Attempt | None = None


@dataclass(frozen=True)
class Attendance:
    """A student's first visit to an activity, and whether they handed in an exit ticket."""

    student_id: int
    arrived_at: datetime
    ticket_in: bool


class WorkChangedError(Exception):
    """Since the work was read, another request has saved its draft or used the last attempt."""


def _typed(answers: Answers) -> dict[str, str]:
    return {blank: text.strip() for blank, text in answers.items() if text.strip()}


def merged_draft(
    stored: Draft | None, answers: Answers, edits: Mapping[str, Edit] | None, sizes: VariantSizes
) -> Draft | None:
    """A stored draft merged with a tab's edits, one version higher; None if no edit is new.

    Example:
        stored = Draft({"keys.rows": "1", "keys.columns": "2"}, 4, sizes, {"tab1": 3})
        edits = {"keys.rows": Edit("tab1", 3), "keys.columns": Edit("tab2", 1)}
        merged_draft(stored, {"keys.rows": "9", "keys.columns": "9"}, edits, sizes)
            Draft({"keys.rows": "1", "keys.columns": "9"}, 5, sizes, {"tab1": 3, "tab2": 1})
    """
    before = stored or Draft(dict.fromkeys(answers, ""), 0, sizes)
    if edits is None:
        return replace(before, answers={**before.answers, **answers}, version=before.version + 1)
    new = {box: edit for box, edit in edits.items() if edit.number > before.tab_versions.get(edit.tab, 0)}
    if not new:
        return None
    versions = dict(before.tab_versions)
    for tab, number in new.values():
        highest = max(number, versions.pop(tab, 0))
        versions[tab] = highest  # at the end, after the tabs that saved earlier
    newest = dict(list(versions.items())[-MAX_TABS:])
    texts = {**before.answers, **{box: answers[box] for box in new}}
    return replace(before, answers=texts, version=before.version + 1, tab_versions=newest)
