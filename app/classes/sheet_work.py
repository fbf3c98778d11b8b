"""Where the work on a sheet is kept: in the database for a class or for practice, and in its form for a preview."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Self

from app.activities.activity import Activity
from app.activities.work import (
    ActivityProgress,
    Answers,
    ClassAttempt,
    ClassDraft,
    ClassSheetWork,
    SheetProgress,
)
from app.classes.frozen.frozen_library import library_of
from app.classes.sheet_actions import NewAttempt, Outcome
from app.classes.student_sheet import StudentSheet, variant_of
from app.grading.grade import Report
from app.sheets.library import Library
from app.store import PracticeAttempt, PracticeDraft, Store, Visitor

MAX_ATTEMPTS_READ = 50  # of one sheet of practice


@dataclass(frozen=True)
class ClassWork:
    """A student's work on a sheet of an activity, in the database; `charge` counts an attempt as stored, or raises.

    `report` has the marks of the last attempt where this request has made it, `known_progress` how far the student is
    in the activity where that was read with it.
    """

    library: Library
    store: Store
    activity: Activity
    sheet: StudentSheet
    so_far: ClassSheetWork
    charge: Callable[[Answers], None]
    report: Report | None = None
    known_progress: ActivityProgress | None = None

    @property
    def draft(self) -> ClassDraft | None:
        return self.so_far.draft

    @property
    def attempts(self) -> int:
        return self.so_far.attempts

    @property
    def last(self) -> ClassAttempt | None:
        return self.so_far.last

    @property
    def has_other_numbers(self) -> bool:
        return self.last is not None and self.answers_other_numbers(self.last)

    def answers_other_numbers(self, attempt: ClassAttempt) -> bool:
        """Whether an attempt answers a sheet with other sizes, so that the sheets' codes differ."""
        if attempt.variant == self.sheet.sizes:
            return False
        library = library_of(self.library, self.store, self.activity.content)
        other = variant_of(library, self.store, self.sheet.variant.worksheet, attempt.variant)
        return other.code != self.sheet.variant.code

    @cached_property
    def progress(self) -> ActivityProgress:
        """How far the student is with all sheets of the activity."""
        return self.known_progress or self.store.classwork.progress(self.activity.id, self.sheet.key.student_id)

    @cached_property
    def newest_attempts(self) -> Sequence[ClassAttempt]:
        """The attempts on the sheet, newest first."""
        return self.store.classwork.attempts(self.sheet.key)[::-1]

    def read_again(self) -> Self:
        return replace(self, so_far=self.store.classwork.work(self.sheet.key), report=None, known_progress=None)

    def kept(self, outcome: Outcome) -> Self:
        """The work after storing an outcome in one transaction, unchanged if it has nothing to store.

        If `charge` refuses a new attempt, the draft is saved and its error raised.
        """
        if outcome.attempt:
            return self._with_attempt(outcome, outcome.attempt)
        if not (outcome.sent or outcome.written or outcome.hands_in_last):
            return self
        classwork, last, draft = self.store.classwork, self.last, self.draft
        if last and (outcome.written or outcome.hands_in_last):
            with self.store.transaction():
                draft = self._saved(outcome)
                last = classwork.add_answers(last, outcome.written) if outcome.written else last
                last = classwork.hand_in(last) if outcome.hands_in_last else last
        else:
            draft = self._saved(outcome)
        return replace(self, so_far=ClassSheetWork(draft, self.attempts, last), known_progress=None)

    def _with_attempt(self, outcome: Outcome, attempt: NewAttempt) -> Self:
        """The work with one more attempt; one that a repeated request has already made is not added again.

        Only unlimited attempts are charged for; if `charge` raises, the draft is saved first.
        """
        allowed, classwork = self.activity.policies.max_attempts, self.store.classwork
        if not allowed:
            try:
                self.charge(attempt.answers)
            except Exception:
                self._saved(outcome)  # which is auto-submitted at closing
                raise
        edits = outcome.sent.edits if outcome.sent else None
        recorded = classwork.record(
            self.sheet.key,
            attempt.request_id,
            ClassDraft(attempt.answers, 0, self.sheet.sizes, edits),
            attempt.graded,
            seen=self.draft,
            handed_in=attempt.handed_in,
            allowed=allowed,
            late=attempt.late,
        )
        if recorded.is_new:
            count = recorded.progress.sheets[self.sheet.key.sheet_key].attempts
            so_far = ClassSheetWork(recorded.draft, count, recorded.attempt)
            return replace(self, so_far=so_far, report=attempt.report, known_progress=recorded.progress)
        if attempt.handed_in:  # a check of this very form has made it, which was still under way when this began
            classwork.hand_in(recorded.attempt)
        return self.read_again()

    def _saved(self, outcome: Outcome) -> ClassDraft | None:
        """Save what was sent; the draft then, None if nothing was ever saved."""
        if outcome.sent is None:
            return self.draft
        draft = ClassDraft(outcome.sent.answers, 0, self.sheet.sizes, outcome.sent.edits)
        stored = self.store.classwork.save(self.sheet.key, draft, self.draft)
        return stored if stored.version else None


