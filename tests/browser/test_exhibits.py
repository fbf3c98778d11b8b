"""The exhibits in a real browser: by keyboard, without script, on a phone, and with what was typed a moment ago."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("exhibit", ["slide", "heads", "token"])
def test_by_keyboard_from_start_to_end(page: Page, exhibit: str) -> None:
    page.goto(f"/see/{exhibit}?step=1")
    steps = int(page.locator(".stepping span").inner_text().split()[-1])
    for number in range(2, steps + 1):
        page.keyboard.press("ArrowRight")
        expect(page.locator(".stepping span")).to_have_text(f"{number} of {steps}")
        expect(page).to_have_url(re.compile(rf"step={number}$"))
    assert_accessible_in_all_looks(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".stepping span")).to_have_text(f"{steps - 1} of {steps}")
    page.get_by_role("link", name="Back", exact=True).press("Enter")
    expect(page.locator(".stepping span")).to_have_text(f"{steps - 2} of {steps}")
    expect(page.get_by_role("link", name="Back", exact=True)).to_be_focused()


def test_without_script_links_lead_from_step_to_step(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/see/token?model=gpt2&tokens=100&step=2")
    page.get_by_role("link", name="+1 token").click()
    expect(page.locator(".says")).to_contain_text("3 scores")
    page.get_by_label("Without a cache").check()
    page.goto("/see/heads?model=llama-3.2-1b&tokens=60&step=2")
    page.get_by_role("group", name="Key head").get_by_role("link", name="1", exact=True).click()
    expect(page.locator(".reply")).to_contain_text("Right")
    context.close()


def test_a_sheet_opens_a_product_with_what_was_typed_a_moment_ago(page: Page) -> None:
    page.goto("/sheet?worksheet=llama-7b&model=llama-7b&tokens=100")
    for name, text in (("queries", "100"), ("keys", "100")):
        page.locator(f'input[name="{name}.rows"]').fill(text)
    page.locator('input[name="queries.columns"]').fill("128")
    page.locator('input[name="keys.columns"]').fill("4096")
    page.locator("#more > summary").click()
    page.locator("a[data-see]", has_text="S").first.click()
    expect(page.locator("#exhibit svg").first).to_contain_text("4096 ≠ 128")
    page.get_by_role("link", name="Back to the sheet").click()
    expect(page.locator('input[name="keys.columns"]')).to_have_value("4096")


def test_on_a_phone_sentence_and_next_are_in_sight_together(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    for address in ("/see/slide", "/see/slide?topic=attention-layer&step=8", "/see/heads?step=3", "/see/token?step=5"):
        page.goto(address)
        for part in (page.locator(".says"), page.locator("#go-next")):
            expect(part).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
    context.close()
