"""What fails on a campus while a class works: nothing that was acknowledged is lost, and every job counts once."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pytest
import sqlalchemy as sa

from app.store import Policies
from app.store.jobs import jobs
from app.store.tables import runs
from simulation.campus import Campus, running_campus, worker_command
from simulation.class_students import ClassStudent, Timings, find_losses
from simulation.http_client import HttpClient
from simulation.lesson import open_lesson
from simulation.postgres import postgres_killed, postgres_paused, postgres_server, temporary_database
from simulation.scenarios import join_all, work_during
from simulation.server import Command
from tests.helpers.printed import Printed

pytestmark = pytest.mark.slow

READERS = 4  # who ask for one page after the other
STUDENTS, PRINTING = 20, 4  # all run a head, and the first four print as well
MOST_PAUSE_S = 3.0  # between two saves of a student
WAIT_S = 300.0  # for what takes a second, on a machine that does much else at the same time
MOST_UNTIL_NEXT_JOB = timedelta(seconds=20)  # after the database's return; six on a machine that does nothing else
A_WHILE = timedelta(minutes=10)
lesson_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of an empty database on a server of its own, which may be killed."""
    with postgres_server(durable=True) as server, temporary_database(server, "campus") as url:
        yield url


@pytest.fixture(scope="module")
def campus(database: str) -> Iterator[Campus]:
    with running_campus(database, before_workers=PATIENT) as running:
        yield running


@dataclass
class Classroom:
    """Students of a lesson of their own, and what came of the jobs that they asked for."""

    students: Sequence[ClassStudent]
    database: sa.Engine
    since: int  # the newest job before the lesson
    shown: list[str] = field(default_factory=list)  # the last page of each run, as `watch_run` has it
    printed: dict[str, str] = field(default_factory=dict)  # the text of each PDF or page, by the name that it has

    def live_through(self, trouble: Callable[[], Awaitable[object]]) -> None:
        """All join; then they save, run heads and print while the trouble is under way, and hand in after it."""

        async def until_it_is_over(stop: asyncio.Event) -> None:
            await trouble()
            stop.set()

        async def whole() -> None:
            try:
                await join_all(self.students)
                async with asyncio.TaskGroup() as group:
                    group.create_task(work_during(self.students, until_it_is_over, MOST_PAUSE_S))
                    for student in self.students:
                        group.create_task(self._run(student))
                    for student in self.students[:PRINTING]:
                        group.create_task(self._print(student))
            finally:
                await asyncio.gather(*(student.client.wait_closed() for student in self.students))

        in_a_thread(whole)
        assert list(find_losses(self.students[0].lesson, self.students)) == []
        assert all(student.handed_in for student in self.students)
        assert self.shown == ["served"] * STUDENTS
        assert [text for name, text in self.printed.items() if name not in text] == []
        self.assert_each_job_counts_once()

    def assert_each_job_counts_once(self) -> None:
        """Each is ready, and each run has a result."""
        assert {row.state for row in self.jobs()} == {"ready"}
        assert len(self.workers_of_results()) == len([row for row in self.jobs() if row.kind == "run"]) >= STUDENTS

    def jobs(self) -> Sequence[Any]:
        """The rows of the jobs of this lesson, in the order in which they were asked for."""
        with self.database.connect() as connection:
            return connection.execute(sa.select(jobs).where(jobs.c.id > self.since).order_by(jobs.c.id)).all()

    def is_done(self) -> bool:
        """Whether no job waits or runs."""
        return {row.state for row in self.jobs()} <= {"ready", "failed", "cancelled"}

    def workers_of_results(self) -> list[str]:
        """The device of each run, in the order of the jobs: workers with heads that are made up give their name."""
        query = sa.select(runs.c.result).join_from(jobs, runs, jobs.c.key == runs.c.id).order_by(jobs.c.id)
        with self.database.connect() as connection:
            return [row.result["device_name"] for row in connection.execute(query.where(jobs.c.id > self.since))]

    async def wait_for_database(self) -> datetime:
        """Wait until it answers, and return the time by its clock."""
        while True:
            try:
                with self.database.connect() as connection:
                    at: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
                    return at
            except sa.exc.OperationalError:
                await asyncio.sleep(0.01)

    async def _run(self, student: ClassStudent) -> None:
        self.shown.append((await student.run_head())[-1])

    async def _print(self, student: ClassStudent) -> None:
        name = f"Name {student.number}"
        answer = await student.print_sheets([name])
        is_pdf = answer.content.startswith(b"%PDF")
        self.printed[name] = Printed(pdfium.PdfDocument(answer.content)[0]).text if is_pdf else answer.text


