"""Where the work on a sheet is kept: in the database for a class or for practice, and in its form for a preview."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Self

from app.activities.activity import Activity, Counting
from app.activities.work import (
    ActivityProgress,
    Answers,
    Attempt,
    Draft,
    NewAttempt,
    PracticeSheetKey,
    SheetKey,
    SheetProgress,
    VariantSizes,
    WorkDone,
    counted_of,
)
from app.classes.frozen.given_sheets import given_variant
from app.classes.sheet_actions import Outcome
from app.classes.student_sheet import StudentSheet
from app.grading.grade import Report
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Store, Visitor

MAX_ATTEMPTS_READ = 50  # per sheet


@dataclass(frozen=True)
class StoredWork:
    """The work on a sheet in the database, under `key`; `done` is what this request has read or stored."""

    store: Store
    key: SheetKey
    sizes: VariantSizes
    done: WorkDone

    @property
    def draft(self) -> Draft | None:
        return self.done.draft

    @property
    def attempts(self) -> int:
        return self.done.attempts

    @property
    def last(self) -> Attempt | None:
        return self.done.last

    @property
    def counted(self) -> Attempt | None:
        """The attempt that counts."""
        return self.last

    def answers_other_numbers(self, _attempt: Attempt) -> bool:
        return False

    @cached_property
    def newest_attempts(self) -> Sequence[Attempt]:
        """The newest attempts on the sheet, newest first, at most MAX_ATTEMPTS_READ."""
        return self.store.classwork.latest_attempts(self.key, MAX_ATTEMPTS_READ) if self.last else ()

    def read_again(self) -> Self:
        return self._with(self.store.classwork.work(self.key))

    def kept(self, outcome: Outcome) -> Self:
        """The work after storing an outcome in one transaction.

        Raises WorkChangedError, storing nothing, if another request has changed the work meanwhile.
        """
        classwork, draft, last = self.store.classwork, outcome.draft, self.last
        if outcome.attempt:
            return self._with_attempt(outcome, outcome.attempt)
        if last and (outcome.written or outcome.hands_in_last):
            with self.store.transaction():
                if draft:
                    classwork.save(self.key, draft)
                last = classwork.add_answers(last, outcome.written) if outcome.written else last
                last = classwork.hand_in(last) if outcome.hands_in_last else last
        elif draft:
            classwork.save(self.key, draft)
        return self._with(WorkDone(draft or self.draft, self.attempts, last))

    def _with_attempt(self, outcome: Outcome, attempt: NewAttempt) -> Self:
        last = self.store.classwork.record(self.key, attempt, outcome.draft).attempt
        return self._with(WorkDone(outcome.draft or self.draft, self.attempts + 1, last))

    def _with(self, done: WorkDone) -> Self:
        return replace(self, done=done)


@dataclass(frozen=True)
class ClassWork(StoredWork):
    """A student's work on a sheet of an activity.

    `charge` counts this request's attempt towards the student's storage limit, or raises. When the request is redone
    because another came first, it is called again and counts nothing.
    """

    library: Library
    activity: Activity
    sheet: StudentSheet
    charge: Callable[[Answers], None]
    report: Report | None = None
    known_progress: ActivityProgress | None = None

    @cached_property
    def counted(self) -> Attempt | None:
        counting = self.activity.policies.counting
        if counting == "last" or self.attempts < 2:
            return self.last
        return self.store.classwork.counted_attempt(self.sheet.key, counting)

    def answers_other_numbers(self, attempt: Attempt) -> bool:
        """Whether an attempt answers a sheet with another code, because its model or lengths differ."""
        if attempt.variant == self.sizes:
            return False
        content = self.activity.content
        item = content.items[self.sheet.key.sheet_number - 1]
        other = given_variant(self.library, self.store, self.activity, content, item, attempt.variant, gives=False)
        return other.code != self.sheet.variant.code

    @cached_property
    def progress(self) -> ActivityProgress:
        """The student's progress with all sheets of the activity."""
        return self.known_progress or self.store.classwork.progress(self.activity.id, self.sheet.key.student_id)

    def _with_attempt(self, outcome: Outcome, attempt: NewAttempt) -> Self:
        allowed, classwork = self.activity.policies.max_attempts, self.store.classwork
        if not allowed:
            try:
                self.charge(attempt.answers)
            except Exception:
                if outcome.draft:
                    classwork.save(self.key, outcome.draft)  # which is auto-submitted at closing
                raise
        recorded = classwork.record(self.key, attempt, outcome.draft, allowed)
        if not recorded.is_new:  # a check of the same form, still running when this one started, has made it
            if attempt.handed_in:
                classwork.hand_in(recorded.attempt)
            return self.read_again()
        count = recorded.progress.sheets[self.key.sheet_key].attempts
        work = self._with(WorkDone(outcome.draft or self.draft, count, recorded.attempt))
        return replace(work, report=outcome.report, known_progress=recorded.progress)

    def _with(self, done: WorkDone) -> Self:
        return replace(self, done=done, report=None, known_progress=None)


