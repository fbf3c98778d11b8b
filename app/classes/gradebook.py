"""The gradebook of a course: the points of record, students by activities, sorted and filtered.

A student's last attempt on each sheet counts, unless a teacher gave points instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from operator import attrgetter
from typing import Literal, TypeVar

from app.classes.student_sheet import best_scores
from app.names import name_key
from app.sheets.library import Library
from app.store import Activity, Attempt, AttemptScore, GradeChange, Phase, Store, Student

A = TypeVar("A", AttemptScore, Attempt)
GradebookFilter = Literal["missing", "changed", "excused", ""]


@dataclass(frozen=True)
class SheetScores:
    """One worksheet of an activity: its title and points, and each student's score by id."""

    title: str
    points: int
    scores: Mapping[int, float]


@dataclass(frozen=True)
class GradebookColumn:
    """An activity in a gradebook: its points, and each student's points by id."""

    title: str
    points: int
    scores: Mapping[int, float]
    activity_id: int
    sheets: tuple[SheetScores, ...]
    earned: Mapping[int, float]
    overrides: Mapping[int, GradeChange]
    auto_submitted: frozenset[int]  # students with an auto-submitted attempt that counts
    late: frozenset[int]  # students with a late attempt that counts
    phase: Phase

    @cached_property
    def excused(self) -> frozenset[int]:
        return frozenset(student_id for student_id, override in self.overrides.items() if override.excused)

    def counts_for(self, student_id: int) -> bool:
        """Whether the activity is part of a student's total: not if excused, nor without points before it closes."""
        return student_id not in self.excused and (self.phase == "closed" or student_id in self.scores)

    def is_missing(self, student_id: int) -> bool:
        """Whether the student has no points in a closed activity, and isn't excused."""
        return self.counts_for(student_id) and student_id not in self.scores

    @property
    def mean(self) -> float | None:
        """The mean of the scores that count, rounded to 2 decimals."""
        return round(sum(self.scores.values()) / len(self.scores), 2) if self.scores else None


def gradebook_of(
    library: Library, store: Store, activities: Sequence[Activity], students: Container[int], at: datetime
) -> tuple[GradebookColumn, ...]:
    """The columns of the activities that have a worksheet and are no drafts, with students of these ids."""
    graded = [activity for activity in activities if activity.content.items and activity.state != "draft"]
    ids = [activity.id for activity in graded]
    points = {activity.id: best_scores(library, store, activity) for activity in graded}
    scores = (each for each in store.grades.last_scores(ids) if each.student_id in students)
    overrides = (each for each in store.grades.overrides(ids) if each.student_id in students)
    return gradebook_columns(graded, at, points, scores, overrides)


def gradebook_columns(
    activities: Sequence[Activity],
    at: datetime,
    points: Mapping[int, Sequence[int]],
    attempts: Iterable[AttemptScore],
    overrides: Iterable[GradeChange] = (),
) -> tuple[GradebookColumn, ...]:
    """The columns of activities, in order, by each student's last attempt on each sheet."""
    of_activity = defaultdict[int, list[AttemptScore]](list)
    for attempt in attempts:
        of_activity[attempt.activity_id].append(attempt)
    given = defaultdict[int, dict[int, GradeChange]](dict)
    for override in overrides:
        given[override.activity_id][override.student_id] = override
    return tuple(
        _column(activity, at, points[activity.id], of_activity[activity.id], given[activity.id])
        for activity in activities
    )


