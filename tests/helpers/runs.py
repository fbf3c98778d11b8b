"""Starting a run of a head through the pages, as a browser without script does."""

from __future__ import annotations

import time

from starlette.testclient import TestClient


def run_and_wait(client: TestClient, form: dict[str, str], start: str = "/runs") -> str:
    """Start a run by sending a form to `start`, wait up to a minute, and return its page; fails if it is still
    running.
    """
    response = client.post(start, data=form, follow_redirects=False)
    assert response.status_code == 303, response.text
    return finished_run(client, response.headers["location"])


def finished_run(client: TestClient, address: str) -> str:
    """A run's page once it has ended."""
    for _ in range(3000):
        text = client.get(address).text
        if 'class="progress"' not in text:
            return text
        time.sleep(0.02)
    raise AssertionError("the run did not end")
