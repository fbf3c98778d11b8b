"""Regrading without pages: what it would change, how much it asks the database, and when it is computed again."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from app.classes import regrade
from app.classes.course_files import course_files
from app.classes.regrade import PREVIEW_TTL_S, Regrading
from app.classes.student_sheet import freeze
from app.grading.grade import Report, grade
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Activity, Store
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.running_activity import RunningActivity, counted_statements

FOLLOWING = {**KEY, "input.rows": "99", "queries.rows": "99"}


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """The answers of every attempt that is graded for a preview."""
    answers = list[Mapping[str, str]]()

    def counted(variant: Variant, given: Mapping[str, str]) -> Report:
        answers.append(given)
        return grade(variant, given)

    monkeypatch.setattr(regrade, "grade", counted)
    return answers


def test_a_preview_says_what_would_change_and_changes_nothing(library: Library, store: Store) -> None:
    running, regrading = RunningActivity(library, store), Regrading()
    kim = running.student("Kim")
    first, last, other = running.attempt(kim, FOLLOWING), running.attempt(kim, FOLLOWING), running.attempt(kim, KEY)
    lou = running.student("Lou")
    counting = running.attempt(lou, FOLLOWING)
    running.change_marking("boxes")
    preview = regrading.preview(library, store, running.activity)
    assert preview.attempts == 4
    assert [change.attempt.id for change in preview.changes] == [first.id, last.id, counting.id]
    assert [change.attempt for change in preview.score_changes] == [counting]
    assert [change.difference for change in preview.changes] == [-1] * 3
    assert preview.changes[0].sheet_title == "One head of LLaMA 7B"
    change = preview.changes[0]
    rescaled = replace(change, new=replace(change.new, graded=replace(change.new.graded, out_of=99)))
    assert replace(preview, changes=(rescaled, *preview.changes[1:])).fingerprint != preview.fingerprint
    assert store.classwork.attempts_of_activity(running.activity.id) == (first, last, other, counting)


def test_what_counts_after_a_worksheet_was_corrected_is_what_the_gradebook_counts(
    library: Library, store: Store
) -> None:
    running, regrading = RunningActivity(library, store, ("llama-7b", "qwen2.5-0.5b")), Regrading()
    kim, lou = running.student("Kim"), running.student("Lou")
    old, counting = running.attempt(kim, FOLLOWING), running.attempt(lou, FOLLOWING)
    other = library.variant("qwen2.5-0.5b")
    answers = {
        **{str(blank): str(other.answer(blank)) for blank in other.blanks},
        "input.rows": "99",
        "queries.rows": "99",
    }
    removed = running.attempt(lou, answers, sheet_number=2)
    sheet = library.worksheets["llama-7b"]
    shorter = replace(library, worksheets={**library.worksheets, "llama-7b": replace(sheet, rows=sheet.rows[:-1])})
    running.change_marking("boxes")
    assert set(_scores_that_change(regrading, running)) == {old.id, counting.id, removed.id}
    running.library = shorter
    store.activities.revise(running.activity, freeze(shorter, ("llama-7b",), None))
    new = running.attempt(kim, {box: text for box, text in KEY.items() if not box.startswith("output")})
    assert _scores_that_change(regrading, running) == [counting.id]
    header, *rows = course_files(shorter, store, running.course).attempt_rows()
    of_attempt = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["student"], row["attempt"], row["counts"], row["out of"]) for row in of_attempt] == [
        ("Kim", 1, False, old.out_of),
        ("Kim", 2, True, new.out_of),
        ("Lou", 1, True, counting.out_of),
        ("Lou", 1, False, removed.out_of),
    ]


def _scores_that_change(regrading: Regrading, running: RunningActivity) -> list[int]:
    preview = regrading.preview(running.library, running.store, running.activity)
    return [change.attempt.id for change in preview.score_changes]


def test_the_database_is_asked_as_little_for_many_changes_as_for_one(library: Library, store: Store) -> None:
    running = RunningActivity(library, store)
    running.change_marking("causes")
    counts, regrading = list[int](), Regrading()
    for number in range(1, 13):
        running.attempt(running.student(f"S{number}"), FOLLOWING)
        running.change_marking("boxes")
        activity = running.activity
        with counted_statements(store) as statements:
            shown = regrading.preview(library, store, activity)
            assert regrading.apply(library, store, activity, running.teacher, shown.fingerprint) is shown
        assert len(shown.changes) == number
        running.change_marking("causes")
        again = regrading.preview(library, store, running.activity)
        regrading.apply(library, store, running.activity, running.teacher, again.fingerprint)
        counts.append(len(statements))
    assert set(counts) == {counts[0]}
    assert counts[0] <= 20  # a third of them look again, under the lock, whether anything has changed


def test_what_was_shown_is_applied_without_grading_again(
    library: Library, store: Store, graded: list[Mapping[str, str]]
) -> None:
    running, regrading = RunningActivity(library, store), Regrading()
    attempt = running.attempt(running.student(), FOLLOWING)
    running.change_marking("boxes")
    shown = regrading.preview(library, store, running.activity)
    assert regrading.apply(library, store, running.activity, running.teacher, "of other changes") is None
    assert regrading.apply(library, store, running.activity, running.teacher, shown.fingerprint) is shown
    after = regrading.preview(library, store, running.activity)
    assert (after.attempts, after.changes) == (1, ())
    assert len(graded) == 1
    [regraded] = store.classwork.attempts_of_activity(running.activity.id)
    assert (regraded.score, regraded.marked_by) == (attempt.score - 1, attempt.sheet_key)
    assert Regrading().preview(library, store, running.activity).changes == ()


def test_a_preview_is_made_again_once_anything_has_changed(
    library: Library, store: Store, graded: list[Mapping[str, str]]
) -> None:
    now = 1000.0
    running, regrading = RunningActivity(library, store), Regrading(lambda: now)
    kim = running.student()

    def previews() -> int:
        before = len(graded)
        regrading.preview(library, store, running.activity)
        return len(graded) - before

    running.attempt(kim, WIDE)
    assert (previews(), previews()) == (1, 0)
    running.attempt(kim, KEY)
    assert (previews(), previews()) == (2, 0)
    running.change_marking("rows")
    assert (previews(), previews()) == (2, 0)
    now += PREVIEW_TTL_S
    assert (previews(), previews()) == (2, 0)


def test_changes_that_are_no_shorter_those_shown_are_not_made(library: Library, store: Store) -> None:
    running, regrading = RunningActivity(library, store), Regrading()
    first = running.attempt(running.student("Kim"), FOLLOWING)
    running.change_marking("boxes")
    shown = regrading.preview(library, store, running.activity)
    running.change_marking("causes")
    second = running.attempt(running.student("Lou"), FOLLOWING)
    running.change_marking("boxes")
    assert regrading.apply(library, store, running.activity, running.teacher, shown.fingerprint) is None
    assert store.classwork.attempts_of_activity(running.activity.id) == (first, second)


def test_an_attempt_that_comes_in_last_stops_the_regrade(
    library: Library, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, regrading = RunningActivity(library, store), Regrading()
    kim, locked = running.student(), store.activities.locked
    running.attempt(kim, FOLLOWING)
    running.change_marking("boxes")
    shown = regrading.preview(library, store, running.activity)

    def locked_a_moment_later(activity: Activity) -> Activity | None:
        running.attempt(kim, FOLLOWING)
        return locked(activity)

    monkeypatch.setattr(store.activities, "locked", locked_a_moment_later)
    activity = running.activity
    assert regrading.apply(library, store, activity, running.teacher, shown.fingerprint) is None
    assert store.regrades.of_activity(activity.id) == ()
    assert not store.audit_log.entries({"activity": [activity.id]}, store.now() - timedelta(hours=1), 9)


def test_of_two_regrades_at_once_one_is_made(library: Library, store: Store) -> None:
    running = RunningActivity(library, store)
    running.attempt(running.student(), FOLLOWING)
    running.change_marking("boxes")
    activity, workers = running.activity, (Regrading(), Regrading())
    [shown] = {each.preview(library, store, activity).fingerprint for each in workers}
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda each: each.apply(library, store, activity, running.teacher, shown), workers)
    assert sorted(result is None for result in results) == [False, True]
    assert [each.changed for each in store.regrades.of_activity(activity.id)] == [1]
