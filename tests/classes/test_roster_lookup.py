"""Students found by what is written at the top of a paper sheet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.classes.roster_lookup import RosterLookup, names_with_numbers
from app.store import Student

PEOPLE = [
    Student(1, 1, "Kim Lee", "17", None),
    Student(2, 1, "Kim Fox", None, None),
    Student(3, 1, "李 明", "a@b.c", None),
    Student(4, 1, "José O'Neill", None, None),
]


ROSTER = RosterLookup(PEOPLE)


@pytest.mark.parametrize(
    ("written", "ids"),
    [("17", [1]), ("kim  LEE", [1]), ("Lee, Kim", [1]), ("Lee", [1]), ("Kim", [1, 2]), ("李 明", [3]), ("A@B.C", [3]),
     ("O’NEILL, Jose\u0301", [4]),
     ("", []), ("Ki", []), ("Kim Lee Fox", []), (",", [])],
)  # fmt: skip
def test_people_are_found_as_they_are_written(written: str, ids: list[int]) -> None:
    assert [student.id for student in ROSTER.find(written)] == ids


NAMESAKES = [
    Student(1, 1, "Alex Smith", "1020", None),
    Student(2, 1, "Alex Smith", "1044", None),
    Student(3, 1, "Kim Lee", "17", None),
]


def test_namesakes_are_found_as_their_sheets_call_them() -> None:
    roster = RosterLookup(NAMESAKES)
    assert roster.find("alex smith (1044)") == (NAMESAKES[1],)
    assert roster.find("Alex Smith") == tuple(NAMESAKES[:2])
    assert names_with_numbers(NAMESAKES)[3] == "Kim Lee"


@given(st.text(max_size=30))
def test_any_text_finds_people_of_the_roster_or_nobody(written: str) -> None:
    assert set(ROSTER.find(written)) <= set(PEOPLE)
    assert ROSTER.find(f" {PEOPLE[0].name.upper()} ") == (PEOPLE[0],)