def in_a_thread(work: Callable[[], Awaitable[None]]) -> None:
    """Do it to the end; the browser of other tests keeps a loop running in this thread."""

    async def whole() -> None:
        await work()

    with ThreadPoolExecutor(1) as other:
        other.submit(asyncio.run, whole()).result()


@pytest.fixture
def classroom(campus: Campus) -> Iterator[Classroom]:
    """A lesson of its own on a campus where everything runs; students try again sooner than the page does."""
    for command in campus.commands:
        if not command.is_running:
            command.start()
    lesson = open_lesson(campus, f"Lesson {next(lesson_numbers)}", Policies(feedback="after_hand_in", run="before"))
    students = [
        ClassStudent(lesson, number, Timings(), first_retry_s=0.1, longest_retry_s=0.5) for number in range(STUDENTS)
    ]
    engine = sa.create_engine(campus.database, poolclass=sa.NullPool)
    with engine.connect() as connection:
        since = connection.scalar(sa.select(sa.func.max(jobs.c.id)))
    yield Classroom(students, engine, since or 0)
    engine.dispose()


async def wait_until(is_so: Callable[[], object]) -> None:
    """Look ten times a second; fails after WAIT_S."""
    give_up_at = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.1)


@contextmanager
def standing_still(*commands: Command) -> Iterator[None]:
    with ExitStack() as stack:
        for command in commands:
            stack.enter_context(command.paused())
        yield


@contextmanager
def worker_with(campus: Campus, folder: Path, name: str, before: str = "") -> Iterator[Command]:
    """A worker with made-up heads whose device has its name; `before` is further Python to run first."""
    command = worker_command(
        folder, campus.database, "--name", name, before="\n".join((PATIENT, MADE_UP, f"NAME = {name!r}", before))
    )
    command.start()
    try:
        yield command
    finally:
        command.kill()


# Even on a busy machine, handouts don't wait for idle time.
PATIENT = """
from functools import partial
from app import main
main.HandoutPrinter = partial(main.HandoutPrinter, idle_time_only=False)
"""
MADE_UP = """
from app.forward import process
from tests.helpers.fake_runner import FakeRunner

class MadeUp(FakeRunner):
    def __init__(self, **_):
        super().__init__()
        self.changes = {"device_name": NAME}
    def describe_device(self, *_, **__):
        return "cpu", NAME

process.HeadRunner = MadeUp
"""


# Web servers and the database


def test_a_web_server_is_killed(campus: Campus, classroom: Classroom) -> None:
    server, statuses, is_over = campus.web_servers[0], list[int](), asyncio.Event()
    broken_off = list[int]()

    async def read(reader_number: int) -> None:
        reader = HttpClient(campus.url)
        while not is_over.is_set():
            try:
                statuses.append((await reader.get("/glossary")).status)
            except ConnectionError:  # the answer under way at the kill; nobody can finish it
                broken_off.append(reader_number)
                reader = HttpClient(campus.url)
        await reader.wait_closed()

    async def kill() -> None:
        async with asyncio.TaskGroup() as group:
            for reader_number in range(READERS):
                group.create_task(read(reader_number))
            await asyncio.sleep(0.2)
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(0.5)
            is_over.set()
        await asyncio.to_thread(server.start)

    classroom.live_through(kill)
    assert set(statuses) == {200}
    assert len(broken_off) == len(set(broken_off)), "an answer may break off once per reader"


def test_the_database_is_killed(campus: Campus, database: str, classroom: Classroom) -> None:
    """Jobs that waited for it begin soon after its return."""
    returned_at = datetime.min.replace(tzinfo=UTC)

    async def kill() -> None:
        nonlocal returned_at
        with ExitStack() as stack:
            with standing_still(*campus.workers):
                await wait_until(lambda: len(classroom.jobs()) >= STUDENTS + PRINTING)
                stack.enter_context(postgres_killed(database))
            await asyncio.sleep(2)  # in which the workers notice
            returning = asyncio.create_task(classroom.wait_for_database())
            await asyncio.to_thread(stack.close)
        returned_at = await returning

    classroom.live_through(kill)
    first_start = min(row.started_at for row in classroom.jobs())
    assert returned_at < first_start < returned_at + MOST_UNTIL_NEXT_JOB


