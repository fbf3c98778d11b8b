"""What a shared computer shows of somebody who has signed out: nothing, even after Back."""

from __future__ import annotations

from contextlib import suppress

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from app.store import Store
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.lesson import open_lesson
from simulation.server import Server
from tests.helpers.browser import assert_accessible, wait_until

pytestmark = pytest.mark.slow


def assert_back_shows_nothing(page: Page, name: str) -> None:
    """However often somebody goes back, no page has the name on it."""
    for _ in range(3):
        with suppress(Error):  # what was sent by a form is not shown again without asking
            page.go_back()
        expect(page.locator("body")).not_to_contain_text(name)


def test_back_shows_nothing_after_a_teacher_has_signed_out(browser: Browser, own_app: Server) -> None:
    activity = open_lesson(own_app, "Week 3").activity
    store = Store(own_app.database, own_app.folder)
    course = store.courses.find(activity.course_id)
    assert course
    store.roster.enrol_new_student(course, "Kim Secretname")
    teacher = store.people.only_teacher()
    assert teacher
    context = browser.new_context(base_url=own_app.url)
    context.add_cookies([{"name": TEACHER_COOKIE, "value": store.people.open_session(teacher), "url": own_app.url}])
    store.close()
    page = context.new_page()
    page.goto("/courses")
    for path in (f"/courses/{course.id}", f"/activities/{activity.id}/results", f"/courses/{course.id}"):
        page.goto(path)
    expect(page.locator("body")).to_contain_text("Kim Secretname")
    page.goto("/courses")
    page.locator(".account summary").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in**")
    assert_back_shows_nothing(page, "Kim Secretname")
    context.close()


def test_a_student_leaves_nothing_on_a_device(browser: Browser, shared_app: Server) -> None:
    activity = open_lesson(shared_app, "A shared device").activity
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto(f"/join/{activity.join_code}")
    page.get_by_label("Your name").fill("Kim Secretname")
    page.get_by_role("button", name="Join").click()
    page.goto(f"/class/{activity.id}/ticket")
    page.get_by_text("Still muddy").click()
    page.get_by_label("muddiest").fill("Why?")
    wait_until(page, "localStorage.length > 0")
    page.goto("/mine")
    page.get_by_role("link", name="Sign out on this device").click()
    assert_accessible(page)
    code = page.locator("#resume-code").inner_text()
    assert_accessible(page)
    page.get_by_role("button", name="Sign out").click()
    wait_until(page, "localStorage.length === 0")
    assert [cookie for cookie in context.cookies() if cookie["name"] == "attention_shapes"] == []
    assert_back_shows_nothing(page, "Kim Secretname")
    page.goto("/resume")
    page.get_by_label("Your resume code").fill(code)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("main")).to_contain_text("Kim Secretname")
    context.close()
