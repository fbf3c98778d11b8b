"""A gradebook as Canvas and Moodle import it: one row for each student, one column for each activity."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from app.store import Student

from .spreadsheet import Cell, plain_csv

# Canvas ignores a column whose title holds the title of one of Canvas's columns, such as "Final Score", and takes a
# number in brackets at the end of a title for the id of an assignment.
_CANVAS_TITLE = re.compile(r"(Current|Final|Override) (?=Score|Points|Grade|Status)")
_CANVAS_ID = re.compile(r"\((\d+)\)\s*$")


@dataclass(frozen=True)
class PointsColumn:
    """The points that count in one activity, by the student's id, out of `points`; `excused` have the ids without."""

    title: str
    points: int
    scores: Mapping[int, float]
    excused: Collection[int] = ()


def canvas_csv(students: Sequence[Student], columns: Sequence[PointsColumn]) -> str:
    """Return a gradebook as Canvas exports and imports it, with the row of possible points below the header.

    Every student has a row, with an empty cell for an activity not tried, and EX if they are excused. Titles that
    Canvas would take for its columns ("Final Score" becomes "Final-Score"), or whose end it would take for an
    assignment's id ("(7)" becomes "[7]"), are changed, and a repeated one gets its count.

    Canvas finds a student by its ID (unknown here), then by SIS ID, by login and last by name. The number on the roster
    may be SIS ID or login, so it is written in both columns.
    """
    titles = unique_titles(_CANVAS_ID.sub(r"[\1]", _CANVAS_TITLE.sub(r"\1-", column.title)) for column in columns)
    rows: list[Sequence[Cell]] = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles)]
    rows.append(("    Points Possible", "", "", "", "", *(column.points for column in columns)))
    for student in students:
        points = ("EX" if student.id in each.excused else each.scores.get(student.id) for each in columns)
        rows.append((student.name, "", student.roster_key, student.roster_key, "", *points))
    return plain_csv(rows)


def moodle_csv(students: Sequence[Student], columns: Sequence[PointsColumn]) -> str:
    """Return a CSV file of grades in per cent of each column's points, the scale of grade items that Moodle makes.

    Grades have at most 2 decimals. A cell is empty if the student has not tried the activity or is excused, or if
    nothing can be earned. Students without a number on the roster are left out: Moodle would give their grades to the
    student in the row above. The key column is the e-mail address if every number is one, else the ID number. A
    repeated title gets its count: "Quiz (%) [2]".
    """
    numbered = [student for student in students if student.roster_key]
    by_email = bool(numbered) and all("@" in str(student.roster_key) for student in numbered)
    titles = unique_titles(f"{column.title} (%)" for column in columns)
    rows: list[Sequence[Cell]] = [("Email address" if by_email else "ID number", "Full name", *titles)]
    rows += [(s.roster_key, s.name, *(_percent(column, s) for column in columns)) for s in numbered]
    return plain_csv(rows)


def _percent(column: PointsColumn, student: Student) -> float | None:
    """Return a student's score in per cent with 2 decimals; None without a score, or if nothing can be earned."""
    score = column.scores.get(student.id)
    return None if score is None or not column.points else round(100 * score / column.points, 2)


def unique_titles(titles: Iterable[str]) -> Iterator[str]:
    """Yield titles that gradebooks don't merge: "A", "B", "A" become "A", "B", "A [2]".

    A number that would make a title which is there as it stands, or was yielded before, is passed over.
    """
    listed = list(titles)
    taken, seen = set(listed), set[str]()
    numbers = defaultdict[str, Iterator[int]](lambda: count(2))
    for title in listed:
        unique = title
        if title in seen:
            unique = next(new for number in numbers[title] if (new := f"{title} [{number}]") not in taken)
        seen.add(title)
        taken.add(unique)
        yield unique
