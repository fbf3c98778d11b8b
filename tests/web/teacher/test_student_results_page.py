"""Every attempt of one student, and who has no page here."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, table_rows


def test_a_students_page_shows_every_attempt(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    classroom.hand_in(kim, WIDE)
    classroom.hand_in(kim, {**KEY, "keys.rows": "??"})
    classroom.hand_in(lou, {**KEY, "keys.rows": "77777"})
    page = classroom.page(f"/results/{kim.id}")
    heads, *rows = table_rows(page)
    assert [head.split("handed")[0].rpartition(" of ")[0].split()[-1] for head in heads[1:]] == ["13", "13"]
    table = {row[0]: row[1:] for row in rows}
    assert table["Keys"] == ["100 correct × 4096 consistent with an earlier mistake", "?? unreadable × 128 correct"]
    assert table["Misconceptions"] == ["Head as wide as the model", "–"]
    assert "2 follow" in table["What mistakes cost"][0]
    assert table["What mistakes cost"][1] == "–"
    assert "77777" not in str(rows)


def test_a_student_of_another_course_has_no_page_here(app: FastAPI) -> None:
    classroom, other = MarkedClassroom(app), MarkedClassroom(app)
    stranger = other.student("Lou")
    with classroom.instructor as browser:
        for number in (stranger.id, 999_999, 10**30):
            assert browser.get(f"{classroom.path}/results/{number}").status_code == 404


def test_every_change_of_points_stays_readable(app_on_each_database: FastAPI) -> None:
    classroom = MarkedClassroom(app_on_each_database)
    kim = classroom.student("Kim")
    classroom.hand_in(kim, WIDE)

    def send(**form: str) -> None:
        address = f"{classroom.path}/results/{kim.id}/points"
        assert classroom.instructor.post(address, data=form).status_code == 303

    send(action="undo")
    assert not classroom.store.grades.changes(classroom.activity.id, kim.id)
    send(action="change", points="12", reason="oral")
    send(action="excuse", reason="ill")
    send(action="undo")
    send(action="undo")
    changes = classroom.store.grades.changes(classroom.activity.id, kim.id)
    assert [(each.kind, each.points_before, each.points) for each in changes] == [
        ("points", 13, 12), ("excused", 12, None), ("undone", None, None),
    ]  # fmt: skip
    rows = table_rows(classroom.page(f"/results/{kim.id}"))[-3:]
    points = [row[1].split(" → ") for row in rows]
    assert [(before, row[2]) for (before, _), row in zip(points, rows, strict=True)] == [
        ("excused", "–"), ("12", "ill"), ("13", "oral"),
    ]  # fmt: skip
    assert [after for _, after in points[1:]] == ["excused", "12"]
    assert {row[3] for row in rows} == {classroom.teacher.name}


def test_points_that_cannot_be_used_come_back(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    kim = classroom.student("Kim")
    address = f"{classroom.path}/results/{kim.id}/points"
    for points, reason, word in (("7.125", "oral", "decimals"), ("7", "", "why")):
        form = {"action": "change", "points": points, "reason": reason}
        refused = classroom.instructor.post(address, data=form)
        assert refused.status_code == 422
        page = Page(refused.text)
        assert word in page.text("p", id="points-problem")
        assert [page.find("input", name=name)[0][0]["value"] for name in ("points", "reason")] == [points, reason]


def test_points_and_their_entry_in_the_log_are_stored_together(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    classroom = MarkedClassroom(app)
    kim = classroom.student("Kim")

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(classroom.store.audit_log, "record", refuse)
    form = {"action": "change", "points": "12", "reason": "oral"}
    assert classroom.instructor.post(f"{classroom.path}/results/{kim.id}/points", data=form).status_code == 500
    assert not classroom.store.grades.changes(classroom.activity.id, kim.id)
