"""The first page: seconds from process start (target 2 s), and its weight as sent (target 100 kB)."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from simulation.server import Server

STARTS = 5


def report() -> Iterator[str]:
    """Median of several cold starts with a fresh database, then the size of every file of the first load."""
    seconds = sorted(_first_page_seconds() for _ in range(STARTS))
    yield f"first page after process start: {seconds[STARTS // 2]:.2f} s (median of {STARTS}, fresh database)"
    with _server() as server:
        yield from _sizes(server.url)


@contextmanager
def _server() -> Iterator[Server]:
    """A server with a temporary folder, yielded as soon as it prints its URL."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


def _first_page_seconds() -> float:
    """Wall time from starting the process to having the first page."""
    start = time.perf_counter()
    with _server() as server:
        httpx.get(f"{server.url}/sheet").raise_for_status()
        return time.perf_counter() - start


def _sizes(url: str) -> Iterator[str]:
    """A line for each file that the first page loads, fonts of its stylesheets included, and one for their sum.

    Sizes are those of the bodies as sent, compressed or not.
    """
    page = httpx.get(f"{url}/sheet").text
    linked = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    styles = " ".join(httpx.get(url + path).text for path in linked if "/css/" in path)
    fonts = {f"/static/vendor/{name}" for name in re.findall(r"vendor/([^\"]+\.woff2)", styles)}
    total = 0
    for path in ["/sheet", *sorted(linked | fonts)]:
        with httpx.stream("GET", url + path) as response:
            size = sum(len(chunk) for chunk in response.iter_raw())
        total += size
        yield f"{size:7,} bytes  {path}"
    yield f"{total:7,} bytes in all, without headers"
