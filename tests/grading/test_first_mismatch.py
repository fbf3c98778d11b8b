"""The first link of a student's own shapes that does not fit, said in words: worked by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading.grade import grade
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from tests.helpers.answer_keys import LLAMA
from tests.helpers.own_sheets import with_own_worksheet
from tests.helpers.shipped import IN_SYMBOLS, LIBRARY

# Not ViT and Whisper, which read only one number of tokens.
OF_ANY_LENGTH = [
    variant
    for variant in map(LIBRARY.variant, LIBRARY.worksheets)
    if variant.architecture.fixed_tokens is None and not variant.problem.case  # which some lengths hide
]


def first_mismatch(variant: Variant, answers: dict[str, int]) -> object:
    return grade(variant, {box: str(size) for box, size in answers.items()}).as_json()["first_mismatch"]


def test_a_right_sheet_has_no_break(library: Library) -> None:
    variant = library.variant("llama-7b")
    assert first_mismatch(variant, LLAMA) is None
    assert first_mismatch(variant, {}) is None
    assert first_mismatch(variant, LLAMA | {"queries.columns": 4096, "keys.columns": 4096}) is None


def test_wide_keys_are_named_with_the_queries_they_should_meet(library: Library) -> None:
    mismatch = first_mismatch(library.variant("llama-7b"), {"queries.columns": 128, "keys.columns": 4096})
    assert isinstance(mismatch, dict)
    assert (mismatch["at"], mismatch["left"], mismatch["right"]) == ("scores", "queries.columns", "keys.columns")
    assert "“Queries” has 128 columns but “Keys” has 4096 columns" in mismatch["message"]


def test_the_first_in_order_of_computation_is_named(library: Library) -> None:
    mismatch = first_mismatch(library.variant("llama-7b"), LLAMA | {"input.rows": 1, "keys.columns": 4096})
    assert isinstance(mismatch, dict)
    assert (mismatch["at"], mismatch["left"], mismatch["right"]) == ("queries", "input.rows", "queries.rows")
    assert "has 1 row but" in mismatch["message"]


def test_a_row_left_out_is_named_by_the_box_it_comes_from(library: Library) -> None:
    mismatch = first_mismatch(library.variant("llama-7b"), LLAMA | {"output.rows": 90})
    assert isinstance(mismatch, dict)
    assert (mismatch["at"], mismatch["left"], mismatch["right"]) == ("output", "weights.rows", "output.rows")


@pytest.mark.parametrize("worksheet", [key for key, sheet in LIBRARY.worksheets.items() if "dimensions" in sheet.topic])
def test_dimensions_that_no_equation_on_the_sheet_joins_are_not_compared(worksheet: str) -> None:
    variant = LIBRARY.variant(worksheet)
    right = {str(blank): variant.written_answer(blank) for blank in variant.blanks}
    for tensor in {blank.tensor for blank in variant.blanks}:
        sides = [str(blank) for blank in variant.blanks if blank.tensor == tensor]
        for box, other in pairwise(sides):
            mismatch = grade(variant, {**right, box: right[other], other: right[box]}).first_mismatch
            if mismatch is None or " · " in mismatch.message:  # a product of sides that are merged
                continue
            both = {mismatch.left, mismatch.right}
            is_one_dimension = len({variant.column_of(blank) for blank in both}) == 1
            groups = [set(group) for groups in variant.table.equal_sides.values() for group in groups]
            assert is_one_dimension or any(both <= group for group in groups), mismatch.message
    if worksheet == "three-dimensions-llama-7b":
        found = first_mismatch(variant, {"queries.rows": 100, "keys_by_head.dim1": 128})
        assert isinstance(found, dict)
        assert prose.size_in_words(variant, "N") in found["message"]


def mixed(variant: Variant) -> int:
    """How wide mixtures of values are before any projection: one head's, or all heads' of a layer side by side."""
    s = variant.sizes
    return s["H"] * s["d_v"] if TOPICS[variant.worksheet.topic].subject == "layer" else s["d_v"]


ADDED = [
    variant
    for variant in map(LIBRARY.variant, LIBRARY.worksheets)
    if {"input", "output"} <= set(variant.worksheet.rows) and mixed(variant) != variant.sizes["d"]
]


@pytest.mark.parametrize("variant", ADDED, ids=lambda variant: variant.worksheet.key)
def test_without_the_projection_back_the_output_cannot_be_added(variant: Variant) -> None:
    left, right = Blank("input", "columns"), Blank("output", "columns")
    answers = {str(blank): variant.written_answer(blank) for blank in variant.blanks}
    wrong = "d/h" if variant.worksheet.answers == "letters" else str(mixed(variant))
    report = grade(variant, answers | {str(right): wrong})
    assert report.first_mismatch is not None
    mismatch = report.first_mismatch
    assert (mismatch.at, mismatch.left, mismatch.right) == ("output", left, right)
    assert "cannot be added" in mismatch.message


def sums(variant: Variant) -> list[tuple[str, str]]:
    """The tensors of a sheet that add two of its rows, each with the second one."""
    tensors = [tensor for tensor in variant.table.activations if tensor.made_by and not tensor.made_by.broadcasts]
    made = [(tensor.key, tensor.made_by.operands) for tensor in tensors if tensor.made_by]
    return [
        (key, operands[1])
        for key, operands in made
        if " + " in variant.table.formula(key) and len(operands) == 2 and set(operands) <= variant.problem.asked
    ]


def of_every_model() -> list[Variant]:
    """Every shipped worksheet, in numbers and in symbols, and one that asks for the scores and the mask that is added
    to them, with every model that it can have.
    """
    added = with_own_worksheet(LIBRARY, "softmax-of-a-model", rows=("scores", "mask", "masked"))
    return [
        added.variant(sheet, model)
        for sheet in (*added.worksheets, *IN_SYMBOLS, "mine~symbols")
        for model in LIBRARY.models
        if not added.refusal(sheet, model)
    ]


def test_a_sum_that_breaks_is_said_by_what_is_added() -> None:
    kinds = set()
    for variant, result, right in [(sheet, *each) for sheet in of_every_model() for each in sums(sheet)]:
        side = Blank(right, "columns")
        letters = variant.worksheet.answers == "letters"
        answers = {str(blank): variant.written_answer(blank) for blank in variant.blanks}
        wrong = "7*d" if letters else str(7 * variant.answer(side))
        mismatch = grade(variant, answers | {str(side): wrong}).first_mismatch
        assert mismatch is not None
        if mismatch.at != result:  # a product that makes the summand breaks first
            continue
        is_mask = right == "mask"
        assert ("residual" in mismatch.message) != is_mask, mismatch.message
        assert ("each score" in mismatch.message) == is_mask, mismatch.message
        assert f"“{variant.row_name(right)}”" in mismatch.message
        kinds.add((variant.worksheet.topic, is_mask, letters))
    assert {(topic, is_mask) for topic, is_mask, _ in kinds} == {("scale-mask-softmax", True), ("whole-model", False)}
    assert {letters for *_, letters in kinds} == {False, True}


def test_a_sum_is_named_by_what_was_asked(library: Library) -> None:
    mismatch = first_mismatch(library.variant("decode-gpt2"), {"queries.rows": 1, "output.rows": 5})
    assert isinstance(mismatch, dict)
    assert (mismatch["left"], mismatch["right"]) == ("queries.rows", "output.rows")
    assert "cannot be added" not in mismatch["message"]


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_no_key_has_a_break(library: Library, key: str) -> None:
    variant = library.variant(key)
    assert first_mismatch(variant, dict(variant.key)) is None


@given(st.data())
def test_the_break_is_computed_from_what_was_typed_alone(data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from(OF_ANY_LENGTH))
    boxes = {str(blank): st.integers(1, 3) for blank in variant.blanks}
    answers = data.draw(st.fixed_dictionaries({}, optional=boxes))
    mismatch = first_mismatch(variant, answers)
    assert first_mismatch(LIBRARY.variant(variant.worksheet.key, tokens=64), answers) == mismatch
    if isinstance(mismatch, dict):
        is_product = " · " in mismatch["message"]  # for the sides that are merged into one
        assert is_product or answers[mismatch["left"]] != answers[mismatch["right"]]
