"""A course as files for its instructors: CSV tables for a spreadsheet, and a ZIP of all of them with JSON."""

from __future__ import annotations

import json
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import IO, Any
from zoneinfo import ZoneInfo

from app.classes.gradebook import GradebookColumn, counted_attempts, gradebook_columns, sheet_index, total_score
from app.classes.student_sheet import best_scores
from app.exchange.gradebook_csv import PointsColumn, canvas_csv, moodle_csv, unique_titles
from app.exchange.spreadsheet import Cell, csv_lines
from app.exchange.toml_text import write_toml
from app.practice.record import RecordError, read_record
from app.sheets.library import Library
from app.store import (
    Activity,
    Attempt,
    Attendance,
    Course,
    GradeChange,
    Store,
    Student,
    TicketAnswer,
    questions_asked,
)
from app.translation import gettext as _

CsvRow = Sequence[Cell]
# The header of each table; README.txt in the ZIP explains the columns.
ATTEMPT_HEADER = (
    "activity", "date", "worksheet", "student", "number", "attempt", "handed in", "auto-submitted", "late", "counts",
    "time", "model", "tokens",
)  # fmt: skip
ANSWERS_HEADER = (*ATTEMPT_HEADER, "box", "answer", "mark")
ATTEMPTS_HEADER = (*ATTEMPT_HEADER, "score", "out of", "misconceptions")
WRITTEN_HEADER = (*ATTEMPT_HEADER, "question", "answer")
TICKETS_HEADER = (
    "activity", "date", "question", "answer", "student", "number", "starred", "follow up", "hidden",
)  # fmt: skip
STUDENTS_HEADER = ("student", "number", "joined", "practice sheets done", "to repeat")
OVERRIDES_HEADER = ("activity", "student", "number", "points", "excused", "reason", "by", "time")


