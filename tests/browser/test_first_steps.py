"""First steps in a real browser: from the start page to the whole sheet, by keyboard only and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

# One head of LLaMA 7B, worked out by hand: vectors of 4096 numbers, heads of 128; one token, then four, then 100.
STEPS = (
    ("1", "128"), ("128", "1"), ("1", "1"), ("128",), ("4", "128"), ("4", "4"), ("6",), ("4", "4"), ("4", "128"),
    ("4", "4096"), ("100", "128"), ("100", "100"),
)  # fmt: skip
MOST_KEYS = 120  # pressed on the way, Tab and Enter included


class Typist:
    """Presses keys and counts them; never touches a mouse."""

    def __init__(self, page: Page) -> None:
        self.page, self.pressed = page, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.pressed += 1

    def answer(self, *numbers: str) -> None:
        """Fill in the boxes from the one with the focus on, and check."""
        for at, number in enumerate(numbers):
            self.press(*["Tab"] * bool(at), *number)
        self.press("Enter")


def rows(page: Page) -> int:
    return page.locator("#boxes input[data-blank]").count()


@pytest.mark.slow
def test_by_keyboard_from_the_start_page_to_the_whole_sheet(page: Page) -> None:
    page.goto("/")
    typist = Typist(page)
    page.get_by_role("link", name="Take the first steps").focus()
    typist.press("Enter")
    expect(page.get_by_text("Step 1 of 12")).to_be_visible()
    page.get_by_role("link", name="Skip to the boxes").focus()
    typist.press("Enter", "Tab")
    expect(page.get_by_label("Query of one token, rows")).to_be_focused()
    typist.answer("1", "4096")
    expect(page.locator(".says .diagnosis")).to_be_visible()
    assert rows(page) == 2
    page.get_by_label("Query of one token, columns").fill("")
    typist.answer("128")
    for done, numbers in enumerate(STEPS[1:], start=1):
        expect(page.get_by_text(f"{done} of 12 steps done.")).to_be_visible()
        expect(page.locator("details.why[open]")).to_have_count(1)
        expect(page.locator("tbody.asked input").first).to_be_focused()
        if done == 5:  # left and resumed
            page.reload()
            expect(page.get_by_text("Step 6 of 12")).to_be_visible()
            page.locator("tbody.asked input").first.focus()
        typist.answer(*numbers)
    expect(page.get_by_text("All 12 steps are done.")).to_be_visible()
    assert typist.pressed <= MOST_KEYS
    page.locator("#next", has_text="Now the whole sheet").focus()
    typist.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("One head of")
    assert rows(page) >= 14


@pytest.mark.slow
def test_every_step_is_accessible(page: Page) -> None:
    """At the width of a desk in light colours and of a phone in dark ones, at the first step, on the way and done."""
    page.goto("/sheet?worksheet=first-steps&model=gpt2")
    assert_accessible_in_all_looks(page)
    for at, numbers in enumerate(STEPS):
        sizes = {"4096": "768", "128": "64"}
        for box, number in zip(page.locator("tbody.asked input").all(), numbers, strict=True):
            box.fill(sizes.get(number, number))
        if at == 3:  # typing leads to no other drawing
            expect(page.locator("output.saved")).to_have_attribute("data-state", "saved")
            expect(page.locator("#figures svg[aria-label*='s = q · kᵀ']")).to_have_count(1)
        page.get_by_role("button", name="Check").click()
        expect(page.locator("details.why")).to_have_count(at + 1)
        if at in (0, 3, 7, len(STEPS) - 1):
            assert_accessible_in_all_looks(page)


@pytest.mark.slow
def test_without_script_on_a_phone(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(
        base_url=shared_app.url, java_script_enabled=False, viewport={"width": 360, "height": 640}
    )
    page = context.new_page()
    page.goto("/sheet?worksheet=first-steps")
    for at, numbers in enumerate(STEPS, start=1):
        expect(page.get_by_text(f"Step {at} of 12")).to_be_visible()
        for box, number in zip(page.locator("tbody.asked input").all(), numbers, strict=True):
            box.fill(number)
        page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("All 12 steps are done.")).to_be_visible()
    page.get_by_role("link", name="Now the whole sheet").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("One head of")
    context.close()
