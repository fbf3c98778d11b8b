"""Item analysis of a class: how each row of a sheet was answered, and which misconceptions were held.

A row is right if all its boxes are. "At first" means a student's first attempt, before any mark was shown; "now" means
the latest.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

MIN_STUDENTS = 10  # with fewer students, a correlation says more about them than about the row

MarksByBox = Mapping[str, str]  # the kind of mark of each box, by box name
RowState = Literal["right", "follows", "wrong", "open"]


@dataclass(frozen=True)
class RowStatistics:
    """How a class answered one row."""

    row: str
    students: int
    right_at_first: int
    following_at_first: int
    right_now: int
    discrimination: float | None

    @property
    def share_at_first(self) -> float:
        """The share of students who were right at first, from 0 to 1; 0 without students."""
        return self.right_at_first / self.students if self.students else 0.0

    @property
    def too_few(self) -> bool:
        return self.students < MIN_STUDENTS


def row_state(marks: MarksByBox, boxes: Sequence[str]) -> RowState:
    """The state of a row from the marks of its boxes; an unmarked box counts as empty.

    >>> row_state({"keys.rows": "right", "keys.columns": "follows"}, ["keys.rows", "keys.columns"])
    'follows'
    """
    kinds = {marks.get(box, "empty") for box in boxes}
    if kinds & {"wrong", "unreadable"}:
        return "wrong"
    if "empty" in kinds:
        return "open"
    return "follows" if "follows" in kinds else "right"


def row_statistics(
    rows: Mapping[str, Sequence[str]], first: Sequence[MarksByBox], last: Sequence[MarksByBox]
) -> tuple[RowStatistics, ...]:
    """The statistics of each row, from each student's first and latest marks; `rows` has the rows' box names."""
    right = {row: [row_state(marks, boxes) == "right" for marks in first] for row, boxes in rows.items()}
    result = list[RowStatistics]()
    for row, boxes in rows.items():
        # For each student, the number of other rows that are right.
        rest = [sum(right[other][student] for other in rows if other != row) for student in range(len(first))]
        right_now = sum(row_state(marks, boxes) == "right" for marks in last)
        following = sum(row_state(marks, boxes) == "follows" for marks in first)
        separates = discrimination(right[row], rest)
        result.append(RowStatistics(row, len(first), sum(right[row]), following, right_now, separates))
    return tuple(result)


def discrimination(right: Sequence[bool], rest: Sequence[float]) -> float | None:
    """How well a row separates students who did well on the rest of the sheet from the others, from -1 to 1.

    Example: ten students, five right with rests 4 4 3 3 3, five not with 2 2 1 1 1.

    >>> round(discrimination([True] * 5 + [False] * 5, [4, 4, 3, 3, 3, 2, 2, 1, 1, 1]), 3)
    0.898
    """
    if len(right) < MIN_STUDENTS or len(set(right)) < 2 or len(set(rest)) < 2:
        return None
    return statistics.correlation(right, rest)


def misconception_counts(held: Iterable[Sequence[str]]) -> tuple[tuple[str, int], ...]:
    """How many students hold each misconception, most frequent first.

    >>> misconception_counts([["input-sliced"], ["softmax-collapses", "softmax-collapses"], ["softmax-collapses"]])
    (('softmax-collapses', 2), ('input-sliced', 1))
    """
    return tuple(Counter(key for keys in held for key in dict.fromkeys(keys)).most_common())
