"""All sheets in a browser: found while typing, chosen by keyboard, on every screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks


def test_sheets_are_found_while_typing(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/sheets")
    page.get_by_role("searchbox").press_sequentially("decoding cache new")
    found = page.locator("#sheets li a")
    expect(found).to_have_text(["One decoding step"])
    page.get_by_role("radio", name="symbols").check(force=True)
    expect(page.locator("#sheets li small")).to_contain_text("symbols")
    found.press("Enter")
    expect(page.locator("#boxes")).to_be_visible()
    context.close()


@pytest.mark.slow
def test_the_catalogue_is_accessible(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    for query in ("", "?model=mixtral-8x7b&answers=symbols", "?words=nothing+like+it"):
        page.goto(f"/sheets{query}")
        assert_accessible_in_all_looks(page)
    context.close()
