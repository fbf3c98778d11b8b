"""The page of an activity: what there is to do, or the one thing there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.store import Plan
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_before_its_time_an_activity_waits(classroom: Classroom) -> None:
    """Students may join, and are told when it opens; the sheet is not shown."""
    opens = datetime.now(UTC) + timedelta(hours=1)
    activity = classroom.school.activity(classroom.course, None, ("llama-7b",), "classic", Plan("Soon", opens_at=opens))
    _, browser = classroom.join()
    assert "This activity opens" in browser.get(f"/class/{activity.id}").text
    assert browser.get(f"/class/{activity.id}/1").headers["location"] == f"/class/{activity.id}"
    assert press(browser, activity, "save", HALF, form_id="x" * 10).status_code == 409


def test_each_sheet_says_how_far_the_student_is(classroom: Classroom) -> None:
    """New, begun after a save, checked after a check, handed in: in the list of an activity and above its sheets."""
    activity = classroom.school.activity(classroom.course, sheets=("llama-7b", "qwen2.5-0.5b"))
    _, browser = classroom.join()

    def states(path: str) -> list[str | None]:
        links = Page(browser.get(path).text).find("a")
        return [attrs["data-state"] for attrs, _ in links if "data-state" in attrs]

    assert "not started" in browser.get(f"/class/{activity.id}").text
    assert states(f"/class/{activity.id}/1") == ["new", "new", "new"]  # the last is the exit ticket
    for button, state in (("save", "begun"), ("check", "checked"), ("hand-in", "handed-in")):
        press(browser, activity, button, HALF)
        assert states(f"/class/{activity.id}/2") == [state, "new", "new"]


def test_an_activity_with_one_sheet_and_no_ticket_opens_that_sheet(classroom: Classroom) -> None:
    """Where there is one thing to do, nobody has to choose it; once it has closed it shows its own page."""
    activity = classroom.school.activity(classroom.course, sheets=("llama-7b",), ticket="")
    _, browser = classroom.join()
    assert browser.get(f"/class/{activity.id}").headers["location"] == f"/class/{activity.id}/1"
    classroom.school.end(activity)
    assert browser.get(f"/class/{activity.id}").status_code == 200
