"""A question that is answered in words, in a real browser: on a phone, on a second device, and after closing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from app.store import Plan, Policies, Store
from app.web.shared.cookies import VISITOR_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks, unreachable
from tests.helpers.clock import end_activity
from tests.helpers.open_questions import HEADS, WHY, asking_content
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow


def saved(page: Page) -> None:
    expect(page.locator("output.saved")).to_have_attribute("data-state", "saved")


def test_an_answer_is_written_on_a_phone_seen_on_a_laptop_and_kept(browser: Browser, shared_app: Server) -> None:
    store = Store(shared_app.database, shared_app.folder)
    course = store.courses.add("Words", "UTC", add_teacher(store, "words@example.org", "Ada"))
    activity = store.activities.add(course, Plan("Words", None, Policies(max_attempts=1)), asking_content(LIBRARY))
    store.activities.set_state(activity, "open")
    visitor = store.add_visitor()
    store.roster.enrol_new_student(course, "Kim", visitor.id)
    cookie = {"name": VISITOR_COOKIE, "value": visitor.token, "url": shared_app.url}
    phone = browser.new_context(
        base_url=shared_app.url, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True
    )
    laptop = browser.new_context(base_url=shared_app.url)
    for context in (phone, laptop):
        context.add_cookies([cookie])  # type: ignore[list-item]
    page, other = phone.new_page(), laptop.new_page()
    for each in (page, other):
        each.goto(f"/class/{activity.id}/1")
    why = page.get_by_label(WHY.text)
    why.tap()
    expect(page.locator(".keys")).to_be_hidden()
    why.press_sequentially("One row\nper token\t")
    why.press("Enter")
    why.press_sequentially("and ")
    saved(page)
    expect(why).to_have_value("One row\nper token \nand ")
    expect(page).to_have_url(f"{shared_app.url}/class/{activity.id}/1")
    other.get_by_label(HEADS.text).fill("Twice the columns.")
    saved(other)
    expect(other.get_by_label(WHY.text)).to_have_value("One row\nper token \nand ")
    expect(other.locator(".elsewhere")).to_contain_text(WHY.text)
    expect(page.locator(".elsewhere")).to_be_empty()
    assert_accessible_in_all_looks(other)

    page.get_by_label("Queries, rows").fill("7")
    saved(page)
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".result")).to_contain_text("0 of 14")
    expect(page.get_by_label("Queries, rows")).to_have_js_property("readOnly", True)
    expect(why).to_have_js_property("readOnly", False)
    why.press_sequentially("more ")
    saved(page)

    with unreachable(page, "**/save"):
        why.press_sequentially("unsaved")
        expect(page.locator("output.saved")).to_have_attribute("data-state", "waiting")
        end_activity(store, activity.id)
    page.reload()
    expect(page.locator("aside.unsaved")).to_contain_text("and more unsaved")
    expect(page.get_by_label(WHY.text)).to_have_value("One row\nper token \nand more ")
    assert_accessible_in_all_looks(page)
    store.close()
    phone.close()
    laptop.close()
