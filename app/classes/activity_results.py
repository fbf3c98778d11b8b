"""What came of an activity: each sheet with every student's tries, and what they say of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.classes.student_sheet import fix, worksheet_of
from app.grading.grade import Report, grade, settled
from app.grading.item_analysis import (
    RowState,
    RowStatistics,
    commonest,
    misconception_counts,
    row_state,
    row_statistics,
)
from app.sheets.worksheet import Row, Typed, Variant, plain
from app.store import Activity, Course, Fixed, Item, Student, Try
from app.web.shared.services import Services


@dataclass(frozen=True)
class SheetOutcome:
    """One sheet with everybody's tries on it, by student, the first one first."""

    item: Item
    variant: Variant
    current: bool  # students see it still
    tries: Mapping[int, tuple[Try, ...]]

    @property
    def title(self) -> str:
        return str(self.item.worksheet["title"])

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.variant.rows

    @property
    def boxes(self) -> dict[str, list[str]]:
        """The boxes of each row."""
        return {row.key: [str(blank) for blank in row.blanks] for row in self.rows}

    @property
    def first(self) -> list[Try]:
        return [tries[0] for tries in self.tries.values()]

    @property
    def last(self) -> list[Try]:
        return [tries[-1] for tries in self.tries.values()]

    def states(self, one: Try) -> dict[str, RowState]:
        """How each row of a try stands."""
        return {row: row_state(one.marks, boxes) for row, boxes in self.boxes.items()}

    def statistics(self) -> tuple[RowStatistics, ...]:
        return row_statistics(self.boxes, [one.marks for one in self.first], [one.marks for one in self.last])


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that several gave at first: the side, what it says, and how many gave it."""

    side: str
    text: str
    count: int


@dataclass(frozen=True)
class NamedMisconception:
    """A misconception in a few words, and how many held it at their first and at their last try."""

    key: str
    name: str
    at_first: int
    at_last: int


def outcomes(services: Services, activity: Activity) -> tuple[SheetOutcome, ...]:
    """Every sheet of an activity, those that students see first, then those of earlier versions that were tried."""
    tries = services.store.classwork.tries_of_activity(activity.id)
    items = {item.sheet: item for item in activity.content.items}
    for one in tries:
        if one.sheet not in items and (item := item_of(services, one)):
            items[one.sheet] = item
    seen = {item.sheet for item in activity.content.items}
    return tuple(_outcome(services, activity, item, sheet in seen, tries) for sheet, item in items.items())


def item_of(services: Services, one: Try) -> Item | None:
    """The worksheet of a try as it was frozen then."""
    content = services.store.activities.content(one.activity_id, one.revision)
    return content.items[one.item] if content and one.item < len(content.items) else None


def _outcome(services: Services, activity: Activity, item: Item, current: bool, tries: Iterable[Try]) -> SheetOutcome:
    by_student = dict[int, tuple[Try, ...]]()
    for one in tries:
        if one.sheet == item.sheet:
            by_student[one.student_id] = (*by_student.get(one.student_id, ()), one)
    worksheet = worksheet_of(item, activity.policies)
    own = Fixed(worksheet.model, worksheet.tokens, worksheet.decoder_tokens)
    return SheetOutcome(item, fix(services, worksheet, own), current, by_student)


def took_part(
    services: Services, activity: Activity, course: Course, found: Sequence[SheetOutcome]
) -> tuple[Student, ...]:
    """Everybody who came or whose sheet is there, by name."""
    ids = {there.student_id for there in services.store.classwork.attendance(activity.id)}
    ids |= {student_id for outcome in found for student_id in outcome.tries}
    return tuple(student for student in services.store.courses.students(course) if student.id in ids)


def named_misconceptions(services: Services, found: Sequence[SheetOutcome]) -> tuple[NamedMisconception, ...]:
    """The misconceptions of these sheets, by how many students held them at last, then at first."""
    first, last = (dict(misconception_counts(_by_student(found, which))) for which in (0, -1))
    names = services.library.wording.sections["misconception-names"]
    all_ = [
        NamedMisconception(key, names.get(key, key), first.get(key, 0), last.get(key, 0)) for key in {**last, **first}
    ]
    return tuple(
        sorted(all_, key=lambda misconception: (-misconception.at_last, -misconception.at_first, misconception.name))
    )


def _by_student(found: Sequence[SheetOutcome], which: int) -> list[list[str]]:
    """What each student believed on any of the sheets."""
    held = dict[int, list[str]]()
    for outcome in found:
        for student_id, tries in outcome.tries.items():
            held.setdefault(student_id, []).extend(tries[which].misconceptions)
    return list(held.values())


def wrong_answers(services: Services, activity: Activity, outcome: SheetOutcome) -> dict[str, WrongAnswer]:
    """The commonest wrong answer of each row at first; where students have numbers of their own, by its symbol."""
    given = dict[str, list[tuple[str, str]]]()
    variants = dict[Fixed, Variant]()
    for one in outcome.first:
        if one.variant not in variants:
            worksheet = worksheet_of(outcome.item, activity.policies)
            variants[one.variant] = fix(services, worksheet, one.variant)
    for one in outcome.first:
        for box, kind in one.marks.items():
            if kind == "wrong" and (text := _said(variants[one.variant], one.answers.get(box, ""), len(variants) > 1)):
                row, _, axis = box.rpartition(".")
                given.setdefault(row, []).append((axis, text))
    say = services.library.wording.say
    top = {row: commonest(sorted(answers))[0] for row, answers in given.items()}
    return {row: WrongAnswer(say("axes", axis), text, count) for row, ((axis, text), count) in top.items()}


def _said(variant: Variant, text: str, many: bool) -> str:
    """A wrong answer as a number with its symbol; the symbol alone where `many` variants have different numbers."""
    read = variant.read(text)
    if not isinstance(read, Typed):
        return ""
    if read.meaning is not None:
        return text.strip()
    symbols = [symbol for symbol, size in variant.sizes.items() if size == read.value]
    written = " or ".join(dict.fromkeys(variant.notation.symbols.get(symbol, symbol) for symbol in symbols))
    if many and written:
        return written
    return f"{plain(read.value)} ({written})" if written else plain(read.value)


def corrected(services: Services, activity: Activity, item: Item, fixed: Fixed) -> Variant:
    """A frozen worksheet as the library has it now, for marking what was answered again.

    Sizes stay those the student had, and only rows that were asked count; the share is the activity's of now. A
    worksheet that is gone, is about something else or shares no row stays as it was frozen.
    """
    frozen = worksheet_of(item, activity.policies)
    now = services.library.worksheets.get(frozen.key, frozen)
    rows = tuple(row for row in frozen.rows if row in now.rows)
    if now.topic != frozen.topic or not rows:
        return fix(services, frozen, fixed)
    return fix(services, replace(now, rows=rows, follow_share=frozen.follow_share), fixed)


def as_kept(services: Services, activity: Activity, item: Item, frozen: Variant, one: Try) -> tuple[Variant, Report]:
    """A try with the marks that are kept of it, and the sheet that they belong to.

    That is the sheet as it was frozen where it gives these marks, else as it was corrected; where the library has moved
    on since, the marks stay what they are and no misconception is told.
    """
    report = grade(frozen, one.answers)
    if settled(frozen, report, one.marks) is report:
        return frozen, report
    asked = {box.rpartition(".")[0] for box in one.marks}
    sheet = corrected(services, activity, item, one.variant)
    rows = tuple(row for row in frozen.worksheet.rows if row in asked)
    sheet = replace(sheet, worksheet=replace(sheet.worksheet, rows=rows))
    answers = {box: text for box, text in one.answers.items() if box in sheet.boxes}
    return sheet, settled(sheet, grade(sheet, answers), one.marks)
