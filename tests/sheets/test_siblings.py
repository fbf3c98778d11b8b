"""A sheet like another one asks the same with other numbers, and tells none of its answers."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import pytest

from app.sheets.siblings import rows_to_tell, sibling
from app.sheets.variant import Variant
from app.sheets.worksheet import Answers
from app.topics.registry import TOPICS
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import LIBRARY, UNLIKE_MODELS
from tests.helpers.slow import one_in


def check_tells_nothing(variant: Variant, other: Variant) -> None:
    """A told answer that depends on a size, by its symbols, is another number than in the same box of the sheet."""
    for row in rows_to_tell(variant, other):
        for box, blank in other.blanks_by_name.items():
            if blank.tensor == row and box in variant.key and variant.expression(blank).symbols:
                assert other.key[box] != variant.key[box], (variant.code, other.code, box)


# No other model of the library has their rows, and no other length changes their answers.
WITHOUT_SIBLING = {"loss-vit-base"}


@pytest.mark.parametrize(
    "key", one_in(8, [key for key, sheet in LIBRARY.worksheets.items() if not TOPICS[sheet.topic].bugs])
)
def test_a_sheet_like_another_one_has_the_same_rows(key: str) -> None:
    variant = LIBRARY.variant(key)
    for seed in range(1, 4):
        other = sibling(variant, LIBRARY.models, seed, "numbers")
        if key in WITHOUT_SIBLING:
            assert other is None
            continue
        assert other is not None
        assert [row.fields for row in other.rows] == [row.fields for row in variant.rows]
        assert [row.key for row in other.rows] == [row.key for row in variant.rows]
        assert rows_to_tell(variant, other)
        check_tells_nothing(variant, other)
        for row in other.rows:
            for one, two in combinations(row.blanks, 2):
                canonical = [other.symbols.canonical(other.expression(blank)) for blank in (one, two)]
                assert canonical[0] == canonical[1] or other.answer(one) != other.answer(two), (seed, other.code)


def test_no_sheet_is_like_one_about_a_bug() -> None:
    assert sibling(LIBRARY.variant("bug-layer"), LIBRARY.models, 1, "numbers") is None


@pytest.mark.slow
@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_no_sibling_tells_an_answer_of_any_sheet(key: str) -> None:
    for model in UNLIKE_MODELS[::6]:
        if LIBRARY.refusal(key, model) is None:
            variant = LIBRARY.variant(key, model)
            for answers in get_args(Answers):
                if other := sibling(variant, LIBRARY.models, 1, answers):
                    check_tells_nothing(variant, other)


def test_the_classic_sheet_is_told_whole_in_other_numbers_with_every_seed() -> None:
    variant = LIBRARY.variant("llama-7b")
    others = [other for seed in range(1, 9) if (other := sibling(variant, LIBRARY.models, seed, "numbers"))]
    assert all(not {100, 4096, 128} & set(other.key.values()) for other in others)
    assert len({other.code for other in others}) > 1
    assert [sibling(variant, LIBRARY.models, seed, "numbers") for seed in range(1, 9)] == others


def test_a_full_window_has_a_sibling_with_another_full_window() -> None:
    variant = LIBRARY.variant("decode-phi-3-mini-4k")
    for seed in range(1, 4):
        other = sibling(variant, LIBRARY.models, seed, "numbers")
        assert other is not None
        assert other.table.key == variant.table.key == "windowed-decode-step"
        assert rows_to_tell(variant, other) == variant.problem.rows


def test_what_an_author_wrote_about_a_model_is_left_out() -> None:
    variant = own_sheet(LIBRARY, introduction="LLaMA has 32 heads.", tokens=77)
    other = sibling(variant, LIBRARY.models, 1, "numbers")
    assert other is not None
    assert other.worksheet.introduction == ""


def test_without_models_there_is_none() -> None:
    variant = LIBRARY.variant("head-parameters-gpt2")
    assert sibling(variant, {}, 1, "numbers") is None
    assert sibling(variant, {"gpt2": LIBRARY.models["gpt2"]}, 1, "numbers") is None
