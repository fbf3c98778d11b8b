"""A real Chromium and a real server: the basis of the browser tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.browser import NoBrowserError, running_browser
from simulation.server import Server
from tests.helpers.browser import SERVE_PATIENTLY, WAIT_MS


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests, which wait for it up to WAIT_MS unless they say otherwise."""
    expect.set_options(timeout=WAIT_MS)
    try:
        with running_browser() as browser:
            yield browser
    except NoBrowserError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One app for the tests that leave it running."""
    server = Server(tmp_path_factory.mktemp("data"), program=SERVE_PATIENTLY)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def own_app(tmp_path: Path) -> Iterator[Server]:
    """An app that a test may stop and start."""
    server = Server(tmp_path / "data", program=SERVE_PATIENTLY)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def page(browser: Browser, shared_app: Server) -> Iterator[Page]:
    """The sheet in a fresh browser profile, failing the test at any error a script or the console reports."""
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto("/sheet")
    yield page
    context.close()
    assert problems == []