# Workers


def test_a_worker_is_killed_and_then_the_database_stands_still(
    campus: Campus, database: str, classroom: Classroom
) -> None:
    killed, other = campus.workers
    begun = set[int]()

    def is_at_work(row: Any) -> bool:
        return bool(row.state == "working" and row.worker == "worker-0")

    async def kill_and_stand_still() -> None:
        with standing_still(other):
            await wait_until(lambda: "handout" in {row.kind for row in classroom.jobs() if is_at_work(row)})
            killed.kill()
            begun.update(row.id for row in classroom.jobs() if is_at_work(row))
        with postgres_paused(database):
            await asyncio.sleep(20)

    classroom.live_through(kill_and_stand_still)
    assert {(row.attempt, row.worker) for row in classroom.jobs() if row.id in begun} == {(2, "worker-1")}


IMPATIENT = """
from datetime import timedelta
from app.store import jobs
jobs.SILENT_AFTER = timedelta(seconds=3)
"""
SLOW = """
import time
class Slow(MadeUp):
    def run(self, *arguments, **options):
        print("at work", flush=True)
        time.sleep(0.3)
        return super().run(*arguments, **options)
process.HeadRunner = Slow
"""


def test_a_worker_stands_still_for_too_long_and_wakes_up(campus: Campus, classroom: Classroom, tmp_path: Path) -> None:
    begun = list[int]()

    async def stand_still() -> None:
        with (
            standing_still(*campus.workers),
            worker_with(campus, tmp_path / "late", "late", SLOW) as late,
            worker_with(campus, tmp_path / "other", "other", IMPATIENT) as other,
        ):
            with other.paused():
                await wait_until(lambda: "at work" in late.printed)
                late.suspend()
            begun.extend(row.id for row in classroom.jobs() if row.state == "working" and row.worker == "late")
            await wait_until(lambda: classroom.is_done())
            late.resume()
            with other.paused():
                assert (await classroom.students[-1].run_head())[-1] == "served"

    classroom.live_through(stand_still)
    assert {(row.attempt, row.worker) for row in classroom.jobs() if row.id in begun} == {(2, "other")}
    assert classroom.workers_of_results() == [row.worker for row in classroom.jobs() if row.kind == "run"]


def test_a_worker_on_older_code(campus: Campus, classroom: Classroom, tmp_path: Path) -> None:
    older = "from app.jobs import jobs; jobs.JOB_FORM = 0"

    async def wait_for_another() -> None:
        with standing_still(*campus.workers), worker_with(campus, tmp_path / "older", "older", older):
            await wait_until(lambda: len(classroom.jobs()) >= STUDENTS + PRINTING)
            await asyncio.sleep(1)
            assert {row.attempt for row in classroom.jobs()} == {0}

    classroom.live_through(wait_for_another)
    assert {row.worker for row in classroom.jobs()} <= {"worker-0", "worker-1"}


def test_the_disk_of_a_worker_is_full(campus: Campus, classroom: Classroom, tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))"

    async def do_all() -> None:
        with standing_still(*campus.workers), worker_with(campus, tmp_path / "full", "full", full):
            await wait_until(lambda: len(classroom.jobs()) >= STUDENTS + PRINTING and classroom.is_done())

    classroom.live_through(do_all)
    assert {row.worker for row in classroom.jobs()} == {"full"}


WRONG_CLOCK = """
from datetime import datetime, timedelta
from app.store import queries
class WrongDatetime(datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime.now(zone) + timedelta(hours=HOURS)
queries.datetime = WrongDatetime
"""


def test_the_clocks_of_workers_are_an_hour_off(campus: Campus, classroom: Classroom, tmp_path: Path) -> None:
    async def do_all() -> None:
        with (
            standing_still(*campus.workers),
            worker_with(campus, tmp_path / "fast", "fast", f"HOURS = 1\n{SLOW}\n{WRONG_CLOCK}"),
            worker_with(campus, tmp_path / "slow", "slow", f"HOURS = -1\n{SLOW}\n{WRONG_CLOCK}"),
        ):
            await wait_until(lambda: len(classroom.jobs()) >= STUDENTS + PRINTING and classroom.is_done())

    classroom.live_through(do_all)
    assert {(row.attempt, row.worker) for row in classroom.jobs()} == {(1, "fast"), (1, "slow")}
    assert all(row.created_at <= row.started_at <= row.heard_at <= row.created_at + A_WHILE for row in classroom.jobs())
