"""The first page: seconds from process start (target 2 s), and its weight as sent (target 100 kB)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from simulation.browser import load, running_browser
from simulation.server import Server

STARTS = 5


def report() -> Iterator[str]:
    """Median of several cold starts with a fresh database, then what a sheet and the start page load."""
    seconds = sorted(_first_page_seconds() for _ in range(STARTS))
    yield f"first page after process start: {seconds[STARTS // 2]:.2f} s (median of {STARTS}, fresh database)"
    with _server() as server:
        yield from _sizes(server.url)


@contextmanager
def _server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


def _first_page_seconds() -> float:
    start = time.perf_counter()
    with _server() as server:
        httpx.get(f"{server.url}/sheet").raise_for_status()
        return time.perf_counter() - start


def _sizes(url: str) -> Iterator[str]:
    with running_browser() as browser:
        for address in ("/sheet", "/"):
            context = browser.new_context(base_url=url)
            sizes = load(context.new_page(), address)
            context.close()
            for file, size in sizes.items():
                yield f"{size:7,} bytes  {file.removeprefix(url)}"
            yield f"{sum(sizes.values()):7,} bytes in {len(sizes)} files as sent, headers included: {address}"
