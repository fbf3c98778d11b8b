"""What may be done on a sheet at one moment; tests/classes/test_sheet_actions.py tries every moment and policy."""

from __future__ import annotations

from typing import Any

import pytest

from app.activities.activity import Policies
from app.activities.rules import PRACTICE_RULES, Rules


def rules(*, writable: bool = True, phase: Any = "open", **policies: Any) -> Rules:
    """The rules at a moment in that phase."""
    return Rules(Policies(**policies), phase, accepts=writable, is_writable=writable, is_late=False)


@pytest.mark.parametrize(
    ("allowed", "attempts", "left", "locked"),
    [(0, 99, None, False), (2, 0, 2, False), (2, 1, 1, False), (2, 2, 0, True), (1, 3, 0, True)],
)
def test_boxes_are_locked_once_no_attempt_is_left(
    allowed: int, attempts: int, left: int | None, *, locked: bool
) -> None:
    open_rules, over = rules(max_attempts=allowed), rules(max_attempts=allowed, writable=False)
    assert (open_rules.attempts_left(attempts), open_rules.is_locked(attempts)) == (left, locked)
    assert open_rules.can_hand_in(attempts, handed_in=False)
    assert open_rules.can_hand_in(attempts, handed_in=True) != locked
    assert over.is_locked(attempts)
    assert not over.can_hand_in(attempts, handed_in=False)


def test_practice_marks_at_once_as_often_as_asked() -> None:
    assert PRACTICE_RULES.attempts_left(1000) is None
    assert (PRACTICE_RULES.can_check, PRACTICE_RULES.may_run_first, PRACTICE_RULES.shows_answers) == (True, True, False)
