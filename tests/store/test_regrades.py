"""Regrades keep the marks that they replace."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from app.store import NewMarks, Store
from app.store.tables import old_marks, regrades, teachers
from tests.helpers.stored_class import HALF, key, opened, record


def test_old_marks_outlive_the_teacher_and_go_with_the_student(store: Store) -> None:
    activity, kim = opened(store)
    owner = store.people.find_teacher("ada@example.org")
    assert owner
    one = record(store, key(kim, activity), {})
    new = replace(HALF, score=2)
    store.regrades.apply(activity.id, owner.id, {one.id: NewMarks(new, "x@1"), one.id + 99: NewMarks(new, "x@1")})
    assert store.classwork.latest_attempts(key(kim, activity), 5)[0].score == 2
    assert [old.graded for old in store.regrades.old_marks(activity.id, kim.id)[one.id]] == [HALF]
    with store.engine.begin() as connection:
        connection.execute(sa.delete(teachers).where(teachers.c.id == owner.id))
    [done] = store.regrades.of_activity(activity.id)
    assert (done.by, done.changed) == ("", 1)
    store.roster.remove_student(kim)
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(old_marks)) == 0
        assert connection.scalar(sa.select(sa.func.count()).select_from(regrades)) == 1
