"""Which scores the gradebook reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.activities.activity import Counting
from app.activities.work import counted_of
from app.store import Plan, Store
from tests.helpers.stored_class import CONTENT, HALF, enrol_student, key, opened, record

COUNTINGS: tuple[Counting, ...] = ("last", "best", "first")


def test_scores_are_those_of_the_attempts_that_count(store: Store) -> None:
    activity, kim = opened(store)
    course = store.courses.find(activity.course_id)
    assert course
    lou, other = enrol_student(store, course, "Lou")[0], store.activities.add(course, Plan("B"), CONTENT)
    for number, (student, of, score) in enumerate(
        ((kim, activity, 1), (kim, activity, 0), (lou, activity, 2), (kim, other, 2))
    ):
        record(store, key(student, of), {}, replace(HALF, score=score), client_id=str(number))

    def scores(countings: dict[int, Counting], student_id: int | None = None) -> list[tuple[int, float]]:
        return sorted((each.student_id, each.score) for each in store.grades.counted_scores(countings, student_id))

    assert scores({activity.id: "last"}) == [(kim.id, 0), (lou.id, 2)]
    assert scores({activity.id: "first"}) == scores({activity.id: "best"}) == [(kim.id, 1), (lou.id, 2)]
    assert scores({activity.id: "best", other.id: "last"}, kim.id) == [(kim.id, 1), (kim.id, 2)]
    assert scores({}) == []
    assert (store.grades.count_attempts(activity.id), store.grades.participants(other.id)) == (3, {kim.id})
    [sheet] = store.grades.attempted_sheets(activity.id)
    assert (sheet.sheet_key, sheet.revision, sheet.sheet_number) == (CONTENT.items[0].sheet_key, 1, 1)


@pytest.mark.parametrize(
    ("made", "last", "best", "first"),
    [
        ([1, 2, 1], 2, 1, 0),
        ([2, 2, 0], 2, 1, 0),  # of two equally good ones, the later
        ([0, 0], 1, 1, 0),
        ([1], 0, 0, 0),
    ],
)
def test_database_and_app_count_the_same_attempt(
    store: Store, made: list[int], last: int, best: int, first: int
) -> None:
    activity, kim = opened(store)
    sheet = key(kim, activity)
    attempts = [
        record(store, sheet, {}, replace(HALF, score=score), client_id=str(number)) for number, score in enumerate(made)
    ]
    for counting, expected in zip(COUNTINGS, (last, best, first), strict=True):
        assert counted_of(attempts, counting) == attempts[expected]
        assert store.classwork.counted_attempt(sheet, counting) == attempts[expected]
        assert [each.id for each in store.grades.counted_scores({activity.id: counting})] == [attempts[expected].id]


def test_of_two_equally_good_attempts_the_one_on_time_counts(store: Store) -> None:
    activity, kim = opened(store)
    sheet, graded = key(kim, activity), replace(HALF, score=2)
    made = [record(store, sheet, {}, graded, client_id=str(late), late=late) for late in (False, True)]
    assert counted_of(made, "best") == store.classwork.counted_attempt(sheet, "best") == made[0]
    assert counted_of(made, "last") == store.classwork.counted_attempt(sheet, "last") == made[1]


def test_a_sheet_without_an_attempt_has_none_that_counts(store: Store) -> None:
    activity, kim = opened(store)
    sheet = key(kim, activity)
    assert [store.classwork.counted_attempt(sheet, each) for each in COUNTINGS] == [None] * 3
