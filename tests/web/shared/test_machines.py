"""Two machines behind a balancer that share a database and nothing else: whichever answers, it is one app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from app.classes import live_snapshot
from tests.helpers.activity_form import FORM
from tests.helpers.answer_keys import KEY
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page, kept_in
from tests.helpers.model_imports import SMALL_LLAMA, paste
from tests.helpers.queued_jobs import add_job
from tests.helpers.running_app import balanced_app
from tests.helpers.school import PASSWORD, SCRIPT, Browser, Classroom, School
from tests.helpers.sent_form import SentForm

WRONG = {**KEY, "queries.columns": "4096"}


@pytest.fixture
def machines(new_postgres_database: str, tmp_path: Path) -> Iterator[FastAPI]:
    """Two apps with data folders of their own; each request is answered by one of them, at random."""
    with balanced_app(tmp_path, new_postgres_database) as app:
        yield app


def sent(browser: Browser, address: str, form: dict[str, Any], status: int = 303) -> str:
    """Where a form leads, or the page that it gets, if it isn't a redirect."""
    answer = browser.post(address, data=form)
    assert answer.status_code == status, (address, answer.text)
    return answer.headers["location"] if status == 303 else answer.text


def filled_in(browser: Browser, page: str, address: str, changes: dict[str, Any], status: int = 303) -> str:
    """The same for the form of a page, all its fields with it, some of them changed."""
    shown = browser.get(page)
    assert shown.status_code == 200, (page, shown.text)
    return sent(browser, address, {**SentForm(shown.text).values, **changes}, status)


def live(browser: Browser, activity: str) -> dict[str, str]:
    """The tally of the page to run the class, counted anew."""
    page = Page(browser.get(activity).text)
    return dict(zip([text for _, text in page.find("dt")], [text for _, text in page.find("dd")], strict=True))


