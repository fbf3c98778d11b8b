"""A real head of SmolLM2 in a real browser: a sentence of one's own, and a lesson from joining to the results."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible_in_all_looks, set_up_link
from tests.helpers.shipped import LIBRARY

pytestmark = pytest.mark.slow
LESSON = LIBRARY.variant("it-attends-smollm2")


def test_a_sentence_is_followed_to_the_next_token_by_keyboard(page: Page) -> None:
    page.goto("/heads")
    assert_accessible_in_all_looks(page)
    page.get_by_label("Sentence").fill("The cat sat")
    page.get_by_label(re.compile("^Layer")).fill("0")
    page.keyboard.press("Enter")
    page.locator("#stage-input td.box input").first.focus(timeout=LONG_WAIT_MS)
    page.keyboard.type("3")
    page.keyboard.press("Tab")
    page.keyboard.type("64")
    page.keyboard.press("Enter")
    expect(page.locator(".result")).to_be_visible()
    expect(page.locator("[id='input.columns']")).to_be_focused()
    expect(page.locator(".ahead")).to_contain_text("One more token")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("576")
    page.keyboard.press("Enter")
    expect(page.locator("[id='stored_W_Q.rows']")).to_be_focused()
    assert_accessible_in_all_looks(page)
    for _ in range(8):
        if page.locator("#skip").count() == 0:
            break
        stage = page.locator(".stage.asked").get_attribute("id")
        page.locator("#skip").press("Enter")
        expect(page.locator(f"#{stage}.open")).to_be_visible()
    expect(page.locator("#picture")).to_be_visible()
    assert_accessible_in_all_looks(page)
    page.get_by_role("button", name="Delete it now").click()
    expect(page.get_by_label("Sentence")).to_have_value(re.compile("because"))


def test_a_lesson_from_joining_to_the_results(browser: Browser, own_app: Server) -> None:
    teacher = browser.new_context(base_url=own_app.url, viewport={"width": 1280, "height": 800}).new_page()
    teacher.goto(set_up_link(own_app))
    for label, text in (("E-mail", "ada@example.org"), ("Your name", "Ada"), ("Password", "a long password")):
        teacher.get_by_label(label).fill(text)
    teacher.get_by_role("button", name="Create account").click()
    teacher.get_by_label("Title").fill("Transformers")
    expect(teacher.get_by_label("Time zone")).not_to_have_value("")  # which a script fills in
    teacher.get_by_role("button", name="Create course").click()
    teacher.get_by_role("link", name="New activity").click()
    teacher.get_by_label("Title").fill("Week 4")
    key = LESSON.worksheet.key
    teacher.locator("input[name=worksheet]:checked").uncheck()  # LLaMA 7B's, which a course begins with
    teacher.locator("#picker > summary").click()
    teacher.locator(f"details.topic:has(input[value='{key}']) > summary").click()
    teacher.locator(f"input[value='{key}']").check()
    teacher.get_by_role("button", name="Save").click()
    teacher.get_by_role("button", name="Open").click()
    code = teacher.locator(".band .join-code").inner_text()

    student = browser.new_context(base_url=own_app.url, viewport={"width": 360, "height": 640}).new_page()
    student.goto("/join")
    student.locator("input[name=code]").fill(code)
    student.keyboard.press("Enter")
    student.locator("input[name=name]").fill("Kim Lee")
    student.keyboard.press("Enter")
    student.wait_for_url("**/class/*/1")
    for box, size in LESSON.key.items():
        student.locator(f"input[name='{box}']").fill(str(size))
    student.get_by_role("button", name="Check").click()
    expect(student.locator(".result")).to_contain_text("14")
    student.locator("#more > summary").click()
    student.get_by_role("button", name=re.compile("^Run this")).click()
    student.wait_for_url("**/heads/*skip=all", timeout=LONG_WAIT_MS)
    expect(student.locator("#picture")).to_be_visible(timeout=LONG_WAIT_MS)
    expect(student.locator(".tokens li")).to_have_count(LESSON.tokens)
    student.get_by_role("link", name="Back to the sheet").click()
    student.locator("textarea").first.fill("cat, with nearly all of it")
    student.get_by_role("button", name="Hand in").click()
    expect(student.locator("main")).to_contain_text(re.compile("[Hh]anded in"))

    teacher.goto(re.sub(r"/edit$", "", teacher.url) + "/results")
    expect(teacher.locator("main")).to_contain_text("Kim Lee")
