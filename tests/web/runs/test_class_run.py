"""A real head, run from a student's sheet in an activity, as the activity's rules allow."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from app.store import Plan, Policies, Student
from app.store.tables import attempts, drafts
from app.translation import ENGLISH
from app.web.shared import rate_limits
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.rate_limits import BYTES_OF_RUN, BYTES_PER_HOUR
from tests.helpers.changed_library import Change, with_everything_changed, without_anything
from tests.helpers.class_sheet import HALF, press
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import table_rows
from tests.helpers.runs import run_and_wait
from tests.helpers.school import School


@pytest.fixture
def kim(client: TestClient) -> tuple[School, TestClient, Student]:
    """A student in an app that loads no torch."""
    school = School(client.app)  # type: ignore[arg-type]  # it is the app itself
    course = school.course("Transformers", school.teacher("ada@example.org"))
    student, visitor = school.student(course, "Kim")
    client.cookies.set(VISITOR_COOKIE, visitor.token)
    return school, client, student


def test_a_run_of_a_class_is_shown_to_the_class_alone(
    kim: tuple[School, TestClient, Student], runner: FakeRunner
) -> None:
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="after", feedback="immediate"), ("llama-7b",))
    press(browser, activity, "check", HALF)
    answer = browser.post(f"/class/{activity.id}/1/run", data=HALF, follow_redirects=False)
    address = answer.headers["location"]
    lou = school.student(course, "Lou")[1]
    other = school.course("Other", school.teacher())
    seen = {
        "classmate": school.browser(visitor=lou),
        "assistant": school.browser(teacher=school.teacher("bo@example.org", course, "assistant")),
        "nobody": school.browser(),
        "other student": school.browser(visitor=school.student(other, "Max")[1]),
        "other teacher": school.browser(teacher=school.teacher()),
    }
    expected = {"classmate": 200, "assistant": 200, "nobody": 404, "other student": 404, "other teacher": 404}
    for path in (address, f"{address}/agreement", f"{address}/notebook.ipynb"):
        assert {who: each.get(path).status_code for who, each in seen.items()} == expected
    assert seen["nobody"].post(f"{address}/again").status_code == 404


def test_a_head_is_run_from_class_as_the_rules_say_and_is_no_practice(
    kim: tuple[School, TestClient, Student], runner: FakeRunner
) -> None:
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="after", feedback="immediate"), ("llama-7b",))
    sheet = f"/class/{activity.id}/1"
    refused = browser.post(f"{sheet}/run", data=HALF)
    assert refused.status_code == 409
    assert "see the marks" in refused.text
    assert "start-run" not in browser.get(sheet).text
    press(browser, activity, "check", HALF)
    button = Page(browser.get(sheet).text).find("button", id="start-run")[0][0]
    assert button["formaction"] == button["hx-post"] == f"{sheet}/run"
    text = run_and_wait(browser, {**HALF, "queries.rows": "99"}, button["hx-post"])
    again = run_and_wait(browser, {"device": "meta"}, Page(text).find("form")[0][0]["action"])
    for shown in (text, again):
        assert f'href="{sheet}"' in shown
        assert "/sheet?" not in shown
        assert "99" in next(row for _, row in Page(shown).find("tr") if row.startswith("QQueries"))
    assert len(runner.calls) == 2
    assert Page(browser.get(sheet).text).find("input", name="queries.rows")[0][0]["value"] == "99"
    assert len(school.store.classwork.attempts_of_activity(activity.id)) == 1
    with school.store.engine.connect() as connection:
        for table in (attempts, drafts):
            in_practice = table.c.visitor_id.is_not(None)
            assert connection.scalar(sa.select(sa.func.count()).where(in_practice)) == 0


def test_where_a_head_may_be_run_before_an_attempt_something_must_be_written(
    kim: tuple[School, TestClient, Student], runner: FakeRunner
) -> None:
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="before"), ("llama-7b",))
    sheet = f"/class/{activity.id}/1"
    assert "Fill in at least one row first" in browser.post(f"{sheet}/run", data={}).text
    assert runner.calls == []
    run_and_wait(browser, HALF, f"{sheet}/run")
    later = Plan("Week 4", None, Policies(run="before"), datetime.now(UTC) + timedelta(hours=1))
    waiting = school.activity(course, sheets=("llama-7b",), plan=later)
    assert browser.post(f"/class/{waiting.id}/1/run", data=HALF).status_code == 409
    assert len(runner.calls) == 1


@pytest.mark.parametrize("change", [without_anything, with_everything_changed])
def test_a_run_stays_what_it_was_and_can_be_run_again_whatever_became_of_the_library(
    kim: tuple[School, TestClient, Student], runner: FakeRunner, change: Change
) -> None:
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="before"), ("llama-7b",))
    starts = (f"/class/{activity.id}/1/run", "/runs")
    before = [run_and_wait(browser, HALF, path) for path in starts]
    runs = [Page(text).find("form")[0][0]["action"].removesuffix("/again") for text in before]
    services = school.services
    browser.app.state.services = replace(services, libraries={ENGLISH: change(services.library)})  # type: ignore[attr-defined]
    after = [browser.get(run).text for run in runs]
    assert after[0] == before[0]
    assert len(table_rows(Page(after[1]))) == len(
        table_rows(Page(before[1]))
    )  # in practice, sentences are the current ones
    again = [run_and_wait(browser, {}, f"{run}/again") for run in runs]
    assert f'href="/class/{activity.id}/1"' in again[0]
    assert [call[:2] for call in runner.calls[2:]] == [call[:2] for call in runner.calls[:2]]


def test_runs_of_a_class_are_counted_by_student(
    kim: tuple[School, TestClient, Student], runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "BYTES_OF_STUDENT_PER_HOUR", 3.5 * BYTES_OF_RUN)
    school, browser, student = kim
    course = school.store.courses.find(student.course_id)
    assert course
    activity = school.activity(course, Policies(run="before"), ("llama-7b",))
    school.services.storage.charge("testclient", BYTES_PER_HOUR)
    sheet = f"/class/{activity.id}/1"
    page = run_and_wait(browser, HALF, f"{sheet}/run")
    again = Page(page).find("form")[0][0]["action"]
    background = {**HALF, "background": "1"}
    assert browser.post(f"{sheet}/run", data=background).status_code == 429
    for path in (again, f"{sheet}/run"):
        run_and_wait(browser, HALF, path)
    for path in (again, f"{sheet}/run"):
        refused = browser.post(path, data={**HALF, "input.rows": "7"})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
    assert len(runner.calls) == 3
    [draft] = school.store.classwork.drafts_of_activity(activity.id)
    assert draft.answers["input.rows"] == "7"
    _, visitor = school.student(course, "Lou")
    with school.browser(visitor=visitor) as other:
        run_and_wait(other, HALF, f"{sheet}/run")
        run_and_wait(other, HALF, again)
