"""The question on the start page, for 11 tokens with queries and keys of 64 numbers."""

from __future__ import annotations

import numpy as np
import pytest

from app.practice.start_question import judge


@pytest.mark.parametrize("rows", [11, 64, 12])
@pytest.mark.parametrize("columns", [11, 64, 12])
def test_right_is_what_numpy_multiplies_to_tokens_by_tokens(rows: int, columns: int) -> None:
    try:
        is_right = (np.zeros((11, 64)) @ np.zeros((rows, columns))).shape == (11, 11)
    except ValueError:
        is_right = False
    assert (judge(str(rows), str(columns), 11, 64) == "right") == is_right


def test_an_unfinished_answer_is_not_judged() -> None:
    assert judge("64", "", 11, 64) == ""
    assert judge("6", "1", 11, 64, is_typing=True) == ""
    assert judge("6", "1", 11, 64) == "rows"
