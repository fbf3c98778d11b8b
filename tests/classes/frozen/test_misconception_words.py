"""A teacher's own misconception in a class: every page that speaks of one finds its words in what was frozen."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fastapi import FastAPI

from app.classes.materials import library_with_materials
from app.classes.student_sheet import freeze
from app.grading.grade import grade
from app.practice.record import PracticeRecord
from app.sheets.library import Library
from app.sheets.worksheet import AuthorMisconception
from app.store import Plan
from app.translation import ENGLISH
from app.web.shared.services import Services
from tests.helpers.answer_keys import KEY, boxes
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, table_rows
from tests.helpers.school import ONE_SHEET, TWO_SHEETS, School
from tests.helpers.sent_form import SentForm

NAME = '<script>alert("1")</script> =HYPERLINK("x") {7*7}'
OWN = AuthorMisconception(
    NAME,
    {"queries.columns": "H*d", "values.columns": "d_head/2"},
    'Whose <b>columns</b> are these, "{0}"?',
    "Every head has **its own** $d_h$ columns, <i>n</i>.",
    key="own-heads-side-by-side",
)
EXPLAINED = "Every head has <strong>its own</strong>"  # its Markdown, in which HTML is plain text
BESIDE = {**KEY, "queries.columns": "131072", "values.columns": "64"}


def with_author_misconception(library: Library, keys: tuple[str, ...] = ONE_SHEET) -> Library:
    """The library, had the author of these sheets described a misconception."""
    sheets = {key: replace(library.worksheets[key], misconceptions=(OWN,)) for key in keys}
    return replace(library, worksheets={**library.worksheets, **sheets})


@contextmanager
def describing_it(app: FastAPI) -> Iterator[Library]:
    """The app with that library."""
    services: Services = app.state.services
    app.state.services = replace(services, libraries={ENGLISH: with_author_misconception(services.library)})
    try:
        yield app.state.services.library
    finally:
        app.state.services = services


def classroom_with_author_misconception(app: FastAPI) -> MarkedClassroom:
    """A classroom whose activity froze a sheet with the misconception, which today's library lacks."""
    classroom = MarkedClassroom(app)
    library = with_author_misconception(classroom.school.library)
    classroom.store.activities.revise(classroom.activity, freeze(library, ONE_SHEET, None))
    return classroom


def test_teachers_see_it_by_its_name(app: FastAPI) -> None:
    classroom = classroom_with_author_misconception(app)
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    attempt = classroom.hand_in(kim, BESIDE)
    classroom.hand_in(lou, KEY)
    assert attempt.misconceptions == (OWN.key,)
    [(_, line)] = classroom.page().find("li", id=f"misconception-{OWN.key}")
    assert line.startswith(NAME)
    results = {row[0]: row[1:] for row in table_rows(classroom.page("/results?show=own-heads-side-by-side"))}
    assert results[NAME] == ["1", "1"]
    assert "Lou" not in results
    assert results["Queries Q"][3].startswith(f"columns 131,072 ({NAME} or ")
    assert [NAME] in [row[1:] for row in table_rows(classroom.page(f"/results/{kim.id}"))]
    summary = classroom.get(f"{classroom.path}/summary")
    assert html.escape(NAME, quote=False) in summary.replace("&#34;", '"')
    assert EXPLAINED in summary
    assert "&lt;i&gt;n&lt;/i&gt;" in summary
    exported = classroom.get(f"/courses/{classroom.course.id}/exports/attempts.csv")
    assert [row["misconceptions"] for row in csv.DictReader(io.StringIO(exported))] == [OWN.key, ""]


def test_it_is_explained_with_a_drawing_of_what_it_predicts(app: FastAPI) -> None:
    classroom = classroom_with_author_misconception(app)
    classroom.hand_in(classroom.student("Kim"), BESIDE)
    with classroom.instructor as browser:
        action = f"{classroom.path}/projector"
        unknown = {"view": "explain", "misconception": "own-nothing"}
        assert browser.post(action, data=unknown).status_code == 422
        browser.post(action, data={"view": "explain", "misconception": OWN.key})
        for address in (action, f"{classroom.path}?explain={OWN.key}"):
            text = browser.get(address).text
            assert EXPLAINED in text
            assert len(Page(text).find("figure")) == 2
        assert OWN.question in Page(browser.get(action).text).text("h2", id="explained")


