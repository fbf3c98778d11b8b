"""A real Chromium and a really served app: what the browser tests stand on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

from simulation.server import Server

# No sandbox, for root in a container; the rest keeps the browser from looking for its maker's servers.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = (
    "The browser tests need Chromium, and none was found or could be installed. "
    "Install it (on Debian: apt install chromium; elsewhere: .venv/bin/playwright install chromium) and run them again."
)
NO_DRIVER = (
    "The program that drives the browser does not start. On Debian it needs libatomic1: apt install libatomic1, "
    "and run the tests again."
)


def _launch(playwright: Playwright) -> Browser:
    """An installed browser, else playwright's own, else one that playwright can fetch now; otherwise fail plainly."""
    for path in filter(None, map(shutil.which, INSTALLED)):
        return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
    try:
        return playwright.chromium.launch(args=ARGUMENTS)
    except Error:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=300)
    try:
        return playwright.chromium.launch(args=ARGUMENTS)
    except Error:
        pytest.fail(NO_BROWSER, pytrace=False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    started = sync_playwright()
    try:
        playwright = started.start()
    except Exception as error:  # nothing narrower is raised
        pytest.fail(f"{NO_DRIVER} ({error})", pytrace=False)
    browser = _launch(playwright)
    yield browser
    browser.close()
    playwright.stop()


@pytest.fixture(scope="session")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One app for the tests that leave it running."""
    server = Server(tmp_path_factory.mktemp("data"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def own_app(tmp_path: Path) -> Iterator[Server]:
    """An app that a test may stop and start."""
    server = Server(tmp_path / "data")
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
