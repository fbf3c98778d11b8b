"""What comes next in practice: harder after success, back to what was missed, and a sheet whatever the record says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, MISCONCEPTIONS, group_of
from app.practice.ideas import SHEETS_TO_SOLID, GroupState, distinguishable_misconceptions
from app.practice.levels import practice_levels
from app.practice.record import (
    PracticeRecord,
    SheetResult,
    read_record,
    sheet_result,
    write_record,
)
from app.practice.scheduler import NextSheet, Practice, next_sheet, record_with_sheet
from app.sheets.library import Library
from app.sheets.variant import Variant
from simulation.beginners import typed_texts, writable_sheets
from simulation.misconception_students import right_sheet
from tests.helpers.practice_records import LEVELS, STARTS, records
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

SHOWN = [each.key for each in MISCONCEPTIONS if each.predictions]
LADDER = [level.key for level in practice_levels(LIBRARY) for _ in level.steps]  # the levels of a student always right


def group_states(record: PracticeRecord) -> dict[str, GroupState]:
    """The state of every group by this record."""
    return Practice(LIBRARY, record).groups


def with_misconception(misconception: str) -> Callable[[Variant], dict[str, str]]:
    """A student who fills in every sheet by one misconception, where it shows."""
    return lambda variant: typed_texts(variant, dict(writable_sheets(variant)).get(misconception, right_sheet(variant)))


def answer_right(variant: Variant) -> dict[str, str]:
    """A student who is always right."""
    return typed_texts(variant, right_sheet(variant))


def on_level(level: str, start: int = 3) -> PracticeRecord:
    """A record on a level, with all those passed that come before it."""
    return PracticeRecord(start, level=level, passed=tuple(LEVELS[: LEVELS.index(level)]))


def practise(
    record: PracticeRecord, student: Callable[[Variant], dict[str, str]], sheets: int
) -> Iterator[tuple[NextSheet, SheetResult, PracticeRecord]]:
    """So many sheets in a row: each with what it came to and the record after it."""
    for _ in range(sheets):
        coming = next_sheet(LIBRARY, record)
        result = sheet_result(coming.variant, student(coming.variant))
        assert result is not None
        record = Practice(LIBRARY, record).after(result)
        yield coming, result, record


def test_failing_again_and_again_is_not_learning() -> None:
    def guess(variant: Variant) -> dict[str, str]:
        return {box: str(7 + at) for at, box in enumerate(variant.blanks_by_name)}

    states = [group_states(record)["scores"] for _, _, record in practise(PracticeRecord(4), guess, 5)]
    assert states[1:] == ["again"] * 4


def test_the_first_sheet_is_first_steps_and_the_next_one_head_in_numbers() -> None:
    [(first, _, record)] = practise(PracticeRecord(1), answer_right, 1)
    assert (first.reason, first.variant.worksheet.topic) == ("first", "first-steps")
    coming = next_sheet(LIBRARY, record)
    assert (coming.reason, coming.variant.worksheet.topic, len(coming.variant.rows)) == ("step", "single-head", 7)


def test_a_sheet_in_steps_counts_as_it_was_in_the_end() -> None:
    variant = next_sheet(LIBRARY, PracticeRecord(1)).variant
    right = answer_right(variant)
    wrong = with_misconception("head-as-wide-as-model")(variant)
    record = record_with_sheet(LIBRARY, PracticeRecord(1), variant, [right, wrong])
    assert (record.results, record.level) == ((SheetResult(variant.code, True),), "single-head")


@given(records)
def test_any_record_gives_a_sheet_and_the_same_one_again(record: PracticeRecord) -> None:
    coming = next_sheet(LIBRARY, record)
    assert coming.variant.blanks
    assert coming.variant.code not in [result.code for result in record.results[-1:]]
    assert next_sheet(LIBRARY, read_record(write_record(record))) == coming
    assert set(group_states(record)) == set(MISCONCEPTION_GROUPS)


@pytest.mark.slow
@given(STARTS)
@settings(max_examples=10)
def test_a_student_who_is_right_climbs_to_the_last_level(start: int) -> None:
    steps = list(practise(PracticeRecord(start), answer_right, len(LADDER) + 12))
    assert [coming.level.key for coming, _, _ in steps[: len(LADDER)]] == LADDER
    assert Practice(LIBRARY, steps[len(LADDER) - 1][2]).all_passed
    rest = [coming for coming, _, _ in steps[len(LADDER) :]]
    assert {coming.reason for coming in rest} == {"mixed"}
    assert len({coming.level.key for coming in rest}) > 3
    codes = [coming.variant.code for coming, _, _ in steps]
    assert all(one != other for one, other in pairwise(codes))
    assert len(set(codes[: len(LADDER)])) == len(LADDER)


def test_a_student_who_is_right_makes_every_group_solid() -> None:
    stages = [group_states(record) for _, _, record in practise(PracticeRecord(5), answer_right, 4 * len(LADDER))]
    assert set(group_states(PracticeRecord(5)).values()) == {"new"}
    assert not any("again" in stage.values() for stage in stages)
    assert stages[0]["scores"] == "growing"
    solid = [stage["scores"] == "solid" for stage in stages]
    assert SHEETS_TO_SOLID - 1 <= solid.index(True) < 2 * SHEETS_TO_SOLID
    assert all(solid[solid.index(True) :])
    assert set(stages[-1].values()) == {"solid"}


@pytest.mark.parametrize("misconception", one_in(12, SHOWN))
def test_who_always_holds_a_misconception_meets_it_again_and_climbs_no_further(misconception: str) -> None:
    for start in range(11, 31):
        student = with_misconception(misconception)
        climb = practise(on_level("single-head", start), student, 4 * len(LEVELS) + 8)
        steps = list[tuple[NextSheet, SheetResult, PracticeRecord]]()
        while not (steps and misconception in steps[-1][1].held) and (step := next(climb, None)):
            steps.append(step)
        if misconception in steps[-1][1].held:
            steps += islice(climb, 12)
            break
    named = [at for at, (_, result, _) in enumerate(steps) if misconception in result.held]
    assert named, "the ladder shows every misconception"
    for at in named[:-2]:
        assert any(
            misconception in distinguishable_misconceptions(coming.variant) for coming, _, _ in steps[at + 1 : at + 3]
        )
    assert group_states(steps[-1][2])[group_of(misconception)] == "again"
    until_right = takewhile(lambda step: not step[1].right, steps[named[0] :])
    assert len({record.level for _, _, record in until_right}) == 1


def test_a_full_window_is_practised() -> None:
    [level] = [level for level in practice_levels(LIBRARY) if level.key == "decode-step"]
    sheets = [LIBRARY.seeded(key, seed) for key in level.dealt for seed in range(3)]
    full = [sheet for sheet in sheets if sheet.architecture.window and sheet.tokens > sheet.architecture.window]
    assert len({sheet.tokens for sheet in full}) == 3
    for sheet in full:
        assert "window-forgotten" in distinguishable_misconceptions(sheet)


@given(STARTS, st.sampled_from(SHOWN), st.sampled_from(LEVELS))
def test_a_misconception_comes_back_within_two_sheets_and_is_made_good(
    start: int, misconception: str, level: str
) -> None:
    first, result, record = next(practise(on_level(level, start), with_misconception(misconception), 1))
    if misconception not in result.held:
        return
    following = list(practise(record, answer_right, 3))
    shown = [misconception in distinguishable_misconceptions(coming.variant) for coming, _, _ in following[:2]]
    assert any(shown)
    assert following[shown.index(True)][0].reason == "back"
    assert group_of(misconception) in following[shown.index(True)][0].groups
    assert group_states(following[-1][2])[group_of(misconception)] != "again"
    assert first.variant.code not in [coming.variant.code for coming, _, _ in following]


@given(STARTS, st.sampled_from(LEVELS), st.lists(st.sampled_from(["", *SHOWN]), min_size=8, max_size=16))
def test_whatever_is_missed_comes_back_soon(start: int, level: str, held: list[str]) -> None:
    record, steps = on_level(level, start), list[tuple[NextSheet, SheetResult, int]]()
    for misconception in held:
        coming, result, record = next(practise(record, with_misconception(misconception), 1))
        waiting = Practice(LIBRARY, record).waiting.keys() - set(result.held)
        steps.append((coming, result, len(waiting)))
    for at, (_, result, others) in enumerate(steps):
        following = steps[at + 1 : at + 3 + others]
        if len(following) == 2 + others:
            assert set(result.held) <= frozenset().union(
                *(distinguishable_misconceptions(coming.variant) for coming, _, _ in following)
            )


def test_a_level_that_was_chosen_is_what_comes_even_before_what_was_missed() -> None:
    record = replace(on_level("costs"), level="decode-step")
    *_, (_, result, record) = practise(record, with_misconception("decode-step-square"), 1)
    assert result.held == ("decode-step-square",)
    record = record.at_level("costs")
    coming, _, record = next(practise(record, answer_right, 1))
    assert coming.level.key == "costs"
    coming, _, record = next(practise(record, answer_right, 1))
    assert (coming.level.topic, coming.reason, coming.groups) == ("decode-step", "back", ("cache",))
    assert next_sheet(LIBRARY, record).level.key == LEVELS[LEVELS.index("costs") + 1]


def test_the_first_readable_answer_to_each_box_counts() -> None:
    record = on_level("single-head")
    variant = next_sheet(LIBRARY, record).variant
    right, unread = answer_right(variant), dict.fromkeys(answer_right(variant), "?")
    wrong = dict.fromkeys(right, "999983")

    def results(of: PracticeRecord, *newest_first: dict[str, str]) -> list[bool]:
        return [result.right for result in record_with_sheet(LIBRARY, of, variant, newest_first).results]

    assert results(record, right, unread) == [True]
    assert results(record, right, wrong) == [False]
    known = record_with_sheet(LIBRARY, record, variant, [wrong])
    assert results(known, right, wrong) == [False, True]
    assert record_with_sheet(LIBRARY, record, variant, [unread]) == record.after_skipping()


def test_a_sheet_that_was_skipped_counts_for_nothing() -> None:
    record = PracticeRecord(3)
    before = next_sheet(LIBRARY, record)
    record = record.after_skipping()
    assert next_sheet(LIBRARY, record).variant != before.variant
    assert next_sheet(LIBRARY, record).level == before.level
    assert set(group_states(record).values()) == {"new"}


def test_a_level_is_passed_once_all_its_sheets_were_right_and_nothing_missed_on_it_waits() -> None:
    record = on_level("single-head", 8)
    students = (answer_right, with_misconception("softmax-collapses"), answer_right)
    levels = []
    for student in students:
        *_, (_, _, record) = practise(record, student, 1)
        levels.append(record.level)
    assert levels == ["single-head", "single-head", "whole-model"]


def test_what_was_answered_says_which_groups_are_open() -> None:
    variant = LIBRARY.variant("llama-7b")
    truth = {box: str(size) for box, size in right_sheet(variant).items()}
    assert sheet_result(variant, {}) is None
    assert sheet_result(variant, {"queries.rows": "?"}) is None
    assert sheet_result(variant, truth) == SheetResult(variant.code, True)
    mistaken = sheet_result(variant, {**truth, "weights.columns": "1"})
    assert mistaken == SheetResult(variant.code, False, ("softmax-collapses",), ())
    strange = sheet_result(variant, {**truth, "output.rows": "77", "output.columns": "5"})
    assert strange == SheetResult(variant.code, False, (), ("back",))
    begun = sheet_result(variant, {"input.rows": "100", "input.columns": "4096"})
    assert begun is not None
    assert (begun.right, begun.held) == (False, ())
    assert {"scores", "back"} <= set(begun.unexplained_groups)


def test_a_code_that_opens_nothing_is_left_out() -> None:
    record = PracticeRecord(3, results=(SheetResult("BBB-BB-BB", False, ("softmax-collapses",)),))
    assert next_sheet(LIBRARY, record) == next_sheet(LIBRARY, replace(record, results=()))


def test_a_library_with_one_worksheet_gives_it_again() -> None:
    one = Library({"count-mixtral-8x7b": LIBRARY.worksheets["count-mixtral-8x7b"]}, LIBRARY.models, LIBRARY.wording)
    only = next_sheet(one, PracticeRecord(1)).variant
    assert next_sheet(one, Practice(one, PracticeRecord(1)).after(SheetResult(only.code, True))).variant == only
