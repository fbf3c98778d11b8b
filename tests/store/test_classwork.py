"""Drafts and attempts, in an activity and in practice, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.activities.work import Draft, NewAttempt, SheetKey, WorkDone
from app.store import Edit, Graded, PracticeSheetKey, Store, WorkChangedError
from app.store.tables import attempts, drafts, teachers, visitors
from tests.helpers.at_once import all_at_once
from tests.helpers.stored_class import HALF, LLAMA, key, opened, record, save

ODD = {"queries.rows": "4 096 × 2\u2009", "keys.rows": "\x00", "values.rows": "\ud800", "scores.rows": "🙂" * 500}


@pytest.fixture(params=["class", "practice"])
def here(request: pytest.FixtureRequest, store: Store) -> SheetKey:
    """A sheet of a student in an activity, and one of a visitor in practice."""
    if request.param == "practice":
        return PracticeSheetKey(store.add_visitor().id, "llama-7b/llama-7b/100")
    activity, kim = opened(store)
    return key(kim, activity)


def test_a_draft_is_kept_as_typed(store: Store, here: SheetKey) -> None:
    assert store.classwork.work(here) == WorkDone()
    draft = save(store, here, ODD)
    assert (dict(draft.answers), store.classwork.draft(here)) == (ODD, draft)
    other = PracticeSheetKey(store.add_visitor().id, here.sheet_key)
    assert store.classwork.draft(other) is None


def test_attempts_come_newest_first_and_no_more_than_requested(store: Store, here: SheetKey) -> None:
    made = [record(store, here, {"queries.rows": str(n)}, Graded({}, (), n, 14), handed_in=False) for n in range(4)]
    other = PracticeSheetKey(store.add_visitor().id, here.sheet_key)
    record(store, other, {})
    assert store.classwork.latest_attempts(here, 3) == tuple(made[:0:-1])
    assert store.classwork.latest_attempts(here, 20) == tuple(made[::-1])
    done = store.classwork.work(here)
    assert (done.attempts, done.last) == (4, made[-1])
    assert store.classwork.hand_in(made[-1]) == store.classwork.work(here).last


def test_an_attempt_that_is_sent_again_counts_once(store: Store) -> None:
    activity, kim = opened(store)
    here, got = key(kim, activity), list[int]()
    save(store, here, {"queries.rows": "100"})
    new = NewAttempt({"queries.rows": "100"}, LLAMA, HALF, "a" * 32, handed_in=True)

    def hand_in(_: int) -> None:
        got.append(store.classwork.record(here, new, None, allowed=1).attempt.id)

    assert all_at_once(8, hand_in) == []
    [kept] = store.classwork.latest_attempts(here, 9)
    assert set(got) == {kept.id}
    assert kept == new.stored(here, kept.id, kept.created_at)


def test_attempts_are_not_more_than_allowed(store: Store) -> None:
    activity, kim = opened(store)
    here = key(kim, activity)
    save(store, here, {"queries.rows": "1"})

    def check(number: int) -> None:
        new = NewAttempt({"queries.rows": str(number)}, LLAMA, HALF, f"attempt {number}")
        store.classwork.record(here, new, None, allowed=2)

    problems = all_at_once(6, check)
    assert [type(problem) for problem in problems] == [WorkChangedError] * 4
    assert store.classwork.work(here).attempts == 2


def test_a_removed_student_takes_their_work_along(store: Store) -> None:
    activity, kim = opened(store)
    here = key(kim, activity)
    record(store, here, {})
    store.exit_tickets.hand_in(activity.id, kim.id, {"muddiest": "x"}, anonymous=False)
    store.roster.remove_student(kim)
    assert store.classwork.work(here) == WorkDone()
    assert store.exit_tickets.answers(activity) == ()
    assert store.classwork.attendance(activity.id) == ()
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(teachers)) == 1


def test_a_deleted_visitor_takes_their_work_along(store: Store) -> None:
    here = PracticeSheetKey(store.add_visitor().id, "s")
    record(store, here, {})
    with store.engine.begin() as connection:
        connection.execute(sa.delete(visitors))
    assert store.classwork.work(here) == WorkDone()


@pytest.mark.parametrize("table", [drafts, attempts])
@pytest.mark.parametrize("wrong", [{"visitor_id": 1}, {"activity_id": None}, {"student_id": None}])
def test_work_is_a_students_in_an_activity_or_a_visitors(store: Store, table: sa.Table, wrong: dict[str, int]) -> None:
    activity, kim = opened(store)
    record(store, key(kim, activity), {})
    with store.engine.begin() as connection, pytest.raises(sa.exc.IntegrityError):
        connection.execute(sa.update(table).values(wrong))


def test_tabs_that_save_at_the_same_time_lose_nothing(store: Store, here: SheetKey) -> None:
    boxes = [f"row{number}.rows" for number in range(8)]
    empty = dict.fromkeys((*boxes, "shared.rows"), "")
    versions = list[int]()

    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        seen = store.classwork.draft(here)
        for change in range(1, 11):
            edit = Edit(f"tab-{number:04}", change)
            texts = {**empty, boxes[number]: str(change), "shared.rows": f"{number}: {change}"}
            kept = save(store, here, texts, {boxes[number]: edit, "shared.rows": edit}, seen=seen)
            assert kept.answers[boxes[number]] == str(change)
            versions.append(kept.version)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    kept = store.classwork.draft(here)
    assert kept
    assert {box: kept.answers[box] for box in boxes} == dict.fromkeys(boxes, "10")
    assert kept.answers["shared.rows"].endswith(": 10")
    assert sorted(versions) == list(range(1, 81))


def test_a_save_that_comes_twice_or_late_changes_nothing(store: Store, here: SheetKey) -> None:
    first, late = {"a.rows": Edit("tab-one", 2)}, {"a.rows": Edit("tab-one", 1)}
    other = {"a.rows": Edit("tab-two", 1)}
    for edits, text, expected in ((first, "1", "1"), (other, "2", "2"), (first, "1", "2"), (late, "0", "2")):
        assert save(store, here, {"a.rows": text}, edits).answers == {"a.rows": expected}
    draft = store.classwork.draft(here)
    assert draft
    assert draft.version == 2
    with pytest.raises(WorkChangedError):
        store.classwork.save(here, draft)  # it is not the version after the stored one


def test_the_room_is_asked_alike_on_both_databases(store: Store) -> None:
    activity, kim = opened(store)
    here = key(kim, activity)
    save(store, here, {"queries.rows": "1"})
    whose = (kim.id, here.sheet_key)
    assert store.classwork.draft_versions(activity.id) == {whose: 1}
    assert store.classwork.draft_texts(activity.id, [kim.id])[whose] == Draft({"queries.rows": "1"}, 1, LLAMA)
    assert store.classwork.draft_texts(activity.id, []) == {}
    assert store.classwork.last_attempts(activity.id) == {}
    record(store, here, {})
    newest = record(store, here, {}, replace(HALF, misconceptions=()), handed_in=False)
    [last] = store.classwork.last_attempts(activity.id).values()
    assert (last.id, last.handed_in) == (newest.id, True)
    assert store.classwork.stored_marks([last.id])[last.id].misconceptions == ()
    assert store.classwork.stored_marks(range(1, 2000)).keys() == {newest.id - 1, newest.id}
