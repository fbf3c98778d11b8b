"""The preview of the worksheet editor: how long 95 in 100 requests take over HTTP (target 150 ms)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server

REQUESTS = 100
TOPICS = ("single-head", "whole-model", "costs")
MODEL = "llama-7b"


def report() -> Iterator[str]:
    """A line for each topic: the view of a wrong attempt, with another title and number of tokens in each request."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start()
        try:
            cookies = {TEACHER_COOKIE: _teacher_session(server)}
            with httpx.Client(base_url=server.url, cookies=cookies, headers={"HX-Request": "true"}) as client:
                for topic in TOPICS:
                    seconds = sorted(_preview_seconds(client, topic, number) for number in range(REQUESTS))
                    median, slow = 1e3 * seconds[REQUESTS // 2], 1e3 * seconds[REQUESTS * 95 // 100]
                    yield f"{topic}: {slow:.0f} ms (median {median:.0f} ms)"
        finally:
            server.kill()


def _teacher_session(server: Server) -> str:
    store = Store(server.database, server.folder)
    session = store.people.open_session(add_teacher(store, "preview@example.org", "Ada"))
    store.close()
    return session


def _preview_seconds(client: httpx.Client, topic: str, number: int) -> float:
    form = {
        "topic": topic, "model": MODEL, "tokens": str(50 + number), "title": f"Sheet {number}", "view": "wrong",
        "notation": "classic", "answers": "numbers",
    }  # fmt: skip
    start = time.perf_counter()
    client.post("/worksheets/preview", data=form).raise_for_status()
    return time.perf_counter() - start
