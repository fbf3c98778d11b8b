"""Results taken home, and courses put away: who may have the files, archive, copy and delete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.classes.course_files import CourseFiles
from app.store import Teacher
from app.store.tables import audit_log, metadata
from tests.helpers.clock import Clock
from tests.helpers.taught_course import Taught


@pytest.fixture
def taught(new_app: FastAPI) -> Taught:
    return Taught(new_app)


def test_a_file_that_there_is_not_is_404(taught: Taught) -> None:
    with taught.school.browser(teacher=taught.ada) as browser:
        assert browser.get(f"/courses/{taught.course.id}/exports/passwords.csv").status_code == 404


def test_exports_and_the_rest_are_in_the_log_by_number(taught: Taught) -> None:
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
        taught.school.store.activities.note_auto_submitted(taught.activity)
        assert ada.post(f"{course}/bring-back").status_code == 303
        assert taught.school.reload(taught.activity).answers_shown_at == clock.now  # what is done from now on is late
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
    bo = roles(taught, "bo")
    with taught.school.browser(teacher=bo) as browser:
        assert "Export and archive" not in browser.get(f"/courses/{taught.course.id}").text
        assert browser.get(f"/courses/{taught.course.id}/exports/course.zip").status_code == 403
        assert browser.post(f"/courses/{taught.course.id}/delete", data={"title": "Transformers 1"}).status_code == 403


def test_a_course_is_copied_without_its_students(app_on_each_database: FastAPI) -> None:
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
    taught = Taught(new_app)
    whole = CourseFiles.answer_rows

    def fail(files: CourseFiles) -> Iterator[Any]:
        yield from whole(files)
        raise RuntimeError

    monkeypatch.setattr(CourseFiles, "answer_rows", fail)
    browser = taught.school.browser(teacher=taught.ada)
    assert browser.get(f"/courses/{taught.course.id}/exports/{file_name}").status_code == 500
