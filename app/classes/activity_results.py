"""An activity's results: each sheet with every student's attempts, and what they say about its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.activities.activity import Counting
from app.activities.work import counted_of
from app.algebra.number_text import format_number
from app.classes.frozen.definitions import defined_variant
from app.classes.frozen.given_sheets import given_variant
from app.classes.frozen.misconception_words import MisconceptionWords
from app.classes.roster_lookup import named_apart
from app.classes.student_sheet import item_sizes
from app.grading.grade import Report, grade, with_kept_marks
from app.grading.item_analysis import (
    RowState,
    RowStatistics,
    misconception_counts,
    row_state,
    row_statistics,
)
from app.misconceptions.predictions import expectations
from app.shapes.table import Blank, Joint, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.code_text import option_label
from app.sheets.library import Library
from app.sheets.variant import Row, Variant, box_texts
from app.store import Activity, Attempt, AttemptedSheet, Content, Course, FrozenWorksheet, Store, Student
from app.translation import alternatives


@dataclass(frozen=True)
class ActivitySheet:
    """A sheet that an activity's students have, or had in an earlier revision; `content` is that revision's."""

    number: int  # on the results pages, from 1
    item: FrozenWorksheet
    content: Content
    current: bool  # whether it is in the newest revision, which students see

    @property
    def title(self) -> str:
        return self.item.title


@dataclass(frozen=True)
class SheetResults(ActivitySheet):
    """One sheet of an activity with the attempts of every student who made one, in order of time."""

    library: Library  # from the revision that froze it
    variant: Variant  # with the activity's sizes
    attempts: Mapping[int, tuple[Attempt, ...]]  # by student; never empty
    counting: Counting

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the sheet, from top to bottom."""
        return self.variant.rows

    @property
    def blanks(self) -> dict[str, list[str]]:
        """The box names of each row by the row's key: {'keys': ['keys.rows', 'keys.columns'], …}."""
        return {row.key: list(map(str, row.blanks)) for row in self.rows}

    @property
    def first(self) -> list[Attempt]:
        return [attempts[0] for attempts in self.attempts.values()]

    @property
    def last(self) -> list[Attempt]:
        return [attempts[-1] for attempts in self.attempts.values()]

    @cached_property
    def counted(self) -> Mapping[int, Attempt]:
        """By student, the attempt that counts of those on this sheet."""
        return {student: counted_of(attempts, self.counting) for student, attempts in self.attempts.items()}

    def states(self, attempt: Attempt) -> dict[str, RowState]:
        """Whether each row of an attempt is right, follow-through, wrong or open, by the row's key."""
        return {row: row_state(attempt.marks, blanks) for row, blanks in self.blanks.items()}

    def statistics(self) -> tuple[RowStatistics, ...]:
        """The statistics of each row, in order, over first and last attempts."""
        first, last = ([attempt.marks for attempt in attempts] for attempts in (self.first, self.last))
        return row_statistics(self.blanks, first, last)


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer that some students gave first: its field in words, the text, and how many gave it."""

    field: str
    text: str
    count: int


@dataclass(frozen=True)
class MisconceptionTotal:
    """A misconception by its short name, and how many students' first and last attempts show it."""

    key: str
    name: str
    at_first: int
    at_last: int


def activity_sheets(store: Store, activity: Activity) -> tuple[ActivitySheet, ...]:
    """An activity's sheets, numbered from 1: the newest revision's in order, then earlier ones with attempts."""
    content = activity.content
    sheets = {item.sheet_key: (item, content, True) for item in content.items}
    earlier = [each for each in store.grades.attempted_sheets(activity.id) if each.sheet_key not in sheets]
    if earlier:
        revisions = store.activities.revisions(activity)
        for each in earlier:
            if item := frozen_item(revisions, each):
                sheets[each.sheet_key] = item, revisions[each.revision], False
    return tuple(ActivitySheet(number, *sheet) for number, sheet in enumerate(sheets.values(), start=1))


def sheet_results(library: Library, store: Store, activity: Activity, sheet: ActivitySheet) -> SheetResults:
    """The results of one sheet, with every attempt on it, handed in or not."""
    attempts = store.classwork.attempts_of_activity(activity.id, sheet_key=sheet.item.sheet_key)
    return _sheet_results(library, store, activity, sheet, attempts)


def activity_results(
    library: Library, store: Store, activity: Activity, student: Student | None = None
) -> tuple[SheetResults, ...]:
    """Every sheet of `activity_sheets` with all attempts by student id, oldest first, handed in or not."""
    attempts = store.classwork.attempts_of_activity(activity.id, student_id=student.id if student else None)
    by_sheet = dict[str, list[Attempt]]()
    for attempt in attempts:
        by_sheet.setdefault(attempt.sheet_key, []).append(attempt)
    return tuple(
        _sheet_results(library, store, activity, sheet, by_sheet.get(sheet.item.sheet_key, ()))
        for sheet in activity_sheets(store, activity)
    )


def frozen_item(revisions: Mapping[int, Content], attempt: Attempt | AttemptedSheet) -> FrozenWorksheet | None:
    """The worksheet of an attempt as its revision froze it; None if the revision is gone or lacks it."""
    content = revisions.get(attempt.revision)
    return content.items[attempt.sheet_number - 1] if content and attempt.sheet_number <= len(content.items) else None


