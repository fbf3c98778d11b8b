"""Every route of the application as nobody, two kinds of student and three of teacher: who gets in where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Mount, Route

from tests.helpers.permission_table import ROLES, TABLE, TwoCourses


def routes(found: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Every route with each of its methods, those of included routers too; files under /static have no owner.

    Fails for anything of another kind, which could let people in unseen.
    """
    for route in found:
        if isinstance(route, Route):
            yield from (f"{method} {prefix}{route.path}" for method in route.methods or () if method != "HEAD")
        elif hasattr(route, "original_router"):
            yield from routes(route.original_router.routes, prefix + route.include_context.prefix)
        else:
            assert isinstance(route, Mount), route
            assert route.path == "/static"


def test_every_route_has_a_row(app: FastAPI) -> None:
    """A route without a row in the table fails here: whoever adds one decides who may use it."""
    assert sorted(routes(app.routes)) == sorted(TABLE)


@pytest.mark.parametrize("route", TABLE)
def test_each_role_gets_what_the_table_says(app: FastAPI, route: str) -> None:
    """All six in turn, the instructor last, in a world of their own."""
    method, path = route.split(" ")
    courses, got = TwoCourses(app), list[int]()
    for role in ROLES:
        with courses.school.browser(**courses.people[role]) as browser:
            got.append(browser.request(method, courses.path(path)).status_code)
    assert dict(zip(ROLES, got, strict=True)) == dict(zip(ROLES, TABLE[route], strict=True))


STUDENTS_DOORS = [route for route in TABLE if route.split(" ")[1].startswith("/class/")]


@pytest.mark.parametrize("route", STUDENTS_DOORS)
def test_a_draft_is_not_there_for_students(app: FastAPI, route: str) -> None:
    """What the staff still works on is 404 for the student who may see the rest."""
    courses = TwoCourses(app)
    courses.school.services.store.activities.set_state(courses.activity, "draft")
    method, path = route.split(" ")
    with courses.school.browser(**courses.people["student"]) as browser:
        assert browser.request(method, courses.path(path)).status_code == 404
        assert browser.get(f"/join/{courses.activity.join_code}").status_code == 404


@pytest.mark.parametrize("path", ["/courses/{}", "/activities/{}", "/activities/{}/edit"])
@pytest.mark.parametrize("number", [0, 999_999, 2**31, 10**30])
def test_what_is_not_there_looks_like_what_one_may_not_see(app: FastAPI, path: str, number: int) -> None:
    """Numbers that nothing has, or no database can hold, are 404 as another's course is."""
    courses = TwoCourses(app)
    with courses.school.browser(**courses.people["instructor"]) as browser:
        absent = browser.get(path.format(number))
    with courses.school.browser(**courses.people["other instructor"]) as browser:
        hidden = browser.get(path.format(courses.activity.id if "activities" in path else courses.activity.course_id))
    assert (absent.status_code, hidden.status_code) == (404, 404)
    assert absent.text == hidden.text


def test_a_student_of_another_course_cannot_be_reached_through_ones_own(app: FastAPI) -> None:
    """The student's number in the address of another course is 404, and the student stays."""
    courses = TwoCourses(app)
    store = courses.school.services.store
    mine = store.courses.add("Mine", "UTC", courses.people["other instructor"]["teacher"])
    kim = store.courses.find_student(courses.kim.id)
    assert kim
    with courses.school.browser(**courses.people["other instructor"]) as browser:
        assert browser.post(f"/courses/{mine.id}/students/{kim.id}/remove").status_code == 404
    assert store.courses.find_student(kim.id) == kim
