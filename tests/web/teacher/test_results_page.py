"""Results: tables of marks by student and by row, one student's attempts, and the page for the next meeting."""

from __future__ import annotations

import csv
import io

from fastapi import FastAPI

from app.classes.student_sheet import student_sheet
from app.store import Policies
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.clock import Clock
from tests.helpers.marked_classroom import MarkedClassroom, table_rows
from tests.helpers.school import Classroom

FOLLOWING = {**KEY, "input.rows": "99", "queries.rows": "99"}


def test_the_table_shows_last_attempts_and_the_rows_first_ones(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    kim, lou, ned, _ = (classroom.student(name) for name in ("Kim", "Lou", "Ned", "Mo"))
    classroom.hand_in(ned, FOLLOWING)
    classroom.hand_in(kim, WIDE)
    classroom.hand_in(kim, KEY)
    classroom.hand_in(lou, WIDE)
    table = {line[0]: line[1:] for line in table_rows(classroom.page("/results"))}
    assert table["Kim"][:2] == ["14 of 14", "2"]
    assert [mark[0] for mark in table["Kim"][2:]] == ["✓"] * 7
    assert [mark[0] for mark in table["Lou"][2:]] == ["✓", "◇", "≈", "≈", "✓", "✓", "✓"]
    assert [mark[0] for mark in table["Ned"][2:]] == ["◇", "≈", "✓", "✓", "✓", "✓", "✓"]
    assert table["Mo"] == [""] * 9
    assert table["Queries Q"][1:] == ["0%", "1 of 3", "columns 4096 (dmodel) (2 students)"]
    assert table["Input to this head X"][1:] == ["67%", "2 of 3", "rows 99 (1 student)"]
    assert table["Head as wide as the model"] == ["2", "1"]


def test_a_wrong_number_is_named_by_what_leads_to_it_not_by_a_size_that_happens_to_be_equal(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, sheets=("layer-mistral-7b",))
    variant = classroom.school.services.library.variant("layer-mistral-7b")
    right = {box: str(size) for box, size in variant.key.items()}
    wide = {**right, "keys.columns": "32768"}
    classroom.hand_in(classroom.student("Kim"), wide)
    table = {line[0]: line[1:] for line in table_rows(classroom.page("/results"))}
    name = classroom.school.services.library.wording.misconception_name("heads-multiply-width")
    assert table["Keys K"][3] == f"columns 32,768 ({name}) (1 student)"


def test_ten_students_are_enough_to_say_how_a_row_discriminates(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    weak = dict.fromkeys(KEY, "1") | {"input.rows": "100", "input.columns": "4096"}
    for number in range(10):
        classroom.hand_in(classroom.student(f"S{number}"), KEY if number < 5 else weak)
    table = {line[0]: line[1:] for line in table_rows(classroom.page("/results"))}
    assert table["Keys K"][3] == "1.00"
    assert table["Input to this head X"][3] == "no variation"


def test_wrong_answers_of_different_numbers_are_counted_by_their_symbol(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, Policies(variants="per_student"))
    typed = set[str]()
    for number in range(3):
        student = classroom.student(f"S{number}")
        services = classroom.school.services
        variant = student_sheet(services.library, services.store, classroom.activity, student, 1).variant
        wide = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
        wide |= {f"{row}.columns": str(variant.sizes["d"]) for row in ("queries", "keys", "values")}
        classroom.hand_in(student, wide)
        typed.add(str(variant.tokens))
    assert len(typed) > 1
    table = {line[0]: line[1:] for line in table_rows(classroom.page("/results"))}
    assert table["Queries Q"] == ["", "0%", "0 of 3", "columns dmodel (3 students)"]
    assert table["Head as wide as the model"] == ["3", "3"]
    assert "All 3 attempts would keep" in str(classroom.page("/regrade").find("p"))


def test_what_was_auto_submitted_and_what_is_late_is_said_wherever_it_counts(app: FastAPI, clock: Clock) -> None:
    classroom = Classroom(app, Policies(feedback="after_close", late_minutes=10))
    kim, lee = classroom.student("Kim"), classroom.student("Lee")
    classroom.send(kim, "save", KEY)
    classroom.store.activities.close(classroom.activity)
    clock.pass_minutes(1)
    classroom.send(lee, "hand-in", KEY)
    clock.pass_minutes(10)
    lines = {line[0]: line[1:3] for line in table_rows(classroom.page("/results"))}
    assert (lines["Kim"], lines["Lee"]) == (["14 of 14", "1a, auto-submitted at closing"], ["14 of 14", "1l, late"])
    assert "auto-submitted at closing" in classroom.get(f"{classroom.path}/results/{kim.id}")
    assert "late" in classroom.page(f"/results/{lee.id}").text("table")
    live = classroom.page()
    tally = dict(zip((name for _, name in live.find("dt")), (value for _, value in live.find("dd")), strict=True))
    assert (tally["handed in"], tally["handed in at closing"]) == ("1", "1")
    assert not {"working", "not handed in"} & tally.keys()
    exported = list(csv.DictReader(io.StringIO(classroom.get(f"/courses/{classroom.course.id}/exports/attempts.csv"))))
    assert [(line["student"], line["auto-submitted"], line["late"]) for line in exported] == [
        ("Kim", "yes", "no"), ("Lee", "no", "yes"),
    ]  # fmt: skip
    for student, words in ((kim, "auto-submitted at closing"), (lee, "handed in late")):
        with classroom.browser_of(student) as browser:
            assert words in browser.get("/mine").text
            assert "14 of 14" in browser.get("/mine").text


def test_students_are_sorted_filtered_and_paged(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    kim, lou, ned, _ = (classroom.student(name) for name in ("Kim", "Lou", "Ned", "Mo"))
    classroom.hand_in(kim, WIDE)
    classroom.hand_in(kim, KEY)
    classroom.hand_in(lou, WIDE)
    classroom.hand_in(ned, FOLLOWING)

    def names(query: str) -> list[str]:
        rows = table_rows(classroom.page(f"/results{query}"))
        return [row[0] for row in rows if row[0] in ("Kim", "Lou", "Ned", "Mo")]

    assert names("") == ["Lou", "Ned", "Kim", "Mo"]
    assert names("?sort=name") == ["Kim", "Lou", "Mo", "Ned"]
    assert names("?sort=name&order=down") == ["Ned", "Mo", "Lou", "Kim"]
    assert names("?sort=score") == ["Kim", "Lou", "Ned", "Mo"]
    assert names("?sort=score&order=up") == ["Lou", "Ned", "Kim", "Mo"]
    assert names("?sort=attempts")[0] == "Kim"
    assert names("?show=not-handed-in") == ["Mo"]
    assert names("?show=head-as-wide-as-model") == ["Lou"]
    assert names("?show=the-earth-is-flat") == []
    [mean] = [row for row in table_rows(classroom.page("/results")) if row[0] == "Class mean"]
    assert mean[1] == f"{(14 + 13 + float(classroom.hand_in(lou, WIDE).score)) / 3:.1f} of 14"
    for number in range(100):
        classroom.student(f"Pupil {number:03}")
    assert len(classroom.page("/results").find("td", class_="mark")) == 100 * 7
    assert len(classroom.page("/results?page=2").find("td", class_="mark")) == 4 * 7


def test_an_activity_is_exported_by_itself(app: FastAPI) -> None:
    classroom, other = MarkedClassroom(app), MarkedClassroom(app)
    classroom.hand_in(classroom.student("Kim"), KEY)
    classroom.activity = classroom.open()
    classroom.hand_in(classroom.student("Lou"), KEY)
    links = [each["href"] for each, _ in classroom.page("/results").find("a") if "exports/attempts.csv" in each["href"]]
    text = classroom.get(links[0])
    assert ("Lou" in text, "Kim" in text) == (True, False)
    address = f"/courses/{other.course.id}/exports/attempts.csv?activity={classroom.activity.id}"
    assert other.instructor.get(address).status_code == 404


def test_students_of_one_name_have_their_numbers(app: FastAPI) -> None:
    classroom = Classroom(app)
    classroom.store.roster.add_students(classroom.course, [("Alex Smith", "1020"), ("Alex Smith", "1044")])
    for alex in classroom.store.roster.students(classroom.course):
        classroom.store.classwork.arrive(classroom.activity.id, alex.id)
    for below in ("/results", ""):
        page = classroom.get(classroom.path + below)
        assert "Alex Smith (1020)" in page
        assert "Alex Smith (1044)" in page
