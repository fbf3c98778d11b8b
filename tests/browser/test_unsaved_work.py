"""What a student writes is found again: an exit ticket that was lost, and a sheet while the database takes nothing."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.store import Activity, Policies, Store
from app.web.shared.cookies import VISITOR_COOKIE
from simulation.lesson import open_lesson
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible, wait_until
from tests.helpers.clock import end_activity
from tests.helpers.closed_activity import close_activity

pytestmark = pytest.mark.slow

# `serve`, but it waits for a locked database a fifth of a second and not five.
IMPATIENT = """
from app.cli import main
from app.store import database, sqlite_writer

usual, sqlite_writer.WRITE_LIMIT_S = database._set_up_sqlite, 0.2

def impatient(connection, record):
    usual(connection, record)
    connection.execute("PRAGMA busy_timeout=200")

database._set_up_sqlite = impatient
main(["serve"])
"""
# `serve`, but the first save finds no time for its drawing.
HURRIED = """
from app.cli import main
from app.web import student

class OneRefusal:
    asked = 0

    def acquire(self, blocking):
        self.asked += 1
        return self.asked > 1

    def release(self):
        pass

student._drawing_save = OneRefusal()
main(["serve"])
"""
# `serve`, but a student may store one attempt an hour.
THRIFTY = """
from app.cli import main
from app.web.shared import rate_limits

rate_limits.BYTES_OF_STUDENT_PER_HOUR = rate_limits.BYTES_OF_ATTEMPT
main(["serve"])
"""
WRITTEN = "Why is the head 128 wide?\nAnd who decides?"


@dataclass
class Phones:
    """An open activity of one sheet and an anonymous exit ticket on a server, and phones of its students."""

    browser: Browser
    app: Server
    store: Store
    activity: Activity

    def join(self, name: str, **options: Any) -> BrowserContext:
        """Enrol a student and return the phone on which they did."""
        visitor, course = self.store.add_visitor(), self.store.courses.find(self.activity.course_id)
        assert course
        self.store.roster.enrol_new_student(course, name, visitor.id)
        size = {"width": 360, "height": 780}
        context = self.browser.new_context(base_url=self.app.url, viewport=size, **options)  # type: ignore[arg-type]
        context.add_cookies([{"name": VISITOR_COOKIE, "value": visitor.token, "url": self.app.url}])
        return context

    def ticket(self, page: Page) -> Page:
        page.goto(f"/class/{self.activity.id}/ticket")
        return page


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app for the tests of this file, each of which leaves it running."""
    server = Server(tmp_path_factory.mktemp("unsaved"), program=IMPATIENT)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def lesson(browser: Browser, app: Server, request: pytest.FixtureRequest) -> Iterator[Phones]:
    """A new course with the activity, for one test, on the server of all."""
    policies = Policies(ticket_anonymous=True)
    opened = open_lesson(app, f"Week {abs(hash(request.node.name))}", policies)
    store = Store(app.database, app.folder)
    yield Phones(browser, app, store, opened.activity)
    store.close()


def test_a_busy_server_saves_first_and_draws_later(browser: Browser, tmp_path: Path) -> None:
    app = Server(tmp_path, program=HURRIED)
    app.start()
    try:
        opened, store = open_lesson(app), Store(app.database, app.folder)
        phone = Phones(browser, app, store, opened.activity).join("Kim Lee")
        page = phone.new_page()
        page.goto(opened.sheet_path)
        side = page.locator("#figures [data-blank='input.columns']").first
        expect(side).to_have_attribute("data-size", "?")
        with page.expect_response("**/save") as saved:
            page.locator("input[name='input.columns']").fill("4096")
        assert (saved.value.headers["x-drawing"], "<svg" in saved.value.text()) == ("later", False)
        expect(page.locator("output.saved")).to_have_text("Saved")
        expect(side).to_have_attribute("data-size", "4096")
        phone.close()
        store.close()
    finally:
        app.kill()


def test_a_check_too_many_is_refused_in_the_servers_words_and_loses_nothing(browser: Browser, tmp_path: Path) -> None:
    app = Server(tmp_path, program=THRIFTY)
    app.start()
    try:
        opened, store = open_lesson(app, "Week 1", Policies(feedback="immediate")), Store(app.database, app.folder)
        phone = Phones(browser, app, store, opened.activity).join("Kim Lee")
        page = phone.new_page()
        page.goto(opened.sheet_path)
        for text, said in (("1", "0 of 14"), ("2", "Try again in 60 minutes")):
            page.locator("input[name='queries.rows']").fill(text)
            page.get_by_role("button", name="Check").click()
            expect(page.locator(".result")).to_contain_text(said)
        expect(page.locator("output.saved")).to_have_text("Saved")
        (draft,) = store.classwork.drafts_of_activity(opened.activity.id)
        assert draft.answers["queries.rows"] == "2"
        assert len(store.classwork.attempts_of_activity(opened.activity.id)) == 1
        phone.close()
        store.close()
    finally:
        app.kill()


