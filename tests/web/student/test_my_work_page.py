"""A student's own page: the courses of this browser, new resume codes, and leaving."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.store import Plan
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_a_new_resume_code_is_shown_and_voids_the_old_one(classroom: Classroom) -> None:
    classroom.open()
    kim, browser = classroom.join()
    pages = [Page(browser.post(f"/mine/{kim.id}/code", follow_redirects=True).text) for _ in range(2)]
    old, new = (page.text("p", class_="join-code") for page in pages)
    assert old != new
    assert Page(browser.get("/mine").text).text("p", class_="join-code") == new
    other = classroom.school.browser()
    assert other.post("/resume", data={"code": old}).status_code == 422
    assert other.post("/resume", data={"code": new}).headers["location"] == "/mine"
    classroom.store.roster.release_student(kim)
    classroom.store.roster.enrol_new_student(classroom.course, "Lou", classroom.visitors[kim.id].id, "LOUSOWNXYZ")
    page = Page(browser.get("/mine").text)
    assert "Joined as Lou" in page.text("section")
    assert not page.find("p", class_="join-code")


def test_an_activity_that_waits_names_no_sheet(classroom: Classroom) -> None:
    opens = datetime.now(UTC) + timedelta(hours=1)
    plan = Plan("Soon", opens_at=opens)
    activity = classroom.school.activity(classroom.course, None, ("llama-7b",), "classic", plan)
    _, browser = classroom.join()
    browser.get(f"/class/{activity.id}")
    shown = browser.get("/mine").text
    assert ("Soon" in shown, "One head of LLaMA 7B" in shown) == (True, False)
    early = browser.post(f"/class/{activity.id}/ticket", data={"answer-muddiest": ""})
    assert early.headers["location"] == f"/class/{activity.id}"
    assert "muddiest" not in early.text


def test_what_is_saved_is_told_from_what_is_handed_in(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    browser.get(f"/class/{activity.id}")
    for button, state in (("", "not started"), ("save", "saved, not handed in"), ("check", "checked, not handed in")):
        if button:
            press(browser, activity, button, HALF)
        assert state in Page(browser.get("/mine").text).text("ul", class_="my-sheets")
    press(browser, activity, "hand-in", HALF)
    shown = Page(browser.get("/mine").text).text("ul", class_="my-sheets")
    assert ("· handed in" in shown, "not handed in" in shown.replace("Exit ticket not handed in", "")) == (True, False)
