"""What fails on a campus while a class works: nothing that was acknowledged is lost, and every job counts once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.store import Policies
from simulation.campus import Campus, NoBalancerError, running_campus
from simulation.class_students import ClassStudent, Timings, find_losses
from simulation.lesson import open_lesson
from simulation.postgres import postgres_killed, postgres_paused, postgres_server, temporary_database
from simulation.scenarios import join_all, work_during

pytestmark = pytest.mark.slow

STUDENTS = 20
MOST_PAUSE_S = 1.0  # of a student between two saves
lesson_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of an empty database on a server of its own, which may be killed."""
    with postgres_server(durable=True) as server, temporary_database(server, "campus") as url:
        yield url


@pytest.fixture(scope="module")
def campus(database: str) -> Iterator[Campus]:
    try:
        with running_campus(database) as running:
            yield running
    except NoBalancerError:
        pytest.skip("Caddy is not installed here; .ci/run installs it")


@pytest.fixture
def class_(campus: Campus) -> list[ClassStudent]:
    """Students of a lesson of their own, who try again sooner than the page does, so that the tests are short."""
    lesson = open_lesson(campus, f"Lesson {next(lesson_numbers)}", Policies(feedback="after_hand_in", run="before"))
    return [
        ClassStudent(lesson, number, Timings(), first_retry_s=0.1, longest_retry_s=0.5) for number in range(STUDENTS)
    ]


def live_through(class_: Sequence[ClassStudent], trouble: Callable[[], Awaitable[object]]) -> None:
    """All join, save during the trouble, and hand in once it is over; nothing acknowledged may be lost or doubled."""

    async def until_it_is_over(stop: asyncio.Event) -> None:
        await asyncio.sleep(0.5)
        await trouble()
        stop.set()

    async def whole() -> None:
        try:
            await join_all(class_)
            await work_during(class_, until_it_is_over, MOST_PAUSE_S)
        finally:
            await asyncio.gather(*(student.client.wait_closed() for student in class_))

    with ThreadPoolExecutor(1) as other:  # the browser of other tests keeps a loop running in this thread
        other.submit(asyncio.run, whole()).result()
    assert list(find_losses(class_[0].lesson, class_)) == []
    assert all(student.handed_in for student in class_)


def test_a_web_server_that_is_killed_loses_nothing(campus: Campus, class_: list[ClassStudent]) -> None:
    """The other one answers meanwhile, and students who only read notice nothing."""

    async def kill_and_restart() -> None:
        await asyncio.to_thread(campus.web_servers[0].kill)
        await asyncio.sleep(2)
        await asyncio.to_thread(campus.web_servers[0].start)

    live_through(class_, kill_and_restart)


def test_a_database_that_is_killed_loses_nothing(database: str, class_: list[ClassStudent]) -> None:
    async def kill_and_restart() -> None:
        with postgres_killed(database):
            await asyncio.sleep(1)

    live_through(class_, kill_and_restart)


def test_a_database_that_stands_still_loses_nothing(database: str, class_: list[ClassStudent]) -> None:
    async def pause() -> None:
        with postgres_paused(database):
            await asyncio.sleep(20)

    live_through(class_, pause)