@pytest.mark.slow
def test_a_teacher_and_a_class_work_at_two_machines(
    machines: FastAPI, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SNAPSHOT_TTL_S", "MIN_IDLE_FACTOR", "MAX_STALE_S"):  # each look counts anew
        monkeypatch.setattr(live_snapshot, name, -1)
    school = School(machines)
    ada, people, store = school.browser(), school.store.people, school.store

    # An account, signing out and in, and a new password by a link.
    details = {"email": "ada@example.org", "name": "Ada", "password": PASSWORD}
    assert sent(ada, f"/links/{people.add_link('setup')}", details) == "/courses"
    sent(ada, "/sign-out", {})
    sent(ada, f"/links/{people.add_link('reset', details['email'])}", {"password": "another password"})
    sent(ada, "/sign-out", {})
    assert ada.get("/courses").status_code == 303
    sent(ada, "/sign-in", {**details, "password": "another password"})

    # A course, its roster in two steps, a worksheet of the author's about an imported model.
    course = sent(ada, "/courses", {"title": "Transformers", "zone": "UTC"})
    pasted = {"roster": "Kim Lee, 1017\nLou Ray, 1018"}
    sent(ada, f"{course}/students", SentForm(sent(ada, f"{course}/students/preview", pasted, 200)).values)
    model = paste(ada, SMALL_LLAMA).headers["location"]
    assert all(ada.get(model).status_code == 200 for _ in range(4))
    new = f"/worksheets/new?course={course.rpartition('/')[2]}"
    own = {"title": "My own", "model": model.rpartition("/")[2], "tokens": "90"}
    assert "My own" in filled_in(ada, new, "/worksheets/preview", own, 200)
    sheet = filled_in(ada, new, "/worksheets", own).partition("?")[0].removesuffix("/edit")
    assert all("My own" in ada.get(f"{sheet}/edit").text for _ in range(4))

    # An activity is previewed with attempts that its form carries, and opened.
    activity = sent(ada, f"{course}/activities", {**FORM, "ticket_anonymous": "no"}).partition("?")[0]
    carried = {"carried": ""}
    for _press in range(3):
        page = Page(sent(ada, f"{activity}/preview/1/check", {**WRONG, **carried}, 200))
        carried = {"carried": page.find("input", name="carried")[0][0]["value"]}
    assert page.marks()["queries.columns"] == "wrong"
    sent(ada, f"{activity}/open", {})
    found = store.activities.find(int(activity.rpartition("/")[2]))
    assert found

    # A student joins, saves, checks and hands in, also when an answer was lost, and goes on in another browser.
    kim, there = school.browser(), activity.replace("activities", "class")
    sent(kim, f"/join/{found.join_code}", {"name": "Kim Lee"})
    for number, rows in enumerate(("1", "10", "100"), start=1):
        form = {"queries.rows": rows, "edits": f"queries.rows:0123456789abcdef:{number}"}
        saved = kept_in(sent(kim, f"{there}/1/save", form, 200))
        assert (saved["version"], saved["answers"]["queries.rows"]) == (number, rows)
    form_id = {"form_id": Page(kim.get(f"{there}/1").text).find("input", name="form_id")[0][0]["value"]}
    sent(kim, f"{there}/1/check", {**WRONG, **form_id})
    assert [live(ada, activity)["handed in"] for _ in range(4)] == ["0"] * 4
    for _again in range(3):
        sent(kim, f"{there}/1/hand-in", {**KEY, **form_id})
    assert [live(ada, activity)["handed in"] for _ in range(4)] == ["1"] * 4
    assert [each.handed_in for each in store.classwork.attempts_of_activity(found.id)] == [False, True]
    code = Page(kim.get("/mine").text).text("p", class_="resume-code")
    tablet = school.browser()
    sent(tablet, "/resume", {"code": code})
    assert Page(tablet.get(f"{there}/1").text).boxes() == KEY
    fields = SentForm(tablet.get(f"{there}/ticket").text).values
    ticket = {**fields, "pick": ["muddiest"], "answer-muddiest": ["Why √d?"]}
    for _again in range(3):
        sent(tablet, f"{there}/ticket", ticket)

    # What is explained to the class, closing, undoing that, closing again.
    explained = {"view": "explain", "misconception": "head-as-wide-as-model"}
    assert ada.post(f"{activity}/projector", data=explained, headers=SCRIPT).status_code == 200
    for _look in range(4):
        assert Page(ada.get(f"{activity}/projector").text).find("section", class_="wall-explain")
    for action in ("close", "undo-close", "close"):
        sent(ada, f"{activity}/{action}", {})
        clock.pass_seconds(5)
    clock.pass_minutes(1)

    # Answers on paper in two steps, points, marks again under another rule, and the files.
    typed = {"typed": f"Lou Ray: {' '.join({**KEY, 'input.rows': '99', 'queries.rows': '99'}.values())}"}
    shown = sent(ada, f"{activity}/paper", typed, 200)
    lines = [line["value"] for line, _ in Page(shown).find("input", name="line")]
    entered = {**SentForm(shown).values, "line": lines, "do": "store"}
    assert ada.post(f"{activity}/paper", data=entered).status_code == 200
    for _look in range(3):
        [(changes, _)] = Page(ada.get(f"{activity}/regrade?marking=boxes").text).find("input", name="changes")
    sent(ada, f"{activity}/regrade", {"changes": changes["value"], "marking": "boxes"})
    for _look in range(2):
        gradebook = ada.get(f"{course}/exports/gradebook.csv").text
        assert [name in gradebook for name in ("Kim Lee", "Lou Ray")] == [True, True]
        assert "Why √d?" in ada.get(f"{activity}/tickets").text

    # As the operator, who made the first account, cancel a job.
    job = add_job(store, "key")
    assert all(f'id="cancel-{job.id}"' in ada.get("/machines").text for _look in range(4))
    sent(ada, f"/machines/jobs/{job.id}/cancel", {})
    assert not any(f'id="cancel-{job.id}"' in ada.get("/machines").text for _look in range(4))
    assert min(machines.answered.values()) > 20  # type: ignore[attr-defined]


def test_the_live_view_never_goes_back_to_an_earlier_count(machines: FastAPI) -> None:
    classroom = Classroom(machines)
    one, two = machines.apps  # type: ignore[attr-defined]

    def look(machine: FastAPI, seen: str = "") -> httpx2.Response:
        browser = School(machine).browser(teacher=classroom.teacher)
        return browser.get(f"{classroom.path}/now", params={"sheet": 1, "seen": seen})

    def version(answer: httpx2.Response) -> str:
        return Page(answer.text).find("input", name="seen")[0][0]["value"]

    earlier = look(two)
    classroom.student("Kim")
    one.state.services.live_snapshots.expire(classroom.activity.id)
    newer = look(one, version(earlier))
    assert (newer.status_code, version(newer) != version(earlier)) == (200, True)
    assert look(two, version(newer)).status_code == 204
    two.state.services.live_snapshots.expire(classroom.activity.id)
    assert look(two, version(newer)).status_code == 204  # which shows the same
    assert look(two, version(earlier)).status_code == 200


def test_a_count_that_another_clock_calls_later_is_replaced(machines: FastAPI) -> None:
    classroom = Classroom(machines)
    of_other_clock = f"{classroom.store.now().timestamp() + 3600:.3f}-0123456789abcdef-open"
    for seen in (of_other_clock, "no version", ""):
        answer = classroom.instructor.get(f"{classroom.path}/now", params={"sheet": 1, "seen": seen})
        assert answer.status_code == 200


def test_the_demonstration_is_there_at_every_machine(machines: FastAPI) -> None:
    visitor = School(machines).browser()
    activity = visitor.get("/demonstration").headers["location"]
    for _look in range(4):
        assert visitor.get(f"{activity}/results").status_code == 200
    assert all(app.state.services.demonstration.current() for app in machines.apps)  # type: ignore[attr-defined]
