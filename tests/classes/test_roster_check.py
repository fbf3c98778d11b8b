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
        (("Somebody Else", "17"), "known", ""),  # the number decides
        (("ZOË  FOX", None), "known", ""),
        (("Zoe\u0308 Fox", None), "known", ""),
        (("Kim Lee", "18"), "odd", "namesake"),
        (("Kim Lee", None), "odd", "namesake"),
        (("Zoë Fox", "18"), "odd", "namesake"),
        (("Student 7", "18"), "odd", "no-name"),
        (("—", None), "odd", "no-name"),
    ],
)
def test_a_row_is_new_known_or_odd(entry: tuple[str, str | None], kind: str, reason: str) -> None:
    """By its number where it has one, else by the name in any case and spelling."""
    [checked] = check_entries([entry], ROSTER)
    assert (checked.entry, checked.kind, checked.reason) == (entry, kind, reason)


@pytest.mark.parametrize("entry", [("Lou Ray", "18"), ("Lou Ray", None), ("Student 7", None)])
def test_a_row_that_comes_twice_is_added_once(entry: tuple[str, str | None]) -> None:
    """Also one that is added only if the teacher ticks it."""
    assert [each.kind == "known" for each in check_entries([entry, entry], ROSTER)] == [False, True]
