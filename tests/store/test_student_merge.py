"""Merging two students keeps all that either did, on both databases."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.activities.work import Edit
from app.names import RosterEntry
from app.store import Activity, ClassSheetKey, Course, Plan, Policies, Store, Student, VariantSizes
from app.store import student_merge as merging
from app.store.tables import (
    attempts,
    drafts,
    extra_time,
    grade_changes,
    metadata,
    students,
    ticket_answers,
)
from tests.helpers.stored_class import CONTENT, LLAMA, enrol_student, key, record, save, teacher

OTHER_SIZES = VariantSizes("llama-7b", 64)
TEXTS = st.dictionaries(st.sampled_from(["queries.rows", "queries.columns"]), st.sampled_from(["", "1", "100"]))


@pytest.fixture
def course(store: Store) -> Course:
    return store.courses.add("Transformers", "Europe/Berlin", teacher(store))


def activity_in(store: Store, course: Course) -> Activity:
    activity = store.activities.add(course, Plan("Week 3", None, Policies()), CONTENT)
    store.activities.set_state(activity, "open")
    return activity


def draw_work(data: st.DataObject, store: Store, activity: Activity, student: Student) -> None:
    """Let a student arrive, type, check and hand in at random, some of it under a client id that others use too."""
    for _ in range(data.draw(st.integers(0, 4))):
        place = key(student, activity)
        place = ClassSheetKey(**{**asdict(place), "sheet_key": data.draw(st.sampled_from([place.sheet_key, "old@1"]))})
        sizes = data.draw(st.sampled_from([LLAMA, OTHER_SIZES]))
        texts = data.draw(TEXTS)
        store.classwork.arrive(activity.id, student.id)
        if data.draw(st.booleans()):
            save(store, place, texts, sizes=sizes)
        else:
            client_id = data.draw(st.sampled_from(["paper.1", "a", "b"]))
            record(store, place, texts, client_id=client_id, handed_in=data.draw(st.booleans()), sizes=sizes)


def attempts_of(store: Store, *students_: Student) -> list[dict[str, Any]]:
    """Every attempt of these students in order, without whose it is and the id of the request."""
    query = sa.select(attempts).where(attempts.c.student_id.in_([s.id for s in students_]))
    with store.engine.connect() as connection:
        rows = connection.execute(query.order_by(attempts.c.id)).all()
    return [{n: v for n, v in row._mapping.items() if n not in ("student_id", "client_id")} for row in rows]


def typed_by(store: Store, *students_: Student) -> Counter[tuple[str, int, str, str]]:
    """Every text in the drafts of these students: of which sheet, with how many tokens, in which box."""
    query = sa.select(drafts).where(drafts.c.student_id.in_([s.id for s in students_]))
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
    return Counter(
        (row.sheet_key.rpartition(" ")[2], row.variant.tokens, blank, text)
        for row in rows
        for blank, text in row.answers.items()
        if text
    )


@settings(
    max_examples=10,
    phases=[Phase.explicit, Phase.generate],
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_merging_any_two_students_keeps_every_attempt_and_every_answer(
    store: Store, course: Course, data: st.DataObject
) -> None:
    activities = [activity_in(store, course), activity_in(store, course)]
    kim, lee = (enrol_student(store, course, f"{name} {activities[0].id}")[0] for name in ("Kim", "Kim Lee"))
    for activity in activities:
        for student in data.draw(st.permutations([kim, lee])):
            draw_work(data, store, activity, student)
    made, typed = attempts_of(store, kim, lee), typed_by(store, kim, lee)
    arrived = {seen for a in activities for seen in ((a.id, v.student_id) for v in store.classwork.attendance(a.id))}
    preview = store.student_merge.preview(lee, kim)
    assert store.student_merge.merge(lee, kim)
    assert attempts_of(store, lee) == made
    assert set(typed_by(store, lee)) == set(typed)
    assert not typed_by(store, lee) - typed
    assert preview.attempts + preview.activities >= sum(student_id == kim.id for _, student_id in arrived)
    came = {(a.id, seen.student_id) for a in activities for seen in store.classwork.attendance(a.id)}
    assert came == {(activity_id, lee.id) for activity_id, _ in arrived}
    assert store.roster.find_student(kim.id) is None


def test_texts_kept_aside_never_meet(store: Store, course: Course) -> None:
    activity = activity_in(store, course)
    (kim, _, _), (lee, _, _) = enrol_student(store, course, "Kim"), enrol_student(store, course, "Kim Lee")
    here = key(kim, activity)
    for whose, text in ((here, "1"), (key(lee, activity), "2")):
        save(store, whose, {"queries.rows": text})
    for owner, there, text in ((kim, f"~{lee.id}", "3"), (lee, f"~{lee.id}.2", "4")):
        place = ClassSheetKey(**{**asdict(key(owner, activity)), "sheet_key": f"{there} {here.sheet_key}"})
        save(store, place, {"queries.rows": text})
    assert store.student_merge.merge(kim, lee)
    stored = store.classwork.drafts_of_activity(activity.id)
    assert sorted(draft.answers["queries.rows"] for draft in stored) == ["1", "2", "3", "4"]


def test_a_save_that_arrives_again_after_a_merge_changes_nothing(store: Store, course: Course) -> None:
    activity = activity_in(store, course)
    (kim, _, _), (lee, _, _) = enrol_student(store, course, "Kim"), enrol_student(store, course, "Kim Lee")

    def save_edit(student: Student, text: str, edit: Edit) -> str:
        edits = {"queries.rows": edit}
        return save(store, key(student, activity), {"queries.rows": text}, edits).answers["queries.rows"]

    save_edit(kim, "1", Edit("phone", 3))
    save_edit(lee, "2", Edit("laptop", 1))
    assert store.student_merge.merge(kim, lee)
    assert [save_edit(kim, "1", Edit("phone", 3)), save_edit(kim, "0", Edit("laptop", 1))] == ["2", "2"]
    assert [save_edit(kim, "5", Edit("phone", 4)), save_edit(kim, "6", Edit("laptop", 2))] == ["5", "6"]


def test_a_save_during_a_merge_is_refused_or_kept(
    store: Store, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity = activity_in(store, course)
    kim, lou = (enrol_student(store, course, name)[0] for name in ("Kim", "Lou"))
    save(store, key(kim, activity), {"queries.rows": "1"})
    save(store, key(lou, activity), {"queries.columns": "2"})
    refused = list[Exception]()

    def save_late() -> None:
        try:
            save(store, key(lou, activity), {"queries.columns": "99"})
        except sa.exc.IntegrityError as error:
            refused.append(error)

    late = Thread(target=save_late)

    def combine_slowly(ours: Any, theirs: Any) -> Any:
        late.start()
        late.join(0.3)
        return combine(ours, theirs)

    combine = merging._COMBINED[drafts]
    monkeypatch.setitem(merging._COMBINED, drafts, combine_slowly)
    assert store.student_merge.merge(kim, lou)
    late.join()
    assert len(refused) == 1
    merged = store.classwork.draft(key(kim, activity))
    assert merged
    assert merged.answers == {"queries.rows": "1", "queries.columns": "2"}


def test_every_table_that_belongs_to_students_is_merged() -> None:
    owned = {
        table
        for table in metadata.sorted_tables
        if any(foreign.column is students.c.id for foreign in table.foreign_keys)
    }
    assert owned == {attempts, *merging._COMBINED, *merging._FREELY_MOVED}


def test_what_both_have_becomes_one(store: Store, course: Course) -> None:
    activity = activity_in(store, course)
    store.roster.add_students(course, [("Zoë O'Brien", "1017")])
    [listed] = store.roster.students(course)
    typed, visitor, code = enrol_student(store, course, "Zoe O'Brien")
    store.classwork.arrive(activity.id, typed.id)
    store.exit_tickets.hand_in(activity.id, typed.id, {"muddiest": "V"}, anonymous=False)
    store.roster.keep_practice_record(typed, '[7,1,"",0,[]]')
    now = datetime.now(UTC)
    with store.engine.begin() as connection:
        for student, minutes, points, at in ((listed, 10, 3.0, now), (typed, 20, 5.0, now + timedelta(minutes=1))):
            owner = {"activity_id": activity.id, "student_id": student.id}
            connection.execute(sa.insert(extra_time).values(**owner, minutes=minutes))
            grade = {"kind": "points", "points": points, "reason": "oral", "at": at}
            connection.execute(sa.insert(grade_changes).values(**owner, **grade))
    preview = store.student_merge.preview(listed, typed)
    assert (preview.exit_tickets, preview.browsers, preview.replaced_grades) == (1, 1, (activity.id,))
    assert not preview.ends_resume_code
    assert store.student_merge.merge(listed, typed)
    [merged] = store.roster.students(course)
    assert (merged.name, merged.roster_key, merged.joined_at) == ("Zoë O'Brien", "1017", typed.joined_at)
    assert store.roster.is_resume_code(merged, code)
    assert store.roster.enrolled_student(visitor.id, course.id) == merged
    assert store.exit_tickets.is_handed_in(activity.id, merged.id)
    assert store.roster.practice_records(course) == {merged.id: '[7,1,"",0,[]]'}
    with store.engine.connect() as connection:
        assert connection.scalars(sa.select(extra_time.c.minutes)).all() == [20]
        assert connection.scalars(sa.select(grade_changes.c.points).order_by(grade_changes.c.id)).all() == [3.0, 5.0]
        assert connection.scalars(sa.select(ticket_answers.c.student_id)).all() == [merged.id]


@pytest.mark.parametrize("listed_stays", [True, False])
def test_a_number_comes_with_the_title_of_its_column(store: Store, course: Course, listed_stays: bool) -> None:
    store.roster.add_students(course, [RosterEntry("Kim Lee", "17", "SIS User ID", "993")])
    [listed], typed = store.roster.students(course), enrol_student(store, course, "Kimmy Lee")[0]
    assert store.student_merge.merge(*((listed, typed) if listed_stays else (typed, listed)))
    [merged] = store.roster.students(course)
    assert (merged.roster_key, merged.number_title, merged.canvas_id) == ("17", "SIS User ID", "993")


def test_points_that_count_survive_what_the_other_student_had_undone(store: Store, course: Course) -> None:
    activity, ada = activity_in(store, course), teacher(store, "eve@example.org")
    kim, lee = enrol_student(store, course, "Kim")[0], enrol_student(store, course, "Kim Lee")[0]
    store.grades.change(activity.id, kim.id, ada, "points", 9, reason="oral")
    store.grades.change(activity.id, lee.id, ada, "excused", reason="ill")
    store.grades.change(activity.id, lee.id, ada, "undone")
    assert store.student_merge.preview(lee, kim).replaced_grades == ()
    assert store.student_merge.merge(lee, kim)
    [counted] = store.grades.overrides([activity.id], lee.id)
    assert (counted.points, counted.reason, counted.by) == (9, "oral", ada.name)
    assert [each.kind for each in store.grades.changes(activity.id, lee.id)] == [
        "points",
        "excused",
        "undone",
        "points",
    ]


def test_students_who_cannot_be_merged_stay(store: Store, course: Course) -> None:
    kim, lee, gone = (enrol_student(store, course, name)[0] for name in ("Kim", "Lee", "Gone"))
    other = enrol_student(store, store.courses.add("Other", "UTC", teacher(store, "bo@example.org")), "Kim")[0]
    store.roster.remove_student(gone)
    assert not any(store.student_merge.merge(kim, student) for student in (kim, other, gone))
    assert store.roster.students(course) == (kim, lee)
