"""Waiting for a print job."""

from __future__ import annotations

import time

from starlette.testclient import TestClient


def finished_print_job(client: TestClient, address: str) -> str:
    """A print job's page once it is ready or has stopped."""
    for _ in range(12_000):
        page = client.get(address).text
        if "<progress" not in page:
            return page
        time.sleep(0.05)
    raise AssertionError(page)
