"""Fetching a class list from a learning platform: all of it or nothing, and nobody is removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from app.store import Course
from simulation.lti_platform import INSTRUCTOR, MENTOR, TEST_USER, Person
from tests.helpers.html_page import Page, text_of
from tests.helpers.lti_class import LtiClass, lti_class
from tests.helpers.school import Browser


@pytest.fixture
def there(new_app: FastAPI) -> Iterator[LtiClass]:
    with lti_class(new_app) as found:
        yield found


@pytest.fixture
def course(there: LtiClass) -> Course:
    """The course that the platform's course is linked with; its teacher Ada has opened it from there."""
    ada = there.school.teacher()
    there.store.lti.connect(there.registered.id, "1", ada)
    course = there.school.course("Transformers", ada)
    with there.school.browser() as browser:
        there.launch(browser, "1")
        assert browser.post("/lti/link", data={"course": course.id}).status_code == 303
    return course


@pytest.fixture
def teacher(there: LtiClass, course: Course) -> Iterator[Browser]:
    """Ada's browser, signed in."""
    with there.school.browser() as browser:
        there.launch(browser, "1")
        yield browser


def fetch(teacher: Browser, course: Course, status: int = 200) -> str:
    page = Page(teacher.get(f"/courses/{course.id}").text)
    button, _text = page.find("button", name="context")[0]
    answer = teacher.post(f"/courses/{course.id}/students/fetch", data={"context": button["value"]})
    assert answer.status_code == status, text_of(answer.text)
    return answer.text


def names(there: LtiClass, course: Course) -> list[str]:
    return [student.name for student in there.store.roster.students(course)]


def test_only_those_who_learn_in_the_course_are_added_once(there: LtiClass, course: Course, teacher: Browser) -> None:
    people = (
        Person("8", "<b>Lou</b>"),
        Person("9", "Mentor", MENTOR),
        Person("10", "Test", TEST_USER),
        Person("11", "Bob", INSTRUCTOR),
        Person("12", "Away", status="Inactive"),
    )
    there.course.people.update({person.sub: person for person in people})
    assert "2 students added" in text_of(fetch(teacher, course))
    assert names(there, course) == ["<b>Lou</b>", "Kim"]
    assert "0 students added" in text_of(fetch(teacher, course))
    with there.school.browser() as student:
        there.launch(student, "7")
    assert names(there, course) == ["<b>Lou</b>", "Kim"]


def test_a_list_of_a_thousand_that_breaks_at_page_seven_changes_nothing(
    there: LtiClass, course: Course, teacher: Browser
) -> None:
    there.course.people.update({f"p{number}": Person(f"p{number}", f"Person {number}") for number in range(1000)})
    there.platform.refuse("memberships", 504, after=6)
    assert "nothing has changed" in text_of(fetch(teacher, course, 409))
    assert names(there, course) == []
    assert "1001 students added" in text_of(fetch(teacher, course)).replace(",", "")


def test_those_who_left_are_named_and_kept(there: LtiClass, course: Course, teacher: Browser) -> None:
    there.course.people["8"] = Person("8", "Lou")
    fetch(teacher, course)
    del there.course.people["7"]
    page = fetch(teacher, course)
    assert [text for _attributes, text in Page(page).find("a") if text in ("Kim", "Lou")] == ["Kim"]
    assert names(there, course) == ["Kim", "Lou"]


def test_a_list_without_students_changes_nothing(there: LtiClass, course: Course, teacher: Browser) -> None:
    fetch(teacher, course)
    del there.course.people["7"]
    fetch(teacher, course, 409)
    assert names(there, course) == ["Kim"]


def test_names_that_the_platform_keeps_become_numbers(there: LtiClass, course: Course, teacher: Browser) -> None:
    there.course.people = {"1": there.course.people["1"], "7": Person("7"), "8": Person("8")}
    fetch(teacher, course)
    assert len(set(names(there, course))) == 2


def test_only_a_course_that_came_from_a_platform_has_the_button(
    there: LtiClass, course: Course, teacher: Browser
) -> None:
    ada = there.store.lti.teacher(there.registered.id, "1")
    assert ada
    other = there.school.course("Another", ada)
    for each, buttons in ((other, 0), (course, 2)):  # to fetch and to unlink
        assert len(Page(teacher.get(f"/courses/{each.id}").text).find("button", name="context")) == buttons
    [context] = there.store.lti.courses_of(course)
    assert teacher.post(f"/courses/{other.id}/students/fetch", data={"context": context.id}).status_code == 404
