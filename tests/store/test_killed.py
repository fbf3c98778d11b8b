"""The server killed while a class works: what it acknowledged is there, what it did not comes once, by trying again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.store import Store
from app.store.tables import class_attempts, class_drafts
from simulation.class_students import ClassStudent, Timings, find_losses
from simulation.lesson import Lesson, open_lesson
from simulation.scenarios import join_all, work_while_server_dies
from simulation.server import Server

STUDENTS, KILLS = 12, 3


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
    """Kill -9 three times under load: every acknowledged save is there, every sheet is handed in once."""

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
    """The server took it and died before anybody heard: the same request to the next server makes no second attempt."""
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
    """An older draft, a second attempt and another text put into the database by hand are each reported."""

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
        connection.execute(sa.update(class_drafts).where(class_drafts.c.student_id == first).values(stamps={}))
        row = connection.execute(sa.select(class_attempts).where(class_attempts.c.student_id == second)).one()
        connection.execute(sa.insert(class_attempts).values({**row._mapping, "id": None, "client_id": "another"}))
        connection.execute(sa.update(class_drafts).where(class_drafts.c.student_id == third).values(answers={}))
    store.close()
    assert {report.partition(":")[0] for report in find_losses(lesson, class_[:3])} == {p.name for p in class_[:3]}
