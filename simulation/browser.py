"""The Chromium that browser tests and screenshots use: an installed one, or one that playwright can fetch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

# No sandbox, for root in a container; the rest keeps the browser from looking for its maker's servers.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The first is Chromium without windows, which needs a fifth of the processor time.
INSTALLED = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = (
    "This needs Chromium, and none was found or could be installed. Install it (on Debian: apt install "
    "chromium-headless-shell; elsewhere: .venv/bin/playwright install chromium) and try again."
)
NO_DRIVER = (
    "The program that drives the browser does not start. On Debian it needs libatomic1: apt install libatomic1, "
    "and try again."
)


class NoBrowserError(Exception):
    """No Chromium, or nothing to drive it; the message says what to install."""


@contextmanager
def running_browser(*arguments: str) -> Iterator[Browser]:
    """Start Chromium without a window, and close it at the end; raises NoBrowserError if there is none.

    These arguments are added to the usual ones.
    """
    started = sync_playwright()
    try:
        playwright = started.start()
    except Exception as error:  # nothing narrower is raised
        raise NoBrowserError(f"{NO_DRIVER} ({error})") from error
    try:
        browser = _launch(playwright, [*ARGUMENTS, *arguments])
        yield browser
        browser.close()
    finally:
        playwright.stop()


def _launch(playwright: Playwright, arguments: list[str]) -> Browser:
    """An installed browser, else playwright's own, else one that playwright can fetch now."""
    for path in filter(None, map(shutil.which, INSTALLED)):
        return playwright.chromium.launch(executable_path=path, args=arguments)
    try:
        return playwright.chromium.launch(args=arguments)
    except Error:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=300)
    try:
        return playwright.chromium.launch(args=arguments)
    except Error as error:
        raise NoBrowserError(NO_BROWSER) from error


def load(page: Page, address: str) -> dict[str, int]:
    """Open an address and wait until the page asks for nothing more; the bytes of each file it took, as sent.

    Headers are counted. Files are in the order in which they came, by their whole URL.
    """
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    urls, sizes = dict[str, str](), dict[str, int]()
    session.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.update({urls[event["requestId"]]: int(event["encodedDataLength"])}),
    )
    page.goto(address, wait_until="networkidle")
    session.detach()
    return sizes
