"""Who is on the staff of a course, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import threading

from app.store import Store
from tests.helpers.stored_class import course


def test_an_invitation_puts_on_the_staff_and_never_takes_down(store: Store) -> None:
    where = course(store)
    for email, role in (("bo@example.org", "assistant"), ("ada@example.org", "instructor")):
        link = store.people.find_link(store.people.add_link("invite", email, where.id, "assistant"))
        assert link
        member = store.people.follow_link(link, email, "Bo")
        assert member
        assert store.courses.role(where.id, member) == role


def test_the_last_instructor_of_a_course_stays(store: Store) -> None:
    where = course(store)
    link = store.people.find_link(store.people.add_link("invite", "bo@example.org", where.id, "assistant"))
    assert link
    helper = store.people.follow_link(link, "bo@example.org", "Bo")
    assert helper
    ada, bo = store.courses.staff(where)
    assert [(ada.role, ada.name), (bo.role, bo.name)] == [("instructor", "Ada"), ("assistant", "Bo")]
    assert not store.courses.remove_from_staff(where, ada.teacher_id)
    assert store.courses.remove_from_staff(where, bo.teacher_id)
    assert len(store.courses.staff(where)) == 1
    assert store.courses.role(where.id, helper) is None


def test_of_two_instructors_who_remove_each_other_one_stays(store: Store) -> None:
    where = course(store)
    link = store.people.find_link(store.people.add_link("invite", "bo@example.org", where.id, "instructor"))
    assert link
    store.people.follow_link(link, "bo@example.org", "Bo")
    ada, bo = store.courses.staff(where)
    results = list[bool]()
    second = threading.Thread(target=lambda: results.append(store.courses.remove_from_staff(where, bo.teacher_id)))
    with store.transaction():
        results.append(store.courses.remove_from_staff(where, ada.teacher_id))
        second.start()
        second.join(0.3)
    second.join()
    assert results == [True, False]
    assert [member.name for member in store.courses.staff(where)] == ["Bo"]
