"""Running a class and the pages of afterwards in a real browser: live, by keyboard, on a phone, and on paper."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.classes.sample_course import add_sample_course
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library
from app.store import Activity, Store
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import add_teacher
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible, assert_accessible_in_all_looks, unreachable

pytestmark = pytest.mark.slow

NUMBERS = itertools.count(1)


@dataclass
class SampleCourse:
    """The sample course on a server, with a session of its teacher."""

    store: Store
    url: str
    session: str
    activity: Activity  # the open one
    closed: Activity  # whose exit tickets are in

    @property
    def path(self) -> str:
        """The address of the open activity for teachers."""
        return f"/activities/{self.activity.id}"

    def sign_in(self, context: BrowserContext) -> Page:
        """A new page in which the teacher is signed in."""
        context.add_cookies([{"name": TEACHER_COOKIE, "value": self.session, "url": self.url}])
        return context.new_page()


@pytest.fixture
def taught(shared_app: Server) -> Iterator[SampleCourse]:
    """A sample course of its own for each test."""
    store, worksheets = Store(shared_app.database, shared_app.folder), PROJECT / "worksheets"
    ada = add_teacher(store, f"ada{next(NUMBERS)}@example.org", "Ada")
    course = add_sample_course(load_library(worksheets), load_tickets(worksheets), store, ada)
    by_phase = {activity.phase(store.now()): activity for activity in store.activities.of_course(course)}
    yield SampleCourse(store, shared_app.url, store.people.open_session(ada), by_phase["open"], by_phase["closed"])
    store.close()


def test_the_page_to_run_a_class_changes_by_itself_and_its_menus_stay_open(
    browser: Browser, taught: SampleCourse
) -> None:
    context = browser.new_context(base_url=taught.url)
    page = taught.sign_in(context)
    page.goto(taught.path)
    before = taught.store.classwork.attendance(taught.activity.id)
    expect(page.locator(".tally dd").first).to_have_text(str(len(before)))
    course = taught.store.courses.find(taught.activity.course_id)
    assert course
    student, _ = taught.store.roster.enrol_new_student(course, "Late", taught.store.add_visitor().id)
    close = page.locator("#close summary")
    close.press("Enter")
    taught.store.classwork.arrive(taught.activity.id, student.id)
    expect(page.locator(".tally dd").first).to_have_text(str(len(before) + 1))
    expect(page.locator("#close")).to_have_attribute("open", "")
    expect(close).to_be_focused()
    page.locator("[id^=explain-]").first.press("Enter")
    expect(page.locator(".explained figure").first).to_be_visible()
    show = page.locator("[id^=show-]")
    show.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#view-explain")).to_have_attribute("aria-pressed", "true")
    expect(show).to_be_focused()
    context.close()


SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll("body *")]
  .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
  .filter(each => each.checkVisibility() && each.getBoundingClientRect().width > 2)
  .map(each => parseFloat(getComputedStyle(each).fontSize)))"""


def test_the_projector_counts_arrivals_is_readable_from_the_back_and_moves_only_when_told(
    browser: Browser, taught: SampleCourse
) -> None:
    context = browser.new_context(base_url=taught.url, viewport={"width": 1920, "height": 1080})
    projector, remote = taught.sign_in(context), context.new_page()
    remote.goto(taught.path)
    projector.goto(f"{taught.path}/projector")
    expect(projector.locator(".wall-join .join-code")).to_have_text(taught.activity.join_code)
    assert projector.evaluate(SMALLEST_TEXT) >= 24
    count = len(taught.store.classwork.attendance(taught.activity.id))
    course = taught.store.courses.find(taught.activity.course_id)
    assert course
    student, _ = taught.store.roster.enrol_new_student(course, "Latest", taught.store.add_visitor().id)
    taught.store.classwork.arrive(taught.activity.id, student.id)
    expect(projector.locator(".wall-count")).to_contain_text(str(count + 1))
    projector.evaluate("window.opened = 1")
    views = ("join", "progress", "explain")
    for press, view in (("ArrowRight", "progress"), ("ArrowRight", "explain"), ("ArrowLeft", "progress")):
        projector.keyboard.press(press)  # without a reload, which would end the full screen
        expect(projector.locator(f".wall-{view}")).to_be_visible()
        expect(projector.locator(".corner .join-code")).to_have_text(taught.activity.join_code)
        assert projector.evaluate(SMALLEST_TEXT.replace("body *", "body :not(svg *)")) >= 24
        assert_accessible_in_all_looks(projector)
        projector.set_viewport_size({"width": 1920, "height": 1080})
    for view in (*views, "explain"):
        remote.locator(f"#view-{view}").click()
        expect(projector.locator(f".wall-{view}")).to_be_visible()
    assert projector.evaluate("window.opened") == 1
    context.close()


