"""Practice in a real browser: sheet after sheet, the record that stays, the keyboard alone, axe, a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from app.sheets.library import Library
from app.sheets.variant import Variant
from simulation.misconception_students import misconception_sheets, right_sheet
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks, practise_one_head


def sheet_on(page: Page, library: Library) -> Variant:
    return library.variant_from_code(page.locator(".share a").first.inner_text())


def answers(variant: Variant, misconception: str = "") -> dict[str, str]:
    """What to type: by a misconception, else what is right; in letters where the sheet asks for them."""
    if variant.worksheet.answers == "letters":
        return {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
    return {
        box: str(size)
        for box, size in dict(misconception_sheets(variant)).get(misconception, right_sheet(variant)).items()
    }


def fill(page: Page, typed: dict[str, str]) -> None:
    for box, text in typed.items():
        page.fill(f'input[name="{box}"]', text)


def go_on(page: Page, library: Library, misconception: str = "") -> Variant:
    """Fill in the sheet, check it, ask for another one; gives the sheet that was filled in."""
    variant = sheet_on(page, library)
    fill(page, answers(variant, misconception))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("correct")
    page.get_by_role("button", name="Next sheet").click()
    expect(page.locator(".share a").first).not_to_have_text(variant.code)
    return variant


def state(page: Page, group: str) -> str | None:
    return page.locator(".misconception-groups li", has_text=group).get_attribute("data-state")


def test_three_sheets_in_a_row_and_the_record_survives_a_reload(page: Page, library: Library) -> None:
    practise_one_head(page)
    first = go_on(page, library, "softmax-collapses")
    expect(page.locator(".why")).to_have_text("This sheet comes back to something you missed: Scores and weights.")
    assert state(page, "Scores and weights") == "again"
    second = go_on(page, library)
    third = go_on(page, library)
    assert len({first.code, second.code, third.code}) == 3
    expect(page.locator(".why")).to_have_text("New level: Whole model.")
    fourth = sheet_on(page, library)
    page.reload()
    assert (sheet_on(page, library), state(page, "Scores and weights")) == (fourth, "growing")
    page.goto("/sheet")
    page.get_by_role("link", name="Practice").click()
    assert sheet_on(page, library) == fourth


@pytest.mark.slow
def test_practice_works_with_the_keyboard_alone(page: Page, library: Library) -> None:
    practise_one_head(page)
    variant = sheet_on(page, library)
    page.locator("input[data-blank]").first.focus()
    for text in answers(variant).values():
        page.keyboard.type(text)
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('a.term')"):  # a row's name may lead to the glossary
            page.keyboard.press("Tab")
    page.locator("input[data-blank]").last.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_have_text(f"All {len(variant.blanks)} boxes are correct.")
    expect(page.get_by_role("button", name="Next sheet")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".share a").first).not_to_have_text(variant.code)
    page.wait_for_load_state()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the boxes")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("input[data-blank]").first).to_be_focused()


@pytest.mark.slow
def test_practice_works_without_script(browser: Browser, shared_app: Server, library: Library) -> None:
    """The forms alone lead from sheet to sheet, and what stands around the sheet stays after a check."""
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    practise_one_head(page)
    first = go_on(page, library)
    assert sheet_on(page, library) != first
    assert state(page, "What a head reads") == "growing"
    page.get_by_role("link", name="All levels").click()
    assert page.locator(".levels [aria-current]").get_attribute("data-state") == "current"
    page.get_by_role("button", name="Test out: One head").click()
    assert len(sheet_on(page, library).rows) >= 7
    page.get_by_text("Your progress is kept in a cookie").click()
    page.get_by_role("button", name="Reset progress").click()
    assert sheet_on(page, library).worksheet.topic == "first-steps"
    assert state(page, "What a head reads") == "new"
    context.close()


@pytest.mark.slow
def test_axe_finds_nothing_and_nothing_is_too_wide(browser: Browser, shared_app: Server, library: Library) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    practise_one_head(page)
    fill(page, answers(sheet_on(page, library), "elementwise-product"))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("button", name="Next sheet")).to_be_visible()
    assert_accessible_in_all_looks(page)
    page.get_by_role("button", name="Next sheet").click()
    expect(page.locator(".why")).to_contain_text("comes back")
    page.get_by_text("Your progress is kept in a cookie").click()
    assert_accessible_in_all_looks(page)
    page.get_by_role("link", name="All levels").click()
    expect(page.locator(".levels .missed").first).to_be_visible()
    assert_accessible_in_all_looks(page)
    context.close()
