"""The server killed while a class works: what it acknowledged is there, what it did not comes once, by trying again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.classes.student_sheet import freeze, student_sheet
from app.store import Draft, Plan, Store
from app.store.tables import attempts, drafts
from simulation.class_students import ClassStudent, Timings, find_losses
from simulation.lesson import Lesson, add_teacher, open_lesson
from simulation.scenarios import join_all, work_while_server_dies
from simulation.server import Server
from tests.helpers.clock import end_activity
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow

STUDENTS, KILLS = 12, 3
DRAFT_KILLS = int(os.environ.get("DRAFT_KILLS", "2"))  # kills of the process that auto-submits drafts, on each database


@pytest.fixture
def lesson(tmp_path: Path) -> Iterator[Lesson]:
    """A served lesson that may be killed."""
    server = Server(tmp_path)
    server.start()
    yield open_lesson(server)
    server.kill()


@pytest.fixture
def class_(lesson: Lesson) -> list[ClassStudent]:
    """Students who try again sooner than the page does, so that the test is short."""
    timings = Timings()
    return [
        ClassStudent(lesson, number, timings, first_retry_s=0.05, longest_retry_s=0.2) for number in range(STUDENTS)
    ]


def run(class_: Sequence[ClassStudent], work: Awaitable[None]) -> None:
    """Let them work, and close their connections."""

    async def whole() -> None:
        try:
            await work
        finally:
            await asyncio.gather(*(student.client.wait_closed() for student in class_))

    with ThreadPoolExecutor(1) as other:  # the browser of other tests keeps a loop running in this thread
        other.submit(asyncio.run, whole()).result()


def test_nothing_acknowledged_is_lost_and_nothing_is_doubled_by_kills(
    lesson: Lesson, class_: list[ClassStudent]
) -> None:
    async def lived() -> None:
        await join_all(class_)
        await work_while_server_dies(lesson, class_, KILLS, (0.2, 0.6))

    run(class_, lived())
    assert class_[0].timings.errors, "no request was on its way when the server died"
    assert list(find_losses(lesson, class_)) == []
    assert {student.handed_in is not None for student in class_} == {True}


def test_a_hand_in_whose_answer_was_lost_is_sent_again_and_kept_once(
    lesson: Lesson, class_: list[ClassStudent]
) -> None:
    student = class_[0]

    async def died() -> None:
        await join_all([student])
        await student.hand_in()
        lesson.server.kill()
        lesson.server.start()
        form = {**student.form, **student.answers}
        answer = await student.client.post(f"{lesson.sheet_path}/hand-in", form, script=True)
        assert answer.status == 200

    run([student], died())
    assert list(find_losses(lesson, [student])) == []


def test_the_check_finds_what_is_lost_doubled_or_changed(lesson: Lesson, class_: list[ClassStudent]) -> None:
    async def handed_in() -> None:
        await join_all(class_[:3])
        await asyncio.gather(*(student.hand_in() for student in class_[:3]))

    run(class_, handed_in())
    assert list(find_losses(lesson, class_[:3])) == []
    store = Store(lesson.server.database, lesson.server.folder)
    course = store.courses.find(lesson.activity.course_id)
    assert course is not None
    ids = {student.name: student.id for student in store.roster.students(course)}
    first, second, third = (ids[student.name] for student in class_[:3])
    with store.engine.begin() as connection:
        connection.execute(sa.update(drafts).where(drafts.c.student_id == first).values(tab_versions={}))
        row = connection.execute(sa.select(attempts).where(attempts.c.student_id == second)).one()
        connection.execute(sa.insert(attempts).values({**row._mapping, "id": None, "client_id": "another"}))
        connection.execute(sa.update(drafts).where(drafts.c.student_id == third).values(answers={}))
    store.close()
    assert {report.partition(":")[0] for report in find_losses(lesson, class_[:3])} == {p.name for p in class_[:3]}


# Auto-submits drafts as the app does, but two students at a time and with a word each time: a kill falls in between.
AUTO_SUBMITTING = """
import sys, time
from pathlib import Path
from app.classes import auto_submit
from app.settings import PROJECT
from app.sheets.library import load_library
from app.store import Classwork, Store

def slowly(self, attempts, usual=Classwork.add_attempts):
    usual(self, attempts)
    print("stored some", flush=True)
    time.sleep(0.01)

Classwork.add_attempts, auto_submit.STUDENTS_AT_A_TIME = slowly, 2
submitter = auto_submit.AutoSubmitter(load_library(PROJECT / "worksheets"), Store(sys.argv[1], Path(sys.argv[2])))
print("ready", flush=True)
submitter.settle_all()
"""


def test_a_process_killed_while_it_auto_submits_loses_and_doubles_nothing(database_url: str, tmp_path: Path) -> None:
    library, store = LIBRARY, Store(database_url, tmp_path)
    course = store.courses.add("Course", "UTC", add_teacher(store, "ada@example.org", "Ada"))
    made = store.activities.add(course, Plan("Week 3"), freeze(library, ("llama-7b", "qwen2.5-0.5b"), None))
    store.activities.set_state(made, "open")
    typed = dict[tuple[int, str], dict[str, str]]()
    for place in range(30):
        student, _ = store.roster.enrol_new_student(course, f"Kim {place}", store.add_visitor().id)
        for number in (1, 2):
            sheet = student_sheet(library, store, made, student, number)
            answers = typed[student.id, sheet.key.sheet_key] = {"queries.rows": str(100 + place)}
            store.classwork.save(sheet.key, Draft(answers, 1, sheet.sizes))
    end_activity(store, made.id)
    command, counts = [sys.executable, "-c", AUTO_SUBMITTING, database_url, str(tmp_path)], list[int]()
    for number in range(DRAFT_KILLS + 1):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            if number < DRAFT_KILLS:
                for _ in range(2 + number % 2):
                    process.stdout.readline()
                process.kill()
            else:
                process.stdout.read()  # until it ends by itself
        submitted = store.classwork.attempts_of_activity(made.id)
        counts.append(len(submitted))
        assert len({(attempt.student_id, attempt.sheet_key) for attempt in submitted}) == len(submitted)
    stored = {(attempt.student_id, attempt.sheet_key): attempt.answers for attempt in submitted}
    ended = store.activities.find(made.id)
    store.close()
    assert any(0 < count < len(typed) for count in counts[:-1]), f"no kill fell into the work: {counts}"
    assert stored == typed
    assert {attempt.auto_submitted for attempt in submitted} == {True}
    assert ended is not None
    assert ended.phase(store.now()) == "closed"
