"""A record's progress in the lessons, and what to repeat, as pages show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.algebra.number_text import format_number
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import expectations
from app.models.architecture import TokensError
from app.practice.lessons import Lesson, lessons_of
from app.practice.record import Card, PracticeRecord, distinguishable_misconceptions
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError, library_key
from app.topics.requirements import TopicError

SheetState = Literal["done", "again", "next", "open"]
MAX_REPETITIONS = 3  # at a time
SEEDS_TRIED = 4  # in search of a sheet that shows a misconception

_TOPICS_OF = {misconception.key: misconception.topics for misconception in MISCONCEPTIONS}


@dataclass(frozen=True)
class SheetView:
    """A sheet in a lesson's list; `again` are the names of misconceptions on it that wait for repetition."""

    variant: Variant
    state: SheetState
    again: tuple[str, ...] = ()


@dataclass(frozen=True)
class LessonView:
    """A lesson with its sheets, and how many of its row are done."""

    number: int
    lesson: Lesson
    sheets: tuple[SheetView, ...]
    hunt: SheetView | None
    harder: SheetView | None
    more: tuple[SheetView, ...]

    @property
    def done(self) -> int:
        return sum(sheet.state in ("done", "again") for sheet in self.sheets)


@dataclass(frozen=True)
class Repetition:
    """A misconception, and a sheet with other numbers that asks for it again.

    `place` is the row and side, such as "queries, columns"; it is empty if what was typed isn't a number.
    """

    idea: str
    variant: Variant
    place: str = ""
    typed: str = ""
    right: str = ""


def lesson_views(library: Library, record: PracticeRecord) -> tuple[LessonView, ...]:
    """The lessons of the library with what is done, what comes next, and what to look at again."""
    lessons, again = lessons_of(library), _ideas_by_worksheet(library, record)
    following = next_worksheet(library, record)

    def view(key: str) -> SheetView:
        ideas = again.get(key, ())
        state: SheetState = "again" if ideas else "done" if key in record.done else "open"
        return SheetView(library.variant(key), "next" if key == following else state, ideas)

    def views(keys: tuple[str, ...]) -> tuple[SheetView, ...]:
        return tuple(view(key) for key in keys if key in library.worksheets)

    return tuple(
        LessonView(
            number,
            lesson,
            views(lesson.sheets),
            next(iter(views((lesson.hunt,))), None),
            next(iter(views((lesson.harder,))), None),
            views(lesson.more),
        )
        for number, lesson in enumerate(lessons, start=1)
    )


def next_worksheet(library: Library, record: PracticeRecord) -> str:
    """The first undone sheet after the last one done, in the order of the lessons; "" after all of them."""
    row = [key for lesson in lessons_of(library) for key in lesson.sheets if key in library.worksheets]
    last = next((row.index(key) + 1 for key in reversed(record.done) if key in row), 0)
    return next((key for key in (*row[last:], *row[:last]) if key not in record.done), "")


def to_repeat(library: Library, record: PracticeRecord) -> tuple[Repetition, ...]:
    """What is due to be repeated, at most MAX_REPETITIONS; a card that no sheet shows any more is left out."""
    repeats = (_repeat(library, record, card) for card in record.due)
    return tuple(filter(None, repeats))[:MAX_REPETITIONS]


def ideas_to_repeat(library: Library, record: PracticeRecord) -> tuple[str, ...]:
    """The names of everything that waits, due or not."""
    return tuple(library.wording.misconceptions[card.misconception].name for card in record.cards)


def _ideas_by_worksheet(library: Library, record: PracticeRecord) -> dict[str, tuple[str, ...]]:
    ideas = dict[str, tuple[str, ...]]()
    for card in record.cards:
        if variant := _opened(library, card.code):
            key = library_key(variant.worksheet.key)
            ideas[key] = (*ideas.get(key, ()), library.wording.misconceptions[card.misconception].name)
    return ideas


def _opened(library: Library, code: str) -> Variant | None:
    try:
        return library.variant_from_code(code)
    except WorksheetError:
        return None


def _repeat(library: Library, record: PracticeRecord, card: Card) -> Repetition | None:
    missed_on = _opened(library, card.code)
    again = missed_on and next(_sheets_showing(library, record, card, missed_on), None)
    if missed_on is None or again is None:
        return None
    idea = library.wording.misconceptions[card.misconception].name
    for expected in expectations(missed_on.problem):
        if expected.misconception == card.misconception and not missed_on.worksheet.in_letters:
            blank, typed = next(iter(expected.wrong_answers.items()))
            row = next(row for row in missed_on.rows if row.key == blank.tensor)
            if not row.is_question:
                place = f"{row.name}, {missed_on.axis(blank)}" if len(row.fields) > 1 else row.name
                return Repetition(idea, again, place, format_number(typed), format_number(missed_on.answer(blank)))
    return Repetition(idea, again)


def _sheets_showing(library: Library, record: PracticeRecord, card: Card, missed_on: Variant) -> Iterator[Variant]:
    # Cut to the rows concerned if the mistake shows there; otherwise whole, or another sheet of the lessons.
    whole = library.worksheet(missed_on.worksheet.whole)
    model = None if missed_on.model.key in (whole.model, *whole.models) else missed_on.model.key
    ways = (each for each in expectations(missed_on.problem) if each.misconception == card.misconception)
    rows = {blank.tensor for way in ways for blank in way.wrong_answers}
    candidates = [(whole.cut_to(rows).key, model), (whole.key, model)]
    for lesson in lessons_of(library):
        candidates += [
            (key, None) for key in lesson.sheets if library.worksheets[key].topic in _TOPICS_OF[card.misconception]
        ]
    for key, chosen in candidates:
        for turn in range(SEEDS_TRIED):
            try:
                variant = library.seeded(key, SEEDS_TRIED * record.finished + turn, chosen)
            except (TopicError, TokensError):
                break
            if variant.code != card.code and card.misconception in distinguishable_misconceptions(variant):
                yield variant
