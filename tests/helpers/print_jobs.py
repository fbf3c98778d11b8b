"""Waiting for a print job."""

from __future__ import annotations

import time

from starlette.testclient import TestClient


def finished_print_job(client: TestClient, address: str) -> str:
    """The page of a print job once it is ready, or says what stopped it."""
    for _ in range(12_000):
        page = client.get(address).text
        if "<progress" not in page:
            return page
        time.sleep(0.05)
    raise AssertionError(page)
