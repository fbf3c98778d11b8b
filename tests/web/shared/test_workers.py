"""Several workers on PostgreSQL: whichever of them answers, it is one class, and each shows the same live view."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.settings import PROJECT
from app.store import Store
from simulation.lesson import Lesson, open_lesson
from simulation.server import Server
from tests.helpers.school import PASSWORD

pytestmark = pytest.mark.slow

CLASS = 6
# A worker that is frozen for long, while the others are asked, isn't replaced.
PATIENT = "import app.cli.serve; from app.cli import main; app.cli.serve.SECONDS_UNTIL_REPLACED = 600; main(['serve'])"


@pytest.fixture
def server(tmp_path: Path, new_postgres_database: str) -> Iterator[Server]:
    """Two workers on PostgreSQL."""
    server = Server(tmp_path, new_postgres_database, workers=2, program=PATIENT)
    server.start()
    yield server
    server.kill()


def browser(lesson: Lesson) -> httpx.Client:
    """With a connection of its own for each request, so that any worker may answer it."""
    return httpx.Client(
        base_url=lesson.server.url, limits=httpx.Limits(max_keepalive_connections=0), timeout=300, follow_redirects=True
    )


@contextmanager
def alone(worker: psutil.Process, workers: Sequence[psutil.Process]) -> Iterator[None]:
    """Only this one answers: the others are frozen."""
    others = [other for other in workers if other != worker]
    for other in others:
        other.suspend()
    try:
        yield
    finally:
        for other in others:
            other.resume()


def join(lesson: Lesson, name: str) -> tuple[httpx.Client, str]:
    """A student's browser, and the resume code that it was shown."""
    phone = browser(lesson)
    phone.post(f"/join/{lesson.activity.join_code}", data={"name": name}, follow_redirects=True)
    page = phone.get("/mine")
    code = re.search(r'class="resume-code[^>]*>([^<]+)<', page.text)
    assert code, page.text
    return phone, code[1]


def work(lesson: Lesson, number: int) -> None:
    """Join, save three times, and hand in if the number is even."""
    phone, _ = join(lesson, f"Student {number}")
    with closing(phone):
        form = {"form_id": f"form-of-student-{number}"}
        for rows in ("1", "10", "100"):
            form |= {"queries.rows": rows}
            assert phone.post(f"{lesson.sheet_path}/save", data=form).status_code == 200
        if number % 2 == 0:
            assert phone.post(f"{lesson.sheet_path}/hand-in", data=form).status_code == 200


def wait_for_live_view(teacher: httpx.Client, lesson: Lesson, joined: int, working: int, handed_in: int) -> None:
    """Wait until the live view says so, however busy the machine is; fails with what it says instead."""
    until, shown = time.monotonic() + 300, list[str]()
    while shown[:3] != [str(joined), str(working), str(handed_in)]:
        assert time.monotonic() < until, shown
        answer = teacher.get(f"/activities/{lesson.activity.id}/now?sheet=1", headers={"HX-Request": "true"})
        shown = re.findall(r"<dd>(\d+)</dd>", answer.text) or shown
        time.sleep(0.25)


def test_whichever_worker_answers_it_is_one_class(server: Server) -> None:
    lesson = open_lesson(server)
    one, two = workers = server.workers()
    store = Store(server.database, server.folder)
    reset = store.people.add_link("reset", "lesson@example.org")
    store.close()
    with browser(lesson) as teacher, ThreadPoolExecutor(CLASS) as class_:
        with alone(one, workers):
            assert teacher.post(f"/links/{reset}", data={"password": PASSWORD}).url.path == "/courses"
            kim, code = join(lesson, "Kim")
        list(class_.map(lambda number: work(lesson, number), range(CLASS)))
        with alone(two, workers), closing(kim):
            wait_for_live_view(teacher, lesson, CLASS + 1, CLASS // 2, CLASS // 2)
            form = {"queries.rows": "4711"}
            assert kim.post(f"{lesson.sheet_path}/save", data=form).status_code == 200
            wait_for_live_view(teacher, lesson, CLASS + 1, CLASS // 2 + 1, CLASS // 2)
        with alone(one, workers), browser(lesson) as tablet:
            wait_for_live_view(teacher, lesson, CLASS + 1, CLASS // 2 + 1, CLASS // 2)
            assert tablet.post("/resume", data={"code": code}).status_code == 200
            assert 'value="4711"' in tablet.get(lesson.sheet_path).text
            teacher.post("/sign-out")
        with alone(two, workers):
            assert teacher.get("/courses").url.path == "/sign-in"


def test_workers_that_cannot_start_are_not_started_for_ever(tmp_path: Path) -> None:
    values = {"DATA_DIR": str(tmp_path), "PORT": "0", "WORKERS": "2"}
    settings = {f"ATTENTION_SHAPES_{name}": value for name, value in values.items()}
    told = subprocess.run(
        [sys.executable, "-"],
        input="import sys; from app.cli import main; sys.exit(main(['serve']))",
        env={
            **os.environ,
            "DATABASE_URL": "",
            **settings,
        },
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.returncode == 2
    assert 3 <= told.stderr.count("FileNotFoundError") <= 6
    assert "workers end as soon as they start" in told.stderr


def test_a_server_whose_workers_fail_to_start_ends_with_an_error(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from app.classes.auto_submit import AutoSubmitter\n"
        "from app.cli import main\n"
        "if __name__ == '__main__':\n"
        "    sys.exit(main(['serve']))\n"
        "AutoSubmitter.start = None  # in each worker\n"
    )
    values = {"DATA_DIR": str(tmp_path), "PORT": "0", "WORKERS": "2"}
    settings = {f"ATTENTION_SHAPES_{name}": value for name, value in values.items()}
    environment = {**os.environ, "DATABASE_URL": "", "PYTHONPATH": str(PROJECT), **settings}
    told = subprocess.run(
        [sys.executable, program], env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=600
    )
    assert told.returncode == 2
    assert "TypeError" in told.stderr
