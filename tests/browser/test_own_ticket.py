"""A teacher's own exit ticket in a real browser, by keyboard only: written, chosen, answered on a phone, counted."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from simulation.lesson import open_lesson
from simulation.server import Server
from tests.helpers.browser import assert_accessible_in_all_looks

pytestmark = pytest.mark.slow


def context_with(browser: Browser, server: Server, name: str, value: str, width: int) -> BrowserContext:
    """A browser with one cookie."""
    context = browser.new_context(base_url=server.url, viewport={"width": width, "height": 800})
    context.add_cookies([{"name": name, "value": value, "url": server.url}])
    return context


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the field or button has the focus."""
    expect(target).to_be_visible()
    for _press in range(120):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"no Tab leads to {target}")


def test_an_own_ticket_by_keyboard_alone(browser: Browser, shared_app: Server) -> None:
    lesson = open_lesson(shared_app, "Own ticket")
    teacher = context_with(browser, shared_app, TEACHER_COOKIE, lesson.session, 1280)
    page = teacher.new_page()
    page.goto(f"/tickets/new?course={lesson.activity.course_id}")
    preview = page.locator("#preview")
    tab_to(page, page.get_by_label("Title"))
    page.keyboard.type("On your way out")
    tab_to(page, page.get_by_label("Instruction"))
    page.keyboard.type("One minute.")
    tab_to(page, page.get_by_label("Question 1", exact=True))
    page.keyboard.type("How was the pace?")
    tab_to(page, page.get_by_label("Answered by"))
    page.keyboard.type("scale")
    tab_to(page, page.get_by_label("Label of the first point"))
    page.keyboard.type("too slow")
    tab_to(page, page.get_by_label("Label of the fifth point"))
    page.keyboard.type("too fast")
    expect(preview.get_by_role("radiogroup", name="How was the pace?").get_by_role("radio")).to_have_count(6)
    tab_to(page, page.get_by_role("button", name="Add a question"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Question 2", exact=True)).to_be_focused()
    page.keyboard.type("What next?")
    tab_to(page, page.get_by_label("Answered by").nth(1))
    page.keyboard.type("choose one")
    tab_to(page, page.get_by_label("Options, one per line").nth(1))
    page.keyboard.type("KV cache")
    page.keyboard.press("Enter")
    page.keyboard.type("Masks")
    expect(preview.get_by_role("radio", name="Masks")).to_be_visible()
    page.keyboard.press("Shift+Tab")
    tab_to(page, page.get_by_role("radio", name="anonymous"))
    page.keyboard.press("ArrowDown")
    tab_to(page, page.locator(".save").get_by_role("button", name="Save"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Saved as version 1")).to_be_visible()
    up = page.get_by_role("button", name="Move question 2 up")
    tab_to(page, up)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Question 1", exact=True)).to_have_value("What next?")
    expect(page.get_by_role("button", name="Move question 1 up")).to_be_focused()
    assert_accessible_in_all_looks(page)
    page.close(run_before_unload=False)

    page = teacher.new_page()
    page.goto(f"/activities/{lesson.activity.id}/edit")
    tab_to(page, page.locator("#exit-ticket > summary"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("radio", name="Before you go"))
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="On your way out")).to_be_checked()
    expect(page.locator("[name=ticket_anonymous][value=no]")).to_be_checked()
    page.keyboard.press("Enter")
    tab_to(page, page.locator("#settings > summary"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("On your way out")).to_be_visible()

    store = Store(shared_app.database, shared_app.folder)
    visitor, course = store.add_visitor(), store.courses.find(lesson.activity.course_id)
    assert course
    store.roster.enrol_new_student(course, "Kim", visitor.id)
    store.close()
    phone = context_with(browser, shared_app, VISITOR_COOKIE, visitor.token, 360)
    ticket = phone.new_page()
    ticket.goto(f"/class/{lesson.activity.id}/ticket")
    tab_to(ticket, ticket.get_by_role("radio", name="1, too slow"))
    ticket.keyboard.press("ArrowRight")
    expect(ticket.get_by_role("radio", name="2", exact=True)).to_be_checked()
    tab_to(ticket, ticket.get_by_role("radio", name="KV cache"))
    ticket.keyboard.press("ArrowDown")
    assert ticket.evaluate("document.documentElement.scrollWidth") <= 360
    ticket.reload()
    expect(ticket.get_by_role("radio", name="Masks")).to_be_checked()  # kept in this browser
    assert_accessible_in_all_looks(ticket)
    tab_to(ticket, ticket.get_by_role("button", name="Hand in"))
    ticket.keyboard.press("Enter")
    expect(ticket.get_by_text("Your ticket is in.")).to_be_visible()

    page.goto(f"/activities/{lesson.activity.id}/tickets")
    expect(page.get_by_role("row", name="Masks 1 of 1")).to_be_visible()
    expect(page.get_by_role("row", name="KV cache 0 of 1")).to_be_visible()
    assert_accessible_in_all_looks(page)
    phone.close()
    teacher.close()