@dataclass(frozen=True)
class CourseFiles:
    """The files of one course. `points` are each sheet's, by activity id."""

    library: Library
    store: Store
    course: Course
    activities: Sequence[Activity]
    points: Mapping[int, Sequence[int]]

    @cached_property
    def now(self) -> datetime:
        """The time by which these files decide which activities have closed."""
        return self.store.now()

    @cached_property
    def students(self) -> dict[int, Student]:
        """The students by id, in the order of their names, as first read."""
        return {student.id: student for student in self.store.roster.students(self.course)}

    @cached_property
    def gradebook_columns(self) -> tuple[GradebookColumn, ...]:
        """One column for each published activity with a worksheet, in order."""
        graded = [activity for activity in self.activities if activity.content.items and activity.state != "draft"]
        scores = self.store.grades.last_scores([activity.id for activity in graded])
        return gradebook_columns(
            graded,
            self.now,
            self.points,
            (score for score in scores if score.student_id in self.students),
            (each for each in self.overrides if each.student_id in self.students),
        )

    @property
    def _points_columns(self) -> list[PointsColumn]:
        return [PointsColumn(each.title, each.points, each.scores, each.excused) for each in self.gradebook_columns]

    @cached_property
    def overrides(self) -> Sequence[GradeChange]:
        """The points that teachers gave instead of the attempts', sorted by activity and student id."""
        overrides = self.store.grades.overrides([activity.id for activity in self.activities])
        return sorted(overrides, key=lambda override: (override.activity_id, override.student_id))

    def answer_rows(self) -> Iterator[CsvRow]:
        """Yield ANSWERS_HEADER, then one row per marked box of each attempt: the typed text and the mark."""
        yield ANSWERS_HEADER
        for described, attempt in self._described_attempts():
            for box, mark in attempt.marks.items():
                yield (*described, box, attempt.answers.get(box, ""), mark)

    def attempt_rows(self) -> Iterator[CsvRow]:
        """Yield ATTEMPTS_HEADER, then one row per attempt, with its score and misconceptions."""
        yield ATTEMPTS_HEADER
        for described, attempt in self._described_attempts():
            yield (*described, attempt.score, attempt.out_of, ", ".join(attempt.misconceptions))

    def written_rows(self) -> Iterator[CsvRow]:
        """Yield WRITTEN_HEADER, then one row per answered open question of each attempt."""
        yield WRITTEN_HEADER
        activities, asked = {each.id: each for each in self.activities}, dict[int, Mapping[tuple[str, str], str]]()
        for described, attempt in self._described_attempts():
            if attempt.activity_id not in asked:
                revisions = self.store.activities.revisions(activities[attempt.activity_id])
                asked[attempt.activity_id] = questions_asked(revisions)
            for (sheet_key, name), question in asked[attempt.activity_id].items():
                if sheet_key == attempt.sheet_key and (text := attempt.answers.get(name, "").strip()):
                    yield (*described, question, text)

    def ticket_rows(self) -> Iterator[CsvRow]:
        """Yield TICKETS_HEADER, then one row per exit-ticket answer, with its question in the latest wording."""
        yield TICKETS_HEADER
        for activity in self.activities:
            answers, questions = self._ticket_answers_of(activity), dict[str, str]()
            for content in self.store.activities.revisions(activity).values():  # the newest last, so its wording wins
                questions |= content.ticket.questions if content.ticket else {}
            for answer in answers:
                student = self.students.get(answer.student_id or 0)
                yield (
                    activity.plan.title, answer.day.isoformat(), questions.get(answer.question, answer.question),
                    answer.text, student.name if student else "", student.roster_key if student else "",
                    answer.starred, answer.follow_up, answer.hidden,
                )  # fmt: skip

    def student_rows(self) -> Iterator[CsvRow]:
        """Yield STUDENTS_HEADER, then one row per student on the roster, by name."""
        yield STUDENTS_HEADER
        records = self.store.roster.practice_records(self.course)
        for student in self.students.values():
            practised = _practised(self.library, records.get(student.id))
            yield (student.name, student.roster_key, student.joined_at is not None, *practised)

    def gradebook_rows(self) -> Iterator[CsvRow]:
        """Yield a header, then per student name, number, and the points on each worksheet of each activity."""
        columns = self.gradebook_columns
        header = [_("student"), _("number")]
        for column in columns:
            header += [f"{column.title}: {sheet.title} ({sheet.points})" for sheet in column.sheets]
            header.append(f"{column.title} ({column.points})")
            header.append(_("{title}: reason for the change").format(title=column.title))
        yield [*unique_titles(header), _("total"), _("out of")]
        for student in self.students.values():
            row: list[Cell] = [student.name, student.roster_key]
            for column in columns:
                override = column.overrides.get(student.id)
                row += [sheet.scores.get(student.id) for sheet in column.sheets]
                row.append(_("excused") if student.id in column.excused else column.scores.get(student.id))
                row.append(override.reason if override else "")
            yield [*row, *total_score(student, columns)]

    def override_rows(self) -> Iterator[CsvRow]:
        """Yield OVERRIDES_HEADER, then one row for each of `overrides`."""
        yield OVERRIDES_HEADER
        titles, zone = {each.id: each.plan.title for each in self.activities}, ZoneInfo(self.course.time_zone)
        for override in self.overrides:
            if student := self.students.get(override.student_id):
                at = f"{override.at.astimezone(zone):%Y-%m-%d %H:%M:%S}"
                points = (override.points, override.excused, override.reason, override.by, at)
                yield (titles[override.activity_id], student.name, student.roster_key, *points)

    def canvas_csv(self) -> str:
        """The gradebook as Canvas imports it."""
        return canvas_csv(tuple(self.students.values()), self._points_columns)

    def moodle_csv(self) -> str:
        """The gradebook as Moodle imports it."""
        return moodle_csv(tuple(self.students.values()), self._points_columns)

    def write_zip(self, file: IO[bytes]) -> None:
        """Write everything about the course into one ZIP, except what grants access: join codes, tokens and hashes."""
        tables = {"answers": self.answer_rows(), "attempts": self.attempt_rows(),
                  "written-answers": self.written_rows(), "exit-tickets": self.ticket_rows(),
                  "students": self.student_rows(), "gradebook": self.gradebook_rows(),
                  "overrides": self.override_rows()}  # fmt: skip
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("README.txt", _readme(self.course))
            for name, rows in tables.items():
                entry = zipfile.ZipInfo(f"{name}.csv", time.localtime()[:6])  # without a time it would date from 1980
                entry.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(entry, "w", force_zip64=True) as table:
                    for line in csv_lines(rows):
                        table.write(line.encode())
            archive.writestr("gradebook-canvas.csv", self.canvas_csv())
            archive.writestr("gradebook-moodle.csv", self.moodle_csv())
            archive.writestr("course.json", _json(self._course_json()))
            for activity in self.activities:
                archive.writestr(f"activities/{activity.id}.json", _json(self._activity_json(activity)))
            for material in self.store.materials.of_course(self.course):
                folder = "exit-tickets" if material.kind == "ticket" else "worksheets"
                archive.writestr(f"{folder}/{material.id}.toml", write_toml(material.content))

    def _course_json(self) -> dict[str, Any]:
        staff = [{"name": m.name, "email": m.email, "role": m.role} for m in self.store.courses.staff(self.course)]
        students = [
            {
                "id": s.id,
                "name": s.name,
                "number": s.roster_key,
                "number_title": s.number_title,
                "canvas_id": s.canvas_id,
                "joined_at": s.joined_at,
            }
            for s in self.students.values()
        ]
        activities = [{"id": a.id, "title": a.plan.title, "state": a.phase(self.now)} for a in self.activities]
        return {**asdict(self.course), "staff": staff, "students": students, "activities": activities}

    def _activity_json(self, activity: Activity) -> dict[str, Any]:
        work = self.store.classwork
        attempts = [_fields_without("client_id", attempt) for attempt in self._attempts_of(activity)]
        tickets = [_fields_without("id", answer) for answer in self._ticket_answers_of(activity)]
        # Without ticket_in: exports before and after a hand-in would reveal whose the new anonymous answers are.
        arrived = [_fields_without("ticket_in", each) for each in work.attendance(activity.id)]
        revisions = self.store.activities.revisions(activity)
        extra = self.store.activities.extra_times(activity.id)
        return {
            "id": activity.id, "state": activity.phase(self.now), **asdict(activity.plan),
            "answers_shown_at": activity.answers_shown_at, "extra_minutes": extra,
            "revisions": [{"number": number, **content.as_json()} for number, content in revisions.items()],
            "attendance": [each for each in arrived if each["student_id"] in self.students],
            "drafts": [asdict(d) for d in work.drafts_of_activity(activity.id) if d.student_id in self.students],
            "attempts": attempts,
            "exit_tickets": tickets, "exit_tickets_held_back": self.store.exit_tickets.waiting(activity),
        }  # fmt: skip

    def _attempts_of(self, activity: Activity) -> list[Attempt]:
        attempts = self.store.classwork.attempts_of_activity(activity.id)
        return [attempt for attempt in attempts if attempt.student_id in self.students]

    def _ticket_answers_of(self, activity: Activity) -> list[TicketAnswer]:
        answers = self.store.exit_tickets.answers(activity)
        known = [answer for answer in answers if answer.student_id is None or answer.student_id in self.students]
        return sorted(known, key=lambda answer: answer.student_id or 0)

    def _described_attempts(self) -> Iterator[tuple[CsvRow, Attempt]]:
        name_order = {student_id: index for index, student_id in enumerate(self.students)}
        zone = ZoneInfo(self.course.time_zone)
        for activity in self.activities:
            attempts = self._attempts_of(activity)
            # read last, so that it includes every attempt's revision
            revisions = self.store.activities.revisions(activity)
            counted = {attempt.id for attempt in counted_attempts(activity, attempts).values()}
            index_of, numbers = sheet_index(activity), Counter[tuple[int, bool, int, str]]()
            places = {attempt.id: (name_order[attempt.student_id], *_place(index_of, attempt)) for attempt in attempts}
            for attempt in sorted(attempts, key=lambda attempt: (places[attempt.id], attempt.id)):
                place, student = places[attempt.id], self.students[attempt.student_id]
                numbers[place] += 1
                title = revisions[attempt.revision].items[attempt.sheet_number - 1].title
                described = (
                    activity.plan.title, activity.plan.day.isoformat() if activity.plan.day else "", title,
                    student.name, student.roster_key, numbers[place], attempt.handed_in, attempt.auto_submitted,
                    attempt.late, attempt.id in counted, f"{attempt.created_at.astimezone(zone):%Y-%m-%d %H:%M:%S}",
                    attempt.variant.model, attempt.variant.tokens,
                )  # fmt: skip
                yield described, attempt


