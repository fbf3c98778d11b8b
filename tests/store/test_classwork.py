"""Drafts and attempts of a class, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from app.activities.work import ClassDraft
from app.store import (
    NoAttemptsLeftError,
    PracticeDraft,
    Stamp,
    Store,
    VariantSizes,
)
from app.store.tables import teachers
from tests.helpers.at_once import all_at_once
from tests.helpers.stored_class import HALF, LLAMA, key, opened


def test_the_variant_of_the_first_save_stays(store: Store) -> None:
    """The sizes are those of the first save, and every save that changes something counts."""
    activity, kim = opened(store)
    here = key(kim, activity)
    store.classwork.save(here, ClassDraft({"queries.rows": "1"}, 0, LLAMA))
    store.classwork.save(here, ClassDraft({"queries.rows": "2"}, 0, VariantSizes("gpt2", 7)))
    assert store.classwork.draft(here) == ClassDraft({"queries.rows": "2"}, 2, LLAMA)


def test_an_attempt_that_is_sent_again_counts_once(store: Store) -> None:
    """Eight threads hand in the same attempt; it is there once, and each is given that one."""
    activity, kim = opened(store)
    here, got = key(kim, activity), list[int]()
    draft = ClassDraft({"queries.rows": "100"}, 1, LLAMA)

    def hand_in(_: int) -> None:
        got.append(store.classwork.record(here, "a" * 32, draft, HALF, handed_in=True, allowed=1).attempt.id)

    assert all_at_once(8, hand_in) == []
    [kept] = store.classwork.attempts(here)
    assert set(got) == {kept.id}
    assert (kept.answers, kept.marks, kept.misconceptions, kept.score) == (
        draft.answers,
        HALF.marks,
        HALF.misconceptions,
        1,
    )
    assert kept.variant == LLAMA


def test_attempts_are_not_more_than_allowed(store: Store) -> None:
    """Six threads check with six ids where two attempts are allowed: two are kept, four refused, none half kept."""
    activity, kim = opened(store)
    here = key(kim, activity)

    def check(number: int) -> None:
        draft = ClassDraft({"queries.rows": str(number)}, number, LLAMA)
        store.classwork.record(here, f"attempt {number}", draft, HALF, handed_in=False, allowed=2)

    problems = all_at_once(6, check)
    assert [type(problem) for problem in problems] == [NoAttemptsLeftError] * 4
    assert len(store.classwork.attempts(here)) == 2
    made = store.classwork.work(here).last
    assert made
    last = store.classwork.hand_in(made)
    assert [found.handed_in for found in store.classwork.attempts(here)] == [False, True]
    assert store.classwork.work(here).last == last


def test_a_removed_student_takes_their_work_along(store: Store) -> None:
    """Drafts, attempts and named tickets go with the student; the teacher stays."""
    activity, kim = opened(store)
    here = key(kim, activity)
    store.classwork.record(here, "a", ClassDraft({}, 1, LLAMA), HALF, handed_in=True)
    store.exit_tickets.hand_in(activity.id, kim.id, "form", {"muddiest": "x"}, anonymous=False)
    store.roster.remove_student(kim)
    assert store.classwork.attempts_of_activity(activity.id) == ()
    assert store.classwork.draft(here) is None
    assert store.exit_tickets.answers(activity.id) == ()
    assert store.classwork.attendance(activity.id) == ()
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(teachers)) == 1


def test_pages_that_save_at_the_same_time_lose_nothing(store: Store) -> None:
    """Eight threads, each with a box of its own and one that all share, save ten times on what they saw at first."""
    activity, kim = opened(store)
    here = key(kim, activity)
    boxes = [f"row{number}.rows" for number in range(8)]
    empty = dict.fromkeys((*boxes, "shared.rows"), "")
    versions = list[int]()

    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        seen = store.classwork.draft(here)
        for change in range(1, 11):
            stamp = Stamp(f"page-{number:04}", change)
            texts = {**empty, boxes[number]: str(change), "shared.rows": f"{number}: {change}"}
            sent = ClassDraft(texts, 0, LLAMA, {boxes[number]: stamp, "shared.rows": stamp})
            kept = store.classwork.save(here, sent, seen)
            assert kept.answers[boxes[number]] == str(change)
            versions.append(kept.version)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    kept = store.classwork.draft(here)
    assert kept
    assert {box: kept.answers[box] for box in boxes} == dict.fromkeys(boxes, "10")
    assert kept.answers["shared.rows"].endswith(": 10")
    assert sorted(versions) == list(range(1, 81))


def test_a_save_that_comes_twice_or_late_changes_nothing(store: Store) -> None:
    """In class and in practice: the answer tells what is stored, which is what another page has typed meanwhile."""
    activity, kim = opened(store)
    here, visitor = key(kim, activity), store.add_visitor()
    first, late = {"a.rows": Stamp("page-one", 2)}, {"a.rows": Stamp("page-one", 1)}
    other = {"a.rows": Stamp("page-two", 1)}
    for changed, text, expected in ((first, "1", "1"), (other, "2", "2"), (first, "1", "2"), (late, "0", "2")):
        in_class = store.classwork.save(here, ClassDraft({"a.rows": text}, 0, LLAMA, changed))
        in_practice = store.save_draft(visitor, "s/m/1", PracticeDraft({"a.rows": text}, 0, changed))
        assert (in_class.answers, in_practice.answers) == ({"a.rows": expected}, {"a.rows": expected})
    assert in_class == store.classwork.draft(here)
    assert in_practice == store.find_draft(visitor, "s/m/1")


def test_handing_in_records_what_was_sent_and_keeps_what_another_page_typed(store: Store) -> None:
    """The attempt has the texts of the page; in the draft, boxes that the page did not change keep theirs."""
    activity, kim = opened(store)
    here = key(kim, activity)
    store.classwork.save(here, ClassDraft({"a.rows": "1", "b.rows": ""}, 0, LLAMA, {"a.rows": Stamp("page-one", 1)}))
    sent = ClassDraft({"a.rows": "", "b.rows": "2"}, 0, LLAMA, {"b.rows": Stamp("page-two", 1)})
    attempt = store.classwork.record(here, "form", sent, HALF, handed_in=True).attempt
    kept = store.classwork.draft(here)
    assert (attempt.answers, kept and kept.answers) == ({"a.rows": "", "b.rows": "2"}, {"a.rows": "1", "b.rows": "2"})
