"""What is said below the rows of a marked sheet, and whether its marks are for what stands in its boxes."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.web.materials.worksheet_preview import make_preview
from app.web.shared.sheet_view import sheet_notes
from tests.helpers.html_page import Page
from tests.helpers.sheet_form import filled
from tests.helpers.shipped import LIBRARY

WIDE = {f"{row}__columns": "4096" for row in ("queries", "keys", "values")}


@pytest.mark.parametrize("worksheet", LIBRARY.worksheets)
def test_a_diagnosis_stands_below_the_first_row_that_it_explains(worksheet: str) -> None:
    """Once, and in place of what the marks of the boxes that it explains would say; on every worksheet."""
    sheet = make_preview(LIBRARY, LIBRARY.worksheet(worksheet), "wrong")
    if not sheet.report or not sheet.report.diagnosis:
        return
    said = sheet.report.diagnosis.message
    rows = [row for row in sheet.rows if said in [note.message for note in row.notes]]
    explained = [row for row in sheet.rows if said in [box.explained for box in row.boxes]]
    assert [row.row.key for row in rows] == [explained[0].row.key]
    boxes = {box.name for row in explained for box in row.boxes if box.explained == said}
    assert boxes == set(map(sheet.variant.box, sheet.report.diagnosis.explains))


def test_the_last_of_what_is_said_is_the_hint() -> None:
    """It goes to the bar; a diagnosis goes once none of the boxes that it explains has the text that was marked."""
    variant = LIBRARY.variant("llama-7b")
    sheet = make_preview(LIBRARY, variant.worksheet, "wrong")
    assert sheet.report
    answers = {box.name: box.text for row in sheet.rows for box in row.boxes}
    assert [note.kind for note in sheet_notes(variant, answers, sheet.report)] == ["diagnosis"]
    changed = answers | {variant.box(blank): "7" for blank in sheet.report.diagnosis.explains}  # type: ignore[union-attr]
    assert sheet_notes(variant, changed, sheet.report) == ()
    assert sheet_notes(variant, answers, None) == ()


def test_a_score_is_that_of_the_last_check_once_a_box_has_changed(client: TestClient) -> None:
    """Also on a page that is loaded anew; wrong boxes say that they are wrong, and what of them."""
    client.post("/sheet/check", data=filled(**WIDE))
    page = Page(client.get("/sheet").text)
    wrong = [attributes for attributes, _ in page.find("input", aria_invalid="true")]
    assert [box["name"] for box in wrong] == ["queries.columns"]  # the others follow
    diagnosis = page.text("p", class_="diagnosis")
    assert all(page.text("p", id=box["aria-describedby"]).endswith(diagnosis) for box in wrong)
    assert page.text("div", class_="bar-note") == diagnosis
    assert "data-stale" not in page.find("form", id="work")[0][0]
    client.post("/sheet/save", data=filled(**WIDE | {"keys__columns": "128"}))
    page = Page(client.get("/sheet").text)
    assert "data-stale" in page.find("form", id="work")[0][0]
    assert "11 of 14" in page.text("p", class_="stale-score")
