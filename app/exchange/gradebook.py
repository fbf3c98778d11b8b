"""The gradebook of a course, as its page shows it, and as a spreadsheet, Canvas and Moodle import it.

One row for each student, one column for each activity. A teacher's override counts in place of the attempts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from app.store import Activity, AttemptScore, ClassAttempt, GradeOverride, Phase, Student
from app.translation import gettext as _

from .spreadsheet import Cell, plain_csv

A = TypeVar("A", AttemptScore, ClassAttempt)

# Canvas ignores a column whose title holds the title of one of its own columns, such as "Final Score", and takes a
# number in brackets at the end of a title for the id of an assignment.
_CANVAS_TITLE = re.compile(r"(Current|Final|Override) (?=Score|Points|Grade|Status)")
_CANVAS_ID = re.compile(r"\((\d+)\)\s*$")


@dataclass(frozen=True)
class SheetScores:
    """One worksheet of an activity: its title and points, and the score of each student who tried it, by their id."""

    title: str
    points: int
    scores: Mapping[int, float]


@dataclass(frozen=True)
class GradebookColumn:
    """An activity in a gradebook: its points, and what each student has of them, by the student's id.

    `scores` are those that count, with overrides; students who neither tried nor have an override are missing in it,
    and so are students who are excused. `earned` are those of the attempts alone. Until the activity has closed
    (`phase`), nobody counts as having missed it.
    """

    title: str
    points: int
    scores: Mapping[int, float]
    activity_id: int = 0
    sheets: tuple[SheetScores, ...] = ()
    earned: Mapping[int, float] = field(default_factory=dict)
    overrides: Mapping[int, GradeOverride] = field(default_factory=dict)
    taken_in: frozenset[int] = frozenset()  # students with an attempt that counts and was a draft taken in at closing
    late: frozenset[int] = frozenset()  # students with an attempt that counts and was late
    phase: Phase = "closed"

    @property
    def excused(self) -> frozenset[int]:
        """The ids of the students who are excused."""
        return frozenset(student_id for student_id, override in self.overrides.items() if override.excused)

    def counts_for(self, student_id: int) -> bool:
        """Whether the activity is part of a student's total.

        It isn't if they are excused, or if it has not closed and they have no points.
        """
        return student_id not in self.excused and (self.phase == "closed" or student_id in self.scores)

    def is_missing(self, student_id: int) -> bool:
        """Whether the student has done nothing in an activity that has closed, and is not excused."""
        return self.counts_for(student_id) and student_id not in self.scores

    @property
    def mean(self) -> float | None:
        """The mean of the scores that count, rounded to 2 decimals; None if there are none."""
        return round(sum(self.scores.values()) / len(self.scores), 2) if self.scores else None


def gradebook_column(
    activity: Activity,
    at: datetime,
    points: Sequence[int],
    attempts: Iterable[AttemptScore],
    overrides: Iterable[GradeOverride] = (),
) -> GradebookColumn:
    """Return the column of an activity: each student's last attempt on each sheet counts, a sheet not tried is worth 0.

    `points` are those of each sheet of the activity today. An attempt earns the share score / out_of of them, since a
    student's numbers may have led to more or fewer boxes. Scores are rounded to 2 decimals; students without an attempt
    have none. Attempts and overrides of other activities are ignored. The phase is that at the time `at`, "closed" for
    an archived activity.
    """
    last = counted_attempts(activity, (attempt for attempt in attempts if attempt.activity_id == activity.id))
    shares = {key: attempt.score / attempt.out_of if attempt.out_of else 0 for key, attempt in last.items()}
    earned = dict[int, float]()
    for (student_id, sheet), share in shares.items():
        earned[student_id] = earned.get(student_id, 0) + share * points[sheet]
    earned = {student_id: round(score, 2) for student_id, score in earned.items()}
    given = {override.student_id: override for override in overrides if override.activity_id == activity.id}
    sheets = tuple(
        SheetScores(
            item.title,
            points[index],
            {student: round(share * points[index], 2) for (student, sheet), share in shares.items() if sheet == index},
        )
        for index, item in enumerate(activity.content.items)
    )
    return GradebookColumn(
        activity.plan.title,
        sum(points),
        _with_overrides(earned, given),
        activity.id,
        sheets,
        earned,
        given,
        frozenset(student_id for (student_id, _), attempt in last.items() if attempt.taken_in),
        frozenset(student_id for (student_id, _), attempt in last.items() if attempt.late),
        "closed" if activity.is_archived else activity.phase(at),
    )


def counted_attempts(activity: Activity, attempts: Iterable[A]) -> dict[tuple[int, int], A]:
    """Return the attempts on an activity that count: the last of each student on each sheet that it has today.

    The keys are the student's id and the sheet's index from 0. The last is the one with the greatest id.
    """
    last: dict[tuple[int, int], A] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.id):
        sheet = sheet_index(activity, attempt.sheet_key)
        if sheet is not None:
            last[attempt.student_id, sheet] = attempt
    return last


def sheet_index(activity: Activity, sheet_key: str) -> int | None:
    """Return the index, from 0, of the sheet that an attempt on the sheet `sheet_key` counts for in the activity today.

    An attempt on an earlier version of a worksheet counts for the sheet that is that worksheet today, whatever its
    number. None if the activity no longer has the worksheet.
    """
    sheets = [item.sheet_key for item in activity.content.items]
    if sheet_key in sheets:
        return sheets.index(sheet_key)
    worksheet, keys = sheet_key.rpartition("@")[0], [sheet.rpartition("@")[0] for sheet in sheets]
    return keys.index(worksheet) if worksheet in keys else None


def _with_overrides(earned: Mapping[int, float], overrides: Mapping[int, GradeOverride]) -> dict[int, float]:
    """Return the scores that count: those of the overrides, else those earned; students who are excused have none."""
    given = {student_id: override.points for student_id, override in overrides.items()}
    return {student_id: score for student_id, score in {**earned, **given}.items() if score is not None}


def gradebook_rows(students: Sequence[Student], columns: Sequence[GradebookColumn]) -> Iterator[Sequence[Cell]]:
    """Yield a table for a spreadsheet: a header, then for each student the points on each worksheet of each activity.

    After the worksheets of an activity come its points as they count ("excused" if they don't), and the reason for an
    override. The last columns are the student's total, and the points it is out of: all except those of activities from
    which they are excused, or which are still open and in which they have no points.
    """
    header = [_("student"), _("number")]
    for column in columns:
        header += [f"{column.title}: {sheet.title} ({sheet.points})" for sheet in column.sheets]
        header += [f"{column.title} ({column.points})", _("{title}: reason for the change").format(title=column.title)]
    yield [*_unique_titles(header), _("total"), _("out of")]
    for student in students:
        row: list[Cell] = [student.name, student.roster_key]
        for column in columns:
            override = column.overrides.get(student.id)
            row += [sheet.scores.get(student.id) for sheet in column.sheets]
            row.append(_("excused") if student.id in column.excused else column.scores.get(student.id))
            row.append(override.reason if override else "")
        yield [*row, *total_score(student, columns)]


def total_score(student: Student, columns: Iterable[GradebookColumn]) -> tuple[float, int]:
    """Return a student's points over the activities that count for them, and how many they could have there."""
    counted = [column for column in columns if column.counts_for(student.id)]
    score = sum(column.scores.get(student.id, 0) for column in counted)
    return round(score, 2), sum(column.points for column in counted)


def canvas_csv(students: Sequence[Student], columns: Sequence[GradebookColumn]) -> str:
    """Return a gradebook as Canvas exports and imports it, with the row of possible points below the header.

    Every student has a row, with an empty cell for an activity not tried, and EX if they are excused. Titles are
    changed if Canvas would take them for its columns.

    Canvas finds a student by its ID (unknown here), then by SIS ID, by login and last by name. The number on the roster
    may be SIS ID or login, so it is written in both columns.
    """
    titles = _unique_titles(_CANVAS_ID.sub(r"[\1]", _CANVAS_TITLE.sub(r"\1-", column.title)) for column in columns)
    rows: list[Sequence[Cell]] = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles)]
    rows.append(("    Points Possible", "", "", "", "", *(column.points for column in columns)))
    rows += [
        (s.name, "", s.roster_key, s.roster_key, "", *(_canvas_cell(column, s) for column in columns)) for s in students
    ]
    return plain_csv(rows)


