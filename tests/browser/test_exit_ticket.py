"""The end of a lesson by keyboard and without script: one or two chips open a question, a third can’t be chosen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from app.store import Policies, Store
from simulation.lesson import open_lesson
from simulation.server import Server
from tests.helpers.answer_keys import KEY
from tests.helpers.browser import assert_accessible_in_all_looks

WIDE = {**KEY, **{f"{row}.columns": "4096" for row in ("queries", "keys", "values")}}


def fill(page: Page, answers: dict[str, str]) -> None:
    for name, text in answers.items():
        page.fill(f"input[name='{name}']", text)


def reachable_chips(page: Page) -> list[str]:
    """The chips that Tab reaches from the ticket's heading to its button."""
    page.locator(".ticket h2").evaluate("heading => { heading.tabIndex = -1; heading.focus(); }")
    found = list[str]()
    for _ in range(20):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.name ? document.activeElement.value : document.activeElement.type")
        if page.evaluate("document.activeElement.matches('[name=pick]')"):
            found.append(name)
        elif page.evaluate("document.activeElement.matches('.ticket button')"):
            break
    return found


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
def test_a_lesson_ends_with_a_look_back_and_two_chips(browser: Browser, shared_app: Server, has_script: bool) -> None:
    lesson = open_lesson(shared_app, f"The end, script: {has_script}", Policies())
    store = Store(shared_app.database, shared_app.folder)
    context = browser.new_context(
        base_url=shared_app.url, java_script_enabled=has_script, viewport={"width": 360, "height": 640}
    )
    page = context.new_page()
    page.goto(f"/join/{lesson.activity.join_code}")
    page.get_by_label("Your name").fill("Kim Lee")
    page.get_by_role("button", name="Join").click()
    page.wait_for_url("**/class/*/1")
    for answers in (WIDE, KEY):
        fill(page, answers)
        page.locator("#check").click()
        expect(page.get_by_role("status").first).to_contain_text("11 of 14" if answers is WIDE else "All 14")
    page.locator("#hand-in").click()
    page.get_by_role("link", name="Next: exit ticket").click()
    expect(page.locator(".look-back")).to_contain_text("4096")
    expect(page.locator(".look-back")).to_contain_text("after 2 tries")
    everything = reachable_chips(page)
    assert len(everything) == 5
    for key in ("muddiest", "again"):
        expect(page.locator(f"textarea[name='answer-{key}']")).to_be_hidden()
        page.locator(f"#pick-{key}").focus()
        page.keyboard.press("Space")
        expect(page.locator(f"textarea[name='answer-{key}']")).to_be_visible()
    assert reachable_chips(page) == ["muddiest", "again"]
    page.get_by_label("muddiest").fill("Why 128?")
    page.fill("textarea[name='answer-again']", "Values")
    page.locator("#pick-again").focus()
    page.keyboard.press("Space")
    if has_script:
        assert_accessible_in_all_looks(page)
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("status").first).to_contain_text("Your ticket is in.")
    if has_script:
        assert_accessible_in_all_looks(page)
    assert store.exit_tickets.waiting(lesson.activity) == 1
    for link in page.get_by_role("link", name="Start").all():
        assert context.request.get(link.get_attribute("href") or "").ok
    page.get_by_role("link", name="My class").click()
    page.locator("details.resume > summary").click()
    code = page.locator("p.resume-code").inner_text()
    if has_script:
        assert_accessible_in_all_looks(page)
    other = browser.new_page(base_url=shared_app.url, java_script_enabled=has_script)
    other.goto("/resume")
    other.get_by_label("Your resume code").fill(code)
    other.get_by_role("button", name="Continue").click()
    expect(other.get_by_role("main")).to_contain_text("Kim Lee")
    other.close()
    store.close()
    context.close()
