"""How far a record is, as pages show it: what is done, what comes next, what to look at again."""

from __future__ import annotations

import pytest

from app.misconceptions.catalogue import MISCONCEPTIONS
from app.practice.lessons import LESSONS
from app.practice.progress import MAX_REPETITIONS, lesson_views, next_worksheet, to_repeat
from app.practice.record import Card, PracticeRecord, distinguishable_misconceptions
from tests.helpers.shipped import LIBRARY

ROW = [key for lesson in LESSONS for key in lesson.sheets]
HEAD = LIBRARY.variant("llama-7b")
WIDE = "head-as-wide-as-model"


def states(record: PracticeRecord) -> dict[str, str]:
    """How each sheet stands, by its worksheet."""
    views = [
        each
        for view in lesson_views(LIBRARY, record)
        for each in (*view.sheets, view.hunt, view.harder, *view.more)
        if each
    ]
    return {each.variant.worksheet.key: each.state for each in views}


@pytest.mark.parametrize(
    ("done", "following"),
    [
        ((), "first-steps"),
        (("first-steps",), "llama-7b"),
        (("decode-gpt2",), "cache-qwen3-0.6b"),  # who begins with the third lesson goes on in it
        (("bug-layer",), "first-steps"),
        ((ROW[-1],), "first-steps"),
        (tuple(ROW), ""),
    ],
)
def test_the_next_sheet_follows_the_one_done_last(done: tuple[str, ...], following: str) -> None:
    record = PracticeRecord(done)
    assert next_worksheet(LIBRARY, record) == following
    assert [key for key, state in states(record).items() if state == "next"] == [following] * bool(following)


def test_every_worksheet_of_the_lessons_is_listed_with_its_state() -> None:
    record = PracticeRecord(("llama-7b", "bug-layer"), (Card(WIDE, HEAD.code),), 2)
    shown = states(record)
    assert set(shown) == {key for lesson in LESSONS for key in lesson.worksheets}
    assert (shown["llama-7b"], shown["bug-layer"], shown["softmax-of-a-model"]) == ("again", "done", "next")
    assert lesson_views(LIBRARY, record)[0].done == 1


def test_what_was_mixed_up_comes_back_in_the_rows_concerned_with_other_numbers() -> None:
    [repeat] = to_repeat(LIBRARY, PracticeRecord((), (Card(WIDE, HEAD.code),), 1))
    assert (repeat.typed, repeat.right) == ("4096", "128")
    assert {row.key for row in repeat.variant.rows} == {"queries", "keys", "values"}
    assert repeat.variant.tokens != HEAD.tokens
    assert WIDE in distinguishable_misconceptions(repeat.variant)


def test_only_what_is_due_comes_back_and_not_all_at_once() -> None:
    keys = [key.key for key in MISCONCEPTIONS if key.key in distinguishable_misconceptions(HEAD)][: MAX_REPETITIONS + 2]
    cards = tuple(Card(key, HEAD.code, due=due) for due, key in enumerate(keys))
    assert to_repeat(LIBRARY, PracticeRecord((), cards, 0)) != ()
    assert len(to_repeat(LIBRARY, PracticeRecord((), cards, 0))) == 1
    assert len(to_repeat(LIBRARY, PracticeRecord((), cards, 99))) == MAX_REPETITIONS


def test_whatever_was_mixed_up_on_a_sheet_of_the_lessons_can_be_repeated() -> None:
    for key in ROW[1:]:
        variant = LIBRARY.variant(key)
        for misconception in sorted(distinguishable_misconceptions(variant))[:4]:
            record = PracticeRecord((), (Card(misconception, variant.code),), 0)
            for repeat in to_repeat(LIBRARY, record):
                assert misconception in distinguishable_misconceptions(repeat.variant)
                assert repeat.variant.code != variant.code


def test_a_code_that_opens_no_sheet_is_passed_over() -> None:
    record = PracticeRecord((), (Card(WIDE, "BBB-BB-BB"),), 0)
    assert to_repeat(LIBRARY, record) == ()
    assert "again" not in states(record).values()
