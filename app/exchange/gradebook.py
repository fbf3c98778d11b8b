"""Scores of a course as Canvas and Moodle import them: one row for each student, one column for each activity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.store import Activity, ClassAttempt, Student

from .spreadsheet import Cell, plain_csv

# Canvas ignores a column whose title holds the title of one of its own columns, such as "Final Score", and takes a
# number in brackets at the end of a title for the id of an assignment.
_CANVAS_TITLE = re.compile(r"(Current|Final|Override) (?=Score|Points|Grade|Status)")
_CANVAS_ID = re.compile(r"\((\d+)\)\s*$")


@dataclass(frozen=True)
class GradebookColumn:
    """An activity in a gradebook: its points, and the score of each student who tried it, by the student's id."""

    title: str
    points: int
    scores: Mapping[int, float]


def gradebook_column(activity: Activity, points: Sequence[int], attempts: Iterable[ClassAttempt]) -> GradebookColumn:
    """Return the column of an activity: each student's last attempt on each sheet counts, a sheet not tried is worth 0.

    `points` are those of each sheet of the activity as it is now. An attempt earns its share of them, score / out_of,
    since a student's own numbers may have led to more or fewer boxes. Scores are rounded to 2 decimals; students
    without an attempt have none.
    """
    last: dict[tuple[int, int], ClassAttempt] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.id):
        sheet = _sheet_index(activity, attempt)
        if sheet is not None:
            last[attempt.student_id, sheet] = attempt
    scores = dict[int, float]()
    for (student_id, sheet), attempt in last.items():
        share = attempt.score / attempt.out_of if attempt.out_of else 0
        scores[student_id] = scores.get(student_id, 0) + share * points[sheet]
    rounded = {student_id: round(score, 2) for student_id, score in scores.items()}
    return GradebookColumn(activity.plan.title, sum(points), rounded)


def canvas_csv(students: Sequence[Student], columns: Sequence[GradebookColumn]) -> str:
    """Return a gradebook as Canvas exports and imports it, with the row of possible points below the header.

    Every student has a row, with an empty cell for an activity not tried. Titles are changed where Canvas would take
    them for columns of its own.

    Canvas finds a student by its own ID (unknown here), then by SIS ID, by login and last by name. The number on the
    roster may be SIS ID or login, so it is written in both columns.
    """
    titles = _unique_titles(_CANVAS_ID.sub(r"[\1]", _CANVAS_TITLE.sub(r"\1-", column.title)) for column in columns)
    rows: list[Sequence[Cell]] = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles)]
    rows.append(("    Points Possible", "", "", "", "", *(column.points for column in columns)))
    rows += [
        (s.name, "", s.roster_key, s.roster_key, "", *(column.scores.get(s.id) for column in columns)) for s in students
    ]
    return plain_csv(rows)


def moodle_csv(students: Sequence[Student], columns: Sequence[GradebookColumn]) -> str:
    """Return a CSV file of grades in per cent of each column's points, the scale of grade items that Moodle makes.

    The cell of an activity not tried is empty. Students without a number on the roster are left out: Moodle would give
    their grades to the student in the row above. The key column is the e-mail address where every number is one, else
    the ID number.
    """
    numbered = [student for student in students if student.roster_key]
    by_email = bool(numbered) and all("@" in str(student.roster_key) for student in numbered)
    titles = _unique_titles(f"{column.title} (%)" for column in columns)
    rows: list[Sequence[Cell]] = [("Email address" if by_email else "ID number", "Full name", *titles)]
    rows += [(s.roster_key, s.name, *(_percent(column, s) for column in columns)) for s in numbered]
    return plain_csv(rows)


def _percent(column: GradebookColumn, student: Student) -> float | None:
    """Return the student's score in per cent; None where they did not try, or nothing can be earned."""
    score = column.scores.get(student.id)
    return None if score is None or not column.points else round(100 * score / column.points, 2)


def _sheet_index(activity: Activity, attempt: ClassAttempt) -> int | None:
    """Return which sheet of the activity as it is now, from 0, an attempt counts for.

    An attempt of an earlier revision on a sheet that is gone counts for the sheet that has its number now, as if that
    had replaced it. None where no sheet has that number.
    """
    sheets = [item.sheet_key for item in activity.content.items]
    if attempt.sheet_key in sheets:
        return sheets.index(attempt.sheet_key)
    earlier = attempt.sheet_number <= len(sheets) and attempt.revision < activity.revision
    return attempt.sheet_number - 1 if earlier else None


def _unique_titles(titles: Iterable[str]) -> Iterator[str]:
    """Yield the titles in their order, a repeated one with its count: "A", "B", "A" become "A", "B", "A [2]".

    Gradebooks merge columns of one title.
    """
    counts = dict[str, int]()
    for title in titles:
        counts[title] = counts.get(title, 0) + 1
        yield title if counts[title] == 1 else f"{title} [{counts[title]}]"
