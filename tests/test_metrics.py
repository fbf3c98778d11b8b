"""What Prometheus reads: nothing unless it is switched on, all workers together, and no names or answers."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from app import metrics
from app.settings import PROJECT
from app.store import Store

SERVE = "import sys; from app.cli import main; sys.exit(main(['serve']))"


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        return int(free.getsockname()[1])


@contextmanager
def server(folder: Path, workers: int) -> Iterator[tuple[str, str]]:
    """A server with metrics: the addresses of its pages and of its numbers."""
    port, numbers = free_port(), free_port()
    values = {"DATA_DIR": str(folder), "PORT": str(port), "WORKERS": str(workers), "METRICS": f"127.0.0.1:{numbers}"}
    settings = {f"ATTENTION_SHAPES_{name}": value for name, value in values.items()}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=PROJECT, env={**os.environ, **settings, "DATABASE_URL": ""}
    )
    try:
        pages = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                httpx.get(f"{pages}/healthz/ready", timeout=30)
                break
            except httpx.TransportError:
                time.sleep(0.2)
        yield pages, f"http://127.0.0.1:{numbers}/metrics"
    finally:
        process.terminate()
        process.wait(60)


def test_numbers_may_have_a_file_system_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "rmdir", refuse)
    monkeypatch.setattr(metrics, "join", lambda: None)
    monkeypatch.setenv(metrics.FOLDER_VARIABLE, "")
    old = tmp_path / "counter_17.db"
    old.write_bytes(b"")
    metrics.switch_on(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert os.environ[metrics.FOLDER_VARIABLE] == str(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_requests_saves_and_times_are_counted(tmp_path: Path, workers: int) -> None:
    with server(tmp_path, workers) as (pages, numbers):
        for _ in range(12):
            httpx.get(f"{pages}/join/SECRET?name=Kim", timeout=60)
        httpx.post(f"{pages}/sheet/save", data={"input.rows": "4711", "form_secret": "x" * 43}, timeout=60)
        time.sleep(1.5)  # the queues are looked at each second
        text = httpx.get(numbers, timeout=60).text
        assert httpx.get(f"{pages}/metrics", timeout=60).status_code == 404
    assert 'shapes_requests_total{method="GET",route="/join/{code}",status="404"} 12.0' in text
    assert re.search(r'shapes_request_seconds_count\{route="/join/\{code\}"\} 12\.0', text)
    assert re.search(r'shapes_queue\{kind="class",state="waiting"\} 0\.0', text)
    assert all(f'shapes_database_seconds_count{{kind="{kind}"}}' in text for kind in ("read", "commit"))
    assert not re.search(r"SECRET|Kim|4711", text)


def test_without_the_setting_nothing_is_kept(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/s.sqlite3", tmp_path)
    assert metrics.meters() is None
    assert "do_commit" not in vars(store.single_engine.dialect)
    store.close()
