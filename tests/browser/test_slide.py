"""Slide it together in a real browser: by mouse, touch and keyboard, without script, on paper and without movement."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow

BOUNCING = "/see/slide?worksheet=llama-7b&typed=1&queries.rows=100&queries.columns=128&keys.rows=100&keys.columns=4096"


def shown(page: Page, key: str) -> None:
    """Wait until the frame with this key is the one that is shown."""
    expect(page.locator(".frame.shown")).to_have_attribute("data-key", key)


def test_by_mouse_unequal_sides_bounce_off_and_say_by_how_much(page: Page) -> None:
    page.goto(BOUNCING)
    left = page.get_by_role("slider", name="Move Q up to Kᵀ")
    left.scroll_into_view_if_needed()
    box = left.bounding_box()
    assert box
    x, y = box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.6
    for distance, key in ((12, "apart"), (80, "bounce")):
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y - distance, steps=5)
        page.mouse.up()
        shown(page, key)
    expect(page.locator(".shown .says")).to_contain_text("3968")
    expect(page).to_have_url(re.compile("step=2"))
    page.get_by_role("link", name="Back", exact=True).click()
    shown(page, "apart")


def test_by_touch_a_cell_is_chosen(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    page.goto("/see/slide?worksheet=llama-7b")
    left = page.get_by_role("slider", name="Move Q up to Kᵀ")
    left.scroll_into_view_if_needed()
    box = left.bounding_box()
    assert box
    fingers = context.new_cdp_session(page)
    for what, distance in (
        ("touchStart", 0),
        ("touchMove", 20),
        ("touchMove", 40),
        ("touchMove", 80),
        ("touchEnd", None),
    ):
        point = {"x": box["x"] + box["width"] * 0.7, "y": box["y"] + box["height"] * 0.6 - (distance or 0)}
        touches = [point] if distance is not None else []
        fingers.send("Input.dispatchTouchEvent", {"type": what, "touchPoints": touches})
    shown(page, "meet")
    for key in ("result", "ask"):
        page.get_by_role("link", name="Next").tap()
        shown(page, key)
    page.get_by_role("gridcell", name="row “capital”, column “France”").tap()
    expect(page.locator(".said")).to_contain_text("“capital” asks “France”")
    shown(page, "ask")
    page.get_by_role("gridcell", name="row “France”, column “capital”").tap()
    shown(page, "cell")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_by_keyboard_from_start_to_end_without_movement(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, reduced_motion="reduce")
    page = context.new_page()
    page.goto("/see/slide")
    assert_accessible_in_all_looks(page)
    page.get_by_role("slider", name="Move Q up to Kᵀ").focus()
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    shown(page, "meet")
    assert page.evaluate("document.getAnimations().length") == 0
    expect(page.locator("[data-tells]")).to_contain_text("128")
    page.keyboard.press("ArrowRight")
    shown(page, "result")
    page.keyboard.press("Enter")  # on Next, which has the focus
    shown(page, "ask")
    assert_accessible_in_all_looks(page)
    page.get_by_role("gridcell").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    for key in ("cell", "all", "scale", "mask", "softmax"):
        shown(page, key)
        page.keyboard.press("ArrowRight")
    shown(page, "softmax")
    expect(page.get_by_role("link", name="Next")).to_have_attribute("aria-disabled", "true")
    expect(page).to_have_url(re.compile("step=9"))
    page.reload()
    shown(page, "softmax")
    context.close()


def test_without_script_and_on_paper_every_frame_is_there(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/see/slide?step=3")
    for frame in page.locator(".frame").all():
        expect(frame).to_be_visible()
    expect(page.get_by_role("link", name="Next")).to_be_hidden()
    context.close()
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/see/slide?step=3")
    page.emulate_media(media="print")
    for frame in page.locator(".frame").all():
        expect(frame).to_be_visible()
    context.close()


def test_a_sheet_opens_a_product_with_what_was_typed_a_moment_ago(page: Page) -> None:
    for name, text in {
        "queries.rows": "100",
        "queries.columns": "128",
        "keys.rows": "100",
        "keys.columns": "128",
    }.items():
        page.fill(f'input[name="{name}"]', text)
    page.locator("a[data-see]", has_text="S = ").click()
    page.get_by_role("slider", name="Move Q up to Kᵀ").press("Enter")
    page.get_by_role("link", name="Next").click()
    page.get_by_role("button", name="Put 100 × 100 into the boxes of S").click()
    expect(page.locator('input[name="scores.columns"]')).to_have_value("100")
    expect(page.locator('input[name="keys.columns"]')).to_have_value("128")


def test_on_a_phone_sentence_drawing_and_next_are_in_sight_together(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    for address in ("/see/slide", "/see/slide?step=4", "/see/token?step=5"):
        page.goto(address)
        shown = page.locator(".frame.shown")
        go_on = page.locator(".stepping [data-go='1']")
        for part in (shown.locator(".says"), go_on):
            expect(part).to_be_in_viewport(ratio=1)
        drawing, bar = shown.locator(".canvas svg").bounding_box(), page.locator(".stepping").bounding_box()
        assert drawing
        assert bar
        assert drawing["y"] + drawing["height"] <= bar["y"] + 1, address
    for address in ("/see/token?step=3", "/see/heads?step=2"):
        page.goto(address)
        asked, bar = (
            page.locator(part).first.bounding_box() for part in (".frame.shown .deck-boxes input", ".stepping")
        )
        assert asked
        assert bar
        assert asked["y"] + asked["height"] <= bar["y"], address
    page.goto("/see/slide?step=8")
    size = "text => parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a"
    assert page.locator(".frame.shown .entry").first.evaluate(size) >= 9
    page.goto("/see/slide?step=4")
    cell = page.locator(".frame.shown .choice").first.bounding_box()
    assert cell
    assert cell["width"] >= 28
    context.close()


def test_a_product_can_be_broken_on_its_page(page: Page) -> None:
    page.goto("/see/slide")
    expect(page.locator(".breaks input[name='keys.columns']")).to_have_value("128")
    page.locator(".breaks input[name='keys.columns']").fill("4096")
    page.locator(".breaks input[name='keys.columns']").press("Enter")
    expect(page.locator(".breaks input[name='keys.columns']")).to_have_value("4096")
    expect(page.locator(".where")).to_have_text("1 of 2")
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".frame.shown")).to_have_attribute("data-key", "bounce")
    expect(page.locator(".take")).to_have_count(0)