def test_a_ticket_that_was_lost_is_found_again_and_handed_in_once(lesson: Phones) -> None:
    phone = lesson.join("Kim Lee")
    sent = list[str]()
    phone.on("request", lambda request: sent.append(request.post_data or "") if request.method == "POST" else None)
    page = lesson.ticket(phone.new_page())
    page.get_by_text("Still muddy").click()
    page.get_by_label("muddiest").fill(WRITTEN)
    expect(page.locator("output")).to_have_text("Kept only in this browser until you hand it in.")
    page.close()
    page = lesson.ticket(phone.new_page())
    expect(page.get_by_label("muddiest")).to_have_value(WRITTEN)
    assert_accessible(page)
    assert sent == []

    lesson.app.kill()
    page.get_by_role("button", name="Hand in").click()
    expect(page.locator("output")).to_have_text("Not handed in yet; kept in this browser. Trying again.")
    page.get_by_label("muddiest").fill(f"{WRITTEN} One more.")
    assert_accessible(page)
    lesson.app.start()
    expect(page.get_by_role("status").first).to_contain_text("Your ticket is in.", timeout=LONG_WAIT_MS)
    wait_until(page, "localStorage.length === 0")
    [answer] = lesson.store.exit_tickets.answers(close_activity(lesson.store, lesson.activity))
    assert (answer.text, answer.student_id) == (f"{WRITTEN} One more.", None)
    phone.close()


def test_a_ticket_is_not_lost_when_the_activity_closes(lesson: Phones) -> None:
    phone = lesson.join("Kim Lee")
    page = lesson.ticket(phone.new_page())
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("alert")).to_have_text("Answer at least one question.")
    page.get_by_text("Still muddy").click()
    page.get_by_label("muddiest").fill(WRITTEN)
    end_activity(lesson.store, lesson.activity.id)
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("alert")).to_contain_text("isn’t open right now")
    expect(page.get_by_label("muddiest")).to_have_value(WRITTEN)
    lesson.ticket(page)
    expect(page.locator("blockquote")).to_have_text(re.compile("128 wide.*who decides", re.DOTALL))
    assert_accessible(page)
    other = lesson.join("Lou Ray")
    expect(lesson.ticket(other.new_page()).locator("blockquote")).to_be_hidden()
    phone.close()
    other.close()


def test_a_browser_that_keeps_nothing_says_so(lesson: Phones) -> None:
    phone = lesson.join("Kim Lee")
    page = phone.new_page()
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('forbidden'); };")
    lesson.ticket(page)
    expect(page.locator("output")).to_contain_text("This browser can’t keep drafts")
    page.get_by_text("Still muddy").click()
    page.get_by_label("muddiest").fill(WRITTEN)
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("status").first).to_contain_text("Your ticket is in.")
    phone.close()


@contextmanager
def locked(app: Server) -> Iterator[None]:
    """Another process holds the database and lets nobody write."""
    other = sqlite3.connect(app.folder / "attention-shapes.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


@contextmanager
def full(app: Server) -> Iterator[None]:
    """The server cannot write another byte into any file."""
    process = app.main_process()
    before = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_FSIZE, before)


def test_a_database_that_takes_nothing_for_a_while_loses_nothing(lesson: Phones) -> None:
    phone = lesson.join("Kim Lee")
    statuses = Counter[int]()
    phone.on("response", lambda answer: statuses.update([answer.status]))
    page, saved = phone.new_page(), "output.saved"
    page.goto(f"/class/{lesson.activity.id}/1")
    page.wait_for_load_state()
    with locked(lesson.app):
        page.fill("input[name='queries.rows']", "100")
        expect(page.locator(saved)).to_contain_text("Not on the server yet")
        assert_accessible(page)
        page.get_by_role("button", name="Hand in").click()
        expect(page.get_by_role("status").first).to_contain_text("The server can’t save right now.")
        page.reload()
        page.fill("input[name='queries.columns']", "128")
        expect(page.locator(saved)).to_contain_text("Not on the server yet")
        expect(page.locator("input[name='queries.rows']")).to_have_value("100")
    expect(page.locator(saved)).to_have_text("Saved", timeout=LONG_WAIT_MS)
    with full(lesson.app):
        page.fill("input[name='keys.rows']", "100")
        expect(page.locator(saved)).to_contain_text("Not on the server yet")
    expect(page.locator(saved)).to_have_text("Saved", timeout=LONG_WAIT_MS)
    assert statuses[503] >= 4
    page.get_by_role("button", name="Hand in").click()
    page.get_by_role("button", name="Hand in anyway").click()
    expect(page.get_by_role("status").first).to_contain_text("Handed in.")
    [found] = lesson.store.classwork.attempts_of_activity(lesson.activity.id)
    assert {blank: text for blank, text in found.answers.items() if text} == {
        "queries.rows": "100", "queries.columns": "128", "keys.rows": "100",
    }  # fmt: skip
    phone.close()
