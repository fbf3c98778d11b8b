"""A campus as processes of this machine: PostgreSQL, web servers behind a balancer, and workers.

`python -m simulation.campus` starts one, prints its address and the first teacher's link, and runs until Ctrl-C.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.secret_key import SECRET_FILE, read_or_make_secret
from app.settings import PROJECT
from simulation.postgres import postgres_server, temporary_database
from simulation.server import LOOK_S, Command, Server


@dataclass(frozen=True)
class Campus:
    """Web servers and workers with their own data folders, and the balancer's URL.

    Any server may answer any request; any worker may do any job.
    """

    url: str
    web_servers: tuple[Server, ...]
    workers: tuple[Command, ...]

    @property
    def database(self) -> str:
        """The URL of the shared database."""
        return self.web_servers[0].database

    @property
    def folder(self) -> Path:
        """The data folder of the first web server, with the shared secret key."""
        return self.web_servers[0].folder

    @property
    def commands(self) -> tuple[Command, ...]:
        """All commands of the app that are running."""
        return (*self.web_servers, *self.workers)

    def start(self) -> None:
        """Start all at the same time, and wait until they are ready."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda command: command.start(), self.commands))

    def kill(self) -> None:
        """Send SIGKILL to all that are running."""
        for command in self.commands:
            command.kill()

    def wait_until_idle(self) -> None:
        """Wait until each uses under a tenth of a core."""
        for command in self.commands:
            command.wait_until_idle()

    def cpu_seconds(self) -> float:
        """CPU time used so far by the app's processes, without the database and the balancer."""
        return sum(command.cpu_seconds() for command in self.commands)

    def memory_bytes(self) -> int:
        """Memory in use by the app's processes, without the database and the balancer."""
        return sum(command.memory_bytes() for command in self.commands)

    def first_link(self) -> str:
        """The one-time link that creates the first teacher's account, as printed by a web server."""
        begin = re.escape(self.url)
        while True:
            if link := re.search(rf"{begin}/links/\S+(?=\s)", self.web_servers[0].printed):
                return link[0]
            time.sleep(LOOK_S)


def worker_command(folder: Path, database_url: str, *options: str, before: str = "") -> Command:
    """`attention-shapes worker` with these options; `before` is Python code to run first."""
    program = f"{before}\nfrom app.cli import main; main(['worker', *{options!r}])"
    return Command(program, "Worker .* takes", folder, database_url)


@contextmanager
def running_worker(database_url: str) -> Iterator[Command]:
    """Start one worker beside a server, and kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="worker-", ignore_cleanup_errors=True) as name:
        worker = worker_command(Path(name), database_url)
        worker.start()
        try:
            yield worker
        finally:
            worker.kill()


@contextmanager
def running_campus(
    database_url: str, web_servers: int = 2, workers: int = 2, before_workers: str = "", options: Sequence[str] = ()
) -> Iterator[Campus]:
    """Start a campus on an empty PostgreSQL database, yield it once it answers, and kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="campus-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), _free_port()
        url = f"http://127.0.0.1:{port}"
        folders = [folder / f"web-{number}" for number in range(web_servers)]
        read_or_make_secret(folders[0])
        for other in folders[1:]:
            other.mkdir()
            shutil.copy(folders[0] / SECRET_FILE, other)
        serve = partial(Server, database_url=database_url, address=url, machines=str(web_servers))
        names = [f"worker-{number}" for number in range(workers)]
        campus = Campus(
            url,
            tuple(serve(each) for each in folders),
            tuple(
                worker_command(folder / each, database_url, "--name", each, *options, before=before_workers)
                for each in names
            ),
        )
        try:
            campus.start()
            with _balancer(folder, port, campus.web_servers):
                yield campus
        finally:
            campus.kill()


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        return int(free.getsockname()[1])


@contextmanager
def _balancer(folder: Path, port: int, web_servers: Sequence[Server]) -> Iterator[None]:
    own = {
        "SHAPES_DOMAIN": f"http://127.0.0.1:{port}",
        "SHAPES_WEBS": " ".join(f"127.0.0.1:{server.port}" for server in web_servers),
        "CADDY_ADMIN": f"unix/{folder}/caddy.sock",
    }
    homes = dict.fromkeys(("XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(folder))
    command = ["caddy", "run", "--config", str(PROJECT / "Caddyfile")]
    with subprocess.Popen(command, env={**os.environ, **own, **homes}, stderr=subprocess.DEVNULL) as process:
        try:
            while not _answers(port):
                assert process.poll() is None, "Caddy has ended"
                time.sleep(LOOK_S)
            yield
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def main() -> None:
    with (
        postgres_server(durable=True) as server,
        temporary_database(server, "campus") as database,
        running_campus(database) as campus,
        suppress(KeyboardInterrupt),
    ):
        print(f"The campus is at {campus.url} (stop it with Ctrl-C)")
        print(f"Create the first teacher’s account with this one-time link: {campus.first_link()}", flush=True)
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
