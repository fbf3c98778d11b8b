"""A student signs out on a shared device."""

from __future__ import annotations

from app.web.shared.cookies import VISITOR_COOKIE
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_a_student_signs_out_with_a_resume_code_in_hand(classroom: Classroom) -> None:
    activity = classroom.open()
    kim, browser = classroom.join()
    press(browser, activity, "save", HALF)
    assert not Page(browser.get(f"/mine/{kim.id}/leave").text).find("p", class_="resume-code")
    asked = browser.post(f"/mine/{kim.id}/leave", data={"wants": "code"}, follow_redirects=True)
    code = Page(asked.text).text("p", class_="resume-code")
    assert "Kim" in browser.get("/mine").text
    left = browser.post(f"/mine/{kim.id}/leave")
    assert left.headers["clear-site-data"] == '"cache"'
    assert f'{VISITOR_COOKIE}=""' in left.headers["set-cookie"]
    assert "haven’t joined a class" in browser.get("/mine").text
    assert classroom.store.roster.find_student(kim.id) == kim
    other = classroom.school.browser()
    other.post("/resume", data={"code": code})
    assert Page(other.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"


def test_another_course_of_the_browser_stays(classroom: Classroom) -> None:
    kim, browser = classroom.join()
    second = classroom.school.course("Another", classroom.teacher)
    visitor = classroom.visitors[kim.id]
    classroom.store.roster.enrol_new_student(second, "Kim", visitor.id)
    left = browser.post(f"/mine/{kim.id}/leave")
    assert f"{VISITOR_COOKIE}=" not in left.headers["set-cookie"]
    assert "drop_drafts" in browser.get(left.headers["location"]).text
    elsewhere = browser.get(left.headers["location"], headers={"Sec-Fetch-Site": "cross-site"})
    assert "drop_drafts" not in elsewhere.text
    assert "drop_drafts" not in browser.get("/mine").text
