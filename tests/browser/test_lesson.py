"""A whole lesson in a real browser: three students with phones, a teacher, and everything that can go wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.classes.student_sheet import freeze
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.store import Activity, Plan, Store
from app.store.queries import utc_now
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow

SHEET = LIBRARY.variant("llama-7b")
RIGHT = {str(blank): str(SHEET.answer(blank)) for blank in SHEET.blanks}
# `serve`, but Close can be undone for one second, not ten, and what was on its way when an activity closed has arrived
# after two seconds, not after half a minute.
HURRIED = """
from datetime import timedelta
from app.cli import main
from app.activities import activity

activity.UNDO_TIME = timedelta(seconds=1)
activity.GRACE = timedelta(seconds=2)
activity.SETTLING_TIME = timedelta(seconds=0.5)
main(["serve"])
"""
SAVED = "output.saved"


@dataclass
class Lesson:
    """An open activity of two sheets and an anonymous exit ticket, with its teacher's window."""

    browser: Browser
    app: Server
    store: Store
    activity: Activity
    teacher: Page

    def phone(self, name: str) -> BrowserContext:
        """Enrol a student, in a browser as wide as a phone."""
        visitor, course = self.store.add_visitor(), self.store.courses.find(self.activity.course_id)
        assert course
        self.store.roster.enrol_new_student(course, name, visitor.id)
        return self.device({"name": VISITOR_COOKIE, "value": visitor.token, "url": self.app.url})

    def device(self, cookie: dict[str, str] | None = None, width: int = 360) -> BrowserContext:
        """A browser profile with this cookie."""
        context = self.browser.new_context(
            base_url=self.app.url,
            viewport={"width": width, "height": 740},
            reduced_motion="reduce",
        )
        if cookie:
            context.add_cookies([cookie])  # type: ignore[list-item]
        return context

    def sheet(self, context: BrowserContext, number: int = 1) -> Page:
        """A new tab with a sheet of the activity."""
        page = context.new_page()
        page.goto(f"/class/{self.activity.id}/{number}")
        return page


@pytest.fixture
def lesson(browser: Browser, tmp_path: Path) -> Iterator[Lesson]:
    server = Server(tmp_path / "data", program=HURRIED)
    server.start()
    store = Store(server.database, server.folder)
    ada = add_teacher(store, "ada@example.org", "Ada")
    course = store.courses.add("Transformers", "Europe/Berlin", ada)
    ticket = load_tickets(PROJECT / "worksheets")["classic"]
    content = freeze(LIBRARY, ("llama-7b", "qwen2.5-0.5b"), ticket)
    activity = store.activities.add(course, Plan("Week 3"), content)
    store.activities.set_state(activity, "open")
    window = browser.new_context(base_url=server.url, viewport={"width": 1280, "height": 800})
    session = store.people.open_session(ada)
    window.add_cookies([{"name": TEACHER_COOKIE, "value": session, "url": server.url}])
    yield Lesson(browser, server, store, activity, window.new_page())
    store.close()
    for context in browser.contexts:
        context.close()
    server.kill()


def box(name: str) -> str:
    return f"input[name='{name}']"


def fill(page: Page, answers: dict[str, str]) -> None:
    """Type into boxes, and wait until the server has it."""
    for name, text in answers.items():
        page.fill(box(name), text)
    expect(page.locator(SAVED)).to_have_text("Saved")


def test_a_lesson_with_every_trap(lesson: Lesson) -> None:
    kims, lous, mos = (lesson.phone(name) for name in ("Kim Lee", "Lou Ray", "Mo Oh"))
    kim, lou, mo = (lesson.sheet(context) for context in (kims, lous, mos))
    work_on_two_devices(lesson, kims, kim)
    go_through_the_activity(kim)
    hand_in_a_ticket_whose_rule_changes(lesson, kim)
    fill(lou, RIGHT)  # and never hands it in
    fill(mo, {"input.rows": "100", "input.columns": "4096"})
    check_under_new_rules(lesson, mo)
    close_while_somebody_types(lesson, mos, mo)
    find_work_after_closing(lesson, lous, lou)
    join_too_late(lesson)
    hand_in_after_the_answers(lesson, mo)


