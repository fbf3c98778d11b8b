"""The gradebook: points, missing and excused students, overrides with a reason, sorting, filtering, and the exports."""

from __future__ import annotations

import csv
import io
import zipfile

import sqlalchemy as sa
from fastapi import FastAPI

from app.store import Student
from app.store.tables import attempts, audit_log
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, table_rows
from tests.helpers.running_activity import counted_statements

HALF = dict(list(KEY.items())[:7])


class GradedClassroom(MarkedClassroom):
    """A classroom where Kim has 14 points, Lou 7 and Mo nothing, and which has a draft beside its activity."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app)
        self.kim, self.lou, self.mo = (self.student(name) for name in ("Kim", "Lou", "Mo"))
        self.hand_in(self.kim, KEY)
        self.hand_in(self.lou, HALF)

    @property
    def course_path(self) -> str:
        """The address of the course."""
        return f"/courses/{self.course.id}"

    def table(self, query: str = "") -> list[list[str]]:
        """The rows of the gradebook, its head and its means included."""
        return table_rows(Page(self.get(f"{self.course_path}/gradebook{query}")))

    def names(self, query: str = "") -> list[str]:
        """The students in the order of the gradebook."""
        return [row[0] for row in self.table(query)[1:-1]]

    def change(self, student: Student, **form: str) -> int:
        """Send the form that changes a student's points; the status."""
        return self.instructor.post(f"{self.path}/results/{student.id}/points", data=form).status_code

    def exported(self, name: str) -> list[list[str]]:
        """A CSV file of the course, row by row."""
        text = self.get(f"{self.course_path}/exports/{name}").removeprefix("\ufeff")
        return list(csv.reader(io.StringIO(text)))

    def end_and_settle(self) -> None:
        """Close the activity long ago, with nothing left to be auto-submitted."""
        self.school.services.auto_submitter.settle(self.school.end(self.activity))


def points(row: list[str]) -> str:
    """The text of the activity's cell of a row, after the names for people who can't see the table."""
    return row[2].rpartition(": ")[2]


def test_points_missing_means_and_order(app: FastAPI) -> None:
    classroom = GradedClassroom(app)
    classroom.end_and_settle()
    head, kim, lou, mo, mean = classroom.table()
    assert head[2].startswith("Week 3 (14)")
    assert [points(row) for row in (kim, lou, mo)] == ["14", "7", "missing"]
    assert [row[1] for row in (kim, lou, mo)] == ["14 of 14", "7 of 14", "0 of 14"]
    assert mean[2] == "10.5 (2)"
    column = classroom.activity.id
    assert classroom.names(f"?sort={column}") == ["Kim", "Lou", "Mo"]
    assert classroom.names(f"?sort={column}&order=up") == ["Lou", "Kim", "Mo"]
    assert classroom.names("?sort=total&order=up") == ["Mo", "Lou", "Kim"]
    assert classroom.names("?order=down&sort=nonsense") == ["Mo", "Lou", "Kim"]
    assert classroom.names("?show=missing") == ["Mo"]
    assert classroom.names("?q=LO") == ["Lou"]


def test_nobody_is_missing_before_an_activity_has_closed(app_on_each_database: FastAPI) -> None:
    classroom = GradedClassroom(app_on_each_database)
    classroom.send(classroom.mo, "save", {"queries.rows": "what?"})  # which is not auto-submitted
    for state, total, out_of in (("open", "0 of 0", "0"), ("missing", "0 of 14", "14")):
        _, kim, lou, mo, mean = classroom.table()
        assert (points(mo), mo[1], mean[2]) == (state, total, "10.5 (2)")
        assert [row[1] for row in (kim, lou)] == ["14 of 14", "7 of 14"]
        assert classroom.names("?show=missing") == (["Mo"] if state == "missing" else [])
        assert classroom.exported("gradebook.csv")[-1] == ["Mo", "", "", "", "", "0", out_of]
        assert classroom.exported("gradebook-canvas.csv")[-1][-1] == ""
        classroom.end_and_settle()


def test_an_override_needs_a_reason_is_logged_and_wins_in_every_export(app_on_each_database: FastAPI) -> None:
    classroom = GradedClassroom(app_on_each_database)
    assert classroom.change(classroom.lou, action="change", points="9,5") == 422
    assert classroom.change(classroom.lou, action="change", points="plenty", reason="a good question") == 422
    assert classroom.change(classroom.lou, action="change", points="9,5", reason="a good question") == 303
    assert classroom.change(classroom.mo, action="excuse", reason="was ill") == 303
    lou, mo, mean = classroom.table()[2:]
    assert points(lou).startswith("9.5")
    assert (mo[1], points(mo), mean[2]) == ("0 of 0", "excused", "11.8 (2)")
    assert classroom.names("?show=changed") == ["Lou", "Mo"]
    assert classroom.names("?show=excused") == ["Mo"]
    page = Page(classroom.get(f"{classroom.path}/results/{classroom.mo.id}"))
    assert "was ill" in page.text("section", id="points")
    rows = {row[0]: row[2:] for row in classroom.exported("gradebook.csv")}
    assert rows["Lou"] == ["7", "9.5", "a good question", "9.5", "14"]
    assert rows["Mo"] == ["", "excused", "was ill", "0", "0"]
    assert {row[0]: row[-1] for row in classroom.exported("gradebook-canvas.csv")[2:]} == {
        "Kim": "14", "Lou": "9.5", "Mo": "EX",
    }  # fmt: skip
    with classroom.instructor as browser:
        file = browser.get(f"{classroom.course_path}/exports/course.zip").content
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        [_, first, second] = archive.read("overrides.csv").decode().splitlines()
        assert "a good question" in first
        assert "was ill" in second
        assert min(entry.date_time[0] for entry in archive.infolist()) > 2000
    with classroom.store.engine.connect() as connection:
        query = sa.select(audit_log.c.object_id, audit_log.c.detail).where(audit_log.c.action == "points changed")
        logged = [tuple(row) for row in connection.execute(query)]
    assert logged == [
        (classroom.lou.id, f"9.5, activity {classroom.activity.id}"),
        (classroom.mo.id, f"excused, activity {classroom.activity.id}"),
    ]
    assert classroom.change(classroom.lou, action="undo") == 303
    assert points(classroom.table()[2]) == "7"


def test_late_work_and_auto_submitted_drafts_are_marked(app: FastAPI) -> None:
    classroom = GradedClassroom(app)
    with classroom.store.engine.begin() as connection:
        update = sa.update(attempts)
        connection.execute(update.where(attempts.c.student_id == classroom.kim.id).values(late=True))
        connection.execute(update.where(attempts.c.student_id == classroom.lou.id).values(auto_submitted=True))
    _, kim, lou, mo, _ = classroom.table()
    assert "late" in kim[2]
    assert "auto-submitted" in lou[2]
    assert not any(word in mo[2] for word in ("late", "auto-submitted"))


def test_a_large_class_takes_no_more_statements_and_is_paged(app: FastAPI) -> None:
    classroom = GradedClassroom(app)
    with counted_statements(classroom.store) as few:
        classroom.table()
    for number in range(120):
        classroom.student(f"Pupil {number:03}")
    with counted_statements(classroom.store) as many:
        assert len(classroom.names()) == 100
    assert len(many) == len(few)
    assert classroom.names("?page=2")[-1] == "Pupil 119"