def _column(
    activity: Activity,
    at: datetime,
    points: Sequence[int],
    attempts: Sequence[AttemptScore],
    overrides: Mapping[int, GradeChange],
) -> GradebookColumn:
    last = counted_attempts(activity, attempts)
    on_sheets: list[dict[int, float]] = [{} for _ in points]
    earned = dict[int, float]()
    for (student_id, sheet), attempt in last.items():
        score = attempt.score / attempt.out_of * points[sheet] if attempt.out_of else 0.0
        on_sheets[sheet][student_id] = round(score, 2)
        earned[student_id] = earned.get(student_id, 0.0) + score
    earned = {student_id: round(score, 2) for student_id, score in earned.items()}
    given = {student_id: override.points for student_id, override in overrides.items()}
    return GradebookColumn(
        activity.plan.title,
        sum(points),
        {student_id: score for student_id, score in {**earned, **given}.items() if score is not None},
        activity.id,
        tuple(map(SheetScores, (item.title for item in activity.content.items), points, on_sheets)),
        earned,
        overrides,
        frozenset(student_id for (student_id, _), attempt in last.items() if attempt.auto_submitted),
        frozenset(student_id for (student_id, _), attempt in last.items() if attempt.late),
        "closed" if activity.is_archived else activity.phase(at),
    )


def counted_attempts(activity: Activity, attempts: Iterable[A]) -> dict[tuple[int, int], A]:
    """The attempts that count: each student's last on each worksheet that the activity still has."""
    last: dict[tuple[int, int], A] = {}
    index_of = sheet_index(activity)
    for attempt in sorted(attempts, key=attrgetter("id")):
        sheet = index_of(attempt.sheet_key)
        if sheet is not None:
            last[attempt.student_id, sheet] = attempt
    return last


def sheet_index(activity: Activity) -> Callable[[str], int | None]:
    """A function from a sheet key to the index, from 0, of the sheet that its attempts count for."""
    sheets = [item.sheet_key for item in activity.content.items]
    worksheets = [sheet.rpartition("@")[0] for sheet in sheets]

    @cache
    def index(sheet_key: str) -> int | None:
        if sheet_key in sheets:
            return sheets.index(sheet_key)
        worksheet = sheet_key.rpartition("@")[0]
        return worksheets.index(worksheet) if worksheet in worksheets else None

    return index


def total_score(student: Student, columns: Iterable[GradebookColumn]) -> tuple[float, int]:
    """A student's points over the activities that count for them, to 2 decimals, and the most they could have."""
    counted = [column for column in columns if column.counts_for(student.id)]
    score = sum(column.scores.get(student.id, 0) for column in counted)
    return round(score, 2), sum(column.points for column in counted)


@dataclass(frozen=True)
class GradebookLine:
    """One student of the gradebook: their total, to 2 decimals, and the points it is out of."""

    student: Student
    total: float
    out_of: int


@dataclass(frozen=True)
class GradebookOrder:
    """How a gradebook is sorted and filtered.

    `sort` is "name" or the id of an activity as text; anything else means "total".
    """

    sort: str = "name"
    descending: bool | None = None
    show: GradebookFilter = ""
    words: str = ""

    @property
    def is_descending(self) -> bool:
        return self.sort != "name" if self.descending is None else self.descending


def gradebook_lines(
    students: Sequence[Student], columns: Sequence[GradebookColumn], order: GradebookOrder
) -> tuple[GradebookLine, ...]:
    """The students who pass the filter and whose name or number contains each of `words`, sorted by `order`."""
    words = name_key(order.words).split()
    included = [
        student
        for student in sorted(students, key=lambda student: name_key(student.name))
        if _is_shown(student, columns, order.show)
        and all(word in name_key(f"{student.name} {student.roster_key or ''}") for word in words)
    ]
    lines = [GradebookLine(student, *total_score(student, columns)) for student in included]
    if order.sort == "name":
        return tuple(lines[::-1] if order.is_descending else lines)
    column = next((column for column in columns if str(column.activity_id) == order.sort), None)

    def points(line: GradebookLine) -> float | None:
        return column.scores.get(line.student.id) if column else line.total

    sign = -1 if order.is_descending else 1
    return tuple(sorted(lines, key=lambda line: ((value := points(line)) is None, sign * (value or 0))))


def _is_shown(student: Student, columns: Sequence[GradebookColumn], show: GradebookFilter) -> bool:
    if show == "missing":
        return any(column.is_missing(student.id) for column in columns)
    if show == "excused":
        return any(student.id in column.excused for column in columns)
    return not show or any(student.id in column.overrides for column in columns)
