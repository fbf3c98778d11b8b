"""Run this head, in a real browser and with real torch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, Route, expect

from tests.helpers.browser import LONG_WAIT_MS


def start(page: Page, answers: dict[str, str]) -> None:
    for blank, text in answers.items():
        page.fill(f'input[name="{blank}"]', text)
    page.locator("#more > summary").click()
    page.get_by_role("button", name=re.compile("^Run this")).click()


@contextmanager
def without_news(page: Page) -> Iterator[None]:
    """Within the block, a page that asks how its run is going hears nothing, however soon the run is done."""
    silent = True

    def answer(route: Route) -> None:
        if silent and "hx-request" in route.request.headers:
            route.fulfill(status=204)
        else:
            route.fallback()

    page.route("**/runs/*", answer)
    yield
    silent = False


def test_an_untried_sheet_is_not_given_away(page: Page) -> None:
    start(page, {})
    expect(page.locator("#run")).to_contain_text("Fill in at least one row first")
    expect(page.locator("table.compared")).to_have_count(0)


def test_torch_shapes_stand_beside_the_answers(page: Page) -> None:
    with without_news(page):
        start(page, {"queries.rows": "100", "queries.columns": "4096", "scores.rows": "100"})
        # It runs, or waits for others.
        expect(page.locator("#run").get_by_role("button", name="Cancel")).to_be_visible()
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)
    shapes = page.locator("table.compared code").all_inner_texts()[1:]
    assert shapes == [
        "(100, 4096)",
        "(100, 128)",
        "(100, 128)",
        "(100, 128)",
        "(100, 100)",
        "(100, 100)",
        "(100, 4096)",
    ]
    queries = page.locator("table.compared tr", has_text="Queries")
    assert queries.locator(".differs").inner_text().startswith("4096")
    assert queries.locator(".same").inner_text() == "100"
    report = page.locator("#run")
    for said in (
        "random (seed 0)",
        "PyTorch disagrees with 1 of your",
        "float32",
        "ms",
        "Memory needed",
        "S = Q @ K.T  # (100, 100)",
    ):
        expect(report).to_contain_text(said)


@pytest.mark.slow
def test_a_run_can_be_left_and_found_again(page: Page) -> None:
    with without_news(page):
        start(page, {"queries.rows": "99"})
        page.get_by_role("link", name="come back to this run").click()
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)
    page.reload()
    expect(page.locator("table.compared")).to_contain_text("99")


@pytest.mark.slow
def test_too_large_a_head_is_refused_with_its_bytes_and_runs_on_meta(page: Page) -> None:
    page.goto("/sheet?worksheet=llama-7b&tokens=1000000")
    start(page, {"queries.rows": "1000000"})
    problem = page.locator("#run .problem")
    expect(problem).to_contain_text("bytes", timeout=LONG_WAIT_MS)
    page.locator("#run").get_by_role("button", name="Run").click()
    expect(page.locator("table.compared")).to_contain_text("(1000000, 1000000)", timeout=LONG_WAIT_MS)
    expect(page.locator("#run")).to_contain_text("meta")


@pytest.mark.slow
def test_a_grouped_head_reads_its_own_key_value_head(page: Page) -> None:
    page.goto("/sheet?worksheet=qwen2.5-0.5b")
    start(page, {"queries.rows": "50"})
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)
    page.locator("#run summary", has_text="Run again").click()
    page.locator("#run").get_by_label("Query head").fill("9")
    page.locator("#run").get_by_role("button", name="Run").click()
    expect(page.locator("#run")).to_contain_text("Query head 9 uses key/value head 1", timeout=LONG_WAIT_MS)
