"""A day of a server in minutes: visitors, a teacher, handouts and imports, with a clock that is moved forward.

Every hour has the same requests; then everything is made an hour older, and the app tidies up. What has expired must be
gone, and neither memory nor the database may grow from one day to the next.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.forward.process import HeadRunner
from app.forward.run import HeadRun, WeightsPicture
from app.handout.handout_printer import HandoutPrinter
from app.main import create_app
from app.models.architecture import Architecture
from app.settings import PROJECT, Settings
from app.sheets.exit_tickets import load_tickets
from app.store.queries import utc_now
from app.store.tables import attempts, drafts, metadata
from app.web.shared.cookies import TEACHER_COOKIE
from app.web.shared.services import Services

HOURS = 24
UNTIL_ALL_EXPIRES = timedelta(days=400)
SHEET = {"worksheet": "llama-7b", "model": "llama-7b"}
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
          "intermediate_size": 128}  # fmt: skip
ALMOST_AN_HOUR = timedelta(minutes=59)  # so that what is kept for an hour is still there when an hour is measured
# What must be gone at the end; accounts, courses and the audit log stay.
EXPIRING_TABLES = (
    "visitors",
    "drafts",
    "attempts",
    "runs",
    "models",
    "sessions",
    "jobs",
)


@dataclass(frozen=True)
class Measured:
    """The server at one moment: main memory, size of the database file, rows of each table.

    Drafts and attempts are only those of practice.
    """

    memory: int
    database: int
    rows: dict[str, int]


@dataclass(frozen=True)
class SoakResult:
    """Measurements after each hour of the first day, after everything has expired, and after a second, equal day."""

    hours: tuple[Measured, ...]
    expired: Measured
    second_day: tuple[Measured, ...]

    @property
    def left_over(self) -> dict[str, int]:
        """What should be gone and isn't: rows by table."""
        return {table: self.expired.rows[table] for table in EXPIRING_TABLES if self.expired.rows[table]}

    @property
    def memory_growth(self) -> int:
        """Bytes by which memory at the end of the second day exceeds the first."""
        return self.second_day[-1].memory - self.hours[-1].memory

    @property
    def database_growth(self) -> float:
        """Size of the database file after the second day, as a multiple of its size after the first."""
        return self.second_day[-1].database / self.hours[-1].database


class _QuickRunner(HeadRunner):
    """Gives every head a result of the usual length, without torch."""

    def run(self, architecture: Architecture, tokens: int, **_options: Any) -> HeadRun:
        return HeadRun(
            model=architecture.name,
            family=architecture.family,
            topic="single-head",
            tokens=tokens,
            head=0,
            kv_head=0,
            device="cpu",
            device_name="none",
            dtype="float32",
            seed=0,
            milliseconds=1.0,
            peak_bytes=None,
            needed_bytes=1,
            shapes={},
            agrees=True,
            disagreements=(),
            row_sums=None,
            picture=WeightsPicture(side=1, head=0, cells=[[0.5] * 50] * 40),
            lines=(),
            notes=(),
        )


class _Clock:
    """A running clock that can be moved forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self.ahead


def soak(visits_per_hour: int, hours: int = HOURS) -> Iterator[str | SoakResult]:
    """Two days of `hours` with everything that expires in between: a line per hour, and the result at the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        clock = _Clock()
        settings = Settings(data_dir=Path(folder), database_url="")
        tickets = load_tickets(PROJECT / "worksheets")
        printer = HandoutPrinter(settings.data_dir, tickets, idle_time_only=False)  # a busy machine has no idle time
        app = create_app(settings, tickets=tickets, runner=_QuickRunner(), printer=printer, clock=clock)
        services = app.state.services
        with TestClient(app):
            teacher = services.store.people.add_teacher("ada@example.org", "Ada")
            assert teacher is not None
            _browser(app, services.store.people.open_session(teacher)).post("/courses/sample")
            days = list[tuple[Measured, ...]]()
            expired: Measured | None = None
            for day in (1, 2):
                measured = list[Measured]()
                for hour in range(hours):
                    token = services.store.people.open_session(teacher)
                    _pass_hour(_browser(app), _browser(app, token), visits_per_hour, hour)
                    measured.append(_grow_older(services, clock, ALMOST_AN_HOUR))
                    yield _line(day, hour, measured[-1])
                days.append(tuple(measured))
                expired = expired or _grow_older(services, clock, UNTIL_ALL_EXPIRES)
            assert expired is not None
            yield SoakResult(days[0], expired, days[1])


def _browser(app: FastAPI, session: str = "") -> TestClient:
    return TestClient(app, cookies={TEACHER_COOKIE: session} if session else {}, follow_redirects=False)


def _pass_hour(browser: TestClient, staff: TestClient, visits: int, hour: int) -> None:
    for visit in range(visits):
        browser.cookies.clear()
        tokens = str(20 + (hour * visits + visit) % 150)
        form = {**SHEET, "tokens": tokens, "queries.rows": tokens, "queries.columns": "128"}
        for number in range(5):
            browser.post("/sheet/save", data={**form, "keys.rows": str(number)})
        browser.post("/sheet/check", data=form)
        browser.post("/runs", data=form)
        browser.get("/practice")
        browser.post("/join", data={"code": "AAAAAA"})
        browser.post("/api/v1/models", json={"config": {**CONFIG, "vocab_size": 1000 + hour * visits + visit}})
    job = browser.post("/handout/class", data={"names": f"Student {hour}"}).headers["location"]
    while "<progress" in browser.get(job).text:
        time.sleep(0.1)
    browser.get(f"/handout?seed={hour}&variants=1")
    for page in ("/courses", "/handout"):
        staff.get(page)


def _grow_older(services: Services, clock: _Clock, age: timedelta) -> Measured:
    clock.ahead += age
    folder = services.settings.data_dir
    for path in (folder / "turns").glob("*"):
        os.utime(path, (path.stat().st_mtime - age.total_seconds(),) * 2)
    services.housekeeper.tidy()
    with services.store.engine.connect() as connection:
        count = sa.select(sa.func.count())
        pages = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")]
        rows = {name: connection.scalar(count.select_from(table)) or 0 for name, table in metadata.tables.items()}
        for table in (drafts, attempts):  # the sample course's stay with it
            rows[table.name] = connection.scalar(count.where(table.c.visitor_id.is_not(None))) or 0
    return Measured(psutil.Process().memory_info().rss, math.prod(pages), rows)


def _line(day: int, hour: int, now: Measured) -> str:
    rows = sum(now.rows[table] for table in EXPIRING_TABLES)
    return (
        f"day {day}, hour {hour + 1}: {now.memory / 1e6:.0f} MB of memory, {now.database / 1e6:.1f} MB on disk, "
        f"{rows} rows that will expire"
    )
