"""How far a class is: bars of its rows, and a count that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from app.classes.live_snapshot import LiveSnapshots, RowBar
from tests.helpers.school import Classroom
from tests.helpers.shipped import LIBRARY


def test_who_watches_never_waits_for_the_count(classroom: Classroom) -> None:
    now, started = [0.0], list[Callable[[], None]]()
    snapshots = LiveSnapshots(lambda: now[0], started.append)
    activity, services = classroom.open(), classroom.school.services
    look = partial(snapshots.get, services.library, classroom.store, activity)
    empty = look()
    student, _ = classroom.join()
    classroom.store.classwork.arrive(activity.id, student.id)
    now[0] += 8
    assert look() == empty
    started[0]()
    assert look().student_ids == (student.id,)
    classroom.store.classwork.arrive(activity.id, classroom.join("Lou")[0].id)
    now[0] += 60
    assert len(look().student_ids) == 2
    classroom.store.classwork.arrive(activity.id, classroom.join("Ray")[0].id)
    snapshots.expire(activity.id)
    assert len(look().student_ids) == 3


@pytest.mark.parametrize(
    ("counts", "segments"),
    [
        ((2, 1, 1, 0), [("right", 0, 50), ("follows", 50, 25), ("wrong", 75, 25)]),
        ((0, 0, 1, 3), [("wrong", 0, 25)]),  # open ones leave the end of the bar empty
        ((0, 0, 0, 0), []),
        ((1, 0, 2, 0), [("right", 0, 33.33), ("wrong", 33.33, 66.67)]),
    ],
)
def test_a_bar_shows_each_state_by_its_share(
    counts: tuple[int, int, int, int], segments: list[tuple[str, float, float]]
) -> None:
    bar = RowBar(LIBRARY.variant("llama-7b").rows[0], *counts)
    assert [(each.kind, each.start, each.width) for each in bar.segments] == segments
