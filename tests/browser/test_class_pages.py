"""The pages of a class in a real browser: signing in, making an activity, joining, working; axe finds nothing."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from app.store import Store
from simulation.server import Server
from tests.helpers.browser import LONG_WAIT_MS, assert_accessible_in_all_looks, set_up_link
from tests.helpers.clock import end_activity

pytestmark = pytest.mark.slow


def test_from_the_first_start_to_an_exit_ticket(browser: Browser, own_app: Server) -> None:
    teaching, learning = (browser.new_context(base_url=own_app.url) for _ in range(2))
    ada, kim = teaching.new_page(), learning.new_page()
    ada.goto(set_up_link(own_app))
    assert_accessible_in_all_looks(ada)
    ada.get_by_label("E-mail").fill("ada@example.org")
    ada.get_by_label("Your name").fill("Ada")
    ada.get_by_label("Password").fill("a long password")
    ada.get_by_role("button", name="Create account").click()
    expect(ada.get_by_role("heading", level=1)).to_have_text("Your courses")
    assert_accessible_in_all_looks(ada)
    ada.get_by_role("button", name="Create a sample course").click()
    expect(ada.get_by_text("Students and their work are simulated")).to_be_visible()
    assert_accessible_in_all_looks(ada)
    ada.goto("/courses")
    ada.get_by_label("Title").fill("Transformers")
    ada.get_by_label("Time zone").fill("Europe/Berlin")
    ada.get_by_role("button", name="Create course").click()
    ada.get_by_label("Names, one per line").fill("Kim Lee, 17\nLou Ray, 18")
    ada.get_by_role("button", name="Preview").click()
    ada.get_by_role("button", name=re.compile("^Add [23] students$")).click()
    expect(ada.get_by_role("status")).to_have_text("2 students added.")
    assert_accessible_in_all_looks(ada)
    ada.get_by_role("link", name="New activity").click()
    assert_accessible_in_all_looks(ada)
    ada.get_by_label("Title").fill("Week 3")
    ada.locator("input[value='llama-7b']").check()
    ada.get_by_role("button", name="Save").click()
    ada.get_by_role("button", name="Open").click()
    expect(ada.get_by_text("Only this computer can open")).to_be_visible()
    assert_accessible_in_all_looks(ada)

    kim.goto("/join")
    assert_accessible_in_all_looks(kim)
    kim.get_by_label("Join code from your teacher").fill(ada.locator(".band .join-code").inner_text())
    kim.keyboard.press("Enter")
    kim.get_by_label("Your name").fill("Kim Lee")
    assert_accessible_in_all_looks(kim)
    kim.get_by_role("button", name="Join").click()
    assert_accessible_in_all_looks(kim)
    kim.fill("input[name='queries.rows']", "100")
    kim.fill("input[name='queries.columns']", "4096")
    expect(kim.locator("output.saved")).to_have_text("Saved")
    kim.reload()
    assert kim.input_value("input[name='queries.columns']") == "4096"
    kim.get_by_role("button", name="Check").click()
    expect(kim.get_by_role("status").first).to_contain_text("1 of 14 right · 12 empty")
    assert_accessible_in_all_looks(kim)
    kim.get_by_role("button", name="Hand in").click()
    kim.get_by_role("button", name="Hand in anyway").click()
    expect(kim.get_by_role("status").first).to_contain_text("Handed in.")
    kim.get_by_role("link", name="Next: exit ticket").click()
    assert_accessible_in_all_looks(kim)
    kim.get_by_text("Still muddy").click()
    kim.get_by_label("muddiest").fill("Where the 128 comes from.")
    assert_accessible_in_all_looks(kim)
    kim.get_by_role("button", name="Hand in").click()
    expect(kim.get_by_role("status").first).to_contain_text("Your ticket is in.")
    assert_accessible_in_all_looks(kim)
    kim.get_by_role("link", name="My class").first.click()
    kim.locator("details.resume > summary").click()
    assert_accessible_in_all_looks(kim)

    ada.get_by_role("link", name="Print").click()
    assert_accessible_in_all_looks(ada)
    ada.go_back()
    ada.get_by_role("link", name="Enter paper answers").click()
    expect(ada.get_by_label("Name or number").first).to_be_focused()
    assert_accessible_in_all_looks(ada)
    ada.keyboard.type("Somebody")
    ada.keyboard.press("Tab")
    ada.keyboard.type("100")
    ada.locator("summary", has_text="Paste lines instead").focus()
    ada.keyboard.press("Enter")
    ada.keyboard.press("Tab")
    ada.keyboard.type("18: 100 4096 100 4096")
    assert_accessible_in_all_looks(ada)
    ada.keyboard.press("Tab")
    ada.keyboard.press("Enter")  # in the field of the code
    line = ada.get_by_role("checkbox", name="Lou Ray")
    expect(line).not_to_be_checked()  # ten answers are missing
    assert_accessible_in_all_looks(ada)
    line.focus()
    ada.keyboard.press("Space")
    ada.keyboard.press("Tab")
    ada.keyboard.press("Enter")
    expect(ada.get_by_role("status")).to_have_text("Stored: 1. Not stored yet: 1.")
    expect(ada.get_by_role("row", name="Lou Ray")).to_contain_text("3 of 14")
    expect(ada.get_by_label("Name or number").first).to_have_value("Somebody")
    expect(ada.locator("input[name=cell]").first).to_have_value("100")
    expect(ada.get_by_label("Lines", exact=True)).to_have_value("")
    assert_accessible_in_all_looks(ada)

    ada.goto("/activities/3")
    ada.locator("summary", has_text="Close").click()
    ada.get_by_role("button", name="Close").click()
    store = Store(own_app.database, own_app.folder)
    end_activity(store, 3)  # answers are shown once nothing can be on its way any more
    store.close()
    for _ in range(30):  # the server looks for activities that have ended every two seconds
        kim.goto("/class/3/1")
        if kim.locator("tr.answer").count():
            break
        kim.wait_for_timeout(500)
    expect(kim.locator("tr.answer").first).to_be_visible()
    assert_accessible_in_all_looks(kim)
    teaching.close()
    learning.close()


def test_what_is_typed_without_a_connection_is_kept_and_sent_later(browser: Browser, own_app: Server) -> None:
    store = Store(own_app.database, own_app.folder)
    link = store.people.find_link(store.people.add_link("invite", "ada@example.org"))
    assert link
    ada = store.people.follow_link(link, "ada@example.org", "Ada", "no hash")
    assert ada
    page = browser.new_context(base_url=own_app.url).new_page()
    teacher = browser.new_context(base_url=own_app.url)
    token = store.people.open_session(ada)
    teacher.add_cookies([{"name": "attention_shapes_teacher", "value": token, "url": own_app.url}])
    teacher.request.post("/courses", form={"title": "C", "zone": "UTC"})
    rules = {
        "variants": "same",
        "feedback": "immediate",
        "run": "after",
        "marking": "causes",
        "counting": "last",
        "ticket_anonymous": "yes",
    }
    teacher.request.post("/courses/1/activities", form={"title": "A", "worksheet": "llama-7b", **rules})
    teacher.request.post("/activities/1/open")
    activity = store.activities.find(1)
    assert activity
    page.goto(f"/join/{activity.join_code}")
    page.get_by_label("Your name").fill("Kim")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_role("button", name="Hand in")).to_be_visible()
    page.wait_for_load_state()
    own_app.kill()
    page.fill("input[name='keys.rows']", "31337")
    expect(page.locator("output.saved")).to_contain_text("Not on the server yet")
    own_app.start()
    expect(page.locator("output.saved")).to_have_text("Saved", timeout=LONG_WAIT_MS)
    [student] = store.roster.students(store.courses.find(1))  # type: ignore[arg-type]  # it was made above
    [work] = store.classwork.progress(1, student.id).sheets.values()
    assert work.attempts == 0
    page.reload()
    assert page.input_value("input[name='keys.rows']") == "31337"
    end_activity(store, 1)
    page.fill("input[name='keys.rows']", "1")
    expect(page.locator("output.saved")).to_contain_text("Closed: your last change was not saved")
    store.close()
