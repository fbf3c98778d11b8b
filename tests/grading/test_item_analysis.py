"""What a class did with a sheet, in numbers: against numpy and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.grading.item_analysis import discrimination, misconception_counts, row_state, row_statistics

ROWS = {"queries": ["queries.rows", "queries.columns"], "keys": ["keys.rows", "keys.columns"], "total": ["total.count"]}


def sheet(queries: str, keys: str, total: str) -> dict[str, str]:
    """Marks with one kind for both boxes of a row."""
    kinds = {"queries": queries, "keys": keys, "total": total}
    return {box: kinds[row] for row, boxes in ROWS.items() for box in boxes}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=10, max_size=40))
def test_discrimination_is_the_correlation_that_numpy_computes(students: list[tuple[bool, int]]) -> None:
    right, rest = [hit for hit, _ in students], [score for _, score in students]
    assume(len(set(right)) == 2)
    assume(len(set(rest)) > 1)
    expected = np.corrcoef(np.array(right, dtype=float), np.array(rest, dtype=float))[0, 1]
    assert discrimination(right, [float(score) for score in rest]) == pytest.approx(expected, abs=1e-9)


def test_discrimination_by_hand() -> None:
    """Five right with rests 4 4 3 3 3, five not with 2 2 1 1 1: 2 · ½ / √1.24, whatever their order."""
    right, rest = [True, False] * 5, [4.0, 2, 4, 2, 3, 1, 3, 1, 3, 1]
    assert discrimination(right, rest) == pytest.approx(1 / 1.24**0.5)
    assert discrimination([not hit for hit in right], rest) == pytest.approx(-1 / 1.24**0.5)


@pytest.mark.parametrize(
    ("right", "rest"),
    [([True] * 5 + [False] * 4, [1.0] * 5 + [0.0] * 4), ([True] * 12, range(12)), ([False] * 12, range(12)),
     ([True, False] * 6, [3.0] * 12), ([], [])],
    ids=["nine students", "all right", "none right", "rest alike", "nobody"],
)  # fmt: skip
def test_discrimination_is_not_told_where_it_means_nothing(right: list[bool], rest: list[float]) -> None:
    assert discrimination(right, rest) is None


def test_a_row_is_as_good_as_its_boxes() -> None:
    boxes = ROWS["queries"]
    states = {
        ("right", "right"): "right", ("right", "follows"): "follows", ("wrong", "empty"): "wrong",
        ("unreadable", "right"): "wrong", ("right", "empty"): "open", ("empty", "empty"): "open",
    }  # fmt: skip
    for kinds, expected in states.items():
        assert row_state(dict(zip(boxes, kinds, strict=True)), boxes) == expected, kinds
    assert row_state({}, boxes) == "open"


def test_shares_count_first_and_last_attempts_apart() -> None:
    first = [sheet("right", "right", "wrong"), sheet("right", "wrong", "wrong"), sheet("follows", "wrong", "empty"),
             sheet("wrong", "wrong", "wrong")]  # fmt: skip
    last = [first[0], first[1], sheet("right", "right", "right"), first[3]]
    queries, keys, total = row_statistics(ROWS, first, last)
    assert (queries.right_at_first, queries.right_now, queries.share_at_first) == (2, 3, 0.5)
    assert (keys.right_at_first, keys.right_now, keys.share_at_first) == (1, 2, 0.25)
    assert (total.right_at_first, total.right_now) == (0, 1)
    assert all(row.too_few and row.discrimination is None for row in (queries, keys, total))
    [nobody, *_] = row_statistics(ROWS, [], [])
    assert (nobody.students, nobody.share_at_first) == (0, 0.0)


def test_a_row_is_compared_with_the_rest_of_the_sheet_without_itself() -> None:
    table = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 4 + [[1, 0, 1], [0, 1, 0], [1, 1, 1]])
    first = [sheet(*("right" if hit else "wrong" for hit in student)) for student in table]
    for column, row in enumerate(row_statistics(ROWS, first, first)):
        rest = np.delete(table, column, axis=1).sum(axis=1)
        assert row.discrimination == pytest.approx(np.corrcoef(table[:, column], rest)[0, 1])


def test_counting_misconceptions() -> None:
    """The commonest first; a misconception that a student shows twice counts once."""
    assert misconception_counts([("a", "b"), ("b",), (), ("b", "b", "c")]) == (("b", 3), ("a", 1), ("c", 1))
    assert misconception_counts([]) == ()
