"""What a record tells of an idea: new, growing, solid, or to look at again."""

from __future__ import annotations

import pytest

from app.practice.ideas import PastSheet, group_states
from app.practice.record import SheetResult
from tests.helpers.shipped import LIBRARY

SHEET = LIBRARY.variant("llama-7b")
COLLAPSES, SCORES = "softmax-collapses", "scores"  # a misconception and its group


def past_sheet(kind: str) -> PastSheet:
    """A sheet that tests COLLAPSES and was right (r), was wrong elsewhere (e), left its group in doubt (d) or held
    it.
    """
    held = (COLLAPSES,) if kind in "ha" else ("input-sliced",) if kind == "e" else ()
    result = SheetResult(SHEET.code, kind == "r", held, (SCORES,) if kind == "d" else ())
    return PastSheet(result, SHEET, frozenset() if kind == "a" else frozenset({COLLAPSES}))


@pytest.mark.parametrize(
    ("sheets", "state"),
    [
        *(("", "new"), ("r", "growing"), ("rr", "growing"), ("rrr", "solid"), ("rerer", "solid")),
        *(("eee", "growing"), ("rre", "growing"), ("d", "growing"), ("dd", "again"), ("drr", "growing")),
        *(("rrrd", "growing"), ("rrrdr", "growing"), ("rrrdrrr", "solid"), ("rrrdd", "again")),
        *(("rrrh", "again"), ("rrrhe", "growing"), ("rrrhrr", "growing"), ("rrrhrrr", "solid")),
        *(("rrra", "again"), ("rrrar", "growing"), ("rrrarrr", "solid")),
    ],
)
def test_an_idea_is_solid_only_after_three_right_sheets_since_it_was_last_missed(sheets: str, state: str) -> None:
    assert group_states([past_sheet(kind) for kind in sheets])[SCORES] == state
