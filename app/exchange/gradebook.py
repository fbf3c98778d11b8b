"""Scores of a course as the gradebooks of Canvas and Moodle import them: a row a student, a column an activity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.store import Activity, Student, Try

from .spreadsheet import Cell, plain_csv

# Canvas leaves out columns whose title has one of its own in it, and reads a number in brackets as one of its keys.
_OWN_TITLE = re.compile(r"(Current|Final|Override) (?=Score|Points|Grade|Status)")
_OWN_KEY = re.compile(r"\((\d+)\)\s*$")


@dataclass(frozen=True)
class Column:
    """An activity in a gradebook: how many points it has, and those of each student who tried, by their id."""

    title: str
    points: int
    scores: Mapping[int, float]


def column(activity: Activity, boxes: Sequence[int], tries: Iterable[Try]) -> Column:
    """The last try of each student on each sheet counts; a sheet that was not tried earns nothing.

    `boxes` are the points of each sheet. Where somebody's numbers made another number of boxes, their share counts.
    """
    last: dict[tuple[int, int], Try] = {}
    for tried in sorted(tries, key=lambda tried: tried.id):
        number = _number(activity, tried)
        if number is not None:
            last[tried.student_id, number] = tried
    scores = dict[int, float]()
    for (student, number), tried in last.items():
        share = tried.score / tried.out_of if tried.out_of else 0
        scores[student] = scores.get(student, 0) + share * boxes[number]
    return Column(activity.plan.title, sum(boxes), {student: round(score, 2) for student, score in scores.items()})


def canvas(students: Sequence[Student], columns: Sequence[Column]) -> str:
    """A gradebook as Canvas exports and imports it.

    Canvas looks for a student by ID (its own, unknown here), then by SIS ID, by login, and at last by name; the number
    of the roster may be either of the two.
    """
    titles = _different(_OWN_KEY.sub(r"[\1]", _OWN_TITLE.sub(r"\1-", column.title)) for column in columns)
    rows: list[Sequence[Cell]] = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles)]
    rows.append(("    Points Possible", "", "", "", "", *(column.points for column in columns)))
    rows += [
        (s.name, "", s.roster_key, s.roster_key, "", *(column.scores.get(s.id) for column in columns)) for s in students
    ]
    return plain_csv(rows)


def moodle(students: Sequence[Student], columns: Sequence[Column]) -> str:
    """Grades in per cent, which is what a grade item that Moodle makes on import has.

    Only students with a number: without one, Moodle would give the grades to whoever stands in the row above.
    """
    known = [student for student in students if student.roster_key]
    mail = bool(known) and all("@" in str(student.roster_key) for student in known)
    titles = _different(f"{column.title} (%)" for column in columns)
    rows: list[Sequence[Cell]] = [("Email address" if mail else "ID number", "Full name", *titles)]
    rows += [(s.roster_key, s.name, *(_percent(column, s) for column in columns)) for s in known]
    return plain_csv(rows)


def _percent(column: Column, student: Student) -> float | None:
    score = column.scores.get(student.id)
    return None if score is None or not column.points else round(100 * score / column.points, 2)


def _number(activity: Activity, tried: Try) -> int | None:
    """Which sheet of the activity as it is now a try belongs to; of one that was replaced, the one in its place."""
    sheets = [item.sheet for item in activity.content.items]
    if tried.sheet in sheets:
        return sheets.index(tried.sheet)
    return tried.item if tried.item < len(sheets) and tried.revision < activity.revision else None


def _different(titles: Iterable[str]) -> Iterator[str]:
    """Titles of which no two are alike: a gradebook would take both for one column."""
    seen = dict[str, int]()
    for title in titles:
        seen[title] = seen.get(title, 0) + 1
        yield title if seen[title] == 1 else f"{title} [{seen[title]}]"
