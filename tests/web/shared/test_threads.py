"""Whoever waits for torch, a PDF, the Hub or a password hash holds no thread that a class needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from inspect import iscoroutinefunction
from itertools import islice

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.run_jobs import RUN_LIMITS
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.school import School

OF_A_CLASS = ("/class/", "/join", "/resume", "/mine")
SLOW = {"/api/v1/forward", "/handout", "/handout/pages/{page}.svg", "/handout.pdf", "/handout/class",
        "/worksheets/preview/page.svg", "/worksheets/{material_id}/print",
        "/activities/{activity_id}/handout", "/links/{token}", "/password", "/sign-in",
        "/models", "/api/v1/models"}  # fmt: skip
FORWARD = {"model": "llama-7b", "tokens": 10}


def calls_of(dependant: Dependant) -> Iterator[object]:
    """The handler of a route, and everything that it depends on."""
    yield dependant.call
    for each in dependant.dependencies:
        yield from calls_of(each)


def routes(app: FastAPI) -> list[APIRoute]:
    return [route for route in app.routes if isinstance(route, APIRoute)]


def test_students_take_threads_of_classes_alone(app: FastAPI) -> None:
    of_a_class = [route for route in routes(app) if route.path.startswith(OF_A_CLASS)]
    assert len(of_a_class) > 15
    shared = {
        (route.path, call)
        for route in of_a_class
        for call in calls_of(route.dependant)
        if not (iscoroutinefunction(call) or isinstance(call, type))
    }
    assert shared == set()


def test_what_waits_long_takes_threads_of_its_own(app: FastAPI) -> None:
    of_those = [route for route in routes(app) if route.path_format in SLOW]
    slow = [route for route in of_those if "." in route.path or "POST" in (route.methods or ())]
    assert len(slow) >= 9
    assert [route.path for route in slow if not iscoroutinefunction(route.endpoint)] == []


def test_visitors_who_wait_for_torch_hold_up_no_class(client: TestClient, runner: FakeRunner) -> None:
    school = School(client.app)  # type: ignore[arg-type]
    course = school.course("Transformers", school.teacher())
    activity, (_, visitor) = school.activity(course), school.student(course, "Kim")
    client.cookies[VISITOR_COOKIE] = visitor.token
    runner.gate.clear()
    with ThreadPoolExecutor(60) as threads:
        asked = [threads.submit(client.post, "/api/v1/forward", json=FORWARD) for _ in range(60)]
        try:
            refused = islice(as_completed(asked, timeout=120), 60 - RUN_LIMITS.member)
            statuses = Counter(request.result().status_code for request in refused)
            addresses = (f"/join/{activity.join_code}", f"/class/{activity.id}/1")
            pages = [client.get(address).status_code for address in addresses]
            waiting = sum(not request.done() for request in asked)
        finally:
            runner.gate.set()
    assert (statuses, pages, waiting) == ({503: 60 - RUN_LIMITS.member}, [200, 200], RUN_LIMITS.member)
    assert Counter(request.result().status_code for request in asked)[200] == RUN_LIMITS.member


def test_programs_that_find_no_place_are_told_at_once(
    client: TestClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(School(client.app).services.programs, "_places", 1)  # type: ignore[arg-type]
    runner.gate.clear()
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(client.post, "/api/v1/forward", json=FORWARD) for _ in range(2)]
        try:
            refused = next(as_completed(asked, timeout=120)).result()
            assert (refused.status_code, [request.done() for request in asked].count(True)) == (503, 1)
        finally:
            runner.gate.set()
    assert sorted(request.result().status_code for request in asked) == [200, 503]
