"""One more token in a browser: by keyboard, by touch, without script, and with the switch for no cache."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow


def test_the_triangle_is_built_by_keyboard(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/see/token?model=mistral-7b&tokens=100")
    frames, shown = page.locator(".exhibit .frame"), page.locator(".exhibit .frame.shown")
    count = frames.count()
    for number in range(2, count + 1):
        page.keyboard.press("ArrowRight")
        expect(shown).to_have_id(f"step-{number}")
        expect(page.locator(".exhibit [data-tells]")).to_have_text(shown.locator(".says").inner_text())
        expect(page).to_have_url(f"/see/token?model=mistral-7b&tokens=100&step={number}")
    expect(shown.locator("[data-part=q-0]")).to_be_hidden()
    switch = page.get_by_role("checkbox")
    switch.focus()
    page.keyboard.press("Space")
    expect(shown.locator("[data-part=q-0]")).to_be_visible()
    expect(frames.first.locator("[data-part=shapes-anew]")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    expect(shown).to_have_id(f"step-{count - 1}")
    assert_accessible_in_all_looks(page)


def test_a_row_slides_onto_the_cache_at_a_tap(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    page.goto("/see/token?model=gpt2&tokens=100")
    page.evaluate("""() => {  // where each part begins its way, in px to the right and down
      window.slides = [];
      const animate = Element.prototype.animate;
      Element.prototype.animate = function (frames, ...rest) {
        if (frames.translate) window.slides.push([this.dataset.part, frames.translate[0]]);
        return animate.call(this, frames, ...rest);
      };
    }""")
    page.locator(".frame.shown .canvas").tap()
    expect(page.locator(".frame.shown")).to_have_id("step-2")
    slides = dict(page.evaluate("slides"))
    assert slides.keys() == {"k-1", "v-1", "s-1"}
    assert all(start.startswith("0px ") and start != "0px 0px" for start in slides.values())
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    context.close()


def test_without_script_every_step_stands_below_the_one_before(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/see/token?model=gpt2&tokens=100")
    frames = page.locator(".exhibit .frame")
    expect(frames).to_have_count(7)
    tops = list[float]()
    for frame in frames.all():
        expect(frame.locator("svg[role=img]")).to_be_visible()
        expect(frame.locator(".costs")).to_be_visible()
        box = frame.bounding_box()
        tops += [box["y"]] if box else []
    assert tops == sorted(set(tops))
    query = frames.last.locator("[data-part=q-0]")
    expect(query).to_be_hidden()
    expect(frames.last.locator("[data-part=s-0] rect")).to_have_css("fill", re.compile("#mask"))
    page.get_by_role("checkbox").check()
    expect(query).to_be_visible()
    context.close()


def test_held_down_the_button_goes_on_to_a_question_which_is_answered_in_place(page: Page) -> None:
    page.goto("/see/token?model=gpt2&tokens=100")
    shown, asking = page.locator(".exhibit .frame.shown"), page.locator(".frame:has(form)").first
    page.get_by_role("link", name="+1 token").hover()
    page.mouse.down()
    expect(asking).to_have_class(re.compile("shown"))
    page.wait_for_timeout(800)
    page.mouse.up()
    expect(asking).to_have_class(re.compile("shown"))
    shown.get_by_label("Rows").fill("1")
    shown.get_by_label("Columns").fill("3")
    shown.get_by_role("button", name="Check").click()
    expect(shown.locator(".box[data-mark=wrong]")).to_have_count(1)
    shown.get_by_label("Columns").fill("4")
    shown.get_by_label("Columns").press("Enter")
    expect(shown.locator(".box[data-mark=right]")).to_have_count(2)
    expect(shown.get_by_role("status")).not_to_be_empty()
    assert_accessible_in_all_looks(page)
    page.get_by_role("link", name="+1 token").click()
    expect(asking).not_to_have_class(re.compile("shown"))
