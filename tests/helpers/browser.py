"""What tests check about a page in a real browser: accessibility, conditions, and the first link."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from app.settings import PROJECT
from app.store import Store
from simulation.server import SERVE, Server

AXE = (PROJECT / "tests" / "browser" / "vendor" / "axe-4.14.1.min.js").read_text(encoding="utf-8")
# A morph pairs elements by id: a control without one can become its neighbour, and keep what was ticked or typed.
UNNAMED_CONTROLS = """
() => [...document.querySelectorAll("[hx-swap*=Morph]")].flatMap((source) => {
  const selector = source.getAttribute("hx-target") ?? "this";
  const target = selector === "this" ? source : selector.startsWith("closest ")
    ? source.closest(selector.slice(8)) : document.querySelector(selector);
  return [...(target?.querySelectorAll("input:not([type=hidden]), select, textarea, details") ?? [])];
}).filter((control) => control.matches("details") || control.form)  // others are only looked at
  .filter((control) => document.querySelectorAll(`[id="${CSS.escape(control.id)}"]`).length !== 1)
  .map((control) => control.outerHTML.slice(0, 200))
"""
WAIT_MS = 60_000  # for what a page or the server computes, on a busy machine
# For a run, a handout, a starting server, or a retried save: queues, idle time and pauses add up.
LONG_WAIT_MS = 180_000
# `serve` on such a machine: handouts don't wait for idle time, and children may take minutes to start.
SERVE_PATIENTLY = f"""
from functools import partial
from app import main
main.HandoutPrinter = partial(main.HandoutPrinter, start_limit_s=600, request_limit_s=600, idle_time_only=False)
main.HeadRunner = partial(main.HeadRunner, start_limit_s=600, time_limit_s=600)
{SERVE}
"""
# Layout depends on the width and colours on the scheme, so these two cover both.
LOOKS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (360, "dark"))


def violations(page: Page) -> list[Any]:
    """What axe objects to once the page is loaded: each rule's id and the HTML of its elements."""
    page.wait_for_load_state()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    objections = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in objections]


def assert_accessible(page: Page) -> None:
    """Fail if axe objects to the current page, or anything is wider than the window."""
    assert violations(page) == [], page.url
    unnamed = page.evaluate(UNNAMED_CONTROLS)
    assert unnamed == [], (page.url, unnamed)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page.url


def assert_accessible_in_all_looks(page: Page) -> None:
    """The same at a desktop's width in light colours, and at a phone's in dark ones."""
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert_accessible(page)


@contextmanager
def unreachable(target: Page | BrowserContext, addresses: str) -> Iterator[None]:
    """Make every request to these addresses fail within the block."""
    failing = True

    def answer(route: Route) -> None:
        if failing:
            route.abort()
        else:
            route.continue_()

    target.route(addresses, answer)
    yield
    failing = False


def set_up_link(server: Server) -> str:
    """The address, without host, of a new link for creating the first account."""
    store = Store(server.database, server.folder)
    token = store.people.add_link("setup")
    store.close()
    return f"/links/{token}"


def wait_until(page: Page, condition: str | Callable[[], object], problem: str = "") -> None:
    """Wait up to WAIT_MS until a condition (JavaScript or a function) holds; otherwise fail with the problem.

    JavaScript is evaluated from outside, since the content security policy forbids it in the page.
    """
    for _ in range(WAIT_MS // 50):
        if condition() if callable(condition) else page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(problem or f"not true within {WAIT_MS} ms: {condition}")