def _sheet_results(
    library: Library, store: Store, activity: Activity, sheet: ActivitySheet, attempts: Iterable[Attempt]
) -> SheetResults:
    by_student = dict[int, list[Attempt]]()
    for attempt in attempts:
        by_student.setdefault(attempt.student_id, []).append(attempt)
    variant = given_variant(library, store, activity, sheet.content, sheet.item, item_sizes(sheet.item))
    in_order = {student: tuple(in_time) for student, in_time in by_student.items()}
    counting = activity.policies.counting
    return SheetResults(sheet.number, sheet.item, sheet.content, sheet.current, library, variant, in_order, counting)


def participants(store: Store, activity: Activity, course: Course) -> tuple[Student, ...]:
    """The students on the course's roster who came to the activity or made an attempt, by name."""
    ids = store.grades.participants(activity.id)
    return tuple(student for student in named_apart(store.roster.students(course)) if student.id in ids)


def misconception_totals(words: MisconceptionWords, results: Sequence[SheetResults]) -> tuple[MisconceptionTotal, ...]:
    """How many students showed each misconception in their first attempts on these sheets, and in their last."""
    first, last = (dict(misconception_counts(_misconceptions_by_student(results, index))) for index in (0, -1))
    totals = [
        MisconceptionTotal(key, words.name(key), first.get(key, 0), last.get(key, 0)) for key in {**last, **first}
    ]
    return tuple(sorted(totals, key=lambda total: (-total.at_last, -total.at_first, total.name)))


def _misconceptions_by_student(results: Sequence[SheetResults], attempt_index: int) -> list[list[str]]:
    shown = dict[int, list[str]]()
    for sheet in results:
        for student_id, attempts in sheet.attempts.items():
            shown.setdefault(student_id, []).extend(attempts[attempt_index].misconceptions)
    return list(shown.values())


def common_wrong_answers(store: Store, activity: Activity, results: SheetResults) -> dict[str, WrongAnswer]:
    """The most common wrong answer to each row among students' first attempts, by the row's key."""
    library, content, item = results.library, results.content, results.item
    all_sizes = {attempt.variant for attempt in results.first}
    variants = {sizes: given_variant(library, store, activity, content, item, sizes) for sizes in all_sizes}
    symbol_alone = len(variants) > 1
    given = dict[str, list[tuple[str, str]]]()
    for attempt in results.first:
        variant = variants[attempt.variant]
        for box, kind in attempt.marks.items():
            if kind == "wrong":
                blank = variant.blanks_by_name[box]
                if text := _wrong_answer_text(variant, blank, attempt.answers.get(box, ""), symbol_alone):
                    given.setdefault(blank.tensor, []).append((variant.axis(blank), text))
    top = {row: Counter(sorted(answers)).most_common(1)[0] for row, answers in given.items()}
    return {row: WrongAnswer(axis, text, count) for row, ((axis, text), count) in top.items()}


def _wrong_answer_text(variant: Variant, blank: Blank, text: str, symbol_alone: bool) -> str:
    read = variant.read(blank, text)
    if not isinstance(read, Answer):
        return ""
    asked = variant.table.askable[blank.tensor]
    if isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern):
        return option_label(variant, blank.tensor, read.value)
    is_text = isinstance(asked, WrittenPattern) or (isinstance(asked, Joint) and asked.part(blank.field).kind != "size")
    if read.meaning is not None or is_text:
        return text.strip()
    written = _meaning(variant, blank, read.value)
    if symbol_alone and written:
        return written
    return f"{format_number(read.value)} ({written})" if written else format_number(read.value)


def _meaning(variant: Variant, blank: Blank, number: int) -> str:
    asked = frozenset[str]().union(*(variant.expression(each).symbols for each in variant.blanks))
    symbols = [symbol for symbol, size in variant.sizes.items() if size == number]
    led_to = [e.misconception for e in expectations(variant.problem) if e.wrong_answers.get(blank) == number]
    if led_to and asked.isdisjoint(symbols):
        return alternatives(dict.fromkeys(prose.misconception_name(variant, key) for key in led_to))
    return alternatives(
        dict.fromkeys(variant.notation.symbol(s) for s in symbols if s in asked or asked.isdisjoint(symbols))
    )


def report_as_stored(
    library: Library, store: Store, activity: Activity, item: FrozenWorksheet, frozen: Variant, attempt: Attempt
) -> tuple[Variant, Report]:
    """The sheet behind an attempt's stored marks, and its report with these marks.

    Raises WorksheetError if the model of a regrade's sheet no longer exists.
    """
    sheet, is_regraded = frozen, attempt.marked_by != item.sheet_key
    definition = store.regrades.definitions(activity.id).get(attempt.marked_by) if is_regraded else None
    if definition:
        marked_rows = {blank.rpartition(".")[0] for blank in attempt.marks}
        sheet = defined_variant(library, store, activity, definition, attempt.variant)
        rows = tuple(row for row in frozen.worksheet.rows if row in marked_rows)
        sheet = replace(sheet, worksheet=replace(sheet.worksheet, rows=rows))
    return sheet, with_kept_marks(sheet, grade(sheet, box_texts(sheet, attempt.answers)), attempt.marks)
