"""A teacher chooses activities in a frame of the platform's page, and the platform makes links and columns of them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import httpx2
import jwt
import pytest
from fastapi import FastAPI

from app.store import Activity, Course, Plan
from app.web.shared.lti_launch import FRAME_COOKIE
from simulation.lti_platform import ALL_PLATFORMS, SETTINGS, Quirks
from tests.helpers.html_page import Page
from tests.helpers.lti_class import IN_FRAME, TOOL, LtiClass, lti_class
from tests.helpers.school import Browser

INSIDE = {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def browser(there: LtiClass) -> Iterator[Browser]:
    with there.school.browser() as browser:
        yield browser


def course_with_activities(there: LtiClass, count: int = 2) -> tuple[Course, list[Activity]]:
    """A course that the platform's course is linked with, by its teacher Ada."""
    ada = there.school.teacher()
    there.store.lti.connect(there.registered.id, "1", ada)
    course = there.school.course("Transformers", ada)
    activities = [there.school.activity(course) for _ in range(count)]
    with there.school.browser() as browser:
        there.launch(browser, "1")
        browser.post("/lti/link", data={"course": course.id})
    return course, activities


def begin_choosing(there: LtiClass, browser: Browser, **settings: object) -> httpx2.Response:
    """Go through the launch in a frame, up to where /lti/open leads."""
    initiation = there.platform.deep_linking(there.client, there.course, "1", target=f"{TOOL}/lti/choose")
    begun = there.begin(browser, initiation, IN_FRAME)
    if settings:
        [message] = list(there.platform.messages.values())[-1:]
        message.claims[SETTINGS].update(settings)
    # Secure, which the test's plain http would not send.
    browser.cookies.set(FRAME_COOKIE, begun.headers["set-cookie"].partition("=")[2].partition(";")[0])
    taken = there.post(browser, there.message(begun), IN_FRAME)
    assert taken.headers["location"] == "/lti/open"
    return browser.get("/lti/open", headers=INSIDE)


@pytest.mark.parametrize("quirks", ALL_PLATFORMS, ids=lambda quirks: quirks.product)
def test_chosen_activities_become_links_with_columns_on_every_platform(new_app: FastAPI, quirks: Quirks) -> None:
    with lti_class(new_app, quirks) as there, there.school.browser() as browser:
        _course, activities = course_with_activities(there)
        assert begin_choosing(there, browser).headers["location"] == "/lti/choose"
        page = browser.get("/lti/choose", headers=INSIDE)
        assert "frame-ancestors *" in page.headers["content-security-policy"]
        assert len(Page(page.text).find("input", type="checkbox")) == 2
        sent = browser.post("/lti/choose", data={"activity": [each.id for each in activities]}, headers=INSIDE)
        [(form, _text)] = Page(sent.text).find("form")
        assert f"form-action {there.platform.url};" in sent.headers["content-security-policy"]
        [(answer, _text)] = Page(sent.text).find("input", name="JWT")
        made = httpx.post(form["action"], data={"JWT": answer["value"]})
        assert made.status_code == 200, made.text
        columns = [there.course.line_item(link) for link in made.json()["links"]]
        assert [column.fields["scoreMaximum"] for column in columns if column] == [28, 28]
        assert [column.fields["resourceId"] for column in columns if column] == [str(each.id) for each in activities]
        with there.school.browser() as student:
            opened = there.launch(student, "7", link_id=made.json()["links"][1])
            assert opened.headers["location"] == f"/class/{activities[1].id}"
        assert browser.post("/lti/choose", data={"activity": activities[0].id}, headers=INSIDE).status_code == 400


def test_a_platform_that_takes_one_link_gets_one_without_a_column_if_it_wants_none(
    there: LtiClass, browser: Browser
) -> None:
    _course, activities = course_with_activities(there)
    begin_choosing(there, browser, accept_multiple=False, accept_lineitem=False, data=None)
    assert len(Page(browser.get("/lti/choose", headers=INSIDE).text).find("input", type="radio")) == 2
    for chosen in ([], [each.id for each in activities]):
        refused = browser.post("/lti/choose", data={"activity": chosen}, headers=INSIDE)
        assert refused.status_code == 422
        assert Page(refused.text).find("p", role="alert")
    sent = browser.post("/lti/choose", data={"activity": activities[0].id}, headers=INSIDE)
    [(answer, _text)] = Page(sent.text).find("input", name="JWT")
    claims = jwt.decode(answer["value"], options={"verify_signature": False})
    [item] = claims["https://purl.imsglobal.org/spec/lti-dl/claim/content_items"]
    assert (item["url"], "lineItem" in item) == (f"{TOOL}/lti/activities/{activities[0].id}", False)
    assert not [name for name in claims if name.endswith("/data")]


def test_an_activity_of_another_course_is_not_linked(there: LtiClass, browser: Browser) -> None:
    course_with_activities(there)
    other = there.school.activity(there.school.course("Another", there.school.teacher("other@example.org")))
    begin_choosing(there, browser)
    assert browser.post("/lti/choose", data={"activity": other.id}, headers=INSIDE).status_code == 422


def test_a_teacher_who_left_the_course_chooses_nothing(there: LtiClass, browser: Browser) -> None:
    course, activities = course_with_activities(there)
    begin_choosing(there, browser)
    there.store.courses.add_to_staff(course.id, there.school.teacher("other@example.org"), "instructor")
    [ada] = [each for each in there.store.courses.staff(course) if each.email != "other@example.org"]
    there.store.courses.remove_from_staff(course, ada.teacher_id)
    assert browser.get("/lti/choose", headers=INSIDE).status_code == 303
    assert browser.post("/lti/choose", data={"activity": activities[0].id}, headers=INSIDE).status_code == 400


def test_html_in_a_title_stays_text(there: LtiClass, browser: Browser) -> None:
    course, _activities = course_with_activities(there)
    there.school.activity(course, plan=Plan("<script>alert(1)</script>"))
    begin_choosing(there, browser)
    assert "<script>alert" not in browser.get("/lti/choose", headers=INSIDE).text