def activity_now(lesson: Lesson) -> Activity:
    """The activity as the database has it."""
    activity = lesson.store.activities.find(lesson.activity.id)
    assert activity
    return activity


def work_on_two_devices(lesson: Lesson, phone: BrowserContext, page: Page) -> None:
    """A tablet that was open before and the phone keep what the other types; Check leads to what is wrong."""
    tablet = lesson.device({**phone.cookies()[0]}, 820)  # type: ignore[dict-item]
    other = lesson.sheet(tablet)
    fill(page, {"input.rows": "100", "input.columns": "4096", "queries.rows": "100"})
    fill(other, {"keys.columns": "4096"})
    page.reload()
    assert page.input_value(box("keys.columns")) == "4096"
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".result")).to_contain_text("3 of 14 right")
    expect(page.locator(box("keys.columns"))).to_be_focused()
    for seen in (box("keys.columns"), ".result", "#check"):
        expect(page.locator(seen)).to_be_in_viewport()
    for text in ("4097", "4096"):  # a phone shows only what is not saved, and the score of the last check
        fill(page, {"keys.columns": text})
        expect(page.locator(SAVED)).to_be_hidden()
        expect(page.locator(".stale-score")).to_have_text("3 of 14 at your last check.")
        expect(page.locator(".stale-score")).to_be_in_viewport()
    assert_accessible(page)
    tablet.close()


def go_through_the_activity(page: Page) -> None:
    """One blue button leads from the first sheet over the second to the exit ticket; empty boxes are asked about."""
    primary = page.locator(".dock .buttons :is(button, a):not(.plain):visible")
    expect(primary).to_have_text("Check")
    fill(page, RIGHT)
    page.locator("#check").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".result")).to_have_text("✓ All 14 are right")
    expect(primary).to_have_text("Hand in")
    expect(primary).to_be_focused()
    primary.click()
    expect(primary).to_have_text("Next sheet")
    primary.click()
    fill(page, {"input.rows": "1"})
    page.get_by_role("button", name="Hand in").click()
    expect(page.locator(".result")).to_contain_text("13 boxes are empty.")
    assert_accessible(page)
    expect(primary).to_have_text("Hand in anyway")
    primary.click()
    expect(primary).to_have_text("Next: exit ticket")
    primary.click()


def hand_in_a_ticket_whose_rule_changes(lesson: Lesson, page: Page) -> None:
    """With the anonymous ticket open, the teacher wants names: the student reads it before anything is stored."""
    expect(page.locator(".remark").first).to_contain_text("Anonymous")
    page.get_by_text("Still muddy").click()
    page.get_by_label("muddiest").fill("Why 128?")
    lesson.teacher.goto(f"/activities/{lesson.activity.id}/edit")
    lesson.teacher.locator("#exit-ticket > summary").click()
    lesson.teacher.locator("input[name=ticket_anonymous][value=no]").check()
    lesson.teacher.get_by_role("button", name="Save").click()
    lesson.teacher.wait_for_url(re.compile(r"/activities/\d+(\?.*)?$"))
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("alert")).to_contain_text("Your teacher has changed this ticket")
    expect(page.get_by_label("muddiest")).to_have_value("Why 128?")
    expect(page.locator(".remark").first).to_contain_text("Kim Lee")
    assert lesson.store.exit_tickets.answers(lesson.activity) == ()
    assert_accessible(page)
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("status").first).to_contain_text("Your ticket is in.")
    [answer] = lesson.store.exit_tickets.answers(lesson.activity)
    assert answer.text == "Why 128?"
    page.goto("/mine")
    expect(page.get_by_role("heading", level=1)).to_have_text("My class")


def check_under_new_rules(lesson: Lesson, page: Page) -> None:
    """Attempts are limited while the sheet is open: the press says so and costs none; the next one is marked."""
    plan = activity_now(lesson).plan
    limited = replace(plan, policies=replace(plan.policies, max_attempts=5))
    lesson.store.activities.change(activity_now(lesson), limited)
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".result")).to_contain_text("You have 5 attempts on each sheet.")
    expect(page.locator(SAVED)).to_have_text("Saved")
    assert page.input_value(box("input.columns")) == "4096"
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".result")).to_contain_text("2 of 14 right")
    expect(page.locator(".below:not(#rule)")).to_have_text("4 attempts left")


