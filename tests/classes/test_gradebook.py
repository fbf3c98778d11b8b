"""The points of record: which attempts count, what counts in their place, and in which order students are listed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from app.classes.gradebook import (
    GradebookColumn,
    GradebookOrder,
    counted_attempts,
    gradebook_columns,
    gradebook_lines,
    total_score,
)
from app.store import Activity, AttemptScore, Content, FrozenWorksheet, GradeChange, Plan, Student
from tests.helpers.stored_class import SHEET

NOW = datetime(2026, 3, 2, tzinfo=UTC)
FIRST, SECOND = FrozenWorksheet(SHEET), FrozenWorksheet({**SHEET, "key": "qwen", "title": "Another"})
KIM, LOU = Student(1, 1, "Kim", "17", None), Student(2, 1, "Lou", None, None)


def activity(number: int = 1, items: tuple[FrozenWorksheet, ...] = (FIRST, SECOND), closed: bool = True) -> Activity:
    plan = Plan(f"Week {number}", closes_at=datetime(2026, 3, 1, tzinfo=UTC) if closed else None)
    return Activity(number, 1, "CODE", "open", plan, 1, Content(items, None), auto_submitted_at=plan.closes_at)


def attempt(
    number: int, student: Student, item: FrozenWorksheet, score: float, out_of: int = 10, late: bool = False
) -> AttemptScore:
    kinds = {"auto_submitted": False, "late": late, "handed_in": True}
    return AttemptScore(number, 1, student.id, item.sheet_key, score, out_of, created_at=NOW, **kinds)


def column(*attempts: AttemptScore, of: Activity | None = None, given: Sequence[GradeChange] = ()) -> GradebookColumn:
    [only] = gradebook_columns([of or activity()], NOW, {1: [10, 20]}, attempts, given)
    return only


def given(student: Student, points: float | None) -> GradeChange:
    return GradeChange(1, 1, student.id, "excused" if points is None else "points", points, None, "ill", "Ada", NOW)


def test_the_last_attempt_on_each_sheet_counts_by_its_share() -> None:
    attempts = [attempt(3, KIM, FIRST, 4, 8), attempt(1, KIM, FIRST, 9), attempt(2, LOU, SECOND, 0, 0, late=True)]
    assert counted_attempts(activity(), attempts).keys() == {(KIM.id, 0), (LOU.id, 1)}
    points = column(*attempts)
    assert points.scores == {KIM.id: 5, LOU.id: 0}
    assert (points.points, points.late) == (30, frozenset({LOU.id}))
    assert [sheet.scores for sheet in points.sheets] == [{KIM.id: 5}, {LOU.id: 0}]
    assert points.mean == 2.5


def test_an_attempt_on_an_earlier_version_counts_for_the_worksheet_it_is_now() -> None:
    earlier = FrozenWorksheet({**SHEET, "tokens": 50})
    attempts = [attempt(1, KIM, FIRST, 9), attempt(2, KIM, earlier, 1), attempt(3, LOU, SECOND, 5)]
    assert column(*attempts, of=activity(items=(FIRST,))).scores == {KIM.id: 1}


def test_points_by_a_teacher_count_in_place_of_the_attempts() -> None:
    points = column(attempt(1, KIM, FIRST, 9), given=[given(KIM, 4), given(LOU, None)])
    assert points.scores == {KIM.id: 4}
    assert points.earned == {KIM.id: 9}
    assert points.excused == {LOU.id}
    assert [total_score(student, [points]) for student in (KIM, LOU)] == [(4, 30), (0, 0)]


def test_nobody_has_missed_an_activity_before_it_has_closed() -> None:
    assert column().is_missing(KIM.id)
    still_open = column(of=activity(closed=False))
    assert not still_open.is_missing(KIM.id)
    assert total_score(KIM, [still_open]) == (0, 0)


def test_students_are_sorted_and_filtered() -> None:
    points = [column(attempt(1, LOU, FIRST, 3))]

    def listed(order: GradebookOrder) -> list[str]:
        return [line.student.name for line in gradebook_lines([LOU, KIM], points, order)]

    assert listed(GradebookOrder()) == ["Kim", "Lou"]
    assert listed(GradebookOrder("1")) == listed(GradebookOrder("1", descending=False)) == ["Lou", "Kim"]
    assert listed(GradebookOrder(show="missing")) == listed(GradebookOrder(words="17")) == ["Kim"]
