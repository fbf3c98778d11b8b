"""Class lists as they are pasted and exported, read as names with numbers."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.roster import LONGEST, MAX_ROWS, RosterError, decode, read_roster


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Kim Lee", [("Kim Lee", None)]),
        ("Kim Lee\n\n  Lou   Ray \n", [("Kim Lee", None), ("Lou Ray", None)]),
        ("Kim Lee, 1017\nLou Ray, 1018", [("Kim Lee", "1017"), ("Lou Ray", "1018")]),
        ("1017;Kim;Lee", [("Kim Lee", "1017")]),
        ("Name\tNumber\nKim Lee\t17", [("Kim Lee", "17")]),
        ("Matriculation number,Last name,First name,E-mail\ns17,Lee,Kim,kim@example.org", [("Kim Lee", "s17")]),
        ('Student,ID,SIS User ID,Section\n"Lee, Kim",993,s17,A', [("Kim Lee", "993")]),
        ('"Lee, Kim",s17', [("Kim Lee", "s17")]),
        ("First name,Last name,Email address\nKim,Lee,kim@example.org", [("Kim Lee", None)]),
        ("Kim Lee,kim@example.org", [("Kim Lee", None)]),
        ("name\nKim Lee", [("Kim Lee", None)]),
        ("Name,Number\nKim Lee", [("Kim Lee", None)]),
        ("Søren Ærø;7\n李 明;8", [("Søren Ærø", "7"), ("李 明", "8")]),
    ],
)
def test_class_lists_are_read(text: str, read: list[tuple[str, str | None]]) -> None:
    """Names alone, with numbers, with headers of several systems, family name first or last."""
    assert list(read_roster(text)) == read


@pytest.mark.parametrize("text", ["", "\n \n", "Name,Number", ";;;\n;;;"])
def test_a_list_without_a_name_is_refused(text: str) -> None:
    """Empty lines, empty cells, a header alone."""
    with pytest.raises(RosterError, match="empty"):
        read_roster(text)


def test_a_list_that_is_too_long_is_refused() -> None:
    """More rows than any class has."""
    assert len(read_roster("Kim\n" * MAX_ROWS)) == MAX_ROWS
    with pytest.raises(RosterError, match="long"):
        read_roster("Kim\n" * (MAX_ROWS + 1))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_files_are_read_as_they_were_saved(encoding: str) -> None:
    """In every encoding that a spreadsheet writes."""
    assert read_roster(decode("Name;Number\nJosé Núñez;5".encode(encoding))) == (("José Núñez", "5"),)


NAMES = st.text(st.characters(categories=["L"]), min_size=1, max_size=20)


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(1, 10**9)), min_size=1, max_size=20), st.sampled_from(",;\t"))
def test_what_a_spreadsheet_writes_is_read_back(people: list[tuple[str, str, int]], mark: str) -> None:
    """Any letters, written by Python's csv with a header, come back as first name, family name and number."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark)
    writer.writerow(["First name", "Last name", "Student ID"])
    writer.writerows(people)
    assert list(read_roster(out.getvalue())) == [(f"{a} {b}", str(number)) for a, b, number in people]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Whatever a file holds: names that can be shown, none longer than is kept, or RosterError."""
    try:
        entries = read_roster(decode(data))
    except RosterError:
        return
    assert entries
    for name, key in entries:
        assert name.isprintable()
        assert 0 < len(name) <= 2 * LONGEST + 1
        assert key is None or key.isprintable()
