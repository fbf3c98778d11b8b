"""The app in processes of its own, which can be killed and started again on the same port."""

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

import psutil

from app.settings import PROJECT

SERVE = "from app.cli import main; main(['serve'])"


class Server:
    """`attention-shapes serve` with its data in one folder, on a port that stays the same over restarts.

    Without a `database_url` its database is the SQLite file in the folder. `program` is Python that runs in place of
    the command and must end with it, for a test that changes something first.
    """

    def __init__(self, folder: Path, database_url: str = "", workers: int = 1, program: str = SERVE) -> None:
        self.port = 0  # the system chooses one at the first start
        self.folder, self.database_url, self.worker_count = folder, database_url, workers
        self._program = program
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it answers, such as http://127.0.0.1:40123."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """The URL of its database, for looking into it from outside."""
        return self.database_url or f"sqlite:///{self.folder / 'attention-shapes.sqlite3'}"

    def start(self) -> None:
        """Start it, and wait until it prints its URL."""
        environment = {
            **os.environ,
            "ATTENTION_SHAPES_PORT": str(self.port),
            "ATTENTION_SHAPES_DATA_DIR": str(self.folder),
            "ATTENTION_SHAPES_WORKERS": str(self.worker_count),
            "DATABASE_URL": self.database_url,
        }
        command = [sys.executable, "-c", self._program]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert match, f"serve printed {line!r} and no URL"
        self.port = int(match.group(1))

    def kill(self) -> None:
        """Send SIGKILL to all of its processes, so that nothing is written or closed; do nothing if it is stopped."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def workers(self) -> list[psutil.Process]:
        """Wait until every worker process has begun, and return them all."""
        main = self.main_process()
        while True:
            workers = [child for child in main.children() if "spawn_main" in " ".join(child.cmdline())]
            if len(workers) >= self.worker_count:
                return workers
            assert main.is_running()
            time.sleep(0.05)

    def wait_until_idle(self) -> None:
        """Wait until it uses under a tenth of a core: workers go on loading after the URL is printed."""
        before, now = -1.0, self.cpu_seconds()
        while now - before > 0.05:
            time.sleep(0.5)
            before, now = now, self.cpu_seconds()

    def cpu_seconds(self) -> float:
        """CPU time used so far by all of its processes, user and system together."""
        main = self.main_process()
        times = [process.cpu_times() for process in (main, *main.children(recursive=True))]
        return sum(used.user + used.system for used in times)

    def memory_bytes(self) -> int:
        """Memory in use by all of its processes, children among them; what they share counts in each."""
        main, total = self.main_process(), 0
        for process in (main, *main.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    def main_process(self) -> psutil.Process:
        """The process that was started, which has the workers as children if there are several; fails if stopped."""
        assert self._process is not None
        return psutil.Process(self._process.pid)


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
