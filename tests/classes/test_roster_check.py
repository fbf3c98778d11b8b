"""What a class list would add to a roster: each row new, known or odd."""

from __future__ import annotations

import pytest

from app.classes.roster_check import check_entries
from app.store import Student

ROSTER = (Student(1, 1, "Kim Lee", "17", None), Student(2, 1, "Zoë Fox", None, None))


@pytest.mark.parametrize(
    ("entry", "kind", "reason"),
    [
        (("Lou Ray", "18"), "new", ""),
        (("Lou Ray", None), "new", ""),
        (("LEE, Kim", "17"), "known", ""),
        (("Somebody Else", "17"), "odd", "number-taken"),
        (("ZOË  FOX", None), "known", ""),
        (("Zoe\u0308 Fox", None), "known", ""),
        (("Kim Lee", "18"), "odd", "namesake"),
        (("Kim Lee", None), "odd", "namesake"),
        (("Zoë Fox", "18"), "odd", "namesake"),
        (("Student 7", "18"), "odd", "no-name"),
        (("Course: CS", None), "odd", "no-name"),
        (("—", None), "odd", "no-name"),
    ],
)
def test_a_row_is_new_known_or_odd(entry: tuple[str, str | None], kind: str, reason: str) -> None:
    [checked] = check_entries([entry], ROSTER)
    assert (checked.entry[:2], checked.kind, checked.reason) == (entry, kind, reason)


@pytest.mark.parametrize(
    ("entry", "other"),
    [(("Kim Fox", "17"), 1), (("Kim Lee", "18"), 1), (("Zoë Fox", "18"), 2), (("Kim Lee", None), 0), (("Lou", "1"), 0)],
)
def test_a_row_may_be_somebody_on_the_roster(entry: tuple[str, str | None], other: int) -> None:
    [checked] = check_entries([entry], ROSTER)
    assert (checked.other.id if checked.other else 0) == other


def test_one_number_with_two_names_in_a_list_is_a_question() -> None:
    assert [each.reason for each in check_entries([("Lou Ray", "18"), ("Bo Li", "18")], ROSTER)] == ["", "number-taken"]


@pytest.mark.parametrize("entry", [("Lou Ray", "18"), ("Lou Ray", None), ("Student 7", None)])
def test_a_row_that_comes_twice_is_added_once(entry: tuple[str, str | None]) -> None:
    assert [each.kind == "known" for each in check_entries([entry, entry], ROSTER)] == [False, True]
