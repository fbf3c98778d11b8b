"""A corrected sheet or rule marks what was handed in again: shown first, then applied, the old marks kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.sheets.library import Library
from app.store import Graded, NewMarks, Policies
from app.store.tables import audit_log
from app.translation import ENGLISH
from app.web.shared import forms
from tests.helpers.activity_form import FORM
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, table_rows
from tests.helpers.school import Classroom

FOLLOWING = {**KEY, "input.rows": "99", "queries.rows": "99"}


def beside(sheet: Page) -> dict[str, str]:
    """The mark beside each box that has one."""
    marks = [attrs.get("data-mark", "") for attrs, _ in sheet.find("td", class_="box")]
    return {box: mark for box, mark in zip(sheet.boxes(), marks, strict=True) if mark}


def changes(page: Page) -> str:
    return page.find("input", name="changes")[0][0]["value"]


def test_a_changed_marking_is_shown_first_then_applied_with_the_old_marks_kept(app_on_each_database: FastAPI) -> None:
    classroom = MarkedClassroom(app_on_each_database)
    store = classroom.store
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    first, right = classroom.hand_in(lou, FOLLOWING), classroom.hand_in(kim, KEY)
    assert (first.score, right.score) == (13, 14)
    assert classroom.page("/regrade").find("input", name="changes") == []
    classroom.change_marking("boxes")
    dry = classroom.page("/regrade")
    assert table_rows(dry)[1:] == [["Lou", "One head of LLaMA 7B", "13 of 14", "12 of 14", "−1"]]
    assert store.classwork.attempts_of_activity(classroom.activity.id) == (first, right)
    assert classroom.regrade({"changes": "something else"}) == 409
    assert store.classwork.attempts_of_activity(classroom.activity.id) == (first, right)
    assert classroom.regrade({"changes": changes(dry)}) == 303
    assert store.classwork.attempts_of_activity(classroom.activity.id) == (replace(first, score=12.0), right)
    [old] = store.regrades.old_marks(classroom.activity.id, lou.id)[first.id]
    assert old.graded == Graded(first.marks, first.misconceptions, first.score, first.out_of)
    assert store.regrades.old_marks(classroom.activity.id, kim.id) == {}
    [done] = store.regrades.of_activity(classroom.activity.id)
    assert (done.by, done.changed) == (classroom.teacher.name, 1)
    with store.engine.connect() as connection:
        columns = [audit_log.c[name] for name in ("actor_id", "object_kind", "object_id", "detail")]
        regraded = sa.select(*columns).where(audit_log.c.action == "regraded")
        entries = [tuple(row) for row in connection.execute(regraded)]
    assert entries == [(classroom.teacher.id, "activity", classroom.activity.id, "1")]
    head = table_rows(classroom.page(f"/results/{lou.id}"))[0][1]
    assert "12 of 14" in head
    assert "was 13 of 14 until" in head
    assert "All 2 attempts would keep their marks." in str(classroom.page("/regrade").find("p"))
    assert classroom.regrade({"changes": changes(dry)}) == 409


def test_a_long_table_of_changes_has_pages(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "PAGE_LENGTH", 1)
    classroom = MarkedClassroom(app)
    for name in ("Kim", "Lou"):
        classroom.hand_in(classroom.student(name), FOLLOWING)
    classroom.change_marking("boxes")
    first, second = classroom.page("/regrade"), classroom.page("/regrade?page=2")
    assert [table_rows(page)[1][0] for page in (first, second)] == ["Kim", "Lou"]
    assert changes(first) == changes(second)
    [(link, _)] = first.find("a", rel="next")
    assert link["href"].endswith("by=frozen&page=2")


def test_a_corrected_worksheet_is_what_attempts_are_marked_by_again(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    classroom.freeze_mistaken_sheet()
    services = classroom.school.services
    kim = classroom.student("Kim")
    before = classroom.hand_in(kim, KEY)
    assert before.score < 14
    assert before.out_of == 16
    assert table_rows(classroom.page("/regrade")) == []
    dry = classroom.page("/regrade?by=library")
    assert table_rows(dry)[1][3] == "14 of 14"
    assert classroom.regrade({"changes": changes(dry)}) == 409  # not what marking by the frozen sheet would change
    assert classroom.regrade({"changes": changes(dry), "by": "library"}) == 303
    [after] = services.store.classwork.attempts_of_activity(classroom.activity.id)
    assert (after.score, after.out_of, set(after.marks.values())) == (14, 14, {"right"})
    assert after.answers == before.answers
    addresses = [f"{classroom.path}/results/{kim.id}", f"{classroom.path}/results"]
    pages, (sheet, mine) = [classroom.get(address) for address in addresses], classroom.seen_by(kim)
    try:
        app.state.services = replace(services, libraries={ENGLISH: Library({}, {}, services.library.wording)})
        assert [classroom.get(address) for address in addresses] == pages
        later, mine_later = classroom.seen_by(kim)
    finally:
        app.state.services = services
    assert mine_later == mine
    assert beside(later) == beside(sheet) == dict.fromkeys(KEY, "right")


def test_a_student_sees_the_marks_that_the_instructor_sees(app_on_each_database: FastAPI) -> None:
    classroom = MarkedClassroom(app_on_each_database, Policies(max_attempts=2))
    classroom.freeze_mistaken_sheet()
    kim = classroom.student("Kim")
    answers = {**KEY, "output.columns": "4095", "context.rows": "", "context.columns": "128"}
    before = classroom.hand_in(kim, answers)
    sheet, mine = classroom.seen_by(kim)
    assert beside(sheet) == before.marks
    assert f"{before.score:g} of 16" in mine
    assert classroom.regrade({"changes": changes(classroom.page("/regrade?by=library")), "by": "library"}) == 303
    right = {**dict.fromkeys(KEY, "right"), "output.columns": "wrong"}
    [after] = classroom.store.classwork.attempts_of_activity(classroom.activity.id)
    assert (after.score, after.marks) == (13, right)
    sheet, mine = classroom.seen_by(kim)
    assert beside(sheet) == right
    assert "another version of this sheet" in sheet.text("p", class_="result")
    assert "13 of 14 right" in sheet.text("p", class_="result")
    assert "13 of 14" in mine
    table = {line[0]: line[1:] for line in table_rows(classroom.page("/results"))}
    assert table["Kim"][0] == "13 of 14"
    with classroom.browser_of(kim) as browser:
        address = f"/class/{classroom.activity.id}/1"
        hinted = Page(browser.post(f"{address}/hint", data={**answers, "hint": "3"}, follow_redirects=True).text)
    assert "Look again at “Output of this head” (columns)" in hinted.text("p", class_="hint")
    classroom.school.end(classroom.activity)
    sheet, _ = classroom.seen_by(kim)
    told = [line for line in table_rows(sheet) if line[0].startswith("Answer")]
    assert [line[1] for line in told] == ["100N"] * 7
    assert beside(sheet) == right


def test_marks_that_no_sheet_gives_are_shown_as_they_are_kept(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    kim = classroom.student("Kim")
    one = classroom.hand_in(kim, WIDE)
    sheet, _ = classroom.seen_by(kim)
    assert sheet.find("p", class_="diagnosis") != []
    assert sheet.text("p", id="says-queries.columns").endswith(sheet.text("p", class_="diagnosis"))
    nudge = classroom.school.library.wording.topics["single-head"].nudges["keys.columns"]
    marks = {**one.marks, "queries.columns": "right", "input.rows": "wrong", "scores.rows": "follows"}
    marks |= {"keys.columns": "wrong", "values.columns": "wrong"}
    new = NewMarks(Graded(marks, (), 10.5, 14), "")
    classroom.store.regrades.apply(classroom.activity.id, classroom.teacher.id, {one.id: new})
    sheet, mine = classroom.seen_by(kim)
    assert beside(sheet) == marks
    assert sheet.find("p", class_="diagnosis") == []
    assert sheet.text("p", id="says-keys.columns") == f"Columns. {nudge}"
    assert "10 of 14 right" in sheet.text("p", class_="result")
    assert "10.5 of 14" in mine


def test_the_live_view_forgets_marks_that_were_put_right(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    classroom.hand_in(classroom.student("Kim"), KEY)
    services = classroom.school.services

    def input_right() -> int:
        services.live_snapshots.expire(classroom.activity.id)
        snapshot = services.live_snapshots.get(services.library, services.store, classroom.activity)
        return snapshot.sheets[0].rows[0].right

    assert input_right() == 1
    [one] = classroom.store.classwork.attempts_of_activity(classroom.activity.id)
    wrong = Graded({**one.marks, "input.rows": "wrong"}, (), 13, 14)
    classroom.store.regrades.apply(classroom.activity.id, classroom.teacher.id, {one.id: NewMarks(wrong, "")})
    assert input_right() == 0


def test_an_own_worksheet_is_regraded_as_it_is_now(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    sheet = {"title": "Ours", "topic": "single-head", "model": "llama-7b", "tokens": 40, "rows": ["queries"]}
    own = classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, sheet)
    classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data={**FORM, "worksheet": [own.key]})
    [activity] = classroom.store.activities.of_course(classroom.course)
    classroom.instructor.post(f"/activities/{activity.id}/open")
    _, browser = classroom.join("Lou")
    browser.post(f"/class/{activity.id}/1/hand-in", data={"queries.rows": "41", "queries.columns": "128"})
    address = f"/activities/{activity.id}/regrade"
    for version, points in enumerate((2, 3), start=1):
        changed = {**sheet, "row_points": {"queries": points}}
        own = classroom.store.materials.save(own, version, changed, classroom.teacher).material
        page = Page(classroom.get(f"{address}?by=library"))
        [[name, _, old, new, _]] = table_rows(page)[1:]
        assert (name, old, new) == ("Lou", "1 of 2", f"{points} of {2 * points}")
    classroom.instructor.post(address, data={"changes": changes(page), "by": "library"})
    [attempt] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (attempt.score, attempt.out_of) == (3, 6)
