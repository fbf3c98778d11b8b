"""Deal the heads in a real browser: by mouse, touch and keyboard, with script off, on paper, and in all looks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow

ADDRESS = "/see/heads?model=llama-3.2-1b&tokens=60"


def drag(page: Page, thing: str, place: str, inside: str = ".frame.shown ") -> None:
    """Drag the first thing that a selector finds onto another."""
    start, end = (page.locator(f"{inside}{each}").first.bounding_box() for each in (thing, place))
    assert start
    assert end
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 5, end["y"] + 5, steps=4)
    page.mouse.up()


def test_heads_are_dealt_by_mouse_and_keyboard(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{ADDRESS}&step=2")
    frame = page.locator(".frame.shown")
    frame.locator(".lift input").fill("0")  # back on the slab: cards are as wide as stripes again
    in_units = "all => all.map(card => card.firstElementChild.getBoundingClientRect().width / card.getCTM().a)"
    stripe = float(frame.locator(".query.card").first.get_attribute("data-stripe") or 0)
    expect(frame.locator(".query.card").first).to_have_attribute("style", re.compile("translate"))
    assert frame.locator(".query.card").evaluate_all(in_units) == [pytest.approx(stripe, abs=1)] * 32
    for side, text in enumerate(("60", "32", "64")):
        page.locator(f"#queries-dim{side}").fill(text)
    page.keyboard.press("Enter")
    expect(frame.locator("#queries-says")).to_have_attribute("data-mark", "wrong")
    expect(frame.locator("#queries-says")).not_to_be_empty()
    for side, text in enumerate(("32", "60", "64")):
        page.locator(f"#queries-dim{side}").fill(text)
    page.keyboard.press("Enter")
    expect(frame.locator("#queries-says")).to_have_attribute("data-mark", "right")
    expect(frame.locator("svg")).to_contain_text("(32, 60, 64)")
    page.get_by_role("link", name="Next").click()
    drag(page, ".asked", '.key.card[data-head="3"]')  # query card 6 belongs to key card 6 // 4 = 1
    expect(frame.locator(".remark")).to_contain_text("12 to 15")
    expect(frame.locator(".score.card")).to_have_count(0)
    drag(page, ".asked", '.key.card[data-head="1"]')
    expect(frame.locator(".score.card")).to_have_count(1)
    expect(page.get_by_role("button", name="Next card")).to_be_focused()
    page.keyboard.press("Enter")
    first = page.get_by_role("button", name="Key card 0")
    first.focus()
    page.keyboard.press("ArrowLeft")  # around to the last, which query card 31 belongs to
    page.keyboard.press("Enter")
    expect(frame.locator(".score.card")).to_have_count(2)
    expect(page).to_have_url(re.compile("step=3"))
    page.locator('[name="groups"][value="8"]').focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".kind")).to_contain_text("if Llama 3.2 1B had 16")
    drag(page, '.track label:has([value="16"])', '.track label:has([value="4"])', inside="")
    expect(page.locator(".kind")).to_contain_text("if Llama 3.2 1B had 4")
    expect(page.locator("#step-1 svg")).to_contain_text("256 = 4 · 64")  # out of sight, and drawn again at the end
    expect(page).to_have_url(re.compile("groups=4"))
    page.get_by_role("link", name="Next").click()  # it steps from what was drawn anew
    expect(page.locator(".where")).to_have_text("4 of 6")
    context.close()


def test_a_key_card_is_tapped_and_the_number_of_heads_slid(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{ADDRESS}&step=3")
    frame = page.locator(".frame.shown")
    frame.locator('.key.card[data-head="1"]').tap()
    expect(frame.locator(".score.card")).to_have_count(1)
    page.locator(".track label", has_text="2").first.tap()
    expect(page.locator(".kind")).to_contain_text("if Llama 3.2 1B had 2")
    expect(frame.locator(".key.card")).to_have_count(2)
    context.close()


def test_without_script_and_on_paper_all_frames_stand_below_one_another(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(ADDRESS)
    expect(page.locator(".frame:visible")).to_have_count(6)
    page.get_by_role("button", name="Key card 1", exact=True).click()
    expect(page.locator(".frame .score.card.card")).not_to_have_count(0)
    expect(page.get_by_role("button", name="Next card")).to_be_visible()
    page.locator('[name="groups"][value="1"]').check()
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".kind")).to_contain_text("multi-query")
    context.close()
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto(ADDRESS)
    page.emulate_media(media="print")
    expect(page.locator(".frame:visible")).to_have_count(6)
    page.emulate_media(media="screen")
    for step in (2, 6):
        page.goto(f"{ADDRESS}&step={step}&queries.dim0=3&key=3")
        assert_accessible_in_all_looks(page)
    context.close()
