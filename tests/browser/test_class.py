"""A class of three in a real browser, from the set-up link to the gradebook; one of them loses the connection."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.store import Store
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible, set_up_link
from tests.helpers.closed_activity import close_activity
from tests.helpers.shipped import LIBRARY

SHEET = LIBRARY.variant("llama-7b")
RIGHT = {str(blank): str(SHEET.answer(blank)) for blank in SHEET.blanks}


@dataclass
class ClassInBrowsers:
    """The instructor in a wide window, and for each name a student with a phone 360 px wide."""

    teacher: Page
    phones: dict[str, tuple[BrowserContext, Page]]


def open_browsers(browser: Browser, app: Server, *names: str) -> ClassInBrowsers:
    """Open a wide window for the instructor, and a phone for each name, each a browser profile of its own."""

    def profile(width: int) -> BrowserContext:
        size = {"width": width, "height": 780}
        return browser.new_context(
            base_url=app.url,
            viewport=size,  # type: ignore[arg-type]
            reduced_motion="reduce",
            timezone_id="Europe/Berlin",
        )

    contexts = {name: profile(360) for name in names}
    return ClassInBrowsers(
        profile(1280).new_page(), {name: (context, context.new_page()) for name, context in contexts.items()}
    )


def make_lesson(teacher: Page, app: Server) -> str:
    """From the set-up link to an open activity, and its join code."""
    teacher.goto(set_up_link(app))
    for label, text in (("E-mail", "ada@example.org"), ("Your name", "Ada"), ("Password", "a long password")):
        teacher.get_by_label(label).fill(text)
    teacher.get_by_role("button", name="Create account").click()
    teacher.get_by_label("Title").fill("Transformers")
    expect(teacher.get_by_label("Time zone")).to_have_value("Europe/Berlin")  # the browser's own
    teacher.get_by_role("button", name="Create course").click()
    teacher.get_by_label("Names, one per line").fill("Kim Lee, 17\nLou Ray, 18\nMo Not Here, 19")
    teacher.get_by_role("button", name="Preview").click()
    teacher.get_by_role("button", name=re.compile("^Add [23] students$")).click()
    teacher.get_by_role("link", name="New activity").click()
    teacher.get_by_label("Title").fill("Week 3")
    teacher.locator("input[value='llama-7b']").check()
    teacher.get_by_role("button", name="Save").click()
    assert_accessible(teacher)
    teacher.get_by_role("button", name="Open").click()
    return teacher.locator(".band .join-code").inner_text()


def come_in_by_keyboard(page: Page, code: str, name: str) -> None:
    """Join under a name whose beginning is typed, and go to the sheet, with no pointer."""
    page.goto("/join")
    assert_accessible(page)
    press_until(page, "input[name=code]")
    page.keyboard.type(code)
    page.keyboard.press("Enter")
    page.wait_for_url("**/join/*")
    press_until(page, "input[name=name]")
    page.keyboard.type(name[:5])
    expect(page.get_by_role("button", name=name)).to_be_visible()
    assert_accessible(page)
    press_until(page, "#names button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/class/*/1")


def press_until(page: Page, selector: str, most: int = 60) -> None:
    """Tab until the focus is on what is meant; fails where it cannot be reached."""
    for _ in range(most):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by Tab on {page.url}")


def fill_by_keyboard(page: Page, answers: dict[str, str]) -> None:
    """Type into one box after another."""
    for blank, text in answers.items():
        press_until(page, f"input[name='{blank}']", 200)
        page.keyboard.type(text)


def hand_in_by_keyboard(page: Page) -> None:
    """Reach the button by Tab, press Enter, and wait until the page says that the sheet is in."""
    press_until(page, "#hand-in", 200)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Handed in.")
    assert_accessible(page)


def leave_a_ticket(page: Page, text: str) -> None:
    """Go on from the sheet to the exit ticket, answer one question by keyboard, and hand in."""
    page.get_by_role("link", name="Next: exit ticket").click()
    assert_accessible(page)
    press_until(page, "#pick-muddiest")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type(text)
    assert_accessible(page)
    press_until(page, ".ticket button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Your ticket is in.")


@pytest.mark.slow
def test_a_class_of_three_from_join_to_export(browser: Browser, own_app: Server, tmp_path: Path) -> None:
    lesson = open_browsers(browser, own_app, "Kim Lee", "Lou Ray")
    teacher, (_, kim), (lous, lou) = lesson.teacher, *lesson.phones.values()
    code = make_lesson(teacher, own_app)
    activity = teacher.url.partition("?")[0]
    for name, (_, page) in lesson.phones.items():
        come_in_by_keyboard(page, code, name)
        assert_accessible(page)
    teacher.goto(str(activity))
    expect(teacher.locator(".tally dd").first).to_have_text("2")
    assert_accessible(teacher)

    lou.fill("input[name='input.rows']", RIGHT["input.rows"])
    expect(lou.locator("output.saved")).to_have_text("Saved")
    lous.set_offline(True)
    for blank in list(RIGHT)[1:7]:
        lou.fill(f"input[name='{blank}']", RIGHT[blank])
    expect(lou.locator("output.saved")).to_contain_text("Not on the server yet")
    assert_accessible(lou)

    fill_by_keyboard(kim, RIGHT)
    expect(kim.locator("output.saved")).to_have_text("Saved")
    hand_in_by_keyboard(kim)
    leave_a_ticket(kim, "Why seven of eight heads matter.")

    lous.set_offline(False)
    expect(lou.locator("output.saved")).to_have_text("Saved", timeout=LONG_WAIT_MS)
    lou.reload()
    assert [lou.input_value(f"input[name='{blank}']") for blank in list(RIGHT)[:7]] == list(RIGHT.values())[:7]
    lou.get_by_role("button", name="Hand in").click()
    expect(lou.get_by_role("status").first).to_contain_text("7 boxes are empty.")
    assert_accessible(lou)
    lou.get_by_role("button", name="Hand in anyway").click()
    expect(lou.get_by_role("status").first).to_contain_text("Handed in.")
    leave_a_ticket(lou, "Nothing.")

    expect(teacher.locator(".tally div", has_text="handed in").locator("dd")).to_have_text("2")
    teacher.goto(f"{activity}/results")
    expect(teacher.get_by_role("main")).to_contain_text("Kim Lee")
    assert_accessible(teacher)
    teacher.goto(f"{activity}/tickets")
    expect(teacher.get_by_role("main")).to_contain_text("2 tickets are in")
    expect(teacher.get_by_role("main")).not_to_contain_text("Why seven of eight heads matter.")
    assert_accessible(teacher)
    store = Store(own_app.database, own_app.folder)
    [open_one] = store.activities.of_course(store.courses.find(1))  # type: ignore[arg-type]  # it was made above
    close_activity(store, open_one)
    store.close()
    teacher.reload()
    expect(teacher.get_by_role("main")).to_contain_text("Why seven of eight heads matter.")
    assert_accessible(teacher)
    teacher.goto("/courses/1/exports")
    assert_accessible(teacher)
    with teacher.expect_download() as downloading:
        teacher.get_by_role("link", name="Gradebook for Canvas").click()
    downloading.value.save_as(tmp_path / "gradebook.csv")
    rows = {row[0].strip(): row for row in csv.reader(io.StringIO((tmp_path / "gradebook.csv").read_text("utf-8-sig")))}
    week = rows["Student"].index("Week 3")
    assert float(rows["Points Possible"][week]) == len(RIGHT) == 14
    assert [float(rows[name][week]) for name in ("Kim Lee", "Lou Ray")] == [14, 7]
    assert rows["Mo Not Here"][week] == ""
    assert rows["Kim Lee"][2] == "17"
    for context in (teacher.context, *(context for context, _ in lesson.phones.values())):
        context.close()
