"""The rule that marks a class: chosen before opening, shown to students, and changed by regrading only."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from fastapi import FastAPI

from app.store import Policies
from tests.helpers.answer_keys import KEY
from tests.helpers.closed_activity import close_activity
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, table_rows
from tests.helpers.school import Classroom
from tests.helpers.sent_form import SentForm

WORSE = {**KEY, "queries.columns": "1", "keys.columns": "2"}
NINETY = {box: "90" if text == "100" else text for box, text in KEY.items()}


@pytest.fixture
def marked(app: FastAPI) -> MarkedClassroom:
    return MarkedClassroom(app)


def gradebook(classroom: MarkedClassroom) -> str:
    return classroom.instructor.get(f"/courses/{classroom.course.id}/exports/gradebook.csv").text


def test_before_opening_a_teacher_sees_what_each_marking_gives(classroom: Classroom) -> None:
    form = Page(classroom.instructor.get(f"/courses/{classroom.course.id}/activities/new?worksheet=llama-7b").text)
    [_head, *examples] = [row for row in table_rows(form) if len(row) == 4]
    scores = [tuple(row[1:]) for row in examples]
    assert scores == [
        ("14", "14", "14"),
        ("13", "13", "12"),
        ("13", "5", "0"),  # of 100 tokens a student read 90: 9 boxes, at least one in each row
        ("13", "4", "4"),
        ("12", "4", "0"),
    ]


def test_the_table_is_gone_once_the_activity_is_open(marked: MarkedClassroom) -> None:
    draft = marked.instructor.get(marked.path)
    assert not Page(draft.text).find("table", id="marking-examples")


def test_with_marks_the_rule_changes_by_regrading_only(marked: MarkedClassroom) -> None:
    marked.hand_in(marked.student("Kim"), NINETY)
    edit = marked.instructor.get(f"{marked.path}/edit")
    assert not Page(edit.text).find("input", name="marking", type="radio")
    assert marked.instructor.post(marked.path, data=SentForm(edit.text).values).status_code == 303
    for name, value in (("marking", "rows"), ("counting", "best")):
        form = {**SentForm(marked.instructor.get(f"{marked.path}/edit").text).values, name: [value]}
        refused = marked.instructor.post(marked.path, data=form)
        assert refused.status_code == 422
        assert "regrading" in Page(refused.text).text("p", class_="problem")
        assert marked.instructor.post(marked.path, data=SentForm(refused.text).values).status_code == 303
    assert marked.school.reload(marked.activity).policies == marked.activity.policies


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ({"marking": "rows"}, "13 of 14", "0 of 14"),
        ({"marking": "boxes"}, "13 of 14", "5 of 14"),
        ({"counting": "best"}, "13 of 14", "14 of 14"),
        ({"counting": "first", "marking": "boxes"}, "13 of 14", "12 of 14"),
    ],
)
def test_a_regrade_shows_what_another_rule_changes_and_then_applies_it(
    app_on_each_database: FastAPI, rule: dict[str, Any], before: str, after: str
) -> None:
    marked = MarkedClassroom(app_on_each_database)
    kim = marked.student("Kim")
    for answers in (WORSE, KEY, NINETY):
        marked.hand_in(kim, answers)
    address = f"/regrade?{'&'.join(f'{name}={value}' for name, value in rule.items())}"
    shown = marked.page(address)
    assert table_rows(shown)[1][:4] == ["Kim", "One head of LLaMA 7B", before, after]
    fingerprint = shown.find("input", name="changes")[0][0]["value"]
    assert marked.school.reload(marked.activity).policies == Policies()
    assert marked.regrade({"changes": fingerprint}) == 409  # of another rule than was shown
    assert marked.regrade({"changes": fingerprint, **rule}) == 303
    policies = marked.school.reload(marked.activity).policies
    assert {name: getattr(policies, name) for name in rule} == rule
    assert f"{after.split()[0]}" in gradebook(marked).splitlines()[1].split(",")
    assert after in " ".join(table_rows(marked.page("/results"))[-2])
    _sheet, mine = marked.seen_by(kim)
    assert after in mine
    assert table_rows(marked.page("/regrade")) == []


@pytest.mark.parametrize(("counting", "counted"), [("last", "13 of 14"), ("best", "14 of 14"), ("first", "12 of 14")])
@pytest.mark.parametrize("feedback", ["immediate", "after_hand_in"])
def test_a_student_sees_which_attempt_counts(app: FastAPI, counting: Any, counted: str, feedback: Any) -> None:
    marked = MarkedClassroom(app, Policies(counting=counting, feedback=feedback))
    kim = marked.student("Kim")
    for answers in (WORSE, KEY, {**KEY, "output.rows": "7"}):
        marked.hand_in(kim, answers)
    sheet, mine = marked.seen_by(kim)
    assert counted in mine
    rule = sheet.text("p", id="rule")
    assert counting in rule
    assert (counted in rule) == (counting != "last")
    assert "One mistake costs one box." in rule


def test_once_closed_the_sheet_shows_the_attempt_that_counts(app: FastAPI) -> None:
    marked = MarkedClassroom(app, Policies(counting="best", feedback="after_close"))
    kim = marked.student("Kim")
    for answers in (KEY, WORSE):
        marked.hand_in(kim, answers)
    assert not marked.seen_by(kim)[0].marks()
    close_activity(marked.store, marked.school.reload(marked.activity))
    sheet, mine = marked.seen_by(kim)
    assert set(sheet.marks().values()) == {"right"}
    assert "14 of 14" in mine


def test_the_attempts_of_a_student_name_the_one_that_counts(app: FastAPI) -> None:
    marked = MarkedClassroom(app, Policies(counting="first"))
    kim = marked.student("Kim")
    for answers in (WORSE, KEY):
        marked.hand_in(kim, answers)
    [_row, first, second, *_] = table_rows(marked.page(f"/results/{kim.id}"))[0]
    assert "counts" in first
    assert "counts" not in second
    exported = marked.instructor.get(f"/courses/{marked.course.id}/exports/attempts.csv").text
    counts = [row["counts"] for row in csv.DictReader(exported.splitlines())]
    assert counts[0] != counts[1]
