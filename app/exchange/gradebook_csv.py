"""A gradebook as Canvas and Moodle import it: one row per student, one column per activity."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from app.names import name_key
from app.store import Student

from .spreadsheet import Cell, plain_csv

# Canvas ignores a column whose title contains one of Canvas's own, such as "Final Score", and reads a number in
# brackets at the end of a title as an assignment's id.
_CANVAS_TITLE = re.compile(r"(Current|Final|Override) (?=Score|Points|Grade|Status)")
_CANVAS_ID = re.compile(r"\((\d+)\)\s*$")


@dataclass(frozen=True)
class PointsColumn:
    """The points in one activity by student id, out of `points`; `excused` are the ids without any."""

    title: str
    points: int
    scores: Mapping[int, float]
    excused: Collection[int] = ()


def canvas_csv(students: Sequence[Student], columns: Sequence[PointsColumn]) -> str:
    """A gradebook in Canvas's own format, with a row of possible points below the header."""
    titles = unique_titles(_CANVAS_ID.sub(r"[\1]", _CANVAS_TITLE.sub(r"\1-", column.title)) for column in columns)
    rows: list[Sequence[Cell]] = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles)]
    rows.append(("    Points Possible", "", "", "", "", *(column.points for column in columns)))
    for student in found_by_canvas(students):
        points = ("EX" if student.id in each.excused else each.scores.get(student.id) for each in columns)
        number, title = student.roster_key, student.number_title
        is_id = title == "ID" and number == student.canvas_id
        sis_id = None if is_id or title == "SIS Login ID" else number
        login = None if is_id or title == "SIS User ID" else number  # another system's number may be either
        rows.append((student.name, student.canvas_id, sis_id, login, "", *points))
    return plain_csv(rows)


def found_by_canvas(students: Sequence[Student]) -> list[Student]:
    """The students that Canvas can tell apart: by its ID, a SIS ID, a login, or finally by name."""
    names = Counter(name_key(student.name) for student in students)
    return [each for each in students if each.canvas_id or each.roster_key or names[name_key(each.name)] == 1]


def moodle_csv(students: Sequence[Student], columns: Sequence[PointsColumn]) -> str:
    """A CSV file of grades in per cent, the scale of the grade items that Moodle makes."""
    title, found = found_by_moodle(students)
    titles = unique_titles(f"{column.title} (%)" for column in columns)
    rows: list[Sequence[Cell]] = [(title, "Full name", *titles)]
    rows += [(s.roster_key, s.name, *(_percent(column, s) for column in columns)) for s in found]
    return plain_csv(rows)


def found_by_moodle(students: Sequence[Student]) -> tuple[str, list[Student]]:
    """The title of the numbers that most students have, and the students with such a number."""
    numbered = [student for student in students if student.roster_key]
    # for numbers typed by hand
    known = {("@" in str(s.roster_key)): s.number_title for s in numbered if s.number_title}

    def title_of(student: Student) -> str:
        is_mail = "@" in str(student.roster_key)
        return student.number_title or known.get(is_mail) or ("Email address" if is_mail else "ID number")

    titles = [title_of(student) for student in numbered]
    usual = Counter(titles).most_common(1)[0][0] if titles else "ID number"
    return usual, [student for student, title in zip(numbered, titles, strict=True) if title == usual]


def _percent(column: PointsColumn, student: Student) -> float | None:
    score = column.scores.get(student.id)
    return None if score is None or not column.points else round(100 * score / column.points, 2)


def unique_titles(titles: Iterable[str]) -> Iterator[str]:
    """Yield titles that gradebooks don't merge: "A", "B", "A" become "A", "B", "A [2]"."""
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
