"""Every attempt of one student, and who has no page here."""

from __future__ import annotations

from fastapi import FastAPI

from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.marked_classroom import MarkedClassroom, table_rows


def test_a_students_page_shows_every_attempt(app: FastAPI) -> None:
    """In their order, with what was typed and how it was marked; another student's are elsewhere."""
    classroom = MarkedClassroom(app)
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    classroom.hand_in(kim, WIDE)
    classroom.hand_in(kim, {**KEY, "keys.rows": "??"})
    classroom.hand_in(lou, {**KEY, "keys.rows": "77777"})
    page = classroom.page(f"/results/{kim.id}")
    heads, *rows = table_rows(page)
    assert [head.split("handed")[0].rpartition(" of ")[0].split()[-1] for head in heads[1:]] == ["11", "13"]
    table = {row[0]: row[1:] for row in rows}
    assert table["Keys"] == ["100 correct × 4096 not correct", "?? unreadable × 128 correct"]
    assert table["Misconceptions"] == ["Head as wide as the model", "–"]
    assert "77777" not in str(rows)


def test_a_student_of_another_course_has_no_page_here(app: FastAPI) -> None:
    """Their number under one's own activity is 404, as a number that nobody has is."""
    classroom, other = MarkedClassroom(app), MarkedClassroom(app)
    stranger = other.student("Lou")
    with classroom.instructor as browser:
        for number in (stranger.id, 999_999, 10**30):
            assert browser.get(f"{classroom.path}/results/{number}").status_code == 404
