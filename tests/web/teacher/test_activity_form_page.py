"""The form of an activity: what it makes and changes, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.helpers.activity_form import FORM
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": " "}, "Enter a title"),
        ({"worksheet": [], "ticket": ""}, "at least one worksheet or an exit ticket"),
        ({"worksheet": ["nonsense"]}, "There is no worksheet “nonsense”"),
        ({"worksheet": ["llama-7b", "llama-7b"]}, "once"),
        ({"max_attempts": "0"}, "a whole number of attempts from 1 to 99"),
        ({"max_attempts": "many"}, "a whole number of attempts"),
        ({"follow_share": "101"}, "from 0 to 100"),
        ({"feedback": "never"}, "“feedback”"),
        ({"day": "tomorrow"}, "“tomorrow” is not a date"),
        ({"opens": "soon"}, "“soon” is not a date and time"),
        ({"opens": "2026-03-31T10:00", "closes": "2026-03-31T10:00"}, "must be after"),
        ({"closes": "0001-01-01T00:00"}, "is not a date and time"),
    ],
)
def test_a_form_that_cannot_be_used_comes_back(classroom: Classroom, change: dict[str, Any], sentence: str) -> None:
    """422, one sentence, and everything typed still there; nothing is made."""
    answer = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data={**FORM, **change})
    assert answer.status_code == 422
    page = Page(answer.text)
    assert sentence in page.text("p", class_="problem")
    assert page.find("input", name="day")[0][0]["value"] == change.get("day", "2026-03-31")
    assert classroom.store.activities.of_course(classroom.course) == ()


def test_times_are_those_of_the_course(classroom: Classroom) -> None:
    """Ten o'clock in Berlin on the last day of March is eight in UTC, and the form shows ten again."""
    form = {**FORM, "opens": "2026-03-31T10:00", "closes": "2026-03-31T11:30"}
    made = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form)
    [activity] = classroom.store.activities.of_course(classroom.course)
    assert activity.plan.opens_at == datetime(2026, 3, 31, 8, 0, tzinfo=UTC)
    page = Page(classroom.instructor.get(f"{made.headers['location']}/edit").text)
    assert page.find("input", name="opens")[0][0]["value"] == "2026-03-31T10:00"


def test_a_later_edit_makes_a_new_revision(classroom: Classroom) -> None:
    """Another worksheet is seen from then on, and what was answered stays; a new title alone is no revision."""
    activity = classroom.open()
    _, kim = classroom.join()
    press(kim, activity, "check", HALF)
    classroom.instructor.post(f"/activities/{activity.id}", data={**FORM, "title": "Week 4"})
    assert classroom.school.reload(activity).revision == 1
    classroom.instructor.post(f"/activities/{activity.id}", data={**FORM, "worksheet": ["qwen2.5-0.5b"]})
    assert classroom.school.reload(activity).revision == 2
    assert "Qwen2.5" in Page(kim.get(f"/class/{activity.id}/1").text).text("h1")
    [kept] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (kept.revision, kept.answers["queries.columns"]) == (1, "4096")
    classroom.instructor.post(f"/activities/{activity.id}", data=FORM)
    assert Page(kim.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"
