"""What a student sees at the end of an activity: one thing they fixed, that all was right at once, or what is left.

All of it is read off their attempts and the marks stored with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from app.activities.rules import Rules
from app.activities.work import Attempt
from app.classes.activity_results import report_as_stored
from app.classes.student_sheet import StudentSheet, student_sheet
from app.grading.item_analysis import row_state
from app.shapes.table import DIMENSIONS, MATRIX_FIELDS, Blank, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.code_text import option_label
from app.sheets.library import Library
from app.sheets.reasons import row_reason
from app.sheets.variant import Row, Variant
from app.store import Activity, Store, Student

MIN_CLASS = 5  # students with an attempt, from which on it is said how many began alike
MAX_GRADED = 5  # attempts on a sheet that are searched for a misconception


@dataclass(frozen=True)
class Fixed:
    """A box that was wrong and is right now, with what the student typed in it, and the reason.

    `name` is the misconception's, or without one the row's. `began_alike` of `students` showed the misconception in
    their first attempt; both are 0 in a class of fewer than MIN_CLASS.
    """

    row: Row
    axis: str
    before: str
    now: str
    name: str
    reason: str
    boxes: int  # of the sheet
    tries: int  # until all of them were right; 0 if they aren't
    lengths: tuple[float, float] | None  # of both as they are drawn, if they are sizes: by square root, at most 100
    misconception: str = ""
    began_alike: int = 0
    students: int = 0


@dataclass(frozen=True)
class SheetLeft:
    """A sheet, numbered from 1, that isn't all right: its title, its first row to do, and how many more there are."""

    number: int
    title: str
    row: Row
    others: int


@dataclass(frozen=True)
class LookBack:
    fixed: Fixed | None
    left: tuple[SheetLeft, ...]
    boxes_right: int  # of all sheets, if every box of every sheet is right; otherwise 0
    at_first_try: bool


@dataclass(frozen=True)
class _Work:
    """A student's attempts on sheet `number` that they may see marked, oldest first."""

    number: int
    sheet: StudentSheet
    attempts: Sequence[Attempt]

    @property
    def last(self) -> Attempt:
        return self.attempts[-1]

    @property
    def variant(self) -> Variant:
        return self.sheet.variant


def look_back(library: Library, store: Store, activity: Activity, student: Student, rules: Rules) -> LookBack | None:
    """What can be said about the attempts whose marks the student may see; None without any."""
    works = tuple(_works(library, store, activity, student, rules))
    if not works:
        return None
    is_all_right = len(works) == len(activity.content.items) and all(_is_right(work.last) for work in works)
    kinds = {kind for work in works for attempt in work.attempts for kind in attempt.marks.values()}
    fixed = (_fixed(library, store, activity, work) for work in works) if rules.gives_help else iter(())
    return LookBack(
        fixed=next(filter(None, fixed), None),
        left=tuple(filter(None, map(_left, works))),
        boxes_right=sum(len(work.last.marks) for work in works) if is_all_right else 0,
        at_first_try=is_all_right and kinds <= {"right", "empty"},
    )


def _works(library: Library, store: Store, activity: Activity, student: Student, rules: Rules) -> Iterator[_Work]:
    made = store.classwork.attempts_of_activity(activity.id, student_id=student.id)
    for number, item in enumerate(activity.content.items, start=1):
        mine = [each for each in made if each.sheet_key == item.sheet_key]
        if not mine:
            continue
        sheet = student_sheet(library, store, activity, student, number)
        seen = [each for each in mine if each.variant == sheet.sizes and rules.marks_visible(handed_in=each.handed_in)]
        if seen:
            yield _Work(number, sheet, seen)


def _is_right(attempt: Attempt) -> bool:
    return set(attempt.marks.values()) == {"right"}


def _left(work: _Work) -> SheetLeft | None:
    rows = [row for row in work.variant.rows if row_state(work.last.marks, list(map(str, row.blanks))) != "right"]
    return SheetLeft(work.number, work.variant.title, rows[0], len(rows) - 1) if rows else None


