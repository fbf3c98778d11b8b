"""The rows of the bank: a typo is refused, and each row can be shown with some model."""

from __future__ import annotations

from typing import Any

import pytest

from app.bugs.bank import BELIEFS, BUGS, BankError, Bug
from app.bugs.case import REASONS_ASKED, bug_case
from app.bugs.sizes import BugError
from app.misconceptions.catalogue import MISCONCEPTIONS
from tests.helpers.shipped import LIBRARY, MODELS

RIGHT_ROW: dict[str, Any] = {
    "key": "softmax-over-batch",
    "program_key": "layer",
    "line": "A",
    "wrong": "A = S.softmax(dim=0)",
    "loud": False,
    "repaired": "A = S.softmax(dim=«-1»)",
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"program_key": "head"}, "there is no program “head”"),
        ({"line": "weights"}, "the program “layer” has no line “weights”"),
        ({"wrong": "A = S.softmax(dim=-1)"}, "its wrong line is the right one"),
        ({"wrong": "A = S.softmax(dim=0"}, "is not one line of Python"),
        ({"wrong": "S.softmax(dim=0)"}, "assigns nothing"),
        ({"repaired": "A = S.softmax(dim=-1)"}, "its repair has no blanks"),
        ({"repaired": "A = S.softmax(dim=«H+*d_h»)"}, "H+*d_h"),
        ({"beliefs": ("softmax-drops-dimensions",)}, "there is no belief “softmax-drops-dimensions”"),
    ],
)
def test_a_typo_in_a_row_is_refused(change: dict[str, Any], problem: str) -> None:
    Bug(**RIGHT_ROW)
    with pytest.raises(BankError, match=r"^The bug “softmax-over-batch”: ") as refused:
        Bug(**RIGHT_ROW | change)
    assert problem in str(refused.value)


def test_what_rows_name_is_in_the_catalogue_and_in_the_wording() -> None:
    assert {*BELIEFS.values()} - {""} <= {row.key for row in MISCONCEPTIONS}
    sentences = [LIBRARY.wording.bugs.reason(key) for key in (*BUGS, *BELIEFS)]
    assert len({*sentences}) > len(sentences) - 3  # cached or not, tiled keys are the same mistake


def test_each_bug_can_be_shown_with_some_model() -> None:
    shown = set[str]()
    for model in ("qwen2.5-0.5b", "qwen3-4b", "gpt2", "bert-base", "bart-base"):
        for key in BUGS.keys() - shown:
            try:
                case = bug_case(BUGS[key], MODELS[model], 10, 3)
            except BugError:
                continue
            shown.add(key)
            assert len(case.lines) <= 12
            assert len({LIBRARY.wording.bugs.reason(reason) for reason in case.reasons}) == REASONS_ASKED, key
            assert case.reasons[0] == key
    assert shown == BUGS.keys()
