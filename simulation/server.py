"""The app in its own processes, which can be killed, paused, and restarted on the same port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

import psutil

from app.settings import PROJECT

SERVE = "from app.cli import main; main(['serve'])"
LOOK_S = 0.02  # between two checks of what a process has printed


class Site(Protocol):
    """Where simulated people work: one server, or a campus of several."""

    @property
    def url(self) -> str:
        """The URL where it answers, such as http://127.0.0.1:40123."""

    @property
    def database(self) -> str:
        """The URL of its database, for inspecting it from outside."""

    @property
    def folder(self) -> Path:
        """A data folder with its secret key."""

    def start(self) -> object:
        """Start all its processes, and wait until they answer."""

    def kill(self) -> None:
        """Send SIGKILL to all its running processes."""

    def cpu_seconds(self) -> float:
        """CPU time used so far by all its processes, user and system together."""

    def memory_bytes(self) -> int:
        """Memory in use by all its processes, including children; what they share counts in each."""


def cpu_seconds(main: psutil.Process) -> float:
    """CPU time, user and system together, used by a process and its children, including ended ones."""
    total = 0.0
    for process in (main, *main.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system + used.children_user + used.children_system
    return total


class Command:
    """A command of the app, with its data in one folder, which can be killed, paused and restarted.

    Without a `database_url` its database is the SQLite file in the folder.
    """

    def __init__(self, program: str, begins: str, folder: Path, database_url: str = "", **settings: str) -> None:
        self.folder, self.database_url = folder, database_url
        self._program, self._begins, self._settings = program, begins, settings
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None  # a file, since a pipe that nobody reads would fill up

    @property
    def database(self) -> str:
        """The URL of its database, for inspecting it from outside."""
        return self.database_url or f"sqlite:///{self.folder / 'attention-shapes.sqlite3'}"

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._process is not None

    @property
    def printed(self) -> str:
        """What it has printed since its start; fails if stopped."""
        assert self._output is not None
        file = self._output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode()

    def start(self) -> re.Match[str]:
        """Start it, and wait until it is ready; return the match of what it printed."""
        own = {f"ATTENTION_SHAPES_{name.upper()}": value for name, value in self._settings.items()}
        folder = {"ATTENTION_SHAPES_DATA_DIR": str(self.folder), "DATABASE_URL": self.database_url}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - `kill` and `terminate` close it
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._program],
            cwd=PROJECT,
            env={**os.environ, **folder, **own},
            stdout=self._output,
            start_new_session=True,
        )
        while True:
            has_ended = self._process.poll() is not None
            if match := re.search(self._begins, self.printed):
                return match
            assert not has_ended, f"it ended and printed {self.printed!r}"
            time.sleep(LOOK_S)

    def kill(self) -> None:
        """Send SIGKILL to all its running processes, so that nothing is written or closed."""
        if self._process:
            self._signal(signal.SIGKILL)
            self._wait()

    def terminate(self) -> int:
        """Terminate it as the system does at shutdown, wait, and return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._wait()

    def suspend(self) -> None:
        """Freeze all its processes until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Freeze all its processes during this `with`."""
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    def cpu_seconds(self) -> float:
        """CPU time used so far by all its processes, user and system together."""
        return cpu_seconds(self.main_process())

    def memory_bytes(self) -> int:
        """Memory in use by all its processes, including children; what they share counts in each."""
        main, total = self.main_process(), 0
        for process in (main, *main.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    def wait_until_idle(self) -> None:
        """Wait until it uses under a tenth of a core: it keeps loading after it says that it is ready."""
        before, now = -1.0, self.cpu_seconds()
        while now - before > 0.05:
            time.sleep(0.5)
            before, now = now, self.cpu_seconds()

    def main_process(self) -> psutil.Process:
        """The started process, whose children are all the others; fails if stopped."""
        assert self._process is not None
        return psutil.Process(self._process.pid)

    def _wait(self) -> int:
        assert self._process is not None
        assert self._output is not None
        status = self._process.wait()
        self._output.close()
        self._process = self._output = None
        return status

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, number)


class Server(Command):
    """`attention-shapes serve` on a port that stays the same over restarts."""

    def __init__(
        self, folder: Path, database_url: str = "", workers: int = 1, program: str = SERVE, **settings: str
    ) -> None:
        url = r"http://127\.0\.0\.1:(\d+)"
        super().__init__(program, url, folder, database_url, workers=str(workers), **settings)
        self.port = 0  # the system chooses one at the first start
        self.worker_count = workers

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> re.Match[str]:
        """Start it, and wait until it prints its URL."""
        self._settings["port"] = str(self.port)
        match = super().start()
        self.port = int(match[1])
        return match

    def workers(self) -> list[psutil.Process]:
        """Wait until every worker process has started, and return them all."""
        main = self.main_process()
        while True:
            workers = [child for child in main.children() if "spawn_main" in " ".join(child.cmdline())]
            if len(workers) >= self.worker_count:
                return workers
            assert main.is_running()
            time.sleep(0.05)


@contextmanager
def running_server(database_url: str = "", workers: int = 1) -> Iterator[Server]:
    """Start a server with a temporary folder, yield it once it is idle, and kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        server = Server(Path(folder), database_url, workers)
        server.start()
        try:
            server.wait_until_idle()
            yield server
        finally:
            server.kill()
