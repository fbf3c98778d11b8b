"""Which scores the gradebook reads."""

from __future__ import annotations

from dataclasses import replace

from app.store import Plan, Store
from tests.helpers.stored_class import CONTENT, HALF, enrol_student, key, opened, record


def test_scores_are_those_of_the_last_attempts(store: Store) -> None:
    activity, kim = opened(store)
    course = store.courses.find(activity.course_id)
    assert course
    lou, other = enrol_student(store, course, "Lou")[0], store.activities.add(course, Plan("B"), CONTENT)
    for number, (student, of, score) in enumerate(
        ((kim, activity, 1), (kim, activity, 0), (lou, activity, 2), (kim, other, 2))
    ):
        record(store, key(student, of), {}, replace(HALF, score=score), client_id=str(number))

    def scores(ids: list[int], student_id: int | None = None) -> list[tuple[int, float]]:
        return sorted((each.student_id, each.score) for each in store.grades.last_scores(ids, student_id))

    assert scores([activity.id]) == [(kim.id, 0), (lou.id, 2)]
    assert scores([activity.id, other.id], kim.id) == [(kim.id, 0), (kim.id, 2)]
    assert scores([]) == []
    assert (store.grades.count_attempts(activity.id), store.grades.participants(other.id)) == (3, {kim.id})
    [sheet] = store.grades.attempted_sheets(activity.id)
    assert (sheet.sheet_key, sheet.revision, sheet.sheet_number) == (CONTENT.items[0].sheet_key, 1, 1)
