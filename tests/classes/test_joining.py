"""Who is meant by a typed name, and what is suggested to somebody who has the join code and no right to the roster."""

from __future__ import annotations

import pytest

from app.classes.joining import NameChoice, choose_name, suggested_names
from app.store import Store, Student
from tests.helpers.stored_class import teacher

KIM, ZOE, MAX = ("Kim Lee", "17"), ("Zoë O’Brien", None), ("Max Lee-Fox", "19")


class Listed:
    """A course with these names and numbers on its roster; everybody called Max has joined."""

    def __init__(
        self, store: Store, *entries: tuple[str, str | None], joined: tuple[str, ...] = ("Max Lee-Fox",)
    ) -> None:
        self.roster, self.course = store.roster, store.courses.add("C", "UTC", teacher(store))
        self.roster.add_students(self.course, entries)
        for student in self.roster.students(self.course):
            if student.name in joined:
                self.roster.claim_name(student, store.add_visitor().id)

    def choose(self, name: str, number: str = "") -> NameChoice:
        return choose_name(self.roster, self.course, name, number)

    def numbered(self, number: str | None) -> Student:
        [student] = [each for each in self.roster.students(self.course) if each.roster_key == number]
        return student


@pytest.mark.parametrize(
    ("typed", "names"),
    [("", ()), ("lee", ()), ("k le", ()), ("LEE K", ("Kim Lee",)), ("lee, kim", ("Kim Lee",)), ("im lee", ()),
     ("zoe\u0308 o'b", ("Zoë O’Brien",)), ("max", ()), ("100%", ()), ("kim_", ())],
)  # fmt: skip
def test_names_are_suggested_by_the_beginnings_of_their_words(store: Store, typed: str, names: tuple[str, ...]) -> None:
    listed = Listed(store, KIM, ZOE, MAX)
    assert suggested_names(listed.roster, listed.course, typed) == names


def test_many_names_that_fit_are_none(store: Store) -> None:
    listed = Listed(store, *((f"Name{number} Sample", None) for number in range(5)), ("name4 sample", "4"))
    assert len(suggested_names(listed.roster, listed.course, "samp")) == 5
    listed.roster.add_students(listed.course, [("Name6 Sample", None)])
    assert suggested_names(listed.roster, listed.course, "samp") == ()


def test_students_without_numbers_are_not_asked_for_one(store: Store) -> None:
    listed = Listed(store, ("Alex", None), ("Alex", "1020"))
    assert listed.choose("alex", "1020") == NameChoice(listed.numbered("1020"))
    assert listed.choose("alex", "7").asks_number
    assert listed.choose("alex") == NameChoice(listed.numbered(None))


def test_a_name_is_taken_by_who_has_joined_under_it(store: Store) -> None:
    listed = Listed(store, ("Alex", None), joined=("Alex",))
    assert listed.choose("ALEX") == NameChoice(is_taken=True)


@pytest.mark.parametrize("typed", ["Kim", "Lee, K", "Kim Le", "Kmi Lee", "Kim Leee", "zoe o’brian"])
def test_a_name_that_is_nearly_on_the_list_is_asked_about(store: Store, typed: str) -> None:
    listed = Listed(store, KIM, ZOE, MAX)
    choice = listed.choose(typed)
    [name] = choice.suggestions
    assert (choice.student, name in {KIM[0], ZOE[0]}) == (None, True)
    for student in listed.roster.students(listed.course):
        listed.roster.claim_name(student, store.add_visitor().id)
    assert listed.choose(typed) == NameChoice(is_near=True)


@pytest.mark.parametrize("typed", ["Kim Fox", "Amir", "Ki", "Lou Lee", "K", "Group 1", "Group 13"])
def test_another_name_is_a_new_student(store: Store, typed: str) -> None:
    assert Listed(store, KIM, ZOE, MAX, ("Group 12", None)).choose(typed) == NameChoice()


def test_a_name_near_to_many_suggests_none_of_them(store: Store) -> None:
    listed = Listed(store, *((f"Name{number} Sample", None) for number in range(6)))
    assert listed.choose("Sample") == NameChoice(is_near=True)
