"""The first page: seconds from process start (target 2 s), and its weight as sent (target 100 kB)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import httpx

STARTS = 5


def report() -> Iterator[str]:
    """Median of several cold starts with a fresh database, then every file of the first load."""
    seconds = sorted(_first_page() for _ in range(STARTS))
    yield f"first page after process start: {seconds[STARTS // 2]:.2f} s (median of {STARTS}, fresh database)"
    yield from _weights()


def _serve(folder: str) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "ATTENTION_SHAPES_PORT": "0", "ATTENTION_SHAPES_DATA_DIR": folder}
    environment.pop("DATABASE_URL", None)
    command = [sys.executable, "-c", "from app.cli import main; main(['serve'])"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found, "serve printed no address"
    return process, found.group()


def _first_page() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        process, url = _serve(folder)
        try:
            httpx.get(url).raise_for_status()
            return time.perf_counter() - start
        finally:
            process.kill()
            process.communicate()


def _weights() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        process, url = _serve(folder)
        try:
            yield from _measured(url)
        finally:
            process.kill()
            process.communicate()


def _measured(url: str) -> Iterator[str]:
    page = httpx.get(url).text
    linked = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    styles = " ".join(httpx.get(url + path).text for path in linked if path.endswith(".css"))
    fonts = {f"/static/vendor/{name}" for name in re.findall(r"vendor/([^\"]+\.woff2)", styles)}
    total = 0
    for path in ["/", *sorted(linked | fonts)]:
        with httpx.stream("GET", url + path) as response:
            size = sum(len(chunk) for chunk in response.iter_raw())
        total += size
        yield f"{size:7,} bytes  {path}"
    yield f"{total:7,} bytes in all, without headers"
