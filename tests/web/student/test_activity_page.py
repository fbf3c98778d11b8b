"""The address of an activity leads to what there is to do; and what its pages say of its opening and closing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from app.store import Plan, Policies
from tests.helpers.class_sheet import HALF, press
from tests.helpers.clock import Clock, end_activity
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom


def test_before_its_time_an_activity_waits(classroom: Classroom) -> None:
    opens = datetime.now(UTC) + timedelta(hours=1)
    activity = classroom.school.activity(classroom.course, None, ("llama-7b",), "classic", Plan("Soon", opens_at=opens))
    _, browser = classroom.join()
    assert "opens" in browser.get(f"/class/{activity.id}").text
    assert browser.get(f"/class/{activity.id}/1").headers["location"] == f"/class/{activity.id}"
    assert press(browser, activity, "save", HALF, form_id="x" * 10).status_code == 409


def test_each_sheet_says_how_far_the_student_is(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, sheets=("llama-7b", "qwen2.5-0.5b"))
    _, browser = classroom.join()

    def states(path: str) -> list[str | None]:
        links = Page(browser.get(path).text).find("a")
        return [attrs["data-state"] for attrs, _ in links if "data-state" in attrs]

    assert states(f"/class/{activity.id}/1") == ["new", "new", "new"]  # the last is the exit ticket
    for button, state in (("save", "begun"), ("check", "checked"), ("hand-in", "handed-in")):
        press(browser, activity, button, HALF)
        assert states(f"/class/{activity.id}/2") == [state, "new", "new"]


def test_an_activity_with_one_sheet_and_no_ticket_opens_that_sheet(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, sheets=("llama-7b",), ticket="")
    _, browser = classroom.join()
    assert browser.get(f"/class/{activity.id}").headers["location"] == f"/class/{activity.id}/1"


def test_an_activity_leads_to_the_first_sheet_that_is_not_handed_in_and_then_to_its_end(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, sheets=("llama-7b", "qwen2.5-0.5b"), ticket="")
    _, browser = classroom.join()
    here = f"/class/{activity.id}"
    for number in (1, 2):
        assert browser.get(here).headers["location"] == f"{here}/{number}"
        form_id = Page(browser.get(f"{here}/{number}").text).find("input", name="form_id")[0][0]["value"]
        browser.post(f"{here}/{number}/hand-in", data={"form_id": form_id})
    end = browser.get(here)
    assert end.status_code == 200
    assert Page(end.text).text("section", class_="look-back")


def closing_part(browser: Browser, address: str) -> str:
    """What a page says of the closing of its activity."""
    return Page(browser.get(address).text).text("div", id="closing")


def test_an_activity_says_when_it_closes_and_when_it_has(classroom: Classroom, clock: Clock) -> None:
    closes = datetime.now(UTC) + timedelta(minutes=20)
    activity = classroom.school.activity(classroom.course, plan=Plan("Week 3", closes_at=closes))
    kim, browser = classroom.join("Kim")
    _, other = classroom.join("Lou")
    classroom.store.activities.set_extra_time(activity, kim.id, 10)
    pages = [f"/class/{activity.id}{below}" for below in ("/1", "/ticket", "/closing")]
    berlin = ZoneInfo("Europe/Berlin")
    for address in pages:
        assert f"{closes.astimezone(berlin):%H:%M}" in closing_part(other, address)
        assert f"{closes.astimezone(berlin) + timedelta(minutes=10):%H:%M}" in closing_part(browser, address)
        assert "10 minutes of extra time" in closing_part(browser, address)
    clock.pass_minutes(25)
    assert "Closes at" in closing_part(browser, pages[0])
    assert "once everyone’s time is up" in closing_part(other, pages[0])
    assert "not handed in is submitted" in closing_part(other, pages[0])
    clock.pass_minutes(10)
    for address in pages:
        assert "Closed at" in closing_part(browser, address)
    page = Page(other.get(pages[0]).text)
    assert not page.find("div", id="closing", hx_trigger="closing-time")  # nothing is asked for any more


def test_the_late_window_is_told(classroom: Classroom, clock: Clock) -> None:
    plan = Plan("Week 3", policies=Policies(late_minutes=15), closes_at=datetime.now(UTC) + timedelta(minutes=5))
    activity = classroom.school.activity(classroom.course, plan=plan)
    _, browser = classroom.join()
    clock.pass_minutes(7)
    said = closing_part(browser, f"/class/{activity.id}/1")
    assert "marked as late" in said
    assert Page(browser.get(f"/class/{activity.id}/1").text).find("button", id="hand-in")


def test_who_joins_a_closed_activity_is_told(classroom: Classroom) -> None:
    activity = end_activity(classroom.store, classroom.open().id)
    browser = classroom.school.browser()
    assert "has closed" in Page(browser.get(f"/join/{activity.join_code}").text).text("p", class_="banner")
    joined = browser.post(f"/join/{activity.join_code}", data={"name": "New Kid"}, follow_redirects=True)
    assert "Closed at" in Page(joined.text).text("div", id="closing")
