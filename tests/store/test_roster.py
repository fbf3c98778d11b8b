"""The students of a course and how they come in, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.names import RosterEntry, name_key
from app.store import (
    Plan,
    Store,
)
from app.store.roster import UNAMBIGUOUS_LETTERS, NameTakenError
from tests.helpers.at_once import all_at_once
from tests.helpers.stored_class import CONTENT, course, enrol_student, key, save


def test_a_roster_pasted_twice_is_there_once(store: Store) -> None:
    where = course(store)
    roster = [("Kim", "1"), ("Kim", "2"), ("Lou", None), ("lou", None)]
    assert store.roster.add_students(where, roster) == 3
    assert store.roster.add_students(where, roster) == 0
    assert [(s.name, s.roster_key) for s in store.roster.students(where)] == [
        ("Kim", "1"),
        ("Kim", "2"),
        ("Lou", None),
    ]


def test_a_name_of_the_roster_is_taken_once(store: Store) -> None:
    where = course(store)
    store.roster.add_students(where, [("Kim", None)])
    [kim] = store.roster.students(where)
    visitors = [store.add_visitor() for _ in range(4)]
    codes = list[str | None]()
    assert all_at_once(4, lambda n: codes.append(store.roster.claim_name(kim, visitors[n].id))) == []
    [code] = [found for found in codes if found]
    assert [store.roster.enrolled_student(visitor.id, where.id) is not None for visitor in visitors].count(True) == 1
    store.roster.release_student(kim)
    assert not any(store.roster.enrolled_student(visitor.id, where.id) for visitor in visitors)
    assert store.roster.find_by_resume_code(code) is None
    assert store.roster.claim_name(kim, visitors[0].id)


def test_a_resume_code_is_read_as_it_was_typed(store: Store) -> None:
    kim, _, code = enrol_student(store, course(store))
    assert len(code) == 10
    assert set(code) <= set(UNAMBIGUOUS_LETTERS)
    other = store.add_visitor()
    assert store.roster.find_by_resume_code(f" {code[:5].lower()}-{code[5:]} ") == kim
    store.roster.resume(kim, other.id)
    assert [enrolment.student for enrolment in store.roster.enrolments(other.id)] == [kim]
    fresh = store.roster.renew_code(kim)
    for wrong in (code, "", "\x00", "A" * 500, "é"):
        assert store.roster.find_by_resume_code(wrong) is None
    assert store.roster.find_by_resume_code(fresh) == kim


def test_a_browser_sits_as_one_student_of_a_course(store: Store) -> None:
    where = course(store)
    kim, visitor, _ = enrol_student(store, where)
    lou, _ = store.roster.enrol_new_student(where, "Lou", visitor.id)
    assert store.roster.enrolled_student(visitor.id, where.id) == lou
    store.roster.leave(kim, visitor.id)
    assert store.roster.enrolled_student(visitor.id, where.id) == lou
    store.roster.leave(lou, visitor.id)
    assert store.roster.enrolments(visitor.id) == ()
    assert store.roster.students(where) == (kim, lou)


def test_a_student_who_begins_while_idle_ones_are_removed_stays(store: Store) -> None:
    where = course(store)
    kim, _, _ = enrol_student(store, where, "Kim")
    lou, _, _ = enrol_student(store, where, "Lou")
    activity = store.activities.add(where, Plan("Week 3", None), CONTENT)
    removed = list[int]()
    remover = threading.Thread(target=lambda: removed.append(store.roster.remove_idle_newcomers(where, lou.id)))
    with store.transaction():
        save(store, key(kim, activity), {"queries.rows": "100"})
        remover.start()
        remover.join(0.3)
        assert not removed
    remover.join()
    assert removed == [1]
    assert store.roster.students(where) == (kim,)
    assert store.classwork.draft(key(kim, activity))


def test_two_imports_at_once_add_everybody_once(store: Store) -> None:
    teacher = store.people.add_teacher("twice@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    entries = [*((f"Student {number}", str(number)) for number in range(300)), ("Lee", None), ("LOU", None)]

    def join(name: str) -> int:
        try:
            store.roster.enrol_new_student(course, name)
        except NameTakenError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as threads:
        joined = threads.submit(join, "Lou")
        added = sum(threads.map(lambda _: store.roster.add_students(course, entries), range(3)))
    assert added + joined.result() == len(entries) == len(store.roster.students(course))


def test_a_name_without_a_number_is_there_once(store: Store) -> None:
    teacher = store.people.add_teacher("names@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    store.roster.add_students(course, [("Zoë", None), ("Zoë", "17"), ("Kim", "18")])
    with pytest.raises(NameTakenError):
        store.roster.enrol_new_student(course, "ZOË")
    kim = store.roster.students(course)[0]
    assert not store.roster.rename(kim, ("zoë", None))
    assert store.roster.rename(kim, ("zoë", "18"))
    assert [each.name for each in store.roster.namesakes(course, "Zoe\u0308")] == ["Zoë", "Zoë", "zoë"]


def test_a_number_keeps_its_title_until_it_changes(store: Store) -> None:
    teacher = store.people.add_teacher("titles@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    store.roster.add_students(course, [RosterEntry("Kim Lee", "17", "SIS User ID", "993")])

    def renamed(name: str, number: str | None) -> tuple[str | None, str | None]:
        [kim] = store.roster.students(course)
        assert store.roster.rename(kim, (name, number))
        [kim] = store.roster.students(course)
        return kim.number_title, kim.canvas_id

    assert renamed("Kim Fox", "17") == ("SIS User ID", "993")
    assert renamed("Kim Fox", "18") == (None, None)


def test_students_are_sorted_by_name_alike_on_both_databases(store: Store) -> None:
    teacher = store.people.add_teacher("sorted@example.org", "Ada")
    assert teacher
    course = store.courses.add("C", "UTC", teacher)
    names = ["Zoë", "zoe", "ada", "Ada B", "Émile", "李小龍", "o'Brien", "Ole", "ﬁ", "Straße", "_x"]
    store.roster.add_students(course, [(name, None) for name in names])
    assert [each.name for each in store.roster.students(course)] == sorted(names, key=name_key)


def test_a_page_of_a_roster_is_read_alone(store: Store) -> None:
    where = course(store)
    store.roster.add_students(where, [(f"Student {number:02}", f"{number}") for number in range(25)])
    enrol_student(store, where, "Kim")
    everybody = store.roster.students(where)
    assert [store.roster.students(where, start, 10) for start in (0, 10, 20)] == [
        everybody[start : start + 10] for start in (0, 10, 20)
    ]
    assert store.roster.count(where) == (26, 1)


def test_undoing_an_import_keeps_who_practised_before_their_name_was_released(store: Store) -> None:
    where = course(store)
    store.roster.add_students(where, [("Kim", None), ("Lou", None)])
    kim, _ = store.roster.students(where)
    store.roster.claim_name(kim, store.add_visitor().id)
    store.roster.keep_practice_record(kim, "a record")
    store.roster.release_student(kim)
    newest = store.roster.last_import(where)
    assert newest
    assert store.roster.undo_import(where, newest.key) == (1, 1)
    assert store.roster.practice_records(where) == {kim.id: "a record"}