@dataclass(frozen=True)
class PracticeWork(StoredWork):
    """A visitor's work on a practice sheet; any number of attempts is allowed."""

    owner: Visitor

    @classmethod
    def find(cls, store: Store, token: str, variant: Variant) -> Self | None:
        """The work on a sheet of the visitor with this token, in one query, or None."""
        found = store.classwork.of_visitor(token, practice_sheet_key(variant))
        if found is None:
            return None
        visitor_id, done = found
        sizes = VariantSizes(variant.model.key, variant.tokens, variant.decoder_tokens)
        key = PracticeSheetKey(visitor_id, practice_sheet_key(variant))
        return cls(store, key, sizes, done, Visitor(visitor_id, token))


@dataclass(frozen=True)
class PreviewWork:
    """What was tried on a previewed sheet: the attempts in its form; no draft is stored."""

    sheet: StudentSheet
    made: tuple[Attempt, ...]  # oldest first
    now: datetime
    counting: Counting = "last"
    report: Report | None = None

    @property
    def sizes(self) -> VariantSizes:
        return self.sheet.sizes

    @property
    def draft(self) -> Draft | None:
        return None

    @property
    def attempts(self) -> int:
        return len(self.made)

    @property
    def last(self) -> Attempt | None:
        return self.made[-1] if self.made else None

    @property
    def counted(self) -> Attempt | None:
        return counted_of(self.made, self.counting) if self.made else None

    def answers_other_numbers(self, _attempt: Attempt) -> bool:
        return False

    @property
    def progress(self) -> ActivityProgress:
        """The example student's progress: only this sheet, once there is an attempt on it."""
        if not self.made:
            return ActivityProgress()
        handed_in = any(attempt.handed_in for attempt in self.made)
        return ActivityProgress({self.sheet.key.sheet_key: SheetProgress(len(self.made), handed_in)})

    @property
    def newest_attempts(self) -> Sequence[Attempt]:
        return self.made[::-1]

    def read_again(self) -> Self:
        return self

    def kept(self, outcome: Outcome) -> Self:
        """The work with an outcome, as its form will carry it; nothing is stored, and no draft is kept."""
        made = self.made
        if attempt := outcome.attempt:
            made = (*made, attempt.stored(self.sheet.key, len(made) + 1, self.now))
        if made and outcome.written:
            made = (*made[:-1], replace(made[-1], answers={**made[-1].answers, **outcome.written}))
        if made and outcome.hands_in_last:
            made = (*made[:-1], replace(made[-1], handed_in=True))
        return replace(self, made=made, report=outcome.report if outcome.attempt else None)


def practice_sheet_key(variant: Variant) -> str:
    """The key of a practice sheet's drafts and attempts: worksheet/model/tokens, perhaps with /decoder tokens.

    Example: 'llama-7b/llama-7b/100'
    """
    decoded = f"/{variant.decoder_tokens}" if variant.decoder_tokens else ""
    return f"{variant.worksheet.key}/{variant.model.key}/{variant.tokens}{decoded}"
