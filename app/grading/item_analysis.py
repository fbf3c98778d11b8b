"""What the marks of a class say about each row of a sheet, and which misconceptions it held: arithmetic alone.

A row counts as right where every box of it is. All but `right_now` is about first tries, before any mark was seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

LEAST = 10  # students: with fewer, a correlation says more about who they are than about the row

Marks = Mapping[str, str]  # kind of mark by box
RowState = Literal["right", "follows", "wrong", "open"]
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class RowStatistics:
    """One row over a class: how many tried the sheet, were right at first and are right now, and how it discriminates.

    `discrimination` is None where it cannot be told: too few students, or all of them right or none.
    """

    row: str
    students: int
    right_at_first: int
    right_now: int
    discrimination: float | None

    @property
    def share_at_first(self) -> float:
        """How many of the class were right at their first try, from 0 to 1."""
        return self.right_at_first / self.students if self.students else 0.0

    @property
    def too_few(self) -> bool:
        return self.students < LEAST


def row_state(marks: Marks, boxes: Sequence[str]) -> RowState:
    """How a row stands: right or following in all its boxes, wrong in one, or else with a box still empty.

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
    rows: Mapping[str, Sequence[str]], first: Sequence[Marks], last: Sequence[Marks]
) -> tuple[RowStatistics, ...]:
    """Every row of a sheet, from the boxes of each row and from each student's first and last try."""
    right = {row: [row_state(marks, boxes) == "right" for marks in first] for row, boxes in rows.items()}
    found = list[RowStatistics]()
    for row, boxes in rows.items():
        rest = [sum(right[other][i] for other in rows if other != row) for i in range(len(first))]
        now = sum(row_state(marks, boxes) == "right" for marks in last)
        found.append(RowStatistics(row, len(first), sum(right[row]), now, discrimination(right[row], rest)))
    return tuple(found)


def discrimination(right: Sequence[bool], rest: Sequence[float]) -> float | None:
    """How far a row tells students who did well on the rest of the sheet from those who did not, from -1 to 1.

    The point-biserial correlation between a row (right or not) and the score on all other rows, corrected, that is,
    for the row itself (Lord & Novick, Statistical Theories of Mental Test Scores, 1968, chapter 15): with p the share
    that is right, the means M1 of the rest among those and M0 among the others, and s the standard deviation of the
    rest over all of them, it is (M1 - M0) · √(p · (1 - p)) / s. Above 0.3 is usual; near 0 or below, the row asks
    something else than the rest, or can be misread. None for fewer than `LEAST` students and where all are alike.

    Ten students, five right with rests 4 4 3 3 3, five not with 2 2 1 1 1: M1 = 3.4, M0 = 1.4, p = 1/2, and s² is the
    mean of the squares, 7, less the square of the mean, 2.4² = 5.76, so that it is 2 · 1/2 / √1.24 = 0.898.

    >>> round(discrimination([True] * 5 + [False] * 5, [4, 4, 3, 3, 3, 2, 2, 1, 1, 1]), 3)
    0.898
    """
    count, hits = len(right), sum(right)
    if count < LEAST or hits in (0, count):
        return None
    mean = math.fsum(rest) / count
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in rest) / count)
    if spread == 0:
        return None
    share = hits / count
    among = math.fsum(score for score, hit in zip(rest, right, strict=True) if hit) / hits
    others = math.fsum(score for score, hit in zip(rest, right, strict=True) if not hit) / (count - hits)
    return (among - others) * math.sqrt(share * (1 - share)) / spread


def commonest(values: Iterable[T]) -> tuple[tuple[T, int], ...]:
    """Each value with how often it is there, the commonest first and those of one count as they came.

    >>> commonest(["d", "N", "N"])
    (('N', 2), ('d', 1))
    """
    return tuple(Counter(values).most_common())


def misconception_counts(held: Iterable[Sequence[str]]) -> tuple[tuple[str, int], ...]:
    """How many students hold each misconception, the commonest first; a student who holds one twice counts once."""
    return commonest(misconception for misconceptions in held for misconception in dict.fromkeys(misconceptions))