def moodle_csv(students: Sequence[Student], columns: Sequence[GradebookColumn]) -> str:
    """Return a CSV file of grades in per cent of each column's points, the scale of grade items that Moodle makes.

    The cell of an activity not tried, or from which the student is excused, is empty. Students without a number on the
    roster are left out: Moodle would give their grades to the student in the row above. The key column is the e-mail
    address if every number is one, else the ID number. A repeated title gets its count: "Quiz (%) [2]".
    """
    numbered = [student for student in students if student.roster_key]
    by_email = bool(numbered) and all("@" in str(student.roster_key) for student in numbered)
    titles = _unique_titles(f"{column.title} (%)" for column in columns)
    rows: list[Sequence[Cell]] = [("Email address" if by_email else "ID number", "Full name", *titles)]
    rows += [(s.roster_key, s.name, *(_percent(column, s) for column in columns)) for s in numbered]
    return plain_csv(rows)


def _canvas_cell(column: GradebookColumn, student: Student) -> Cell:
    """Return the student's score as Canvas reads it."""
    return "EX" if student.id in column.excused else column.scores.get(student.id)


def _percent(column: GradebookColumn, student: Student) -> float | None:
    """Return a student's score in per cent with 2 decimals; None without a score, or if nothing can be earned."""
    score = column.scores.get(student.id)
    return None if score is None or not column.points else round(100 * score / column.points, 2)


def _unique_titles(titles: Iterable[str]) -> Iterator[str]:
    """Yield the titles in their order, a repeated one with its count: "A", "B", "A" become "A", "B", "A [2]".

    Gradebooks merge columns with the same title.
    """
    counts = dict[str, int]()
    for title in titles:
        counts[title] = counts.get(title, 0) + 1
        yield title if counts[title] == 1 else f"{title} [{counts[title]}]"
