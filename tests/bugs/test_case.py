"""A bug in the program of a model: where it is, what happens, and which repairs count."""

from __future__ import annotations

import pytest

from app.bugs.bank import BUGS
from app.bugs.case import bug_case
from app.bugs.sizes import BugError
from tests.helpers.shipped import MODELS

QWEN = MODELS["qwen2.5-0.5b"]


@pytest.mark.parametrize("bug", [bug for bug in BUGS.values() if bug.program_key in ("one-head", "layer")],
                         ids=lambda bug: bug.key)  # fmt: skip
def test_the_example_repairs_and_the_wrong_line_is_shown(bug: object) -> None:
    """In Qwen2.5 0.5B, unless that model lacks the line."""
    key = bug.key  # type: ignore[attr-defined]
    try:
        case = bug_case(key, QWEN, 10, 3)
    except BugError:
        return
    assert len(case.lines) <= 12
    assert (case.repair is None) == (case.wrong_line == 0)
    if case.repair:
        assert case.repair_works(case.repair.example)
        assert bool(case.raises_at) != bool(case.witness)


def test_repairs_count_by_effect() -> None:
    """Other dimensions that do the same, and numbers of the model, are right; what does something else is wrong."""
    case = bug_case("layer-keys-not-transposed", QWEN, 10, 3)
    assert [case.repair_works(pair) for pair in ([-1, -2], [2, 3], [3, -2], [1, 2], [2, 2], [4, 1])] == [True] * 3 + [
        False
    ] * 3
    case = bug_case("heads-split-by-view", QWEN, 10, 3)
    assert case.repair_works([3, 10, 14, 64, 2, 1])
    assert case.repair_works(["B", "N", "H", -1, 1, 2])
    assert not case.repair_works([3, 14, 10, 64, 1, 2])
    assert not case.repair_works(["B", "H", "N", "d_h", 0, 0])
    assert not case.repair_works(["B", "N", "H", "10**9999", 1, 2])
