"""Which policies an activity can have; its times and phases are in tests/store/test_activities.py."""

from __future__ import annotations

import pytest

from app.store import (
    Policies,
    PoliciesError,
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"variants": "x"},
        {"feedback": ""},
        {"max_attempts": -1},
        {"max_attempts": 100},
        {"marking": "half"},
        {"counting": "mean"},
        {"run": None},
    ],
)
def test_policies_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PoliciesError, match=next(iter(wrong))):
        Policies.from_json(wrong)