def course_files(library: Library, store: Store, course: Course) -> CourseFiles:
    """The files of a course with all its activities, oldest first."""
    activities = store.activities.of_course(course)[::-1]
    points = {activity.id: best_scores(library, store, activity.content) for activity in activities}
    return CourseFiles(library, store, course, activities, points)


def _place(index_of: Callable[[str], int | None], attempt: Attempt) -> tuple[bool, int, str]:
    index = index_of(attempt.sheet_key)
    return (True, 0, attempt.sheet_key.rpartition("@")[0]) if index is None else (False, index, "")


def _practised(library: Library, text: str | None) -> CsvRow:
    try:
        record = read_record(library, text or "")
    except RecordError:
        return (None, None)
    return (" ".join(record.done), " ".join(card.misconception for card in record.cards))


def _fields_without(name: str, row: TicketAnswer | Attempt | Attendance) -> dict[str, Any]:
    return {field: value for field, value in asdict(row).items() if field != name}


def _json(value: Any) -> str:
    def as_text(value: Any) -> str:
        return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)

    return json.dumps(value, indent=1, ensure_ascii=False, default=as_text)


def _readme(course: Course) -> str:
    text = _("""\
{course}
exported from Attention Shapes. Times are in {zone} in the CSV files and in UTC in the JSON files.

For a spreadsheet (UTF-8, comma-separated; text that a spreadsheet would read as a formula starts with an apostrophe):
  answers.csv        one row per box of each attempt: what was typed, and its mark (right, follows, wrong, unreadable,
                     empty); "follows" is wrong but consistent with an earlier error
  attempts.csv       one row per attempt: its score, and the keys of the misconceptions it shows
                     "counts" marks each student's last attempt on a worksheet, the one that counts, whatever version of
                     the worksheet it was on; "auto-submitted" a draft that was submitted when the activity closed;
                     "late" what was done after the closing time
  written-answers.csv   one row per answer to a question that is not graded, in each attempt
  exit-tickets.csv   one row per answer; anonymous ones without names and in random order, once five tickets are in or
                     the activity is closed; several chosen options are in one cell, one per line, and a point of a
                     scale is a number from 1 to 5
  students.csv       the roster, and how far each student is with practice for the course
  gradebook.csv      one row per student: points on each worksheet, points of each activity as they count, and the total
  overrides.csv      points that a teacher changed, with the reason, the teacher and the time

For another gradebook:
  gradebook-canvas.csv   points, EX for excused; Canvas matches students by ID, SIS ID, login or name
  gradebook-moodle.csv   percentages; only students with a number of the kind that most have, by which Moodle matches
                         them

For a program:
  course.json            the course, its staff, students and activities
  activities/ID.json     one activity: its settings, what students saw in each revision, who joined, the current
                         answers, every attempt with its marks, and the exit tickets; student_id is the id in
                         course.json, null on anonymous tickets; exit_tickets_held_back says how many of these are in
                         none of the files yet

What the staff wrote, to be imported again under Worksheets:
  worksheets/ID.toml     a worksheet of the course, as it was saved last
  exit-tickets/ID.toml   an exit ticket of the course

None of these files contains join codes, resume codes or passwords.""")
    return text.format(course=course.title, zone=course.time_zone) + "\n"
