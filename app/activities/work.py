"""What students do on a sheet of an activity: drafts, which merge box by box, and attempts."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

MAX_PAGES = 30  # whose numbers a draft remembers: those that saved last

Answers = Mapping[str, str]  # what is typed in each blank, {"queries.rows": "100"}, and written to each open question


class Stamp(NamedTuple):
    """Where and when a box was last changed: the id of the page, and that page's running number of the change."""

    page: str
    number: int


@dataclass(frozen=True)
class MergedBoxes:
    """The texts of a draft after a save, and the highest number that was taken from each page."""

    answers: Answers
    pages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class VariantSizes:
    """What makes a worksheet one student's variant: a model and the numbers of tokens."""

    model: str
    tokens: int
    decoder_tokens: int | None = None


@dataclass(frozen=True)
class ClassSheetKey:
    """One sheet of one student in an activity: the sheet with number `sheet_number`, from 1, of that revision.

    Drafts and attempts are stored under `sheet_key` (see FrozenWorksheet), which survives revisions that leave the
    questions as they are.
    """

    student_id: int
    activity_id: int
    revision: int
    sheet_number: int
    sheet_key: str


@dataclass(frozen=True)
class ClassDraft:
    """What is typed on a sheet of an activity: as it is stored, or as a page sent it.

    `version` counts the saves that are merged in a stored draft; it means nothing in a sent one.
    `changed` belongs to a sent one: the boxes that the page has changed (see `merge_boxes`), None without script.
    """

    answers: Answers
    version: int
    variant: VariantSizes
    changed: Mapping[str, Stamp] | None = None
    pages: Mapping[str, int] = field(default_factory=dict)  # of a stored one: the highest number taken from each page


@dataclass(frozen=True)
class StoredClassDraft:
    """A draft with its student, its sheet and the time it was saved."""

    student_id: int
    sheet_key: str
    variant: VariantSizes
    answers: Answers
    saved_at: datetime


@dataclass(frozen=True)
class UnfinishedWork:
    """A draft, and the attempts on the same sheet: how many there are, and the id and answers of the last one.

    The id is 0, and `last_answers` and `last_at` are None, before the first attempt. `handed_in_on_time`: the student
    has handed one in, not late; none that was collected at closing.
    """

    draft: StoredClassDraft
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
        """Whether the draft answers any of these questions, by the names of `question_name`."""
        return any(name in questions for name in _typed(self.draft.answers))

    @property
    def has_news(self) -> bool:
        """Whether the draft was saved after the last attempt and holds other answers; empty boxes count for nothing."""
        if self.last_answers is None or self.last_at is None:
            return True
        return self.draft.saved_at > self.last_at and _typed(self.draft.answers) != _typed(self.last_answers)


@dataclass(frozen=True)
class Graded:
    """The marks of an attempt: the kind of mark by blank, misconceptions with the diagnosis first, and the score."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    score: float
    out_of: int


@dataclass(frozen=True)
class TakenIn:
    """A draft that is taken in when its activity has ended, with its marks, and whether it was typed late."""

    key: ClassSheetKey
    work: UnfinishedWork
    graded: Graded
    late: bool

    @property
    def client_id(self) -> str:
        """An id that is the same for the same sheet and last attempt, and no other: 'taken-in 17 4f9a…'."""
        sheet = f"{self.key.activity_id} {self.key.sheet_key}"
        return f"taken-in {self.work.last_id} {hashlib.sha256(sheet.encode()).hexdigest()[:24]}"


@dataclass(frozen=True)
class PaperAttempt:
    """Answers on paper to be stored as a submission: the draft that they become, with their marks."""

    key: ClassSheetKey
    client_id: str
    draft: ClassDraft
    graded: Graded


@dataclass(frozen=True)
class ClassAttempt:
    """One check of a sheet, stored for good; a submission if it was handed in.

    `marked_by` is the sheet key (`FrozenWorksheet.sheet_key`) of the worksheet definition that gave the stored marks:
    the attempt's own `sheet_key` until a regrade marks it by a corrected definition. `taken_in`: it was a draft when
    the activity closed. `late`: it was made in the late window, or after answers had been shown.
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
    taken_in: bool = False
    late: bool = False


@dataclass(frozen=True)
class SheetProgress:
    """How many attempts a student has made on one sheet, and whether any of them was handed in."""

    attempts: int
    handed_in: bool


@dataclass(frozen=True)
class ActivityProgress:
    """How far a student is in an activity: the sheets that they have typed on, by sheet key, and the exit ticket."""

    sheets: Mapping[str, SheetProgress] = field(default_factory=dict)
    has_arrived: bool = False
    ticket_in: bool = False


@dataclass(frozen=True)
class ClassSheetWork:
    """What a student has done on a sheet of an activity: the draft, how many attempts there are, and the last one."""

    draft: ClassDraft | None = None
    attempts: int = 0
    last: ClassAttempt | None = None


@dataclass(frozen=True)
class Attendance:
    """That a student opened an activity, when first, and whether they handed in an exit ticket."""

    student_id: int
    arrived_at: datetime
    ticket_in: bool


class NoAttemptsLeftError(Exception):
    """The student has made as many attempts on this sheet as the activity allows."""


def _typed(answers: Answers) -> dict[str, str]:
    """The texts that are not blank, without space around them."""
    return {blank: text.strip() for blank, text in answers.items() if text.strip()}


def merge_boxes(
    stored: MergedBoxes | None, answers: Answers, changed: Mapping[str, Stamp] | None
) -> MergedBoxes | None:
    """A stored draft with a save merged into it; None if the save brings nothing new.

    A box in `changed` gets its text from `answers`, unless a change of the same page with that number or a higher one
    was merged already: then the request was sent twice, or overtaken on its way. Between two pages, the save that
    arrives last wins. So a page has to send every change until it was told that it is stored. `changed` is None for a
    form that was sent without script: then every text counts. Of pages, only the last MAX_PAGES are remembered.

    Example:
        stored = MergedBoxes({"keys.rows": "1", "keys.columns": "2"}, {"tab1": 3})
        changed = {"keys.rows": Stamp("tab1", 3), "keys.columns": Stamp("tab2", 1)}
        merge_boxes(stored, {"keys.rows": "9", "keys.columns": "9"}, changed)
            MergedBoxes({"keys.rows": "1", "keys.columns": "9"}, {"tab1": 3, "tab2": 1})
    """
    before = stored or MergedBoxes(dict.fromkeys(answers, ""))
    if changed is None:
        return MergedBoxes({**before.answers, **answers}, before.pages)
    new = {box: stamp for box, stamp in changed.items() if stamp.number > before.pages.get(stamp.page, 0)}
    if not new:
        return None
    pages = dict(before.pages)
    for page, number in new.values():
        highest = max(number, pages.pop(page, 0))
        pages[page] = highest  # at the end, after the pages that saved earlier
    newest = dict(list(pages.items())[-MAX_PAGES:])
    return MergedBoxes({**before.answers, **{box: answers[box] for box in new}}, newest)


def merged_draft(stored: ClassDraft | None, draft: ClassDraft) -> ClassDraft | None:
    """The stored draft after merging one that a page sent into it; None if nothing changes.

    Its version counts one up, its variant stays.
    """
    boxes = merge_boxes(MergedBoxes(stored.answers, stored.pages) if stored else None, draft.answers, draft.changed)
    if boxes is None:
        return None
    version, variant = (stored.version + 1, stored.variant) if stored else (1, draft.variant)
    return ClassDraft(boxes.answers, version, variant, pages=boxes.pages)
