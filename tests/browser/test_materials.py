"""The list of worksheets, a copy, its page, its link and an import in a real browser, by keyboard and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import open_lesson
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow


def press(target: Locator) -> None:
    """Use a link or a button by keyboard."""
    target.focus()
    target.press("Enter")


def check(page: Page) -> None:
    """Axe finds nothing, and nothing is wider than a phone."""
    page.wait_for_load_state()
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert_accessible_in_all_looks(page)


def test_a_sheet_is_copied_found_shared_and_imported(browser: Browser, shared_app: Server) -> None:
    lesson = open_lesson(shared_app, "Own sheets")
    context = browser.new_context(base_url=shared_app.url)
    context.add_cookies([{"name": TEACHER_COOKIE, "value": lesson.session, "url": shared_app.url}])
    page = context.new_page()
    page.goto("/sheet?worksheet=llama-7b&tokens=60")
    page.locator("details:has([form=copy]) > summary").first.click()
    press(page.get_by_role("button", name="Make a copy"))
    expect(page).to_have_url(re.compile(r"/worksheets/\d+/edit$"))
    title = page.get_by_label("Title", exact=True)
    title.fill("Sixty tokens")
    check(page)
    title.press("Enter")
    expect(page).to_have_url(re.compile(r"saved="))
    page.goto("/worksheets")
    check(page)
    search = page.get_by_role("searchbox", name="Search")
    search.fill("sixty")
    search.press("Enter")
    expect(page.get_by_role("button", name="Make a copy of")).to_have_count(1)
    press(page.get_by_role("link", name="Sixty tokens", exact=True))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sixty tokens")
    press(page.get_by_role("button", name="Make a link"))
    link = page.locator("#link")
    expect(link).to_contain_text("/worksheets/shared/")
    check(page)
    page.goto(link.inner_text())
    expect(page.get_by_role("button", name="Make a copy")).to_be_visible()
    check(page)
    page.goto("/worksheets/import")
    page.get_by_label("Or its text").fill("title = “Mine”")
    press(page.get_by_role("button", name="Import"))
    expect(page.get_by_role("alert")).to_contain_text("Line 1")
    expect(page.get_by_label("Or its text")).to_have_value("title = “Mine”")
    check(page)
    context.close()
