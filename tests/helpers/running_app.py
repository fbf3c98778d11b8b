"""Apps in the test's own process, with services that suit a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from app.forward.process import HeadRunner
from app.handout.handout_printer import HandoutPrinter
from app.main import create_app
from app.settings import Settings
from tests.helpers.clock import CLOCK
from tests.helpers.shipped import LIBRARY, TICKETS

PATIENCE_S = 600  # how long a preview and a child’s start may take while other tests keep the machine busy
NEVER_S = 3600.0  # by itself, no app looks for activities that have ended: the browsers of tests make it


def make_app(settings: Settings, runner: HeadRunner | None = None) -> FastAPI:
    """An app with the shipped library, read once for all tests, whose handouts are not left for idle time.

    However slow the machine is, no request is logged for it.
    """
    printer = HandoutPrinter(
        settings.data_dir, TICKETS, request_limit_s=PATIENCE_S, start_limit_s=PATIENCE_S, idle_time_only=False
    )
    return create_app(
        settings.model_copy(update={"slow_request_s": 0}),
        library=LIBRARY,
        tickets=TICKETS,
        runner=runner or HeadRunner(start_limit_s=PATIENCE_S),
        printer=printer,
        clock=CLOCK,
        closing_interval_s=NEVER_S,
    )


@contextmanager
def running_app(data_dir: Path, database_url: str = "") -> Iterator[FastAPI]:
    """Create the app and start it; stop it at the end. Without a `database_url` it has a SQLite file in the folder."""
    app = make_app(Settings(data_dir=data_dir, database_url=database_url))
    with TestClient(app):
        yield app
