"""An app that runs in the test's own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings


@contextmanager
def running_app(data_dir: Path, database_url: str = "") -> Iterator[FastAPI]:
    """Create the app and start it; stop it at the end. Without a `database_url` it has a SQLite file in the folder."""
    app = create_app(Settings(data_dir=data_dir, database_url=database_url))
    with TestClient(app):
        yield app
