"""A student's own page: the courses of this browser, new resume codes, and leaving."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.store import Plan
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_a_new_resume_code_is_shown_and_voids_the_old_one(classroom: Classroom) -> None:
    classroom.open()
    kim, browser = classroom.join()
    pages = [Page(browser.post(f"/mine/{kim.id}/code", follow_redirects=True).text) for _ in range(2)]
    old, new = (page.text("p", class_="resume-code") for page in pages)
    assert old != new
    assert Page(browser.get("/mine").text).text("p", class_="resume-code") == new
    other = classroom.school.browser()
    assert other.post("/resume", data={"code": old}).status_code == 422
    assert other.post("/resume", data={"code": new}).headers["location"] == "/mine"
    classroom.store.roster.release_student(kim)
    classroom.store.roster.enrol_new_student(classroom.course, "Lou", classroom.visitors[kim.id].id, "LOUSOWNXYZ")
    page = Page(browser.get("/mine").text)
    assert "Joined as Lou" in page.text("section")
    assert not page.find("p", class_="resume-code")


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


def test_practice_is_offered_only_once_everything_open_is_handed_in(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    browser.get("/mine")  # from now on the browser is known as a student's

    def leads_to_practice() -> bool:
        return bool(Page(browser.get("/mine").text).find("a", href="/practice"))

    assert not leads_to_practice()
    press(browser, activity, "hand-in", HALF)
    assert leads_to_practice()


def test_a_sheet_shows_a_piece_for_each_box_and_what_went_wrong(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    wide = {**KEY, **{f"{row}.columns": "4096" for row in ("queries", "keys", "values")}}
    idea = classroom.school.library.wording.misconception_name("head-as-wide-as-model")

    def seen() -> tuple[int, int, bool, bool]:
        text = browser.get("/mine").text
        pieces = [attrs["data-mark"] for attrs, _ in Page(text).find("i")]
        return pieces.count("right"), len(pieces), f"Went wrong: {idea}" in text, f"at first: {idea}" in text

    press(browser, activity, "check", wide)
    assert seen() == (11, 14, True, False)
    press(browser, activity, "check", KEY)
    assert seen() == (14, 14, False, True)
