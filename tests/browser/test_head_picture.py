"""The picture of a head in a browser: by keyboard, without script, on a phone, and to axe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.store import Store
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks
from tests.helpers.finished_heads import finished_head, stored_head

SENTENCE = "a cat and a dog and a cow and a tall tree"
TOKENS = 12


@pytest.fixture(scope="module")
def address(shared_app: Server) -> Iterator[str]:
    """The picture of a head that has run over the sentence."""
    store = Store(shared_app.database, shared_app.folder)
    yield f"/heads/{stored_head(store, finished_head(SENTENCE))}/picture"
    store.close()


def focused(page: Page) -> Locator:
    return page.locator(":focus")


def sentence(page: Page, row: int) -> str:
    """What the list of all rows says of one."""
    return (page.locator(".all-rows li").nth(row).text_content() or "").strip()


def test_the_picture_is_read_by_keyboard(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("#picture-weights").focus()
    page.keyboard.press("Tab")
    expect(focused(page)).to_have_role("gridcell")
    page.keyboard.press("Control+Home")
    expect(focused(page)).to_have_attribute("aria-label", sentence(page, 0))
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(focused(page)).to_have_attribute("aria-label", sentence(page, 3))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".picture-row")).to_have_attribute("data-query", "3")
    product = page.locator(".product:not([hidden])")
    expect(product).to_be_focused()
    expect(product).to_have_attribute("data-column", "1")
    page.keyboard.press("Escape")
    expect(focused(page)).to_have_attribute("data-at", "3 1")
    page.keyboard.press("End")
    expect(focused(page)).to_have_attribute("data-at", f"3 {TOKENS - 1}")
    expect(focused(page)).to_have_accessible_name("tree: masked")
    page.keyboard.press("ArrowRight")  # there is nothing further right
    expect(focused(page)).to_have_attribute("data-at", f"3 {TOKENS - 1}")


def test_the_grid_says_the_numbers_of_the_stage_that_is_chosen(page: Page, address: str) -> None:
    page.goto(address)
    for stage, text in (("masked", "masked"), ("scaled", "")):
        page.locator(f"#picture-{stage}").check()
        name = page.locator(f".drawn.{stage} [data-at='0 5']").get_attribute("aria-label") or ""
        assert ("masked" in name) == bool(text)
    page.locator("#picture-weights").check()
    page.get_by_label("Leave out the first token").check()
    expect(page.locator(".drawn:visible")).to_have_count(1)
    expect(page.locator(".drawn.rest [data-at='4 0']")).to_have_count(0)
    expect(page.locator(".drawn.rest [data-at='4 1']")).to_be_visible()


def test_a_cell_is_read_by_pointing_at_it(page: Page, address: str) -> None:
    page.goto(address)
    cell = page.locator(".drawn.weights [data-at='6 2']")
    cell.hover()
    expect(page.locator(".drawn.weights .pointed")).to_have_text(cell.get_attribute("data-says") or "")
    cell.click()
    expect(page.locator(".picture-row")).to_have_attribute("data-query", "6")
    expect(page.locator(".product:not([hidden])")).to_have_attribute("data-column", "2")
    page.locator(".row-keys summary").click()
    page.locator(".row-keys a").nth(4).click()
    expect(page.locator(".product:not([hidden])")).to_have_attribute("data-column", "4")
    page.locator(".all-rows summary").click()
    page.locator(".all-rows a").nth(8).click()
    expect(focused(page)).to_have_attribute("data-at", "8 -1")
    expect(page.locator(".picture-row")).to_have_attribute("data-query", "8")


def test_it_works_without_script(browser: Browser, shared_app: Server, address: str) -> None:
    """Stages are chosen, rows and keys are links."""
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".drawn:visible")).to_have_count(1)
    page.locator("#picture-products").check()
    expect(page.locator(".drawn:visible")).to_have_class("drawn products")
    page.locator(".all-rows summary").click()
    page.locator(".all-rows a").nth(8).click()
    expect(page.locator(".picture-row")).to_have_attribute("data-query", "8")
    page.locator(".row-keys summary").click()
    page.locator(".row-keys a").nth(3).click()
    expect(page.locator(".product:not([hidden])")).to_have_attribute("data-column", "3")
    context.close()


def test_axe_finds_nothing_in_any_stage(page: Page, address: str) -> None:
    page.goto(address)
    page.evaluate("for (const each of document.querySelectorAll('.picture details')) each.open = true")
    for stage in ("products", "masked", "weights"):
        page.locator(f"#picture-{stage}").check()
        assert_accessible_in_all_looks(page)
