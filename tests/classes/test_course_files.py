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
from app.store.tables import metadata
from tests.helpers.anonymous_tickets import close_and_mix
from tests.helpers.taught_course import EVIL, Taught, read


@pytest.fixture
def taught(new_app: FastAPI) -> Taught:
    return Taught(new_app)


def test_an_export_holds_while_somebody_joins(app_on_each_database: FastAPI) -> None:
    taught = Taught(app_on_each_database)
    store = taught.school.store
    activities = store.activities.of_course(taught.course)[::-1]
    points = {activity.id: [14] * len(activity.content.items) for activity in activities}
    files = CourseFiles(taught.school.library, store, taught.course, activities, points)
    assert len(files.students) == 2
    late, _ = taught.school.student(taught.course, "Max Late")
    taught.hand_in(late, 0, {"queries.rows": "100"}, "late")
    taught.work.arrive(taught.named.id, late.id)
    taught.school.store.exit_tickets.hand_in(
        taught.named.id, late.id, "late form", {"muddiest": "late"}, anonymous=False
    )
    tables = [list(rows()) for rows in (files.answer_rows, files.attempt_rows, files.ticket_rows, files.student_rows)]
    assert [len(rows) for rows in tables] == [43, 4, 2, 3]  # two anonymous tickets wait for others
    whole = io.BytesIO()
    files.write_zip(whole)
    texts = [zipfile.ZipFile(whole).read(name).decode() for name in zipfile.ZipFile(whole).namelist()]
    assert not any("Max Late" in text or "late form" in text for text in texts)
    again = CourseFiles(taught.school.library, store, taught.course, activities, points)
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


def test_anonymous_tickets_say_nothing_of_who_wrote_them(taught: Taught) -> None:
    close_and_mix(taught.school.store, taught.activity)
    rows = read(taught.get("exit-tickets.csv").text)
    assert {(row["activity"], row["student"]) for row in rows} == {("Week 3", ""), ("Week 4", "Kim Secretname")}
    assert rows[0]["question"].endswith("?")
    archive = zipfile.ZipFile(io.BytesIO(taught.get("course.zip").content))
    kept = json.loads(archive.read(f"activities/{taught.activity.id}.json"))["exit_tickets"]
    assert len(kept) == 2
    for answer in kept:
        assert set(answer) == {"question", "text", "student_id", "day", "starred", "follow_up", "hidden"}
        assert answer["student_id"] is None
    named = json.loads(archive.read(f"activities/{taught.named.id}.json"))["exit_tickets"]
    assert [answer["student_id"] for answer in named] == [taught.kim.id]


def test_an_export_says_how_many_tickets_are_held_back(app_on_each_database: FastAPI) -> None:
    taught = Taught(app_on_each_database)
    store, activity = taught.school.store, taught.activity

    def held_back() -> int:
        archive = zipfile.ZipFile(io.BytesIO(taught.get("course.zip").content))
        assert not any(b"Why Zoe" in archive.read(name) for name in archive.namelist())
        return int(json.loads(archive.read(f"activities/{activity.id}.json"))["exit_tickets_held_back"])

    assert held_back() == 2
    close_and_mix(store, activity)
    assert held_back() == 0
    store.activities.change(activity, activity.plan)
    zoe, _ = taught.school.student(taught.course, "Zoe")
    taught.work.arrive(activity.id, zoe.id)
    store.exit_tickets.hand_in(activity.id, zoe.id, "z", {"muddiest": "Why Zoe?"}, anonymous=True)
    close_and_mix(store, activity)
    assert held_back() == 1
    assert len(read(taught.get("exit-tickets.csv").text)) == 3
    store.courses.delete(taught.course)
    assert store.exit_tickets.count_held(taught.course) == 0


def test_anonymous_tickets_come_in_a_new_order_each_time(taught: Taught) -> None:
    for number in range(10):
        student, _ = taught.school.student(taught.course, f"S{number}")
        taught.work.arrive(taught.activity.id, student.id)
        taught.school.store.exit_tickets.hand_in(
            taught.activity.id, student.id, f"f{number}", {"again": str(number)}, anonymous=True
        )
    orders = {tuple(row["answer"] for row in read(taught.get("exit-tickets.csv").text)) for _ in range(4)}
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1


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
