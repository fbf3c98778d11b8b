"""The files of a course: what a spreadsheet, Canvas, Moodle and a program find in them."""

from __future__ import annotations

import io
import json
import re
import tomllib
import zipfile
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.classes.course_files import CourseFiles
from app.store import Activity
from app.store.tables import metadata
from tests.helpers.closed_activity import close_activity
from tests.helpers.taught_course import EVIL, Taught, read


@pytest.fixture
def taught(new_app: FastAPI) -> Taught:
    return Taught(new_app)


def test_an_export_holds_while_somebody_joins(app_on_each_database: FastAPI) -> None:
    taught = Taught(app_on_each_database)
    store = taught.school.store
    activities = store.activities.of_course(taught.course)[::-1]
    files = CourseFiles(taught.school.library, store, taught.course, activities)
    assert len(files.students) == 2
    late, _ = taught.school.student(taught.course, "Max Late")
    taught.hand_in(late, 0, {"queries.rows": "100"}, "late")
    taught.work.arrive(taught.named.id, late.id)
    taught.school.store.exit_tickets.hand_in(taught.named.id, late.id, {"muddiest": "late"}, anonymous=False)
    tables = [list(rows()) for rows in (files.answer_rows, files.attempt_rows, files.ticket_rows, files.student_rows)]
    assert [len(rows) for rows in tables] == [43, 4, 2, 3]  # two anonymous tickets are not shown yet
    whole = io.BytesIO()
    files.write_zip(whole, "")
    texts = [zipfile.ZipFile(whole).read(name).decode() for name in zipfile.ZipFile(whole).namelist()]
    assert not any("Max Late" in text or "late form" in text for text in texts)
    again = CourseFiles(taught.school.library, store, taught.course, activities)
    assert len(list(again.attempt_rows())) == 5


def test_every_box_of_every_try_has_a_row(app_on_each_database: FastAPI) -> None:
    taught = Taught(app_on_each_database)
    got = taught.get("answers.csv")
    assert got.headers["content-disposition"] == 'attachment; filename="transformers-1-answers.csv"'
    assert got.headers["cache-control"] == "no-store"
    rows = read(got.text)
    assert len(rows) == 42
    [first, second] = [row for row in rows if row["student"].startswith("Kim") and row["box"] == "queries.rows"]
    assert (first["attempt"], first["counts"], second["attempt"], second["counts"]) == ("1", "no", "2", "yes")
    assert (second["answer"], second["mark"], second["activity"], second["date"]) == (
        "100",
        "right",
        "Week 3",
        "2026-03-02",
    )
    assert (second["model"], second["tokens"], second["handed in"]) == ("llama-7b", "100", "yes")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", second["time"])
    typed = {row["box"]: (row["answer"], row["mark"]) for row in rows if row["student"] == f"'{EVIL}"}
    assert typed["queries.rows"] == (f"'{EVIL}", "unreadable")
    assert typed["keys.rows"][0] == "-5"
    assert typed["values.rows"] == ("", "empty")


def test_the_gradebooks_count_the_last_attempt_on_each_sheet(taught: Taught) -> None:
    rows = read(taught.get("gradebook-canvas.csv").text)
    assert list(rows[0])[5:] == ["Week 3"]
    assert [(row["Student"].strip(), row["Week 3"]) for row in rows] == [
        ("Points Possible", "28"), (f"'{EVIL}", "0"), ("Kim Secretname", "2"),
    ]  # fmt: skip
    assert taught.get("gradebook-moodle.csv").text == "ID number,Full name,Week 3 (%)\r\n"  # nobody has a number


def test_a_sheet_that_was_replaced_keeps_its_points(taught: Taught) -> None:
    store = taught.school.store
    items = taught.activity.content.items
    other = replace(items[0], worksheet={**items[0].worksheet, "tokens": 50})
    store.activities.revise(taught.activity, replace(taught.activity.content, items=(other, items[1])))
    [kim] = [row for row in read(taught.get("gradebook-canvas.csv").text) if row["Student"].startswith("Kim")]
    assert kim["Week 3"] == "2"
    assert len(read(taught.get("attempts.csv").text)) == 3


def in_zip(taught: Taught, activity: Activity | None = None) -> dict[str, Any]:
    """The JSON of an activity, by default the one with the anonymous ticket."""
    archive = zipfile.ZipFile(io.BytesIO(taught.get("course.zip").content))
    content: dict[str, Any] = json.loads(archive.read(f"activities/{(activity or taught.activity).id}.json"))
    return content


def test_anonymous_tickets_say_nothing_of_who_wrote_them(taught: Taught) -> None:
    assert in_zip(taught)["exit_tickets_held_back"] == 2
    close_activity(taught.school.store, taught.activity)
    rows = read(taught.get("exit-tickets.csv").text)
    assert {(row["activity"], row["student"]) for row in rows} == {("Week 3", ""), ("Week 4", "Kim Secretname")}
    assert rows[0]["question"].endswith("?")
    activity = in_zip(taught)
    assert (len(activity["exit_tickets"]), activity["exit_tickets_held_back"]) == (2, 0)
    assert {name for arrival in activity["attendance"] for name in arrival} == {"student_id", "arrived_at"}
    for answer in activity["exit_tickets"]:
        assert set(answer) == {"question", "text", "student_id", "day", "starred", "follow_up", "hidden"}
        assert answer["student_id"] is None
    named = in_zip(taught, taught.named)["exit_tickets"]
    assert [answer["student_id"] for answer in named] == [taught.kim.id]


def test_the_zip_holds_the_course_and_nothing_that_lets_people_in(taught: Taught) -> None:
    ticket = {"title": "Bye", "instruction": "Pick.", "questions": [{"key": "q", "text": "Why?"}]}
    material = taught.school.store.materials.add("ticket", taught.course, taught.ada, ticket)
    archive = zipfile.ZipFile(io.BytesIO(taught.get("course.zip").content))
    readme = archive.read("README.txt").decode()
    for name in set(archive.namelist()) - {"README.txt"}:
        assert re.sub(r"/\d+\.", "/ID.", name) in readme
    assert tomllib.loads(archive.read(f"exit-tickets/{material.id}.toml").decode()) == ticket
    course = json.loads(archive.read("course.json"))
    assert [s["name"] for s in course["students"]] == [EVIL, "Kim Secretname"]
    kept = json.loads(archive.read(f"activities/{taught.activity.id}.json"))
    assert [attempt["answers"] for attempt in kept["attempts"]][1] == {
        "queries.rows": "100",
        "queries.columns": "4096/32",
    }
    assert kept["revisions"][0]["items"][0]["key"] == "llama-7b"
    assert {draft["student_id"] for draft in kept["drafts"]} == {taught.kim.id, taught.lou.id}
    everything = " ".join(archive.read(name).decode() for name in archive.namelist())
    for secret in (taught.activity.join_code, "no hash of any password", "resume_hash"):
        assert secret not in everything


def whole(store: Any) -> dict[str, list[Any]]:
    """Every row of every table."""
    with store.engine.connect() as connection:
        return {table.name: list(connection.execute(sa.select(table)).all()) for table in metadata.sorted_tables}
