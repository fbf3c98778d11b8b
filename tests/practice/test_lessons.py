"""The table of lessons: worksheets that exist, each in one lesson, in a row that leads from the first to the last."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from app.practice.lessons import LESSONS, in_order_of_lessons, lesson_with, lessons_of, worksheet_after
from tests.helpers.shipped import LIBRARY


def test_every_lesson_has_three_or_four_sheets_a_hunt_and_a_harder_one() -> None:
    named = Counter(key for lesson in LESSONS for key in lesson.worksheets)
    assert named.keys() == LIBRARY.worksheets.keys()
    assert set(named.values()) == {1}
    for lesson in LESSONS:
        assert len(lesson.sheets) in (3, 4)
        assert LIBRARY.worksheets[lesson.hunt].bugs != "one"
        assert lesson.harder


def test_the_rows_lead_from_first_steps_through_every_lesson() -> None:
    way, key = list[str](), "first-steps"
    while key:
        way.append(key)
        key = worksheet_after(LIBRARY, key)
    assert way == [key for lesson in LESSONS for key in lesson.sheets]
    assert worksheet_after(LIBRARY, "bug-layer") == worksheet_after(LIBRARY, "llama-7b~5") == ""


def test_own_worksheets_of_a_course_are_a_lesson_of_their_own() -> None:
    own = replace(LIBRARY.worksheets["llama-7b"], key="own-1")
    library = LIBRARY.with_added([own])
    assert lessons_of(library)[:-1] == lessons_of(LIBRARY) == LESSONS
    lesson = lesson_with(library, "own-1")
    assert lesson
    assert lesson.sheets == ("own-1",)
    assert lesson_with(LIBRARY, "own-1") is None


def test_lists_have_worksheets_as_the_lessons_and_own_ones_last() -> None:
    own = replace(LIBRARY.worksheets["llama-7b"], key="own-1")
    listed = [sheet.key for sheet in in_order_of_lessons([own, *reversed(list(LIBRARY.worksheets.values()))])]
    assert listed == [*(key for lesson in LESSONS for key in lesson.worksheets), "own-1"]
