"""What a mistake costs: one box. Students are worked out by hand or simulated, and none of them asks the app."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading.causes import find_causes
from app.grading.grade import Report, grade
from app.sheets.variant import Variant
from simulation.misconception_students import misconception_sheets
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

IN_NUMBERS = [key for key, worksheet in LIBRARY.worksheets.items() if worksheet.answers == "numbers"]
Student = Callable[[dict[str, int]], dict[str, int]]


def marked(variant: Variant, answers: dict[str, int]) -> Report:
    return grade(variant, {box: str(number) for box, number in answers.items()})


def lost_boxes(variant: Variant, answers: dict[str, int]) -> int:
    values = {blank: answers[box] for box, blank in variant.blanks_by_name.items() if box in answers}
    return len(find_causes(variant.problem, values))


def everything_transposed(right: dict[str, int]) -> dict[str, int]:
    other = {"rows": "columns", "columns": "rows", "count": "count"}
    return {box: right[f"{box.split('.')[0]}.{other[box.split('.')[1]]}"] for box in right}


def macs(right: dict[str, int]) -> dict[str, int]:
    """A multiplication and an addition are counted as one operation, in all that LLaMA 7B computes."""
    return {box: n // 2 if box.endswith("_flops.count") else n for box, n in right.items()}


def written(number: int, *boxes: str) -> Student:
    return lambda right: right | dict.fromkeys(boxes, number)


def ninety_tokens(right: dict[str, int]) -> dict[str, int]:
    return {box: 90 if number == 100 else number for box, number in right.items()}


@pytest.mark.parametrize(
    ("worksheet", "model", "student", "wrong"),
    [
        ("llama-7b", None, everything_transposed, 10),
        ("costs-llama-7b", None, macs, 6),
        ("matrices-llama-7b", "mistral-7b", everything_transposed, 10),
        ("llama-7b", None, written(4096, "queries.columns", "keys.columns", "values.columns"), 3),
        ("llama-7b", None, ninety_tokens, 9),
    ],
    ids=["tokens as columns", "MACs for FLOPs", "PyTorch’s stored layout", "Q K V as wide as the model", "90 tokens"],
)
def test_one_idea_held_throughout_costs_one_box(
    worksheet: str, model: str | None, student: Student, wrong: int
) -> None:
    variant = LIBRARY.variant(worksheet, model)
    answers = student(dict(variant.key))
    first = next(blank for box, blank in variant.blanks_by_name.items() if answers[box] != variant.key[box])
    report = marked(variant, answers)
    assert report.boxes - report.right == wrong
    assert (report.out_of - report.score, report.follows) == (1, wrong - 1)
    assert report.marks[first].kind == "wrong"
    strict = replace(variant, worksheet=replace(variant.worksheet, marking="boxes"))
    assert marked(strict, answers).score == report.right
    assert marked(strict, answers).losses == ()


def test_the_page_says_what_was_lost_and_why() -> None:
    variant = LIBRARY.variant("llama-7b")
    (named,) = marked(variant, everything_transposed(dict(variant.key))).losses
    assert variant.wording.misconception_name("columns-are-tokens") in named
    assert "9" in named
    (unnamed,) = marked(variant, ninety_tokens(dict(variant.key))).losses
    assert variant.row_name("input") in unnamed
    assert marked(variant, dict(variant.key) | {"input.rows": 90}).losses == ()


@pytest.mark.parametrize("worksheet", one_in(3, IN_NUMBERS))
def test_any_misconception_costs_one_box_and_correcting_one_costs_nothing(worksheet: str) -> None:
    variant = LIBRARY.variant(worksheet)
    right, chance = dict(variant.key), random.Random(worksheet)  # noqa: S311 - a simulated student
    for key, sheet in misconception_sheets(variant):
        assert lost_boxes(variant, sheet) == 1, key
        assert all(fewer <= before for before, fewer in losses_while_correcting(variant, sheet, right, chance)), key


@pytest.mark.parametrize("worksheet", one_in(3, IN_NUMBERS))
def test_correcting_one_of_two_misconceptions_costs_nothing(worksheet: str) -> None:
    variant = LIBRARY.variant(worksheet)
    right, chance = dict(variant.key), random.Random(worksheet)  # noqa: S311 - a simulated student
    sheets = [sheet for _key, sheet in misconception_sheets(variant)]
    for _ in range(10):
        first, second = chance.choice(sheets), chance.choice(sheets)
        both = {box: second[box] if first[box] == number else first[box] for box, number in right.items()}
        assert all(fewer <= before for before, fewer in losses_while_correcting(variant, both, right, chance))


def losses_while_correcting(
    variant: Variant, answers: dict[str, int], right: dict[str, int], chance: random.Random
) -> Iterator[tuple[int, int]]:
    """Yield how many boxes are lost before and after each correction, until everything is right."""
    wrong = [box for box in right if answers[box] != right[box]]
    before = lost_boxes(variant, answers)
    for box in chance.sample(wrong, len(wrong)):
        answers = answers | {box: right[box]}
        after = lost_boxes(variant, answers)
        yield before, after
        before = after
    assert before == 0


@pytest.mark.parametrize("worksheet", one_in(3, IN_NUMBERS))
def test_guesses_earn_little_by_following(worksheet: str) -> None:
    variant = LIBRARY.variant(worksheet)
    right, chance = dict(variant.key), random.Random(worksheet)  # noqa: S311 - a simulated student
    numbers = sorted(set(right.values()))
    for _ in range(8):
        assert marked(variant, {box: chance.randint(1, 10_000) for box in right}).follows == 0
    following = sum(marked(variant, {box: chance.choice(numbers) for box in right}).follows for _ in range(60))
    assert following <= 60 * max(1, len(right) / 6)


def test_a_typo_on_a_sheet_with_many_mistakes_costs_one_box() -> None:
    variant, scores = LIBRARY.variant("llama-7b"), list[int]()
    answers = ninety_tokens(dict(variant.key))
    wide = dict.fromkeys(("queries.columns", "keys.columns", "values.columns"), 4096)
    for more in ({}, {"output.columns": 128}, wide, {"input.columns": 4069}):
        answers |= more
        scores.append(marked(variant, answers).score)
    assert scores == [13, 12, 11, 10]


@pytest.mark.parametrize("worksheet", one_in(3, IN_NUMBERS))
def test_a_typo_costs_one_box_while_something_is_right(worksheet: str) -> None:
    variant, chance = LIBRARY.variant(worksheet), random.Random(worksheet)  # noqa: S311 - simulated students
    right = dict(variant.key)
    misread = chance.choice(sorted(set(right.values())))
    students = [
        right,
        {box: number + 7 if number == misread else number for box, number in right.items()},
        *(sheet for _key, sheet in misconception_sheets(variant)[:2]),
    ]
    for answers in students:
        still_right = [box for box, number in right.items() if answers[box] == number]
        lost = lost_boxes(variant, answers)
        for box in chance.sample(still_right, len(still_right))[1:7]:  # all but one
            numbers = count(10 * right[box] + chance.randint(1, 9))
            typo = next(number for number in numbers if number not in (*answers.values(), *right.values()))
            answers = answers | {box: typo}
            lost, before = lost_boxes(variant, answers), lost
            assert lost <= before + 1


def test_a_number_in_one_more_wrong_place_costs_one_box() -> None:
    variant = LIBRARY.variant("llama-7b")
    assert marked(variant, ninety_tokens(dict(variant.key)) | {"keys.columns": 90}).score == 12


def test_swapped_sides_are_one_mistake_wherever_they_are_swapped() -> None:
    sheet = LIBRARY.variant("three-dimensions-llama-7b")
    right = dict(sheet.key)
    assert [right[f"keys_by_head.dim{at}"] for at in range(3)] == [32, 100, 128]
    swapped = {"keys_by_head.dim0": 100, "keys_by_head.dim1": 32}
    assert marked(sheet, right | swapped).score == len(right) - 1
    swapped |= {"queries_by_head.dim0": 100, "queries_by_head.dim1": 32}
    assert marked(sheet, right | swapped).score == len(right) - 1


@given(st.data())
def test_points_of_rows_change_nothing_about_corrections(data: st.DataObject) -> None:
    variant = LIBRARY.variant("llama-7b")
    rows = variant.worksheet.rows
    points = {row: data.draw(st.sampled_from([0, 1, 2, 5])) for row in rows}
    variant = replace(variant, worksheet=replace(variant.worksheet, row_points=points))
    right = dict(variant.key)
    answers = {box: data.draw(st.sampled_from([number, number, 90, 2 * number])) for box, number in right.items()}
    score = marked(variant, answers).score
    for box in data.draw(st.permutations([box for box in right if answers[box] != right[box]])):
        answers = answers | {box: right[box]}
        score, before = marked(variant, answers).score, score
        assert score >= before


def test_multiply_adds_in_symbols_cost_one_box() -> None:
    variant = LIBRARY.variant("costs-llama-7b~symbols")
    texts = {str(blank): str(variant.expression(blank)) for blank in variant.blanks}
    halved = {box: f"{text}/2" if box.endswith("_flops.count") else text for box, text in texts.items()}
    report = grade(variant, halved)
    assert (report.boxes - report.right, report.out_of - report.score) == (6, 1)


def test_a_misconception_that_explains_no_box_is_no_cause() -> None:
    variant = LIBRARY.variant("matrices-llama-7b")
    right = {str(blank): str(number) for blank, number in variant.key.items()}
    swapped = {"W_K.count": right["W_up.count"], "W_O.count": right["W_up.count"], "W_up.count": right["W_K.count"]}
    report = grade(variant, right | swapped)
    assert report.score == report.out_of - len(report.causes) == report.out_of - 2
