"""A class's handout is printed for the teacher who asked for it."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI

from app.classes.materials import library_with_materials
from app.classes.student_sheet import freeze
from app.store import Course, Plan, Policies, Student
from tests.helpers.answer_keys import KEY
from tests.helpers.permission_table import ROLES, TwoCourses
from tests.helpers.print_jobs import finished_print_job
from tests.helpers.printed import Printed, read_pdf
from tests.helpers.school import Classroom
from tests.helpers.sent_form import SentForm


def printed(classroom: Classroom, form: dict[str, str]) -> list[Printed]:
    """The pages that the instructor prints for the class, at an address that students can reach too."""
    with classroom.instructor as browser:
        browser.headers["host"] = "shapes.example.org"
        address = browser.post(f"{classroom.path}/handout", data=form).headers["location"]
        finished_print_job(browser, address)
        return read_pdf(browser.get(f"{address}.pdf").content)


def test_a_class_handout_is_for_the_teacher_who_asked_for_it(app: FastAPI) -> None:
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


def test_the_roster_is_read_once_at_each_step(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert answer.status_code == 303  # the names are read now, the sheets when the job begins
        finished_print_job(browser, answer.headers["location"])
    assert count == 3


@pytest.mark.slow
def test_paper_of_an_own_worksheet_has_a_code_but_no_address(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    library, store = classroom.school.library, classroom.store
    settings = library.worksheet("llama-7b").settings
    own = store.materials.add("worksheet", classroom.course, classroom.teacher, settings)
    content = freeze(library_with_materials(library, store, [own]), (own.key, "llama-7b"), None)
    activity = classroom.activity = store.activities.add(classroom.course, Plan("Week 3"), content)
    store.activities.set_state(activity, "open")
    classroom.student()
    [own_page], [page] = (printed(classroom, {"sheet": number, "layout": "full"}) for number in ("1", "2"))
    assert ["example.org/v/" in each.text for each in (own_page, page)] == [False, True]
    assert [len(each.codes) for each in (own_page, page)] == [0, 1]
    [code] = re.findall(r"Sheet ([A-Z]{3}-[A-Z]{2}-[A-Z]{2})", own_page.text)
    typed = f"Kim {code}: {' '.join(KEY.values())}"
    shown = classroom.instructor.post(f"{classroom.path}/paper", data={"sheet": "2", "typed": typed})
    form = {**SentForm(shown.text).values, "do": "store"}
    assert classroom.instructor.post(f"{classroom.path}/paper", data=form).status_code == 200
    [attempt] = store.classwork.attempts_of_activity(activity.id)
    assert (attempt.sheet_key, attempt.score) == (content.items[0].sheet_key, attempt.out_of)


@pytest.mark.slow
@pytest.mark.parametrize("anonymous", [True, False])
def test_the_back_of_an_anonymous_ticket_says_nothing_of_whose_it_is(app: FastAPI, anonymous: bool) -> None:
    classroom = Classroom(app, Policies(ticket_anonymous=anonymous, variants="per_student"), sheets=("llama-7b",))
    classroom.student("Kim Secretname")
    front, back = (page.text for page in printed(classroom, {"sheet": "1", "layout": "full", "back": "classic"}))
    [code] = re.findall(r"Sheet ([A-Z]{3}-[A-Z]{2}-[A-Z]{2})", front)
    assert "Secretname" in front
    assert [text in back for text in ("muddiest", "Secretname", code)] == [True, not anonymous, not anonymous]


def test_an_activity_is_printed_without_a_roster(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=("qwen2.5-0.5b",))
    form = SentForm(classroom.get(f"{classroom.path}/handout")).values
    assert "sheets" in form
    pages = printed(classroom, {"sheet": "1", "layout": "full", "sheets": "3"})
    assert len(pages) == 3
    code = classroom.school.library.variant("qwen2.5-0.5b").code
    assert all(code in page.text for page in pages)
    refused = classroom.instructor.post(f"{classroom.path}/handout", data={"sheet": "1", "sheets": "0"})
    assert refused.status_code == 422
