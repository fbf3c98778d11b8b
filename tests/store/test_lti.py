"""Platforms, launches and people of learning management systems, on both databases."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from app.store import Course, Plan, Policies, Store, Student
from app.store.lti import KEY_FETCH_INTERVAL, LAUNCH_LIFETIME, MAX_UNCONFIRMED, DeepLinking
from app.store.tables import lti_deployments, lti_launches
from tests.helpers.at_once import all_at_once
from tests.helpers.clock import Clock
from tests.helpers.lti import launch, platform
from tests.helpers.stored_class import CONTENT, teacher


@pytest.fixture
def course(store: Store) -> Course:
    return store.courses.add("Transformers", "Europe/Berlin", teacher(store))


def test_two_clients_of_one_issuer_are_told_apart_by_the_client_id(store: Store) -> None:
    first = platform(store)
    assert store.lti.find_platform(first.issuer) == first
    second = platform(store, "client-2")
    assert store.lti.find_platform(first.issuer) is None
    assert store.lti.find_platform(first.issuer, "client-2") == second
    assert store.lti.add_platform("Again", first.issuer, "client-2", "", "", "") is None
    assert second.audience == second.token_url


def test_an_unknown_deployment_waits_until_it_is_confirmed(store: Store) -> None:
    moodle = platform(store)
    assert store.lti.is_confirmed(moodle.id, "1")
    assert not store.lti.is_confirmed(moodle.id, "2")
    assert [each.deployment_id for each in store.lti.deployments()] == ["2", "1"]
    store.lti.confirm_deployment(moodle.id, "2")
    assert store.lti.is_confirmed(moodle.id, "2")
    for number in range(MAX_UNCONFIRMED + 5):
        assert not store.lti.is_confirmed(moodle.id, f"school-{number}")
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(lti_deployments)) == MAX_UNCONFIRMED + 2


def test_keys_are_fetched_once_however_many_ask(store: Store, clock: Clock) -> None:
    moodle, claimed = platform(store), list[bool]()
    assert all_at_once(4, lambda _: claimed.append(store.lti.claim_key_fetch(moodle))) == []
    assert sorted(claimed) == [False, False, False, True]
    clock.pass_seconds(KEY_FETCH_INTERVAL.total_seconds() + 1)
    assert store.lti.claim_key_fetch(moodle)


def test_a_nonce_counts_once_even_at_the_same_moment(store: Store) -> None:
    seen, kept = launch(platform(store)), list[bool]()
    assert all_at_once(3, lambda n: kept.append(store.lti.keep_launch(f"state-{n}", "nonce", seen))) == []
    assert sorted(kept) == [False, False, True]
    assert not store.lti.keep_launch("another state", "nonce", seen)


def test_a_launch_is_found_by_its_state_until_it_is_finished_or_too_old(store: Store, clock: Clock) -> None:
    choosing = DeepLinking("https://lms.example.org/return", True, False, True, '{"a": 1}')
    seen = launch(platform(store), deep_linking=choosing)
    assert store.lti.keep_launch("state", "nonce", seen)
    assert store.lti.find_launch("state") == seen
    assert store.lti.find_launch("nonce") is None
    assert store.lti.finish_launch("state")
    assert not store.lti.finish_launch("state")
    assert store.lti.find_launch("state") is None
    assert not store.lti.keep_launch("state 2", "nonce", seen)
    assert store.lti.keep_launch("state 3", "nonce 3", seen)
    clock.pass_seconds(LAUNCH_LIFETIME.total_seconds() + 1)
    assert store.lti.find_launch("state 3") is None
    assert store.lti.keep_launch("state 4", "nonce 4", seen)
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(lti_launches)) == 1


def test_a_context_and_a_link_stay_with_what_they_were_linked_with_first(store: Store, course: Course) -> None:
    moodle = platform(store)
    seen = launch(moodle, lineitem_url="https://lms.example.org/items/1")
    assert store.lti.find_course(seen) is None
    linked = store.lti.link_course(seen, course.id)
    other = store.courses.add("Another", "Europe/Berlin", teacher(store, "other@example.org"))
    moved = launch(moodle, memberships_url="https://lms.example.org/moved")
    assert store.lti.link_course(moved, other.id).course_id == course.id
    found = store.lti.find_course(seen)
    assert found
    assert (found.id, found.memberships_url) == (linked.id, "https://lms.example.org/moved")
    assert store.lti.courses_of(course) == (found,)
    first, second = (store.activities.add(course, Plan(title, None, Policies()), CONTENT).id for title in "AB")
    assert store.lti.link_activity(found, seen, first).activity_id == first
    again = store.lti.link_activity(found, moved, second)
    assert (again.activity_id, again.lineitem_url) == (first, "https://lms.example.org/items/1")


def test_somebody_has_one_account_and_one_student_per_course(store: Store, course: Course) -> None:
    moodle, ada = platform(store), teacher(store)
    store.lti.connect(moodle.id, "user-1", ada)
    store.lti.connect(moodle.id, "user-1", teacher(store, "other@example.org"))
    assert store.lti.teacher(moodle.id, "user-1") == ada
    assert store.lti.student(moodle.id, "user-1", course.id) is None
    students, context = list[Student](), store.lti.link_course(launch(moodle), course.id)
    assert all_at_once(3, lambda _: students.append(store.lti.add_student(context, "user-1", course, "Ada"))) == []
    assert len(set(students)) == 1
    assert students[0].joined_at is None
    store.lti.disconnect(ada)
    assert store.lti.teacher(moodle.id, "user-1") is None
    assert store.lti.student(moodle.id, "user-1", course.id) == students[0]


def test_names_from_a_platform_never_join_two_people(store: Store, course: Course) -> None:
    context = store.lti.link_course(launch(platform(store)), course.id)
    store.roster.enrol_new_student(course, "Ada Lovelace")
    names = [store.lti.add_student(context, f"user-{n}", course, name).name for n, name in enumerate(
        ["Ada Lovelace", "ada lovelace", "", "", "x" * 100, "x" * 100])]  # fmt: skip
    assert names[:2] == ["Ada Lovelace (2)", "ada lovelace (3)"]
    assert len(set(names)) == 6
    assert "3" in names[2]
    assert "4" in names[3]
    assert all(0 < len(name) <= 100 for name in names)


def test_merged_students_keep_their_identities_at_the_platform(store: Store, course: Course) -> None:
    moodle = platform(store)
    joined, _code = store.roster.enrol_new_student(course, "Ada")
    bound = store.lti.add_student(store.lti.link_course(launch(moodle), course.id), "user-1", course, "Ada Lovelace")
    assert store.student_merge.merge(joined, bound)
    found = store.lti.student(moodle.id, "user-1", course.id)
    assert found
    assert found.id == joined.id


def test_three_of_our_keys_are_kept(store: Store) -> None:
    for number in range(5):
        store.lti.add_signing_key(f"key-{number}", "encrypted")
    assert [each.key_id for each in store.lti.signing_keys()] == ["key-4", "key-3", "key-2"]


def test_removing_a_platform_leaves_students_and_activities(store: Store, course: Course) -> None:
    moodle = platform(store)
    activity = store.activities.add(course, Plan("Week 1", None, Policies()), CONTENT)
    seen = launch(moodle)
    context = store.lti.link_course(seen, course.id)
    store.lti.link_activity(context, seen, activity.id)
    student = store.lti.add_student(context, "user-1", course, "Ada")
    store.lti.remove_platform(moodle)
    assert store.lti.platforms() == ()
    assert store.roster.find_student(student.id)
    assert store.activities.find(activity.id)
