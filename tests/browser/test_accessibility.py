"""axe on every page and state, with the pages' own scripts alive, light and dark, on a desk and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible_in_all_looks, wait_until

pytestmark = pytest.mark.slow


def test_axe_finds_nothing_on_any_page(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/sheet")
    assert_accessible_in_all_looks(page)
    for blank, text in {
        "queries.columns": "128",
        "keys.columns": "4096",
        "keys.rows": "100",
        "values.rows": "?",
    }.items():
        page.fill(f'input[name="{blank}"]', text)
    expect(page.locator("path.arc.mismatch").first).to_be_attached()
    assert_accessible_in_all_looks(page)
    for blank in ("queries.columns", "values.columns"):
        page.fill(f'input[name="{blank}"]', "4096")
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Hint").click()
    page.get_by_role("button", name="Another hint").click()
    expect(page.locator("td.hinted")).to_have_count(3)
    assert_accessible_in_all_looks(page)
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Show answers").click()
    expect(page.locator("tr.answer").first).to_be_visible()
    expect(page.locator("section.explanation")).to_be_visible()
    assert_accessible_in_all_looks(page)
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Run this head").click()
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)
    assert_accessible_in_all_looks(page)
    for address in (
        "/sheet?worksheet=layer-mistral-7b&model=qwen2.5-0.5b",
        "/sheet/example?worksheet=cross-bart-base&kind=faded",
        "/sheet?tokens=0",
        "/nowhere",
        "/runs/none",
        "/glossary",
        "/see",
        "/sign-in",
        "/forgotten-password",
        "/join",
        "/resume",
        "/mine",
        "/join/AAAAAA",
    ):
        page.goto(address)
        assert_accessible_in_all_looks(page)
    context.close()


def test_nothing_is_wider_than_a_phone(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport={"width": 320, "height": 700})
    page = context.new_page()
    page.goto("/sheet")
    page.fill('input[name="queries.rows"]', "123,456,789,012")
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Run this head").click()
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)
    for width in (320, 360, 640):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_a_preview_is_not_wider_than_a_phone(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport={"width": 320, "height": 700})
    page = context.new_page()
    page.goto("/demonstration")
    for path in ("/preview/1?example=1", "/preview/ticket?example=1"):
        page.goto(re.sub(r"(/activities/\d+).*", rf"\1{path}", page.url))
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
    context.close()


def test_every_box_is_labelled_for_a_screen_reader(page: Page) -> None:
    for name in ("Input to this head", "Queries", "Keys", "Values", "Attention scores", "Attention weights"):
        for side in ("rows", "columns"):
            expect(page.get_by_label(f"{name}, {side}", exact=True)).to_have_count(1)
    page.fill('input[name="keys.columns"]', "4096")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_label("Keys, columns", exact=True)).to_have_accessible_description(
        re.compile(r"^Keys, columns: look again\. \S")
    )


def test_a_term_opens_the_glossary_by_keyboard_and_keeps_what_is_typed(page: Page) -> None:
    page.fill('input[name="queries.rows"]', "123")
    page.locator("a.term").first.focus()
    with page.context.expect_page() as opened:
        page.keyboard.press("Enter")
    expect(opened.value.get_by_role("heading", name="Glossary")).to_be_visible()
    expect(opened.value.locator("div:target dt")).to_have_count(1)
    expect(page.locator('input[name="queries.rows"]')).to_have_value("123")


def test_a_drawing_is_a_tab_stop_only_where_it_scrolls(page: Page) -> None:
    for text, said in (("128", "1 of 14"), ("4096", "0 of 14")):
        page.fill('input[name="queries.columns"]', text)
        page.get_by_role("button", name="Check").click()
        expect(page.locator(".result")).to_contain_text(said)
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Show answers").click()
    expect(page.locator("section.explanation .canvas")).to_have_count(2)
    expect(page.locator(".canvas[tabindex]")).to_have_count(0)
    page.set_viewport_size({"width": 360, "height": 800})
    expect(page.locator(".canvas[tabindex]")).to_have_count(2)
    wide = page.get_by_role("group", name="What really happens")
    wide.focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, "document.activeElement.scrollLeft > 0")
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator(".canvas[tabindex]")).to_have_count(0)


def test_reduced_motion_is_respected(browser: Browser, shared_app: Server) -> None:
    """With reduced motion asked for, nothing in the drawing moves."""
    context = browser.new_context(base_url=shared_app.url, reduced_motion="reduce")
    page = context.new_page()
    page.goto("/sheet")
    assert page.locator(".matrix rect").first.evaluate("rect => getComputedStyle(rect).transitionDuration") == "0s"
    context.close()
