"""Saving in a real browser: box by box from several tabs and devices, and "Saved" only for what the server has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from app.store import Activity, Plan, Policies, Store
from app.web.shared.cookies import VISITOR_COOKIE
from simulation.lesson import open_lesson
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible, wait_until
from tests.helpers.clock import end_activity

ROWS, COLUMNS = "input[name='queries.rows']", "input[name='queries.columns']"
SAVED, RESULT = "output.saved", ".result"
ERROR_PAGE = "<main><p>Something went wrong.</p></main>"


@dataclass
class Devices:
    """A student of an open activity with one sheet, who sits down at as many devices as a test wants."""

    browser: Browser
    app: Server
    store: Store
    activity: Activity
    token: str

    def open(self, **options: Any) -> BrowserContext:
        context = self.browser.new_context(base_url=self.app.url, **options)
        context.add_cookies([{"name": VISITOR_COOKIE, "value": self.token, "url": self.app.url}])
        return context

    def sheet(self, context: BrowserContext) -> Page:
        page = context.new_page()
        page.goto(f"/class/{self.activity.id}/1")
        page.wait_for_load_state()
        return page

    def stored(self) -> dict[str, str]:
        """The filled-in boxes of the draft in the database."""
        drafts = self.store.classwork.drafts_of_activity(self.activity.id)
        return {box: text for draft in drafts for box, text in draft.answers.items() if text}


@pytest.fixture
def devices(browser: Browser, shared_app: Server, request: pytest.FixtureRequest) -> Iterator[Devices]:
    policies = Policies(feedback="immediate")
    opened = open_lesson(shared_app, f"Saving {abs(hash(request.node.name))}", policies)
    store = Store(shared_app.database, shared_app.folder)
    visitor, course = store.add_visitor(), store.courses.find(opened.activity.course_id)
    assert course
    store.roster.enrol_new_student(course, "Kim Lee", visitor.id)
    yield Devices(browser, shared_app, store, opened.activity, visitor.token)
    store.close()


def type_and_save(page: Page, box: str, text: str) -> None:
    page.fill(box, text)
    expect(page.locator(SAVED)).to_have_text("Saved")


def test_two_tabs_merge_and_each_shows_what_the_other_changed(devices: Devices) -> None:
    context = devices.open()
    first, second = devices.sheet(context), devices.sheet(context)
    type_and_save(first, ROWS, "111")
    type_and_save(second, COLUMNS, "222")
    assert devices.stored() == {"queries.rows": "111", "queries.columns": "222"}
    expect(second.locator(ROWS)).to_have_value("111")
    expect(second.locator(".elsewhere")).to_contain_text("another device or in another tab")
    assert_accessible(second)
    type_and_save(second, ROWS, "333")
    expect(second.locator(".elsewhere")).to_be_empty()
    first.bring_to_front()
    first.evaluate("dispatchEvent(new Event('focus'))")
    expect(first.locator(ROWS)).to_have_value("333")
    expect(first.locator(COLUMNS)).to_have_value("222")
    context.close()


@pytest.mark.slow
def test_a_check_marks_what_another_device_has_changed(devices: Devices) -> None:
    laptop, phone = devices.open(), devices.open()
    page, other = devices.sheet(laptop), devices.sheet(phone)
    type_and_save(page, ROWS, "7")
    type_and_save(other, ROWS, "100")
    page.get_by_role("button", name="Check").click()
    expect(page.locator(RESULT)).to_contain_text("1 of 14")
    expect(page.locator(ROWS)).to_have_value("100")
    expect(page.locator(".elsewhere")).not_to_be_empty()
    expect(page.locator("[data-mark='right']", has=page.locator(ROWS))).to_have_count(1)
    laptop.close()
    phone.close()


@pytest.mark.slow
def test_an_offline_device_with_a_wrong_clock_loses_nothing(devices: Devices) -> None:
    laptop, phone = devices.open(), devices.open()
    fast, page = devices.sheet(laptop), devices.sheet(phone)
    fast.evaluate("const now = Date.now; Date.now = () => now() + 300000")
    phone.set_offline(True)
    page.fill(ROWS, "phone")
    page.fill(COLUMNS, "128")
    expect(page.locator(SAVED)).to_contain_text("Not on the server yet")
    type_and_save(fast, ROWS, "laptop")
    page.get_by_role("button", name="Check").click()
    expect(page.locator(RESULT)).to_contain_text("can’t be reached")
    phone.set_offline(False)
    expect(page.locator(SAVED)).to_have_text("Saved", timeout=LONG_WAIT_MS)
    expect(page.locator(RESULT)).to_be_empty()
    assert devices.stored() == {"queries.rows": "phone", "queries.columns": "128"}
    type_and_save(fast, "input[name='keys.rows']", "7")
    expect(fast.locator(ROWS)).to_have_value("phone")
    laptop.close()
    phone.close()


@pytest.mark.slow
def test_an_answer_that_was_lost_is_asked_again_and_overwrites_nothing(devices: Devices) -> None:
    first, second = devices.open(), devices.open()
    page, other = devices.sheet(first), devices.sheet(second)

    losing = True

    def answer(route: Route) -> None:
        if losing:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/save", answer)
    page.fill(ROWS, "old")
    expect(page.locator(SAVED)).to_contain_text("Not on the server yet")
    assert devices.stored() == {"queries.rows": "old"}
    type_and_save(other, ROWS, "new")
    losing = False
    expect(page.locator(SAVED)).to_have_text("Saved", timeout=LONG_WAIT_MS)
    expect(page.locator(ROWS)).to_have_value("new")
    assert devices.stored() == {"queries.rows": "new"}
    first.close()
    second.close()


@pytest.mark.slow
def test_a_bug_on_the_server_is_not_asked_for_ever(devices: Devices) -> None:
    context, asked = devices.open(), list[str]()
    page = devices.sheet(context)

    def fail(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=500, content_type="text/html", body=ERROR_PAGE)

    page.route("**/save", fail)
    page.fill(ROWS, "12")
    expect(page.locator(SAVED)).to_have_attribute("data-state", "refused")
    page.wait_for_timeout(9000)  # longer than the next pause would have been
    assert len(asked) == 3
    page.unroute("**/save")
    type_and_save(page, COLUMNS, "34")
    assert devices.stored() == {"queries.rows": "12", "queries.columns": "34"}
    context.close()


@pytest.mark.slow
def test_a_check_that_fails_is_told_and_a_later_save_leaves_the_sentence(devices: Devices) -> None:
    context = devices.open()
    page = devices.sheet(context)
    sentence = "Something went wrong."
    page.route("**/check", lambda route: route.fulfill(status=500, content_type="text/html", body=ERROR_PAGE))
    page.fill(ROWS, "12")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(RESULT)).to_have_text(sentence)
    type_and_save(page, COLUMNS, "34")
    expect(page.locator(RESULT)).to_have_text(sentence)
    assert devices.stored() == {"queries.rows": "12", "queries.columns": "34"}
    context.close()


@pytest.mark.slow
def test_only_what_changed_is_sent_and_a_closed_tab_sends_its_last_words(devices: Devices) -> None:
    context, sent = devices.open(), list[str]()
    page = devices.sheet(context)
    type_and_save(page, ROWS, "1")
    page.on("request", lambda request: sent.append(request.post_data or "") if request.method == "POST" else None)
    type_and_save(page, COLUMNS, "2")
    assert [re.findall(r"(\w+\.(?:rows|columns))=", body) for body in sent] == [["queries.columns"]]
    page.fill(ROWS, "12")
    page.goto("/models")
    for _ in range(400):
        if devices.stored()["queries.rows"] == "12":
            break
        page.wait_for_timeout(50)
    assert devices.stored()["queries.rows"] == "12"
    page = devices.sheet(context)
    context.set_offline(True)
    page.fill(ROWS, "123")
    page.close()
    context.set_offline(False)
    page = devices.sheet(context)
    expect(page.locator(ROWS)).to_have_value("123")
    expect(page.locator(SAVED)).to_have_text("Saved")
    wait_until(page, "localStorage.length === 0")
    assert devices.stored() == {"queries.rows": "123", "queries.columns": "2"}
    context.close()


@pytest.mark.slow
def test_a_refusal_is_told_in_the_servers_words_and_only_closed_means_closed(devices: Devices) -> None:
    context = devices.open()
    page = devices.sheet(context)
    tomorrow, activities = datetime.now(UTC) + timedelta(days=1), devices.store.activities
    activities.change(devices.activity, Plan("Later", None, Policies(feedback="immediate"), opens_at=tomorrow))
    page.fill(ROWS, "100")
    expect(page.locator(RESULT)).to_contain_text("isn’t open right now")
    expect(page.locator(SAVED)).to_contain_text("Not saved.")
    activities.change(devices.activity, Plan("Now", None, Policies(feedback="immediate")))
    # A page that is come back to asks once a second at most.
    wait_until(
        page, "dispatchEvent(new Event('focus')) && document.querySelector('output.saved').textContent === 'Saved'"
    )
    expect(page.locator(RESULT)).to_be_empty()
    end_activity(devices.store, devices.activity.id)
    page.fill(COLUMNS, "128")
    expect(page.locator(SAVED)).to_contain_text("your last change was not saved")
    expect(page.locator(COLUMNS)).to_have_value("128")
    page.reload()
    expect(page.locator("aside[data-unsaved] li")).to_contain_text("128")
    assert_accessible(page)
    context.close()
