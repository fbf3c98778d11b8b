"""A teacher's own misconception in a class: every page that speaks of one finds its words in what was frozen."""

from __future__ import annotations

import csv
import html
import io
from dataclasses import replace

from fastapi import FastAPI

from app.classes.student_sheet import freeze
from app.sheets.library import Library
from app.sheets.worksheet import OwnMisconception
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.marked_classroom import MarkedClassroom, table_rows
from tests.helpers.school import ONE_SHEET

NAME = '<script>alert("1")</script> =HYPERLINK("x") {7*7}'
OWN = OwnMisconception(
    "own-heads-side-by-side",
    NAME,
    (("queries.columns", "H*d"), ("values.columns", "d_head/2")),
    'Whose <b>columns</b> are these, "{0}"?',
    "Every head has its own columns.",
)
BESIDE = {**KEY, "queries.columns": "131072", "values.columns": "64"}


def with_own_misconception(library: Library) -> Library:
    """The library, had the author of the first sheet described a misconception."""
    sheets = {key: replace(library.worksheets[key], misconceptions=(OWN,)) for key in ONE_SHEET}
    return replace(library, worksheets={**library.worksheets, **sheets})


def classroom_with_own_misconception(app: FastAPI) -> MarkedClassroom:
    """A classroom whose activity froze a sheet with the misconception, which today's library lacks."""
    classroom = MarkedClassroom(app)
    library = with_own_misconception(classroom.school.library)
    classroom.store.activities.revise(classroom.activity, freeze(library, ONE_SHEET, None))
    return classroom


def test_teachers_see_it_by_its_name(app: FastAPI) -> None:
    """Live, on the projector, in results, a student's results, the summary and the files; as text, whatever it says."""
    classroom = classroom_with_own_misconception(app)
    kim, lou = classroom.student("Kim"), classroom.student("Lou")
    attempt = classroom.hand_in(kim, BESIDE)
    classroom.hand_in(lou, KEY)
    assert attempt.misconceptions == (OWN.key,)
    live = classroom.page("/live?names=yes&show=own-heads-side-by-side")
    assert [text for _, text in live.find("th", scope="row") if text in ("Kim", "Lou")] == ["Kim"]
    [line] = [text for found, text in live.find("tr") if found.get("id") == f"misconception-{OWN.key}"]
    assert line.startswith(NAME)
    results = {row[0]: row[1:] for row in table_rows(classroom.page("/results?show=own-heads-side-by-side"))}
    assert results[NAME] == ["1", "1"]
    assert "Lou" not in results
    assert results["Queries Q"][3].startswith(f"columns 131,072 ({NAME} or ")
    assert [NAME] in [row[1:] for row in table_rows(classroom.page(f"/results/{kim.id}"))]
    summary = classroom.get(f"{classroom.path}/summary")
    assert html.escape(NAME, quote=False) in summary.replace("&#34;", '"')
    assert OWN.explanation in summary
    exported = classroom.get(f"/courses/{classroom.course.id}/exports/attempts.csv")
    assert [row["misconceptions"] for row in csv.DictReader(io.StringIO(exported))] == [OWN.key, ""]


def test_it_is_explained_with_a_drawing_of_what_it_predicts(app: FastAPI) -> None:
    """On the live view and on the projector, in the teacher's words; a key that no sheet has is refused."""
    classroom = classroom_with_own_misconception(app)
    classroom.hand_in(classroom.student("Kim"), BESIDE)
    with classroom.instructor as browser:
        for page in ("live", "present"):
            action = f"{classroom.path}/{page}/explain?sheet=1"
            assert browser.post(action, data={"misconception": "own-nothing"}).status_code == 422
            browser.post(action, data={"misconception": OWN.key, "drawn": "yes"})
            shown = Page(browser.get(f"{classroom.path}/{page}").text)
            assert f"“{NAME}”?" in shown.text("h2", id="explained")
            assert OWN.explanation in str(shown.find("p"))
            assert len(shown.find("figure")) == 2
            browser.post(action, data={"misconception": ""})


def test_a_student_reads_the_teachers_words_and_no_others(app: FastAPI) -> None:
    """The question beside the sheet while it is wrong, the explanation once it is right."""
    classroom = classroom_with_own_misconception(app)
    kim = classroom.student("Kim")
    classroom.send(kim, "check", BESIDE)
    sheet, _ = classroom.seen_by(kim)
    assert sheet.text("p", class_="diagnosis") == OWN.question
    classroom.send(kim, "hand-in", KEY, 2)
    with classroom.browser_of(kim) as browser:
        text = browser.get(classroom.sheet_path).text
    assert OWN.explanation in text
    assert len(Page(text[text.index('id="earlier"') :]).find("figure")) >= 2


def test_a_regrade_by_a_sheet_that_describes_it_names_it(app: FastAPI) -> None:
    """The frozen sheet has no such misconception: its name is found in what the regrade marked by."""
    classroom = MarkedClassroom(app)
    services, kim = classroom.school.services, classroom.student("Kim")
    before = classroom.hand_in(kim, BESIDE)
    assert OWN.key not in before.misconceptions
    try:
        app.state.services = replace(services, library=with_own_misconception(services.library))
        dry = classroom.page("/regrade?by=library")
        changes = dry.find("input", name="changes")[0][0]["value"]
        assert classroom.regrade({"changes": changes, "by": "library"}) == 303
    finally:
        app.state.services = services
    [after] = classroom.store.classwork.attempts_of_activity(classroom.activity.id)
    assert (after.misconceptions, after.score) == ((OWN.key,), before.score)
    assert NAME in {row[0] for row in table_rows(classroom.page("/results"))}
    line = classroom.page("/live").find("tr", id=f"misconception-{OWN.key}")
    assert line[0][1].startswith(NAME)
