"""Every route of the application as nobody, two kinds of student and three of teacher: who gets in where."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from tests.helpers.permission_table import ROLES, TABLE, TwoCourses
from tests.helpers.school import School


def routes(app: FastAPI) -> Iterator[str]:
    """Method and path of every route, such as "GET /courses", including included routers, without HEAD."""
    for context in iter_route_contexts(app.routes):
        if isinstance(context.original_route, Mount):
            assert context.path == "/static"
        else:
            assert isinstance(context.original_route, Route), context.original_route
            yield from (f"{method} {context.path}" for method in context.methods or () if method != "HEAD")


def test_every_route_has_a_row(app: FastAPI) -> None:
    assert sorted(routes(app)) == sorted(TABLE)


@pytest.fixture(scope="module")
def courses(app: FastAPI) -> TwoCourses:
    """The school for what is only looked at, and for what nobody succeeds with."""
    return TwoCourses(app)


@pytest.mark.parametrize("route", TABLE)
def test_each_role_gets_what_the_table_says(app: FastAPI, courses: TwoCourses, route: str) -> None:
    method, path = route.split(" ")
    changes_nothing = method == "GET" or min(TABLE[route]) >= 400
    there, got = courses if changes_nothing else TwoCourses(app), list[int]()
    for role in ROLES:
        with there.school.browser(**there.people[role]) as browser:
            got.append(browser.request(method, there.path(path)).status_code)
    assert dict(zip(ROLES, got, strict=True)) == dict(zip(ROLES, TABLE[route], strict=True))


def test_a_draft_is_not_there_for_students(app: FastAPI) -> None:
    courses = TwoCourses(app)
    courses.school.services.store.activities.set_state(courses.activity, "draft")
    with courses.school.browser(**courses.people["student"]) as browser:
        for method, path in (route.split(" ") for route in TABLE):
            if path.startswith("/class/"):
                assert browser.request(method, courses.path(path)).status_code == 404, (method, path)
        assert browser.get(f"/join/{courses.activity.join_code}").status_code == 404


@pytest.mark.parametrize("path", ["/courses/{}", "/activities/{}", "/activities/{}/edit"])
@pytest.mark.parametrize("number", [0, 999_999, 2**31, 10**30])
def test_what_is_not_there_looks_like_what_one_may_not_see(courses: TwoCourses, path: str, number: int) -> None:
    with courses.school.browser(**courses.people["instructor"]) as browser:
        absent = browser.get(path.format(number))
    with courses.school.browser(**courses.people["other instructor"]) as browser:
        hidden = browser.get(path.format(courses.activity.id if "activities" in path else courses.activity.course_id))
    assert (absent.status_code, hidden.status_code) == (404, 404)
    assert absent.text == hidden.text


def test_a_student_of_another_course_cannot_be_reached_through_ones_own(app: FastAPI) -> None:
    courses = TwoCourses(app)
    store = courses.school.services.store
    mine = store.courses.add("Mine", "UTC", courses.people["other instructor"]["teacher"])
    kim = store.roster.find_student(courses.kim.id)
    assert kim
    with courses.school.browser(**courses.people["other instructor"]) as browser:
        assert browser.post(f"/courses/{mine.id}/students/{kim.id}/remove").status_code == 404
    assert store.roster.find_student(kim.id) == kim


def test_asking_for_a_page_grades_nobody(new_app: FastAPI) -> None:
    school = School(new_app)
    teacher = school.teacher()
    course = school.course("Transformers", teacher)
    activity, (_, visitor) = school.activity(course), school.student(course, "Kim")
    student = school.browser(visitor=visitor)
    assert student.post(f"/class/{activity.id}/1/save", data={"queries.rows": "100"}).status_code == 200
    school.end(activity)
    staff = school.browser(teacher=teacher)
    for browser, address in ((student, f"/class/{activity.id}/1"), (staff, f"/activities/{activity.id}/results")):
        looking = TestClient(new_app, cookies=browser.cookies)
        assert looking.get(address).status_code == 200
    assert school.store.classwork.attempts_of_activity(activity.id) == ()
    school.services.auto_submitter.settle_all()
    assert len(school.store.classwork.attempts_of_activity(activity.id)) == 1