def _fixed(library: Library, store: Store, activity: Activity, work: _Work) -> Fixed | None:
    for attempt in islice(_mistaken(work), MAX_GRADED):
        item = activity.content.items[work.number - 1]
        variant, report = report_as_stored(library, store, activity, item, work.variant, attempt)
        diagnosis = report.diagnosis
        changed = [blank for blank in diagnosis.about if _is_retyped(work, attempt, blank)] if diagnosis else []
        if not diagnosis or diagnosis.key != attempt.misconceptions[0] or not changed:
            continue
        if _are_fixed(work, attempt, diagnosis.about):
            key = diagnosis.key
            name, reason = prose.misconception_name(variant, key), prose.misconception(variant, key, "explanation")
            fixed = replace(_as_typed(work, attempt, changed[0], name, reason), misconception=key)
            return _with_class(store, activity, work, fixed)
    for attempt in work.attempts[:-1]:
        wrong = [blank for blank in work.variant.blanks if attempt.marks.get(str(blank)) == "wrong"]
        retyped = (each for each in wrong if _is_retyped(work, attempt, each))
        if blank := next((each for each in retyped if _are_fixed(work, attempt, [each])), None):
            row = _row_of(work.variant, blank)
            return _as_typed(work, attempt, blank, row.name, row_reason(work.variant, row.key).text)
    return None


def _mistaken(work: _Work) -> Iterator[Attempt]:
    """The attempts with a misconception that the last one doesn't show."""
    for attempt in work.attempts[:-1]:
        if attempt.misconceptions and attempt.misconceptions[0] not in work.last.misconceptions:
            yield attempt


def _are_fixed(work: _Work, attempt: Attempt, blanks: Sequence[Blank]) -> bool:
    """Whether each of these boxes was wrong in an attempt and is right in the last one."""
    boxes = [str(blank) for blank in blanks]
    return all(attempt.marks.get(box) in ("wrong", "follows") and work.last.marks.get(box) == "right" for box in boxes)


def _is_retyped(work: _Work, attempt: Attempt, blank: Blank) -> bool:
    # Boxes that are marked together were wrong together, but only some of them may have been changed.
    before, now = (_answer_in_words(work.variant, blank, each) for each in (attempt, work.last))
    return before != now


def _row_of(variant: Variant, blank: Blank) -> Row:
    return next(row for row in variant.rows if blank in row.blanks)


def _as_typed(work: _Work, attempt: Attempt, blank: Blank, name: str, reason: str) -> Fixed:
    complete = (number for number, each in enumerate(work.attempts, start=1) if _is_right(each))
    return Fixed(
        row=_row_of(work.variant, blank),
        axis=work.variant.axis(blank),
        before=_answer_in_words(work.variant, blank, attempt),
        now=_answer_in_words(work.variant, blank, work.last),
        name=name,
        reason=reason,
        boxes=len(work.last.marks),
        lengths=_lengths(work.variant, blank, attempt, work.last),
        tries=next(complete, 0) if _is_right(work.last) else 0,
    )


def _answer_in_words(variant: Variant, blank: Blank, attempt: Attempt) -> str:
    text = attempt.answers.get(str(blank), "").strip()
    read, asked = variant.read(blank, text), variant.table.askable[blank.tensor]
    if isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern) and isinstance(read, Answer):
        return option_label(variant, blank.tensor, read.value)
    return text


def _lengths(variant: Variant, blank: Blank, before: Attempt, now: Attempt) -> tuple[float, float] | None:
    if blank.field not in (*MATRIX_FIELDS, *DIMENSIONS):
        return None
    first, last = (variant.read(blank, attempt.answers.get(str(blank), "")) for attempt in (before, now))
    if not (isinstance(first, Answer) and isinstance(last, Answer) and min(first.value, last.value) > 0):
        return None
    longest = max(first.value, last.value)
    return 100 * math.sqrt(first.value / longest), 100 * math.sqrt(last.value / longest)


def _with_class(store: Store, activity: Activity, work: _Work, fixed: Fixed) -> Fixed:
    first = store.classwork.first_misconceptions(activity.id, work.last.sheet_key)
    if len(first) < MIN_CLASS:
        return fixed
    return replace(fixed, began_alike=sum(fixed.misconception in each for each in first), students=len(first))
