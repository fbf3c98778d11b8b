"""What a mistake costs in each of the three markings, worked by hand on the 7 rows and 14 boxes of one head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.grading.grade import grade
from app.sheets.library import Library
from app.sheets.worksheet import Marking
from tests.helpers.answer_keys import KEY

NINETY = {box: "90" if text == "100" else text for box, text in KEY.items()}  # in 9 boxes, at least one in each row
POINTS = {"queries": 3}


def score(library: Library, marking: Marking, answers: Mapping[str, str], points: Mapping[str, int]) -> tuple[int, int]:
    variant = library.variant("llama-7b")
    variant = replace(variant, worksheet=replace(variant.worksheet, marking=marking, row_points=points))
    report = grade(variant, answers)
    return report.score, report.out_of


@pytest.mark.parametrize(
    ("answers", "causes", "boxes", "rows"),
    [
        (KEY, 14, 14, 14),
        ({**KEY, "queries.columns": "127"}, 13, 13, 12),
        (NINETY, 13, 5, 0),
        ({**KEY, "queries.columns": ""}, 13, 13, 12),
        ({**KEY, "queries.columns": "127", "queries.rows": "x"}, 12, 12, 12),
        ({}, 0, 0, 0),
    ],
    ids=["all right", "one slip", "a slip and all that follows", "an empty box", "two boxes of one row", "nothing"],
)
def test_what_a_sheet_scores(library: Library, answers: Mapping[str, str], causes: int, boxes: int, rows: int) -> None:
    assert score(library, "causes", answers, {}) == (causes, 14)
    assert score(library, "boxes", answers, {}) == (boxes, 14)
    assert score(library, "rows", answers, {}) == (rows, 14)


def test_a_row_is_worth_the_points_of_its_boxes(library: Library) -> None:
    slip = {**KEY, "queries.columns": "127"}
    assert score(library, "boxes", slip, POINTS) == (15, 18)
    assert score(library, "rows", slip, POINTS) == (12, 18)
