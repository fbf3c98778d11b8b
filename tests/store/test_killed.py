"""The server killed while a class works: what it acknowledged is there, what it did not comes once, by trying again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.store import Store
from app.store.tables import tries, work
from benchmarks import pupils as pupils_module
from benchmarks.classroom import join_all, killed
from benchmarks.pupils import Measured, Pupil, missing
from benchmarks.serving import Lesson, Server, open_lesson

STUDENTS, KILLS = 12, 3


@pytest.fixture
def lesson(tmp_path: Path) -> Iterator[Lesson]:
    """A served lesson that may be killed."""
    server = Server(tmp_path)
    server.start()
    yield open_lesson(server)
    server.kill()


@pytest.fixture
def class_(lesson: Lesson, monkeypatch: pytest.MonkeyPatch) -> list[Pupil]:
    """Students who try again sooner than the page does, so that the test is short."""
    monkeypatch.setattr(pupils_module, "BACK_OFF", (0.05, 0.2))
    measured = Measured()
    return [Pupil(lesson, number, measured) for number in range(STUDENTS)]


def run(class_: Sequence[Pupil], work: Awaitable[None]) -> None:
    """Let them work, and close their connections."""

    async def whole() -> None:
        try:
            await work
        finally:
            await asyncio.gather(*(pupil.browser.leave() for pupil in class_))

    with ThreadPoolExecutor(1) as other:  # the browser of other tests keeps a loop running in this thread
        other.submit(asyncio.run, whole()).result()


def test_nothing_acknowledged_is_lost_and_nothing_is_doubled_by_kills(lesson: Lesson, class_: list[Pupil]) -> None:
    """Kill -9 three times under load: every acknowledged save is there, every sheet is handed in once."""

    async def lived() -> None:
        await join_all(class_)
        await killed(lesson, class_, KILLS, (0.2, 0.6))

    run(class_, lived())
    assert class_[0].measured.errors, "no request was on its way when the server died"
    assert list(missing(lesson, class_)) == []
    assert {pupil.handed_in is not None for pupil in class_} == {True}


def test_a_hand_in_whose_answer_was_lost_is_sent_again_and_kept_once(lesson: Lesson, class_: list[Pupil]) -> None:
    """The server took it and died before anybody heard: the same request to the next server makes no second try."""
    pupil = class_[0]

    async def died() -> None:
        await join_all([pupil])
        await pupil.hand_in()
        lesson.server.kill()
        lesson.server.start()
        form = {**pupil.form, **pupil.answers}
        answer = await pupil.browser.post(f"{lesson.sheet_path}/hand-in", form, script=True)
        assert answer.status == 200

    run([pupil], died())
    assert list(missing(lesson, [pupil])) == []


def test_the_check_finds_what_is_lost_doubled_or_changed(lesson: Lesson, class_: list[Pupil]) -> None:
    """An older draft, a second try and another text put into the database by hand are each reported."""

    async def handed_in() -> None:
        await join_all(class_[:3])
        await asyncio.gather(*(pupil.hand_in() for pupil in class_[:3]))

    run(class_, handed_in())
    assert list(missing(lesson, class_[:3])) == []
    store = Store(lesson.server.database)
    course = store.courses.find(lesson.activity.course_id)
    assert course is not None
    ids = {student.name: student.id for student in store.courses.students(course)}
    first, second, third = (ids[pupil.name] for pupil in class_[:3])
    with store.engine.begin() as connection:
        connection.execute(sa.update(work).where(work.c.student_id == first).values(version=1))
        row = connection.execute(sa.select(tries).where(tries.c.student_id == second)).one()
        connection.execute(sa.insert(tries).values({**row._mapping, "id": None, "client_id": "another"}))
        connection.execute(sa.update(work).where(work.c.student_id == third).values(answers={}))
    store.close()
    assert {report.partition(":")[0] for report in missing(lesson, class_[:3])} == {p.name for p in class_[:3]}
