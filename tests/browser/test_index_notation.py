"""A sheet of patterns in a real browser: by keyboard only, on a phone, and accessible."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from app.sheets.library import Library
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

ADDRESS = "/sheet?worksheet=index-gpt2"


@pytest.mark.slow
def test_patterns_are_written_and_axes_chosen_by_keyboard(page: Page, shared_app: Server, library: Library) -> None:
    variant = library.variant("index-gpt2")
    right = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
    typed = {**right, "scores_pattern.choice": "bhij,bhkj->bhik", "sums_pattern.choice": "bhqk bhke"}
    page.goto(shared_app.url + ADDRESS)
    for box, text in typed.items():
        if box.startswith("summed"):
            page.focus(f"input[name='{box}'][value='{text}']")
            page.keyboard.press("Space")
        else:
            page.focus(f"input[name='{box}']")
            page.keyboard.type(text)
    page.get_by_role("button", name="Check").press("Enter")
    expect(page.locator("td.whole[data-mark='unreadable']")).to_have_count(1)
    expect(page.locator("[data-mark='right']:is(td)")).to_have_count(len(right) - 1)
    expect(page.locator("[name='sums_pattern.choice']")).to_have_value("bhqk bhke")
    assert_accessible_in_all_looks(page)
