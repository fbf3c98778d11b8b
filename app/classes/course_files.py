"""A course as files for its instructors: CSV tables for a spreadsheet, and a ZIP of all of them with JSON."""

from __future__ import annotations

import json
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import IO, Any
from zoneinfo import ZoneInfo

from app.classes.gradebook import GradebookColumn, counted_attempts, gradebook_of, sheet_index, total_score
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
    Store,
    Student,
    TicketAnswer,
    questions_asked,
)
from app.translation import gettext as _

CsvRow = Sequence[Cell]
_ATTEMPT_HEADER = (
    "activity", "date", "worksheet", "student", "number", "attempt", "handed in", "auto-submitted", "late", "counts",
    "time", "model", "tokens",
)  # fmt: skip


@dataclass(frozen=True)
class CourseFiles:
    """What the files of a course are made of: everything is read once its file is written, the roster only once."""

    library: Library
    store: Store
    course: Course
    activities: Sequence[Activity]  # oldest first

    @cached_property
    def now(self) -> datetime:
        """The time at which these files were made: it decides which activities count as closed."""
        return self.store.now()

    @cached_property
    def students(self) -> dict[int, Student]:
        """The students by id, in the order of their names, as first read."""
        return {student.id: student for student in self.store.roster.students(self.course)}

    @cached_property
    def gradebook_columns(self) -> tuple[GradebookColumn, ...]:
        return gradebook_of(self.library, self.store, self.activities, self.students, self.now)

    @property
    def _points_columns(self) -> list[PointsColumn]:
        return [PointsColumn(each.title, each.points, each.scores, each.excused) for each in self.gradebook_columns]

    # Each yields a header, then the rows.

    def answer_rows(self) -> Iterator[CsvRow]:
        yield (*_ATTEMPT_HEADER, "box", "answer", "mark")
        for described, attempt in self._described_attempts():
            for box, mark in attempt.marks.items():
                yield (*described, box, attempt.answers.get(box, ""), mark)

    def attempt_rows(self) -> Iterator[CsvRow]:
        yield (*_ATTEMPT_HEADER, "score", "out of", "misconceptions")
        for described, attempt in self._described_attempts():
            yield (*described, attempt.score, attempt.out_of, ", ".join(attempt.misconceptions))

    def written_rows(self) -> Iterator[CsvRow]:
        yield (*_ATTEMPT_HEADER, "question", "answer")
        activities, asked = {each.id: each for each in self.activities}, dict[int, Mapping[tuple[str, str], str]]()
        for described, attempt in self._described_attempts():
            if attempt.activity_id not in asked:
                revisions = self.store.activities.revisions(activities[attempt.activity_id])
                asked[attempt.activity_id] = questions_asked(revisions)
            for (sheet_key, name), question in asked[attempt.activity_id].items():
                if sheet_key == attempt.sheet_key and (text := attempt.answers.get(name, "").strip()):
                    yield (*described, question, text)

    def ticket_rows(self) -> Iterator[CsvRow]:
        yield ("activity", "date", "question", "answer", "student", "number", "starred", "follow up", "hidden")
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
        yield ("student", "number", "joined", "practice sheets done", "to review")
        records = self.store.roster.practice_records(self.course)
        for student in self.students.values():
            practised = _practised(self.library, records.get(student.id))
            yield (student.name, student.roster_key, student.joined_at is not None, *practised)

    def gradebook_rows(self) -> Iterator[CsvRow]:
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
        yield ("activity", "student", "number", "points", "excused", "reason", "by", "time")
        titles, zone = {each.id: each.plan.title for each in self.activities}, ZoneInfo(self.course.time_zone)
        overrides = self.store.grades.overrides(list(titles))
        for override in sorted(overrides, key=lambda each: (each.activity_id, each.student_id)):
            if student := self.students.get(override.student_id):
                at = f"{override.at.astimezone(zone):%Y-%m-%d %H:%M:%S}"
                points = (override.points, override.excused, override.reason, override.by, at)
                yield (titles[override.activity_id], student.name, student.roster_key, *points)

    def canvas_csv(self) -> str:
        return canvas_csv(tuple(self.students.values()), self._points_columns)

    def moodle_csv(self) -> str:
        return moodle_csv(tuple(self.students.values()), self._points_columns)

    def write_zip(self, file: IO[bytes], readme: str) -> None:
        """Write everything about the course into one ZIP, except what grants access: join codes, tokens and hashes."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("README.txt", readme)
            for name, lines in CSV_FILES.items():
                entry = zipfile.ZipInfo(name, time.localtime()[:6])  # without a time it would date from 1980
                entry.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(entry, "w", force_zip64=True) as table:
                    table.writelines(line.encode() for line in lines(self))
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


# The lines of each file; they are made while they are written.
CSV_FILES: Mapping[str, Callable[[CourseFiles], Iterable[str]]] = {
    "answers.csv": lambda files: csv_lines(files.answer_rows()),
    "attempts.csv": lambda files: csv_lines(files.attempt_rows()),
    "written-answers.csv": lambda files: csv_lines(files.written_rows()),
    "exit-tickets.csv": lambda files: csv_lines(files.ticket_rows()),
    "students.csv": lambda files: csv_lines(files.student_rows()),
    "gradebook.csv": lambda files: csv_lines(files.gradebook_rows()),
    "overrides.csv": lambda files: csv_lines(files.override_rows()),
    "gradebook-canvas.csv": lambda files: [files.canvas_csv()],
    "gradebook-moodle.csv": lambda files: [files.moodle_csv()],
}


def course_files(library: Library, store: Store, course: Course) -> CourseFiles:
    return CourseFiles(library, store, course, store.activities.of_course(course)[::-1])


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
