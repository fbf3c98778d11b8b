"""The Chromium that browser tests and screenshots use: an installed one, or playwright's own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

# No sandbox, for root in a container; the rest keeps the browser from contacting its maker's servers.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The first is headless Chromium, which needs a fifth of the processor time.
INSTALLED = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = "No Chromium was found, or nothing to drive it: “make browser” installs both."


class NoBrowserError(Exception):
    """There is no Chromium, or nothing to drive it."""


@contextmanager
def running_browser(*arguments: str) -> Iterator[Browser]:
    """Start headless Chromium with these extra arguments, and close it at the end."""
    started = sync_playwright()
    try:
        playwright = started.start()
    except Exception as error:  # it raises nothing more specific
        raise NoBrowserError(NO_BROWSER) from error
    try:
        browser = _launch(playwright, [*ARGUMENTS, *arguments])
        yield browser
        browser.close()
    finally:
        playwright.stop()


def _launch(playwright: Playwright, arguments: list[str]) -> Browser:
    for path in filter(None, map(shutil.which, INSTALLED)):
        return playwright.chromium.launch(executable_path=path, args=arguments)
    try:
        return playwright.chromium.launch(args=arguments)
    except Error as error:
        raise NoBrowserError(NO_BROWSER) from error


def load(page: Page, address: str) -> dict[str, int]:
    """Open an address and wait until the page is idle; return each loaded file's bytes as sent."""
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


if __name__ == "__main__":  # is there one? asked by tools/test_programs.sh
    try:
        with running_browser():
            pass
    except NoBrowserError as error:
        sys.exit(str(error))