def test_a_class_is_closed_by_keyboard_and_opened_again_in_time(browser: Browser, taught: SampleCourse) -> None:
    context = browser.new_context(base_url=taught.url)
    page = taught.sign_in(context)
    page.goto(taught.path)
    phase, undo = page.locator(".phase"), page.get_by_role("button", name="Undo close")
    for is_undone in (True, False):
        page.locator("#close summary").press("Enter")
        page.get_by_label("When").press("Tab")
        assert_accessible(page)
        page.keyboard.press("Enter")
        if is_undone:
            undo.press("Enter")
            expect(undo).to_have_count(0)
            expect(phase).to_have_text("Open")
    expect(phase).to_have_text("Closed", timeout=LONG_WAIT_MS)
    expect(undo).to_have_count(0)
    context.close()


def test_old_numbers_are_called_old(browser: Browser, taught: SampleCourse) -> None:
    context = browser.new_context(base_url=taught.url)
    page = taught.sign_in(context)
    page.goto(taught.path)
    sign = page.get_by_text("Connection lost")
    expect(sign).to_be_hidden()
    with unreachable(context, "**/now*"):
        expect(sign).to_be_visible()
    expect(sign).to_be_hidden()
    context.clear_cookies()
    expect(sign).to_be_visible()
    context.close()


def test_axe_finds_nothing_on_the_pages_of_a_class(browser: Browser, taught: SampleCourse) -> None:
    context = browser.new_context(base_url=taught.url)
    page = taught.sign_in(context)
    page.goto(taught.path)
    page.locator("[id^=explain-]").first.click()
    expect(page.locator(".explained figure")).to_have_count(2)
    assert_accessible_in_all_looks(page)
    page.goto(f"{taught.path}/results")
    student = page.locator(".marks tbody a").first.get_attribute("href")
    for address in (f"{taught.path}/results", str(student), f"{taught.path}/tickets", f"{taught.path}/summary",
                    f"{taught.path}/regrade", f"{taught.path}/delete",
                    f"/courses/{taught.activity.course_id}/gradebook?sort=total",
                    f"/courses/{taught.activity.course_id}/exports", "/password"):  # fmt: skip
        page.goto(address)
        assert_accessible_in_all_looks(page)
    context.close()


def test_exit_tickets_are_searched_and_starred_without_a_reload(browser: Browser, taught: SampleCourse) -> None:
    context = browser.new_context(base_url=taught.url)
    page = taught.sign_in(context)
    page.goto(f"/activities/{taught.closed.id}/tickets")
    page.evaluate("window.opened = 1")
    answers = page.locator(".ticket-answers li")
    text = answers.first.locator("p").evaluate("each => each.firstChild.data")
    page.get_by_role("button", name="Star: ").first.click()
    expect(page.locator(".star")).to_have_count(1)
    for key in ("k", "j", "j", "s"):  # to the first, the second and the third, which is starred
        page.keyboard.press(key)
    expect(answers.nth(2).locator(".star")).to_have_count(1)
    expect(answers.nth(2).get_by_role("button", name="Remove star")).to_be_focused()
    page.keyboard.press("s")
    expect(page.locator(".star")).to_have_count(1)
    page.get_by_label("Search for").press("s")
    expect(page.locator(".star")).to_have_count(1)
    page.get_by_label("Search for").fill("")
    page.get_by_label("Show").select_option("starred")
    expect(answers).to_have_count(1)
    expect(answers).to_contain_text(text)
    page.get_by_label("Search for").fill("no such words")
    expect(answers).to_have_count(0)
    assert page.evaluate("window.opened") == 1
    context.close()


def test_the_summary_prints_on_one_page(browser: Browser, taught: SampleCourse) -> None:
    for number in range(7):
        answers = {"muddiest": f"{number}: " + "Why is the mixture multiplied once more? " * 90}
        course = taught.store.courses.find(taught.activity.course_id)
        assert course
        student, _ = taught.store.roster.enrol_new_student(course, f"Writer {number}", taught.store.add_visitor().id)
        taught.store.classwork.arrive(taught.activity.id, student.id)
        taught.store.exit_tickets.hand_in(taught.activity.id, student.id, answers, anonymous=False)
    for one in taught.store.exit_tickets.answers(taught.activity):
        taught.store.exit_tickets.mark(taught.activity.id, one.id, starred=len(one.text) > 1000)
    context = browser.new_context(base_url=taught.url)
    page = taught.sign_in(context)
    page.goto(f"{taught.path}/summary")
    expect(page.locator("blockquote")).to_have_count(6)
    assert page.pdf(format="A4").count(b"/Type /Page\n") == 1
    context.close()
