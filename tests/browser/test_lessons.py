"""The lessons in a real browser: without script, by keyboard only, axe, and a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.misconception_students import misconception_sheets, right_sheet
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks
from tests.helpers.shipped import LIBRARY

HEAD = LIBRARY.variant("llama-7b")


def check(page: Page, misconception: str = "") -> None:
    """Fill in the sheet about one head and check it."""
    sizes = dict(misconception_sheets(HEAD))[misconception] if misconception else right_sheet(HEAD)
    for box, size in sizes.items():
        page.fill(f'input[name="{box}"]', str(size))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("14")


@pytest.mark.slow
@pytest.mark.parametrize("script", [True, False])
def test_a_sheet_from_the_list_is_done_and_what_was_mixed_up_comes_back(
    browser: Browser, shared_app: Server, script: bool
) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=script)
    page = context.new_page()
    page.goto("/practice")
    page.get_by_role("link", name="One head", exact=True).click()
    check(page, "head-as-wide-as-model")
    check(page)
    page.get_by_role("link", name="Lesson 1: One head").click()
    item = page.locator("li[data-state=again]")
    expect(item).to_contain_text("One head")
    expect(page.locator(".repeats li")).to_contain_text("4096 instead of 128")
    page.get_by_role("link", name="Repeat:").click()
    expect(page.locator("input[data-blank]")).to_have_count(6)
    page.goto("/practice")
    page.get_by_text("Your progress is kept in a cookie").click()
    page.get_by_role("button", name="Reset progress").click()
    expect(page.locator("li[data-state=again]")).to_have_count(0)
    context.close()


@pytest.mark.slow
def test_the_list_is_accessible_and_nothing_is_too_wide(page: Page) -> None:
    page.goto("/sheet")
    check(page, "head-as-wide-as-model")
    check(page)
    page.goto("/practice")
    page.locator("details summary").first.click()
    assert_accessible_in_all_looks(page)


@pytest.mark.slow
def test_another_bug_is_dealt_by_keyboard(page: Page) -> None:
    page.goto("/sheet?worksheet=bug-one-head")
    program = page.locator(".program-lines").inner_text()
    page.locator("#more > summary").press("Enter")
    page.get_by_role("link", name="one that doesn’t").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**bug-one-head~**")
    assert page.locator(".program-lines").inner_text() != program
