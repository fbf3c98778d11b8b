"""Teachers see what has become of the grades at the platform: sent, waiting, or refused with its reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from app.store import Activity
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page, text_of
from tests.helpers.lti_class import LtiClass, lti_class
from tests.helpers.school import Browser


@pytest.fixture
def there(new_app: FastAPI) -> Iterator[LtiClass]:
    with lti_class(new_app) as found:
        yield found


@pytest.fixture
def teacher(there: LtiClass) -> Iterator[Browser]:
    """The browser of Ada, who has linked her course, and the link in it with an activity."""
    ada = there.school.teacher()
    there.store.lti.connect(there.registered.id, "1", ada)
    course = there.school.course("Transformers", ada)
    activity = there.school.activity(course, sheets=("llama-7b",), ticket="")
    with there.school.browser() as browser:
        there.launch(browser, "1")
        browser.post("/lti/link", data={"course": course.id})
        browser.post("/lti/link", data={"activity": activity.id})
        browser.get("/lti/open")
        yield browser


@pytest.fixture
def activity(there: LtiClass, teacher: Browser) -> Activity:
    found = there.store.activities.find(1)
    assert found
    return found


def hand_in(there: LtiClass, activity: Activity) -> None:
    """Kim opens the activity from the platform, and hands in."""
    with there.school.browser() as browser:
        address = there.launch(browser, "7").headers["location"]
        assert browser.post(f"{address}/1/hand-in", data=KEY).status_code == 303


def test_a_grade_that_was_sent_refused_and_sent_again(there: LtiClass, teacher: Browser, activity: Activity) -> None:
    results = f"/activities/{activity.id}/results"
    assert "None yet." in text_of(teacher.get(results).text)
    hand_in(there, activity)
    there.platform.refuse("scores", 400, reason="<b>No</b> such user")
    there.school.services.grade_sender.sweep()
    page = teacher.get(results).text
    assert "0 sent · 0 waiting · 1 refused" in text_of(page)
    assert "400 Bad Request: &lt;b&gt;No&lt;/b&gt; such user" in page
    [student] = there.store.lti_scores.of_activity(activity.id)
    assert "refused: 400" in text_of(teacher.get(f"{results}/{student.student_id}").text)
    assert teacher.post(f"{results}/send-again").headers["location"] == f"{results}#grades"
    assert "0 sent · 1 waiting · 0 refused" in text_of(teacher.get(results).text)
    there.school.services.grade_sender.sweep()
    assert "1 sent · 0 waiting · 0 refused" in text_of(teacher.get(results).text)
    assert "Moodle: 14 of 14, sent" in text_of(teacher.get(f"{results}/{student.student_id}").text)
    [column] = there.course.line_items
    assert column.grades["7"].points == 14


def test_a_platform_that_is_down_is_named_with_its_answer(
    there: LtiClass, teacher: Browser, activity: Activity
) -> None:
    hand_in(there, activity)
    there.platform.is_down = True
    there.school.services.grade_sender.sweep()
    [(_attributes, told)] = Page(teacher.get(f"/activities/{activity.id}/results").text).find("p", role="alert")
    assert "503" in told


def test_an_activity_that_no_platform_opens_says_nothing_of_grades_there(
    there: LtiClass, teacher: Browser, activity: Activity
) -> None:
    ada = there.store.lti.teacher(there.registered.id, "1")
    assert ada
    other = there.school.activity(there.school.course("Another", ada))
    assert not Page(teacher.get(f"/activities/{other.id}/results").text).find("section", id="grades")
