"""Apps in the test's own process, with services that suit a busy machine."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Literal, cast

import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.forward.process import HeadRunner
from app.handout.handout_printer import HandoutPrinter
from app.main import create_app
from app.secret_key import SECRET_FILE
from app.settings import Settings
from app.web.shared import request_log
from app.web.shared.connection_limits import LimitedProtocol, listeners
from tests.helpers.clock import CLOCK
from tests.helpers.shipped import LIBRARY, TICKETS

PATIENCE_S = 600  # how long a preview and a child’s start may take while other tests keep the machine busy
request_log.SLOW_AFTER_S = float("inf")  # a busy machine isn't a line in the log
NEVER_S = 3600.0  # apps don't look for ended activities by themselves: tests' browsers make them


def make_app(settings: Settings, runner: HeadRunner | None = None) -> FastAPI:
    """An app with the shipped library, read once for all tests, whose handouts don't wait for idle time."""
    printer = HandoutPrinter(
        settings.data_dir, TICKETS, request_limit_s=PATIENCE_S, start_limit_s=PATIENCE_S, idle_time_only=False
    )
    return create_app(
        settings,
        library=LIBRARY,
        tickets=TICKETS,
        runner=runner or HeadRunner(start_limit_s=PATIENCE_S),
        printer=printer,
        clock=CLOCK,
        closing_interval_s=NEVER_S,
    )


class BalancedApp:
    """Several apps behind a balancer: a random one answers each request, always in the same order.

    `state` is the first app's, through which tests look into the database.
    """

    def __init__(self, apps: Sequence[FastAPI], seed: int = 1) -> None:
        self.apps, self.state, self.answered = apps, apps[0].state, Counter[int]()
        self._random = Random(seed)  # noqa: S311 - no secret depends on it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        number = self._random.randrange(len(self.apps))
        self.answered[number] += 1
        await self.apps[number](scope, receive, send)


@contextmanager
def balanced_app(folder: Path, database_url: str, machines: int = 2) -> Iterator[FastAPI]:
    """Apps as on several machines behind a balancer, sharing only a database and the secret key."""
    folders = [folder / f"machine-{number}" for number in range(machines)]
    for each in folders:
        each.mkdir()
        (each / SECRET_FILE).write_bytes(b"the same key on every machine   ")
    settings = Settings(database_url=database_url, machines=machines)
    apps = [make_app(settings.model_copy(update={"data_dir": each})) for each in folders]
    with ExitStack() as running:
        for app in apps:
            running.enter_context(TestClient(app))
        yield cast(FastAPI, BalancedApp(apps))


@contextmanager
def running_app(data_dir: Path, database_url: str = "") -> Iterator[FastAPI]:
    """Create the app and start it; stop it at the end."""
    app = make_app(Settings(data_dir=data_dir, database_url=database_url))
    with TestClient(app):
        yield app


@contextmanager
def served(app: FastAPI, lifespan: Literal["on", "off"] = "off") -> Iterator[uvicorn.Server]:
    """A server with the protocol that `serve` uses; with `lifespan="on"` for an app that isn’t running yet."""
    server = uvicorn.Server(uvicorn.Config(app, http=LimitedProtocol, lifespan=lifespan, log_config=None))
    with socket.create_server(("127.0.0.1", 0), backlog=500) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": listeners(listening)}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield server
        server.should_exit = True
        server.force_exit = lifespan == "off"
        thread.join()