@dataclass(frozen=True)
class PracticeWork:
    """A visitor's work on a sheet of practice, in the database."""

    store: Store
    owner: Visitor
    sheet_key: str
    draft: PracticeDraft | None = None
    last: PracticeAttempt | None = None

    @classmethod
    def find(cls, store: Store, token: str, sheet_key: str) -> PracticeWork | None:
        """The work of the visitor with this token on a sheet, in one query; None if there is no such visitor."""
        row = store.visitor_at_work(token, sheet_key)
        return cls(store, row.visitor, sheet_key, row.draft, row.last) if row else None

    @property
    def attempts(self) -> int:
        """Not counted: any number is allowed."""
        return 0

    @property
    def has_other_numbers(self) -> bool:
        return False

    @cached_property
    def newest_attempts(self) -> Sequence[PracticeAttempt]:
        """The newest attempts on the sheet, newest first, MAX_ATTEMPTS_READ at most."""
        return self.store.latest_attempts(self.owner, self.sheet_key, MAX_ATTEMPTS_READ) if self.last else ()

    def read_again(self) -> Self:
        row = self.store.visitor_at_work(self.owner.token, self.sheet_key)
        return replace(self, draft=row.draft, last=row.last) if row else self

    def kept(self, outcome: Outcome) -> Self:
        """The work after storing what was sent and the attempt, if any, in one transaction; unchanged if none was."""
        sent = outcome.sent
        if sent is None:
            return self
        attempt = outcome.attempt
        made = PracticeAttempt(attempt.answers, attempt.graded.score, attempt.graded.out_of) if attempt else None
        draft = PracticeDraft(sent.answers, 0, sent.edits)
        stored = self.store.keep_practice(self.owner, self.sheet_key, draft, self.draft, made)
        return replace(self, draft=stored if stored.version else None, last=made or self.last)


@dataclass(frozen=True)
class PreviewWork:
    """What was tried on a sheet of a preview: the attempts that its form carries; no draft is stored."""

    sheet: StudentSheet
    made: tuple[ClassAttempt, ...]  # the oldest first
    now: datetime
    report: Report | None = None

    @property
    def draft(self) -> ClassDraft | None:
        return None

    @property
    def attempts(self) -> int:
        return len(self.made)

    @property
    def last(self) -> ClassAttempt | None:
        return self.made[-1] if self.made else None

    @property
    def has_other_numbers(self) -> bool:
        return False

    def answers_other_numbers(self, _attempt: ClassAttempt) -> bool:
        """No attempt does."""
        return False

    @property
    def progress(self) -> ActivityProgress:
        """The example student's progress: this sheet, once there is an attempt on it; never other sheets."""
        if not self.made:
            return ActivityProgress()
        handed_in = any(attempt.handed_in for attempt in self.made)
        return ActivityProgress({self.sheet.key.sheet_key: SheetProgress(len(self.made), handed_in)})

    @property
    def newest_attempts(self) -> Sequence[ClassAttempt]:
        """The attempts on the sheet, newest first."""
        return self.made[::-1]

    def read_again(self) -> Self:
        return self

    def kept(self, outcome: Outcome) -> Self:
        """The work with an outcome, as its form will carry it; nothing is stored."""
        made = self.made
        if attempt := outcome.attempt:
            made = (*made, self._attempt(attempt))
        if made and outcome.written:
            made = (*made[:-1], replace(made[-1], answers={**made[-1].answers, **outcome.written}))
        if made and outcome.hands_in_last:
            made = (*made[:-1], replace(made[-1], handed_in=True))
        return replace(self, made=made, report=outcome.attempt.report if outcome.attempt else None)

    def _attempt(self, new: NewAttempt) -> ClassAttempt:
        """An attempt as the database would store it."""
        key, graded = self.sheet.key, new.graded
        return ClassAttempt(
            len(self.made) + 1,
            key.student_id,
            key.activity_id,
            key.revision,
            key.sheet_number,
            key.sheet_key,
            new.request_id,
            self.sheet.sizes,
            new.answers,
            graded.marks,
            graded.misconceptions,
            graded.score,
            graded.out_of,
            new.handed_in,
            self.now,
            marked_by=key.sheet_key,
            taken_in=new.auto_submitted,
            late=new.late,
        )
