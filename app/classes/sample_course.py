"""The sample course: simulated students who hold misconceptions, attempt, hand in and write exit tickets.

It is always the same: a student's place in the list of names decides their misconception, whether they correct it, and
their progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from app.classes.student_sheet import freeze, give_sheets, stored_marks, worksheet_sizes
from app.grading.grade import grade
from app.misconceptions.predictions import expectations
from app.shapes.table import Blank
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.wording import SampleCourseWording
from app.store import Activity, Answers, AuditAction, Course, Plan, Policies, Store, Teacher
from app.store.sample_data import SimulatedAttempt, SimulatedStudent

SHEETS_YESTERDAY, SHEETS_TODAY = ("llama-7b", "qwen2.5-0.5b"), ("layer-mistral-7b",)
STUDENTS = 30
# How many students hold the sheet's first misconception, the second, and so on; the others are right.
HOLDERS = (7, 5, 3, 2, 1, 1, 1)
CAME_TODAY, ATTEMPTED_TODAY, TICKETS_YESTERDAY = 26, 18, 24  # students


def add_sample_course(library: Library, tickets: Mapping[str, Ticket], store: Store, teacher: Teacher) -> Course:
    """The teacher's course of simulated students, with a closed lesson of yesterday and an open one of today."""
    with store.transaction():
        store.people.lock(teacher)  # pressing the button twice gives one course
        courses = [taught.course for taught in store.courses.taught_by(teacher)]
        if existing := next((course for course in courses if course.sample), None):
            return existing
        words, zone = library.wording.sample_course, courses[0].time_zone if courses else "UTC"
        today = store.now().replace(microsecond=0)
        yesterday, ticket = today - timedelta(days=1), tickets.get("classic")
        days = [time.astimezone(ZoneInfo(zone)).date() for time in (yesterday, today)]
        closed_plan = Plan(words.yesterday, days[0], closes_at=yesterday + timedelta(hours=1))
        open_plan = Plan(words.today, days[1], Policies(ticket_anonymous=False))
        course = store.courses.add(words.course, zone, teacher, sample=True)
        store.audit_log.record(teacher, AuditAction.SAMPLE_COURSE_CREATED, course)
        closed = store.activities.add(course, closed_plan, freeze(library, SHEETS_YESTERDAY, ticket))
        store.activities.set_state(closed, "open")
        store.activities.note_auto_submitted(closed)  # all of them were handed in
        going_on = store.activities.add(course, open_plan, freeze(library, SHEETS_TODAY, ticket))
        store.activities.set_state(going_on, "open")
        for activity in (closed, going_on):
            give_sheets(library, store, replace(activity, state="open"))
        students = (
            *_students_yesterday(library, words, closed, yesterday),
            *_students_today(library, going_on, today - timedelta(minutes=12)),
        )
        store.sample_data.fill(course, words.names, students)
    return course


def _students_yesterday(
    library: Library, words: SampleCourseWording, activity: Activity, begin: datetime
) -> Iterator[SimulatedStudent]:
    for student in range(len(words.names)):
        attempts = list[SimulatedAttempt]()
        for number, worksheet in enumerate(SHEETS_YESTERDAY, start=1):
            variant = library.variant(worksheet)
            at = begin + timedelta(minutes=15 * number - 9, seconds=11 * student)
            first, corrects = _typed_answers(variant, student + number - 1), student % 3 != 0
            attempts.append(_attempt(variant, number, first, at, handed_in=not corrects))
            if corrects:
                again = at + timedelta(minutes=4)
                attempts.append(_attempt(variant, number, _typed_answers(variant, None), again, handed_in=True))
        ticket = _ticket_answers(words.tickets, student) if student < TICKETS_YESTERDAY else {}
        yield SimulatedStudent(student, activity, begin + timedelta(seconds=5 * student), attempts, (), ticket)


def _students_today(library: Library, activity: Activity, begin: datetime) -> Iterator[SimulatedStudent]:
    variant = library.variant(SHEETS_TODAY[0])
    for student in range(CAME_TODAY):
        answers, arrived = _typed_answers(variant, student), begin + timedelta(seconds=4 * student)
        if student < ATTEMPTED_TODAY:
            at, handed_in = arrived + timedelta(minutes=7), student % 2 == 0
            yield SimulatedStudent(
                student, activity, arrived, (_attempt(variant, 1, answers, at, handed_in=handed_in),)
            )
        else:
            typed = dict(list(answers.items())[: len(answers) * (student - ATTEMPTED_TODAY + 2) // 10])
            yield SimulatedStudent(student, activity, arrived, (), ((1, worksheet_sizes(variant.worksheet), typed),))


def _typed_answers(variant: Variant, student: int | None) -> dict[str, str]:
    wrong = _misconception_answers(variant, student) if student is not None else {}
    return {
        box: variant.typed(blank, wrong.get(blank, variant.key[box])) for box, blank in variant.blanks_by_name.items()
    }


def _misconception_answers(variant: Variant, student: int) -> Mapping[Blank, int]:
    shown = list({e.misconception: e.wrong_answers for e in reversed(expectations(variant.problem))}.values())[::-1]
    holders = [number for number, count in enumerate(HOLDERS) for _ in range(count)]
    place = 7 * student % STUDENTS  # so that neighbours on the roster hold different ones
    if place < len(holders) and holders[place] < len(shown):
        return shown[holders[place]]
    return {}


def _attempt(
    variant: Variant, sheet_number: int, answers: Answers, at: datetime, *, handed_in: bool
) -> SimulatedAttempt:
    marks = stored_marks(variant, grade(variant, answers))
    return SimulatedAttempt(sheet_number, worksheet_sizes(variant.worksheet), answers, marks, at, handed_in)


def _ticket_answers(texts: Mapping[str, Sequence[str]], student: int) -> dict[str, str]:
    keys = tuple(texts)
    chosen = {keys[student % len(keys)], keys[(student + 2) % len(keys)]}
    return {key: texts[key][student % len(texts[key])] for key in keys if key in chosen}