def close_while_somebody_types(lesson: Lesson, phone: BrowserContext, page: Page) -> None:
    """Typed without a connection while the teacher closes: it is refused, told, and there to copy after a reload."""
    soon = replace(activity_now(lesson).plan, closes_at=utc_now() + timedelta(minutes=9))
    lesson.store.activities.change(activity_now(lesson), soon)
    page.reload()
    expect(page.locator("#closing b")).to_have_text(re.compile(r"(9:00|8:\d\d) left"))
    assert_accessible(page)
    phone.set_offline(True)
    page.fill(box("queries.rows"), "777")
    expect(page.locator(SAVED)).to_contain_text("Not on the server yet")
    expect(page.locator(SAVED)).to_be_in_viewport()
    lesson.teacher.goto(f"/activities/{lesson.activity.id}")
    lesson.teacher.locator("summary", has_text="Close").click()
    expect(lesson.teacher.locator("#working")).to_contain_text("2 students are still working")
    lesson.teacher.get_by_role("button", name="Close").click()
    expect(lesson.teacher.locator("p.phase")).to_have_text(re.compile("Clos(ing|ed)"))
    lesson.teacher.wait_for_timeout(4000)  # what was on its way has arrived
    phone.set_offline(False)
    expect(page.locator("#closing .banner")).to_contain_text("Closed at", timeout=LONG_WAIT_MS)
    expect(page.locator(SAVED)).to_contain_text("not saved")
    assert page.input_value(box("queries.rows")) == "777"
    assert_accessible(page)
    page.reload()
    expect(page.locator("#closing")).to_contain_text("Closed at")
    expect(page.locator("aside.unsaved")).to_contain_text("Queries, rows: 777")
    assert_accessible(page)


def find_work_after_closing(lesson: Lesson, phone: BrowserContext, page: Page) -> None:
    """Students who never handed in learn on the open page that their work was auto-submitted, and counts."""
    page.fill(box("input.rows"), "100 ")
    expect(page.locator("#closing .banner")).to_contain_text("Auto-submitted at closing")
    page.locator("#closing a").click()
    expect(page.locator("tr.answer").first).to_be_visible()
    expect(page.locator(".result")).to_contain_text("✓ All 14 are right")
    assert_accessible(page)
    mine = phone.new_page()
    mine.goto("/mine")
    expect(mine.get_by_role("main")).to_contain_text("14 of 14 · auto-submitted at closing")
    lesson.teacher.goto(f"/activities/{lesson.activity.id}/results")
    expect(lesson.teacher.get_by_role("row", name="Lou Ray").first).to_contain_text("14")


def join_too_late(lesson: Lesson) -> None:
    """Latecomers learn that it is over before they give a name, and afterwards."""
    page = lesson.device().new_page()
    page.goto(f"/join/{lesson.activity.join_code}")
    expect(page.locator(".banner")).to_contain_text("has closed")
    page.locator("input[name=name]").fill("Nia Late")
    page.get_by_role("button", name="Join").first.click()
    expect(page.locator("#closing .banner")).to_contain_text("Closed at")


def hand_in_after_the_answers(lesson: Lesson, page: Page) -> None:
    """The teacher opens it again after everybody could see the answers: what is handed in from then on is late."""
    lesson.teacher.goto(f"/activities/{lesson.activity.id}")
    lesson.teacher.locator("summary", has_text="Reopen").click()
    lesson.teacher.get_by_role("button", name="Reopen").click()
    expect(lesson.teacher.locator("p.phase")).to_have_text("Open")
    page.reload()
    fill(page, RIGHT)
    page.get_by_role("button", name="Hand in").click()
    expect(page.locator(".result")).to_contain_text("Handed in.")
    page.goto("/mine")
    expect(page.get_by_role("main")).to_contain_text("14 of 14 · handed in late")
