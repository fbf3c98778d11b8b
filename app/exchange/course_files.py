"""A course as files to take home: tables for a spreadsheet, and all of it as a ZIP of CSV and JSON."""

from __future__ import annotations

import json
import secrets
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import IO, Any
from zoneinfo import ZoneInfo

from app.store import Activity, Content, Course, Store, Student, TicketAnswer, Try

from .gradebook import Column, canvas, column, moodle
from .spreadsheet import Cell, csv_lines

Row = Sequence[Cell]
# The first row of each table; README.txt in the ZIP explains them.
WHOSE = ("activity", "date", "worksheet", "student", "number", "try", "handed in", "counts", "time", "model", "tokens")
ANSWERS = (*WHOSE, "box", "answer", "mark")
TRIES = (*WHOSE, "score", "out of", "misconceptions")
TICKETS = ("activity", "date", "question", "answer", "student", "number", "starred", "follow up", "hidden")
STUDENTS = ("student", "number", "joined")


@dataclass(frozen=True)
class CourseFiles:
    """What can be taken home of a course; `boxes` are the points of each sheet, by the id of its activity."""

    store: Store
    course: Course
    boxes: Mapping[int, Sequence[int]]

    @cached_property
    def activities(self) -> tuple[Activity, ...]:
        """All of them, the first one first."""
        return self.store.activities.of_course(self.course)[::-1]

    @cached_property
    def students(self) -> dict[int, Student]:
        return {student.id: student for student in self.store.courses.students(self.course)}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The activities that earn points, with everybody's."""
        work = self.store.classwork
        graded = (activity for activity in self.activities if activity.content.items and activity.state != "draft")
        return tuple(column(a, self.boxes[a.id], work.tries_of_activity(a.id)) for a in graded)

    def answers(self) -> Iterator[Row]:
        """One row a box of each try."""
        yield ANSWERS
        for whose, tried in self._tries():
            for box, mark in tried.marks.items():
                yield (*whose, box, tried.answers.get(box, ""), mark)

    def tries(self) -> Iterator[Row]:
        """One row a try."""
        yield TRIES
        for whose, tried in self._tries():
            yield (*whose, tried.score, tried.out_of, ", ".join(tried.misconceptions))

    def tickets(self) -> Iterator[Row]:
        """One row an answer on an exit ticket; those without a name in an order that tells nothing."""
        yield TICKETS
        for activity in self.activities:
            questions = _questions(self.store.activities.revisions(activity).values())
            for answer in _shuffled(self.store.classwork.tickets(activity.id)):
                student = self.students.get(answer.student_id or 0)
                yield (
                    activity.plan.title, answer.day.isoformat(), questions.get(answer.question, answer.question),
                    answer.text, student.name if student else "", student.roster_key if student else "",
                    answer.starred, answer.follow_up, answer.hidden,
                )  # fmt: skip

    def roster(self) -> Iterator[Row]:
        """One row a student."""
        yield STUDENTS
        for student in self.students.values():
            yield (student.name, student.roster_key, student.joined_at is not None)

    def canvas(self) -> str:
        return canvas(tuple(self.students.values()), self.columns)

    def moodle(self) -> str:
        return moodle(tuple(self.students.values()), self.columns)

    def write_zip(self, file: IO[bytes], readme: str) -> None:
        """Everything of the course, but for what lets people in: codes and hashes stay here."""
        tables = {"answers": self.answers(), "tries": self.tries(), "exit-tickets": self.tickets(),
                  "students": self.roster()}  # fmt: skip
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("README.txt", readme)
            for name, rows in tables.items():
                with archive.open(f"{name}.csv", "w", force_zip64=True) as table:
                    for line in csv_lines(rows):
                        table.write(line.encode())
            archive.writestr("gradebook-canvas.csv", self.canvas())
            archive.writestr("gradebook-moodle.csv", self.moodle())
            archive.writestr("course.json", _json(self._course()))
            for activity in self.activities:
                archive.writestr(f"activities/{activity.id}.json", _json(self._activity(activity)))

    def _course(self) -> dict[str, Any]:
        staff = [{"name": m.name, "email": m.email, "role": m.role} for m in self.store.courses.staff(self.course)]
        students = [
            {"id": s.id, "name": s.name, "number": s.roster_key, "joined_at": s.joined_at}
            for s in self.students.values()
        ]
        activities = [{"id": a.id, "title": a.plan.title, "state": a.state} for a in self.activities]
        return {**asdict(self.course), "staff": staff, "students": students, "activities": activities}

    def _activity(self, activity: Activity) -> dict[str, Any]:
        work = self.store.classwork
        seen = self.store.activities.revisions(activity)
        tickets = [
            {name: value for name, value in asdict(answer).items() if name != "id"}  # made from the student's own form
            for answer in _shuffled(work.tickets(activity.id))
        ]
        return {
            "id": activity.id, "state": activity.state, **asdict(activity.plan),
            "revisions": [{"number": number, **content.as_json()} for number, content in seen.items()],
            "attendance": [asdict(came) for came in work.attendance(activity.id)],
            "drafts": [asdict(draft) for draft in work.drafts_of_activity(activity.id)],
            "tries": [_without_client(tried) for tried in work.tries_of_activity(activity.id)],
            "exit_tickets": tickets,
        }  # fmt: skip

    def _tries(self) -> Iterator[tuple[Row, Try]]:
        """Every try with what the first columns say of it, student by student."""
        places = {student: place for place, student in enumerate(self.students)}
        for activity in self.activities:
            seen = self.store.activities.revisions(activity)
            found = self.store.classwork.tries_of_activity(activity.id)
            last = {(tried.student_id, tried.sheet): tried.id for tried in found}
            counted = dict[tuple[int, str], int]()
            for tried in sorted(found, key=lambda t: (places[t.student_id], t.item, t.id)):
                place = (tried.student_id, tried.sheet)
                counted[place] = counted.get(place, 0) + 1
                title = str(seen[tried.revision].items[tried.item].worksheet["title"])
                yield self._whose(activity, title, tried, counted[place], tried.id == last[place]), tried

    def _whose(self, activity: Activity, title: str, tried: Try, number: int, counts: bool) -> Row:
        student, plan = self.students[tried.student_id], activity.plan
        at = tried.created_at.astimezone(ZoneInfo(self.course.time_zone))
        return (
            plan.title, plan.day.isoformat() if plan.day else "", title, student.name,
            student.roster_key, number, tried.handed_in, counts, f"{at:%Y-%m-%d %H:%M:%S}",
            tried.variant.model, tried.variant.tokens,
        )  # fmt: skip


def _questions(seen: Iterable[Content]) -> dict[str, str]:
    return {key: text for content in seen if content.ticket for key, text in content.ticket.questions}


def _shuffled(answers: Sequence[TicketAnswer]) -> list[TicketAnswer]:
    """Answers with names by student; those without in a new order each time."""
    mixed = list(answers)
    secrets.SystemRandom().shuffle(mixed)
    return sorted(mixed, key=lambda answer: answer.student_id or 0)


def _without_client(tried: Try) -> dict[str, Any]:
    kept = asdict(replace(tried, client_id=""))
    del kept["client_id"]
    return kept


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=_in_words)


def _in_words(value: Any) -> Any:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
