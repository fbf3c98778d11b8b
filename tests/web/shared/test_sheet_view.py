"""What is below the rows of a marked sheet, and whether its marks belong to what is in its boxes."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.grading.grade import grade
from app.web.shared.sheet_view import BoxView, row_views, sheet_notes
from app.web.worksheet_preview import preview_of
from tests.helpers.html_page import Page
from tests.helpers.sheet_form import filled
from tests.helpers.shipped import LIBRARY

WIDE = {f"{row}__columns": "4096" for row in ("queries", "keys", "values")}


@pytest.mark.parametrize("worksheet", LIBRARY.worksheets)
def test_a_diagnosis_stands_below_the_first_row_that_it_explains(worksheet: str) -> None:
    sheet = preview_of(LIBRARY, LIBRARY.worksheet(worksheet), "wrong")
    if not sheet["report"] or not sheet["report"].diagnosis:
        return
    said = sheet["report"].diagnosis.message
    rows = [row for row in sheet["rows"] if said in [note.message for note in row.notes]]
    explained = [row for row in sheet["rows"] if said in [box.explained for box in row.boxes]]
    assert [row.row.key for row in rows] == [explained[0].row.key]
    boxes = {box.name for row in explained for box in row.boxes if box.explained == said}
    assert boxes == set(map(str, sheet["report"].diagnosis.about))


def test_the_last_of_what_is_said_is_the_hint() -> None:
    variant = LIBRARY.variant("llama-7b")
    sheet = preview_of(LIBRARY, variant.worksheet, "wrong")
    assert sheet["report"]
    answers = {box.name: box.text for row in sheet["rows"] for box in row.boxes}
    assert [note.kind for note in sheet_notes(variant, answers, sheet["report"])] == ["diagnosis"]
    changed = answers | {str(blank): "7" for blank in sheet["report"].diagnosis.explains}
    assert sheet_notes(variant, changed, sheet["report"]) == ()
    assert sheet_notes(variant, answers, None) == ()


@pytest.mark.parametrize(
    ("worksheet", "wrong", "box"),
    [
        ("llama-7b", {"keys.rows": "128", "keys.columns": "100", "output.columns": "128"}, "output.columns"),
        (
            "count-llama-7b",
            {
                "attention.count": "4*4096*4096",
                "all_layers.count": "32*(4*4096*4096+176160768+8192)",
                "output_head.count": "0",
            },
            "output_head.count",
        ),
    ],
)
def test_a_second_mistake_has_the_question_that_it_has_alone(worksheet: str, wrong: dict[str, str], box: str) -> None:
    variant = LIBRARY.variant(worksheet)

    def shown(typed: dict[str, str]) -> BoxView:
        answers = {str(blank): variant.written_answer(blank) for blank in variant.blanks} | typed
        rows = row_views(variant, answers, grade(variant, answers))
        return next(each for row in rows for each in row.boxes if each.name == box)

    beside = shown(wrong)
    assert beside.mark
    assert beside.mark.message
    assert not beside.explained
    alone = shown({box: wrong[box]})
    assert beside.mark.message in (alone.explained, alone.mark and alone.mark.message)


def test_a_score_is_that_of_the_last_check_once_a_box_has_changed(client: TestClient) -> None:
    client.post("/sheet/check", data=filled(**WIDE))
    page = Page(client.get("/sheet").text)
    wrong = [attributes for attributes, _ in page.find("input", aria_invalid="true")]
    assert [box["name"] for box in wrong] == ["queries.columns"]  # the others follow
    diagnosis = page.text("p", class_="diagnosis")
    assert all(page.text("p", id=box["aria-describedby"]).endswith(diagnosis) for box in wrong)
    assert "data-stale" not in page.find("form", id="work")[0][0]
    client.post("/sheet/save", data=filled(**WIDE | {"keys__columns": "128"}))
    page = Page(client.get("/sheet").text)
    assert "data-stale" in page.find("form", id="work")[0][0]
    assert "11 of 14" in page.text("p", class_="stale-score")
