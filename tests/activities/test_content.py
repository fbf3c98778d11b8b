"""What an activity asks, and under what its answers are stored."""

from __future__ import annotations

from app.store import (
    FrozenWorksheet,
)
from tests.helpers.stored_class import SHEET


def test_a_sheet_is_the_same_as_long_as_its_questions_are() -> None:
    assert FrozenWorksheet({**SHEET, "title": "Heads"}).sheet_key == FrozenWorksheet(SHEET).sheet_key
    assert FrozenWorksheet({**SHEET, "tokens": 50}).sheet_key != FrozenWorksheet(SHEET).sheet_key
