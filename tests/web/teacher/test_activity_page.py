"""An activity made with the form, opened, closed and changed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.classes.materials import OwnMaterials, materials_for_course
from app.classes.student_sheet import freeze
from app.web import activities
from tests.helpers.activity_form import FORM
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, press
from tests.helpers.clock import Clock
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def test_an_activity_is_made_opened_and_closed(classroom: Classroom, clock: Clock) -> None:
    made = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=FORM)
    page = Page(classroom.instructor.get(made.headers["location"]).text)
    assert page.text("h1") == "Week 3"
    assert "Draft" in page.text("p", class_="phase")
    code = page.text("b", class_="join-code")
    assert re.fullmatch(r"[A-Z]{6}", code)
    student = classroom.school.browser()
    assert student.post("/join", data={"code": code}).status_code == 404
    classroom.instructor.post(f"{made.headers['location']}/open")
    assert student.post("/join", data={"code": code.lower()}).headers["location"] == f"/join/{code}"
    picture = classroom.instructor.get(f"{made.headers['location']}/qr.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "<svg" in picture.text
    assert "<script" not in picture.text
    classroom.instructor.post(f"{made.headers['location']}/close")
    clock.pass_seconds(10)
    assert Page(classroom.instructor.get(made.headers["location"]).text).text("p", class_="phase") == "Closing"
    clock.pass_minutes(1)
    closed = Page(classroom.instructor.get(made.headers["location"]).text)
    assert closed.text("p", class_="phase") == "Closed"


@pytest.mark.parametrize("view", ["", "/projector"])
def test_an_address_that_only_this_computer_can_open_is_not_given_to_students(classroom: Classroom, view: str) -> None:
    activity = classroom.open()
    path, browser = f"/activities/{activity.id}", classroom.instructor
    for host, is_local in (("localhost:8000", True), ("192.0.2.2:8000", False)):
        headers = {"Host": host}
        page = browser.get(path + view, headers=headers).text
        assert activity.join_code in page
        assert (f"{host}/join" in page) == (not is_local)
        assert ("ATTENTION_SHAPES_HOST=0.0.0.0 make serve" in page) == (is_local)
        assert not ("qr.svg" in page and is_local)
        assert browser.get(f"{path}/qr.svg", headers=headers).status_code == (404 if is_local else 200)


def test_closing_says_who_is_working_and_can_be_announced(classroom: Classroom, clock: Clock) -> None:
    activity = classroom.open()
    kim, browser = classroom.join()
    address = f"/activities/{activity.id}"
    assert "No one is working" in Page(classroom.get(address)).text("p", id="working")
    press(browser, activity, "save", HALF)
    assert "1 student is still working" in Page(classroom.get(address)).text("p", id="working")
    for unreadable in ("soon", "-1", "5.5", "99999"):
        assert classroom.instructor.post(f"{address}/close", data={"minutes": unreadable}).status_code == 422
        assert classroom.school.reload(activity).plan.closes_at is None
    classroom.instructor.post(f"{address}/close", data={"minutes": "5"})
    assert classroom.school.reload(activity).plan.closes_at == clock.now + timedelta(minutes=5)
    page = Page(classroom.get(address))
    assert page.text("p", class_="phase").startswith("Open until")
    assert {form["action"] for form, _ in page.find("form")} >= {f"{address}/close", f"{address}/undo-close"}
    clock.pass_minutes(6)
    page = Page(classroom.get(address))
    assert page.text("p", class_="phase") == "Closed"
    assert "marked as late" in page.text("details", id="reopen")
    [taken] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (taken.student_id, taken.auto_submitted) == (kim.id, True)
    classroom.instructor.post(f"{address}/open")
    press(browser, activity, "hand-in", KEY)
    assert [attempt.late for attempt in classroom.store.classwork.attempts_of_activity(activity.id)] == [False, True]


def test_work_that_cannot_be_handed_in_is_not_waited_for(classroom: Classroom) -> None:
    classroom.activity, answers = classroom.open(), dict.fromkeys(KEY, "7")
    kim, twice = classroom.student(), classroom.student("Kim Lee")
    classroom.send(kim, "save", answers)
    classroom.send(twice, "save", KEY)
    merge = f"/courses/{classroom.course.id}/students/{twice.id}/merge"
    assert classroom.instructor.post(merge, data={"into": str(kim.id)}).status_code == 303
    assert len(classroom.store.classwork.drafts_of_activity(classroom.activity.id)) == 2
    assert "1 student is still working" in classroom.page().text("p", id="working")
    classroom.send(kim, "hand-in", KEY)
    assert "No one is working" in classroom.page().text("p", id="working")
    lou = classroom.student("Lou")
    classroom.send(lou, "save", answers)
    assert "1 student is still working" in classroom.page().text("p", id="working")
    other = freeze(classroom.school.library, ("qwen2.5-0.5b",), None)
    classroom.store.activities.revise(classroom.activity, other)
    assert "No one is working" in classroom.page().text("p", id="working")


def test_what_another_teacher_saves_while_it_is_opened_stays(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {**FORM, "closes": "2020-01-01T10:00"}
    address = classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form).headers["location"]
    [draft, *_] = classroom.store.activities.of_course(classroom.course)
    meanwhile = [
        lambda: classroom.store.activities.change(draft, replace(draft.plan, title="Week 4")),
        lambda: classroom.store.activities.delete(draft),
    ]

    def read_late(*args: Any) -> OwnMaterials:
        meanwhile.pop(0)()
        return materials_for_course(*args)

    monkeypatch.setattr(activities, "materials_for_course", read_late)
    assert classroom.instructor.post(f"{address}/open").status_code == 303
    opened = classroom.school.reload(draft)
    assert (opened.state, opened.plan.title, opened.plan.closes_at) == ("open", "Week 4", None)
    assert classroom.instructor.post(f"{address}/open").status_code == 404


def test_extra_time_is_given_to_one_student_and_taken_away(classroom: Classroom) -> None:
    (kim, _), activity = classroom.join(), classroom.open()
    address, store = f"/activities/{activity.id}", classroom.store.activities

    def send(student: object, minutes: str) -> int:
        form = {"student": str(student), "minutes": minutes}
        return classroom.instructor.post(f"{address}/extra-time", data=form).status_code

    assert send(kim.id, "15") == 303
    assert store.extra_times(activity.id) == {kim.id: 15}
    assert "Kim: 15 minutes" in Page(classroom.get(address)).text("details", id="extra-time")
    stranger = classroom.school.student(classroom.school.course("Another", classroom.teacher), "Lee")[0]
    assert {send(*wrong) for wrong in ((stranger.id, "5"), ("", "5"), (kim.id, "soon"), (kim.id, "99999"))} == {422}
    assert store.extra_times(activity.id) == {kim.id: 15}
    refused = Page(classroom.instructor.post(f"{address}/extra-time", data={"student": kim.id, "minutes": "ten"}).text)
    [typed] = [attrs for attrs, _ in refused.find("input", name="minutes") if attrs.get("type") != "hidden"]
    assert typed["value"] == "ten"
    assert [attrs["value"] for attrs, _ in refused.find("option") if "selected" in attrs] == [str(kim.id)]
    assert send(kim.id, "0") == 303
    assert store.extra_times(activity.id) == {}
