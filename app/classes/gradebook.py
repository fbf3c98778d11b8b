"""The gradebook of a course: students by activities, sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.classes.course_files import CourseFiles
from app.classes.student_sheet import best_scores
from app.exchange.gradebook import GradebookColumn, total_score
from app.names import name_key
from app.sheets.library import Library
from app.store import Course, Store, Student

GradebookFilter = Literal["missing", "changed", "excused", ""]


@dataclass(frozen=True)
class GradebookLine:
    """One student of the gradebook: their total, and the points it is out of."""

    student: Student
    total: float
    out_of: int


@dataclass(frozen=True)
class GradebookOrder:
    """How a gradebook is sorted and filtered.

    `sort` is "name", "total" or the id of an activity as text. `descending` None is the usual order: names from A,
    points from the highest. `show` are the students with something missing, changed or excused; `words` stand in the
    name or number.
    """

    sort: str = "name"
    descending: bool | None = None
    show: GradebookFilter = ""
    words: str = ""

    @property
    def is_descending(self) -> bool:
        """Whether the highest comes first."""
        return self.sort != "name" if self.descending is None else self.descending


def course_files(library: Library, store: Store, course: Course) -> CourseFiles:
    """The files of a course, with its activities from the oldest on; they hold its gradebook."""
    activities = store.activities.of_course(course)[::-1]
    points = {activity.id: best_scores(library, store, activity.content) for activity in activities}
    return CourseFiles(store, course, activities, points)


def gradebook_lines(
    students: Sequence[Student], columns: Sequence[GradebookColumn], order: GradebookOrder
) -> tuple[GradebookLine, ...]:
    """The students that the filter keeps, in the order asked for; who has no points comes last, ties go by name."""
    words = name_key(order.words).split()
    kept = [
        student
        for student in sorted(students, key=lambda student: name_key(student.name))
        if _is_shown(student, columns, order.show)
        and all(word in name_key(f"{student.name} {student.roster_key or ''}") for word in words)
    ]
    lines = [GradebookLine(student, *total_score(student, columns)) for student in kept]
    if order.sort == "name":
        return tuple(lines[::-1] if order.is_descending else lines)
    points = _sort_value(columns, order.sort)
    sign = -1 if order.is_descending else 1
    return tuple(sorted(lines, key=lambda line: ((value := points(line)) is None, sign * (value or 0))))


def _is_shown(student: Student, columns: Sequence[GradebookColumn], show: GradebookFilter) -> bool:
    """Whether a student has what the filter asks for in any activity."""
    if show == "missing":
        return any(column.is_missing(student.id) for column in columns)
    if show == "excused":
        return any(student.id in column.excused for column in columns)
    return not show or any(student.id in column.overrides for column in columns)


def _sort_value(columns: Sequence[GradebookColumn], sort: str) -> Callable[[GradebookLine], float | None]:
    """What lines are sorted by: the points of that activity, or the total; None for a student without points."""
    column = next((column for column in columns if str(column.activity_id) == sort), None)
    return (lambda line: column.scores.get(line.student.id)) if column else (lambda line: line.total)