def test_a_student_reads_the_teachers_words_and_no_others(app: FastAPI) -> None:
    classroom = classroom_with_author_misconception(app)
    kim = classroom.student("Kim")
    classroom.send(kim, "check", BESIDE)
    sheet, _ = classroom.seen_by(kim)
    assert sheet.text("p", class_="diagnosis") == OWN.question
    classroom.send(kim, "hand-in", KEY, 2)
    with classroom.browser_of(kim) as browser:
        text = browser.get(classroom.sheet_path).text
    assert EXPLAINED in text
    assert len(Page(text[text.index('id="earlier"') :]).find("figure")) >= 2


def test_one_that_is_described_later_is_found_by_a_regrade(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, sheets=None)
    store, library = classroom.store, classroom.school.library
    settings = library.worksheet("llama-7b").settings
    material = store.materials.add("worksheet", classroom.course, classroom.teacher, settings)
    offered = library_with_materials(library, store, [material])
    activity = store.activities.add(classroom.course, Plan("Week 3"), freeze(offered, (f"own-{material.id}",), None))
    store.activities.set_state(activity, "open")
    classroom.activity = classroom.school.reload(activity)
    before = classroom.hand_in(classroom.student("Kim"), BESIDE)
    assert before.misconceptions == ()
    described = {
        "misconception_key": OWN.key,
        "misconception_name": NAME,
        "misconception_boxes": "\n".join(f"{box} = {formula}" for box, formula in OWN.boxes.items()),
        "misconception_question": OWN.question,
        "misconception_explanation": OWN.explanation,
    }
    form = SentForm(classroom.get(f"/worksheets/{material.id}/edit")).values
    with classroom.instructor as browser:
        assert browser.post(f"/worksheets/{material.id}", data={**form, **described}).status_code == 303
    changes = classroom.page("/regrade?by=library").find("input", name="changes")[0][0]["value"]
    assert classroom.regrade({"changes": changes, "by": "library"}) == 303
    [after] = store.classwork.attempts_of_activity(activity.id)
    assert (after.misconceptions, after.score) == ((OWN.key,), before.score + 1)
    assert NAME in {row[0] for row in table_rows(classroom.page("/results"))}
    [(_, line)] = classroom.page().find("li", id=f"misconception-{OWN.key}")
    assert line.startswith(NAME)


def test_the_same_one_on_two_sheets_is_counted_together(app: FastAPI) -> None:
    classroom = MarkedClassroom(app, sheets=TWO_SHEETS)
    library = with_author_misconception(classroom.school.library, TWO_SHEETS)
    classroom.store.activities.revise(classroom.activity, freeze(library, TWO_SHEETS, None))
    qwen = {box: str(size) for box, size in boxes(TWO_SHEETS[1]).items()}
    qwen |= {"queries.columns": "12544", "values.columns": "32"}  # 14 heads of 64
    for name, numbers in (("Kim", (0,)), ("Lou", (1,)), ("Mo", (0, 1))):
        student = classroom.student(name)
        for number in numbers:
            attempt = classroom.hand_in(student, (BESIDE, qwen)[number], number)
            assert attempt.misconceptions == (OWN.key,)
    assert "3 of 3 students" in classroom.get(f"{classroom.path}/summary")


def test_programs_and_practice_have_it_with_its_own_sheet_alone(app: FastAPI) -> None:
    client = School(app).browser()
    with describing_it(app) as library:
        listed = {entry["key"]: entry for entry in client.get("/api/v1/misconceptions").json()}
        assert listed[OWN.key] == {"key": OWN.key, "topics": ["single-head"], "nudge": OWN.question}
        graded = client.post("/api/v1/grade", json={"worksheet": "llama-7b", "answers": BESIDE, "hint": 2}).json()
        assert (graded["diagnosis"]["key"], graded["diagnosis"]["message"]) == (OWN.key, OWN.question)
        assert "queries.columns" in graded["hint"]["boxes"]
        variant = library.variant("llama-7b")
        record = PracticeRecord().after_check(variant, grade(variant, BESIDE), first_time_right=False)
        assert record == PracticeRecord()
    assert OWN.key not in {entry["key"] for entry in client.get("/api/v1/misconceptions").json()}
