"""The levels of practice: their order, what comes before each, and the way of beginners through them."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from typing import Any

import pytest

from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import Confusion, cannot_tell_apart
from app.practice.levels import check_levels, level_after, practice_levels
from app.practice.record import PracticeRecord, SheetResult
from app.practice.scheduler import Practice
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics.registry import LEVELS, TOPICS
from simulation.beginners import Beginner, typed_texts
from simulation.misconception_students import right_sheet
from tests.helpers.shipped import LIBRARY

WALKS = 2_000
BEFORE = {spec.key: set(spec.after) for spec in LEVELS}
SHOWN_ON = {topic: [each.key for each in MISCONCEPTIONS if topic in each.predictions] for topic in TOPICS}


def answers(variant: Variant) -> tuple[str, ...]:
    """The right answers as they are typed."""
    return tuple(typed_texts(variant, right_sheet(variant)).values())


def test_every_topic_has_its_place_and_prerequisites_stand_before_it() -> None:
    order = [spec.key for spec in LEVELS]
    assert order == list(dict.fromkeys(order))
    assert set(TOPICS) <= set(order)
    assert order.index("whole-model") < 3
    for key, before in BEFORE.items():
        assert all(order.index(each) < order.index(key) for each in before), key
    assert {"attention-layer", "decode-step"} <= BEFORE["attention-layer-latent"]


def test_every_step_asks_for_rows_that_a_worksheet_of_its_level_has() -> None:
    for level in (*practice_levels(LIBRARY), *practice_levels(LIBRARY, in_letters=True)):
        spec = next(spec for spec in LEVELS if spec.key == level.key)
        assert len(level.steps) == len(spec.steps), level.key
        sheets = [LIBRARY.worksheet(key) for step in level.steps for key in step.worksheets]
        assert all((sheet.key == sheet.whole) == TOPICS[level.topic].in_steps for sheet in sheets), level.key


def test_no_step_makes_two_misconceptions_alike_that_the_whole_sheet_tells_apart() -> None:
    for level in practice_levels(LIBRARY):
        for step in level.steps:
            for key in step.worksheets:
                whole, cut = LIBRARY.seeded(LIBRARY.worksheet(key).whole, 1), LIBRARY.seeded(key, 1)
                assert alike(cut) <= alike(whole), (level.key, step.rows)


def alike(variant: Variant) -> set[Confusion]:
    """The pairs of misconceptions that fill in this sheet alike."""
    return {pair for pair in cannot_tell_apart(variant.problem) if pair.other}


def test_nobody_meets_a_level_before_what_it_comes_after() -> None:
    levels = practice_levels(LIBRARY)
    present = {level.key for level in levels}
    for seed in range(WALKS):
        chance = random.Random(seed)  # noqa: S311 - so that it can be repeated
        passed, level = set[str](), level_after(levels, (), None)
        while len(passed) < len(levels):
            assert BEFORE[level.key] & present <= passed
            if chance.random() < 0.3:  # somebody jumps, and may then go on from there
                level = chance.choice([each for each in levels if each.is_open(passed)])
                assert BEFORE[level.key] & present <= passed
            passed.add(level.key)
            level = level_after(levels, passed, level)


@pytest.mark.parametrize("seed", range(12))
def test_no_sheet_is_of_a_level_that_is_not_open(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - so that it can be repeated
    record = PracticeRecord(seed)
    for _ in range(25):
        practice = Practice(LIBRARY, record)
        coming = practice.coming
        assert BEFORE[coming.level.key] <= {*record.passed}, coming.level.key
        held = [] if chance.random() < 0.6 else [chance.choice(SHOWN_ON[coming.level.topic])]
        match chance.randrange(6):
            case 0:
                chosen = chance.choice(practice.levels).key
                record = record.at_level(chosen, testing=chance.random() < 0.5)
            case 1:
                record = record.after_skipping()
            case _:
                record = practice.after(SheetResult(coming.variant.code, not held, tuple(held)))


def test_beginners_reach_the_decode_step_within_120_boxes() -> None:
    boxes = list[int]()
    for seed in range(25):
        filled = 0
        for step in Beginner(seed).practise(LIBRARY, 60):
            if step.coming.level.key == "decode-step":
                break
            filled += step.boxes
        boxes.append(filled)
    assert max(boxes) <= 120
    assert statistics.median(boxes) <= 80


@pytest.mark.parametrize("in_letters", [False, True])
def test_no_level_asks_twice_for_the_same_answers(in_letters: bool) -> None:
    record, way = PracticeRecord(2, in_letters=in_letters), list[tuple[str, tuple[str, ...]]]()
    while not Practice(LIBRARY, record).all_passed:
        coming = Practice(LIBRARY, record).coming
        way.append((coming.level.key, answers(coming.variant)))
        record = Practice(LIBRARY, record).after(SheetResult(coming.variant.code, True))
    assert len(set(way)) == len(way)


def test_symbols_are_an_option_of_every_level() -> None:
    numbers, letters = practice_levels(LIBRARY), practice_levels(LIBRARY, in_letters=True)
    assert [level.key for level in numbers] == [level.key for level in letters]
    for one, other in zip(numbers, letters, strict=True):
        assert one.has_both_kinds == (one.topic not in ("first-steps", "find-the-bug"))
        if not one.has_both_kinds:
            continue
        assert {LIBRARY.worksheet(key).answers for key in one.dealt} == {"numbers"}
        assert {LIBRARY.worksheet(key).answers for key in other.dealt} == {"letters"}
        assert "letters" in {LIBRARY.worksheet(key).answers for step in other.steps for key in step.worksheets}


def test_a_level_asks_how_many_tokens_an_image_or_a_recording_makes() -> None:
    level = next(each for each in practice_levels(LIBRARY) if each.key == "bidirectional-head")
    for step in level.steps:
        sheets = [LIBRARY.seeded(key, 1) for key in step.worksheets]
        assert {variant.architecture.input for variant in sheets} == {"text", "image", "sound"}
        asked = [variant for variant in sheets if variant.architecture.fixed_tokens]
        assert all(variant.tokens in variant.problem.answers.values() for variant in asked)
        assert not any(str(variant.tokens) in variant.text.description for variant in asked)


def test_a_library_without_a_level_asks_for_what_that_one_comes_after() -> None:
    of_costs = {"costs-llama-7b": LIBRARY.worksheets["costs-llama-7b"]}
    [costs] = practice_levels(Library(of_costs, LIBRARY.models, LIBRARY.wording))
    assert costs.after == ()
    with_head = {**of_costs, "llama-7b": LIBRARY.worksheets["llama-7b"]}
    _head, costs = practice_levels(Library(with_head, LIBRARY.models, LIBRARY.wording))
    assert costs.after == ("single-head",)


@pytest.mark.parametrize("typo", [{"after": ("single-heads",)}, {"topic": "single-heads"}])
def test_a_typo_in_a_level_is_found_when_the_module_is_loaded(typo: dict[str, Any]) -> None:
    first, second, *_ = LEVELS
    with pytest.raises(ValueError, match="single-heads"):
        check_levels((first, replace(second, **typo)))
