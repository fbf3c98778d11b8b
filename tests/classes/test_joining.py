"""Who is meant by a typed name, and what is suggested to somebody who has the join code and no right to the roster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.classes.joining import NameChoice, choose_name, suggested_names
from app.store import Student

JOINED = datetime(2026, 3, 31, tzinfo=UTC)
KIM, ZOE, MAX = (
    Student(1, 1, "Kim Lee", "17", None),
    Student(2, 1, "Zoë O’Brien", None, None),
    Student(3, 1, "Max Lee-Fox", "19", JOINED),
)


@pytest.mark.parametrize(
    ("typed", "names"),
    [("", ()), ("lee", ()), ("k le", ()), ("LEE K", ("Kim Lee",)), ("lee, kim", ("Kim Lee",)), ("im lee", ()),
     ("zoe\u0308 o'b", ("Zoë O’Brien",)), ("max", ())],
)  # fmt: skip
def test_names_are_suggested_by_the_beginnings_of_their_words(typed: str, names: tuple[str, ...]) -> None:
    """After four letters, whatever the case, accents composed or not; never that of somebody who has joined."""
    assert suggested_names((KIM, ZOE, MAX), typed) == names


def test_students_without_numbers_are_not_asked_for_one() -> None:
    """Two of one name and no number: the first free one; with the number of one of them, both are asked."""
    first, second = Student(4, 1, "Alex", None, JOINED), Student(5, 1, "Alex", None, None)
    numbered = Student(6, 1, "Alex", "1020", None)
    assert choose_name((first, second), "alex") == NameChoice(second)
    assert choose_name((first, second, numbered), "alex", "1020") == NameChoice(numbered)
    assert choose_name((first, second, numbered), "alex", "7").asks_number
    assert choose_name((first, second, numbered), "alex") == NameChoice(second)


@pytest.mark.parametrize("typed", ["Kim", "Lee, K", "Kim Le", "Kmi Lee", "Kim Leee", "zoe o’brian"])
def test_a_name_that_is_nearly_on_the_list_is_asked_about(typed: str) -> None:
    """A part of it, or a slip in it: the name is suggested until its student has joined, and then only asked about."""
    everybody = (KIM, ZOE, MAX)
    choice = choose_name(everybody, typed)
    [name] = choice.suggestions
    assert choice.student is None
    joined = tuple(replace(student, joined_at=JOINED) for student in everybody)
    assert choose_name(joined, typed) == NameChoice(is_near=True)
    assert name in {KIM.name, ZOE.name}


@pytest.mark.parametrize("typed", ["Kim Fox", "Amir", "Ki", "Lou Lee", "K", "Group 1", "Group 13"])
def test_another_name_is_a_new_student(typed: str) -> None:
    """A first or last name in common is not enough, nor are two letters, nor a number that differs."""
    group = Student(9, 1, "Group 12", None, None)
    assert choose_name((KIM, ZOE, MAX, group), typed) == NameChoice()


def test_a_name_near_to_many_suggests_none_of_them() -> None:
    """Whoever has the join code is not to read the roster; but nobody is added without a question."""
    many = tuple(Student(number, 1, f"Name{number} Sample", None, None) for number in range(6))
    assert choose_name(many, "Sample") == NameChoice(is_near=True)
