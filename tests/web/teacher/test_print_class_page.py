"""A class's handout is printed for the teacher who asked for it."""

from __future__ import annotations

import re

import pypdfium2 as pdfium
import pytest
from fastapi import FastAPI

from app.store import Course, Policies, Student
from tests.helpers.permission_table import ROLES, TwoCourses
from tests.helpers.print_jobs import finished_print_job
from tests.helpers.printed import Printed
from tests.helpers.school import Classroom


def test_a_class_handout_is_for_the_teacher_who_asked_for_it(app: FastAPI) -> None:
    """It leads back to the activity; its address, with everybody's name behind it, opens nothing for others."""
    courses = TwoCourses(app)
    with courses.school.browser(**courses.people["instructor"]) as browser:
        form = {"sheet": "1", "layout": "full"}
        answer = browser.post(courses.path("/activities/{activity_id:int}/handout"), data=form, follow_redirects=False)
        address = answer.headers["location"]
        page = finished_print_job(browser, address)
        assert "Download PDF" in page
        assert f'href="{courses.path("/activities/{activity_id:int}/handout")}"' in page
        assert browser.get(f"{address}.pdf").content.startswith(b"%PDF")
    for role in ROLES[:-1]:
        with courses.school.browser(**courses.people[role]) as browser:
            hidden, absent = browser.get(address), browser.get("/handout/jobs/" + "a" * 24)
            assert (hidden.status_code, hidden.text) == (404, absent.text)
            assert browser.get(f"{address}.pdf").status_code == 404


def test_the_roster_is_read_once(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the page and for a print job alike, however many students there are."""
    courses = TwoCourses(app)
    store = courses.school.services.store
    read_students, count = store.roster.students, 0

    def counted(course: Course) -> tuple[Student, ...]:
        nonlocal count
        count += 1
        return read_students(course)

    monkeypatch.setattr(store.roster, "students", counted)
    path = courses.path("/activities/{activity_id:int}/handout")
    with courses.school.browser(**courses.people["instructor"]) as browser:
        assert browser.get(path).status_code == 200
        assert count == 1
        answer = browser.post(path, data={"sheet": "1"}, follow_redirects=False)
        assert (answer.status_code, count) == (303, 2)
        finished_print_job(browser, answer.headers["location"])
    assert count == 2


@pytest.mark.parametrize("anonymous", [True, False])
def test_the_back_of_an_anonymous_ticket_says_nothing_of_whose_it_is(app: FastAPI, anonymous: bool) -> None:
    """Neither the name nor the code of the sheet, which is another one for each student; a named ticket has both."""
    classroom = Classroom(app, Policies(ticket_anonymous=anonymous, variants="per_student"), sheets=("llama-7b",))
    classroom.student("Kim Secretname")
    with classroom.instructor as browser:
        data = {"sheet": "1", "layout": "full", "back": "classic"}
        answer = browser.post(f"{classroom.path}/handout", data=data, follow_redirects=False)
        finished_print_job(browser, answer.headers["location"])
        pdf = pdfium.PdfDocument(browser.get(f"{answer.headers['location']}.pdf").content)
    front, back = (Printed(pdf[number]).text for number in range(2))
    [code] = re.findall(r"Sheet ([A-Z]{3}-[A-Z]{2}-[A-Z]{2})", front)
    assert "Secretname" in front
    assert [text in back for text in ("muddiest", "Secretname", code)] == [True, not anonymous, not anonymous]
