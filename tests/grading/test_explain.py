"""Explanations once a sheet is done: a simulated student's misconception, explained and drawn beside the truth."""

from __future__ import annotations

import pytest

from app.algebra.number_text import format_number
from app.figures.parts import Figure
from app.grading.explain import explain_diagnosis
from app.grading.grade import Report, grade
from app.sheets.library import Library
from app.sheets.variant import Variant
from simulation.misconception_students import FilledSheet, misconception_sheets
from tests.helpers.answer_keys import LLAMA
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

SHEETS = [v for v in map(LIBRARY.variant, LIBRARY.worksheets) if v.worksheet.answers == "numbers"]


def labels(figures: tuple[Figure, ...]) -> dict[str, str]:
    """The number at each box's side; "7 × 32" for the 32 layers counts as 7."""
    return {str(edge.blank): edge.label.partition(" × ")[0] for figure in figures for edge in figure.edges}


def graded(variant: Variant, boxes: FilledSheet) -> Report:
    return grade(variant, {box: str(n) for box, n in boxes.items()})


@pytest.mark.parametrize("sheet", one_in(5, SHEETS), ids=lambda sheet: sheet.worksheet.key)
def test_each_misconception_is_drawn_as_it_has_the_sheet_and_as_it_is(sheet: Variant) -> None:
    explained = [(key, boxes, graded(sheet, boxes)) for key, boxes in misconception_sheets(sheet)]
    shown = [
        (key, boxes, report) for key, boxes, report in explained if report.diagnosis and report.diagnosis.key == key
    ]
    assert shown
    truth = {box: format_number(size) for box, size in sheet.key.items()}
    for key, boxes, report in shown:
        explanation = explain_diagnosis(sheet, report)
        assert explanation is not None
        assert explanation.misconception == key
        assert explanation.message == sheet.wording.misconception(key, "explanation")
        mistaken = labels(tuple(left for left, _ in explanation.figures))
        true = labels(tuple(right for _, right in explanation.figures))
        drawn = mistaken.keys() & truth.keys()
        wrong = {box: format_number(boxes[box]) for box in drawn if format_number(boxes[box]) != truth[box]}
        assert {box: mistaken[box] for box in wrong} == wrong
        assert {box: true[box] for box in drawn} == {box: truth[box] for box in drawn}
        assert all(labels((left,)) != labels((right,)) for left, right in explanation.figures)


def test_a_pair_stands_on_one_scale_and_shows_the_mismatch_on_one_side(library: Library) -> None:
    variant = library.variant("llama-7b")
    answers = {box: str(n) for box, n in LLAMA.items()}
    explanation = explain_diagnosis(variant, grade(variant, answers | {"output.columns": "128"}))
    assert explanation is not None
    ((mistaken, true),) = explanation.figures
    assert (mistaken.key, bool(mistaken.mismatches), bool(true.mismatches)) == ("flow", True, False)
    assert mistaken.tensors == true.tensors == ("context", "output", "W_O")
    assert mistaken.boxes[0].rect[2:] == true.boxes[0].rect[2:]
    assert mistaken.frame.width == true.frame.width
    # The output fits neither the given W_O nor the input that it is added to.
    assert (len(mistaken.mismatches), mistaken.captions, true.explanations) == (2, (), ())


def test_the_way_a_misconception_was_held_is_the_way_it_is_drawn(library: Library) -> None:
    variant = library.variant("decode-gpt2", tokens=80)
    key = {box: str(size) for box, size in variant.key.items()}
    for side in ("80", "1", "81"):
        square = {f"{row}.{axis}": side for row in ("scores", "weights") for axis in ("rows", "columns")}
        explanation = explain_diagnosis(variant, grade(variant, key | square))
        assert explanation is not None
        assert explanation.misconception == "decode-step-square"
        assert labels((explanation.figures[0][0],))["scores.rows"] == side


def test_an_attempt_that_shows_no_misconception_is_not_explained(library: Library) -> None:
    variant = library.variant("llama-7b")
    answers = {box: str(n) for box, n in LLAMA.items()}
    assert explain_diagnosis(variant, grade(variant, answers)) is None
    assert explain_diagnosis(variant, grade(variant, answers | {"scores.rows": "77"})) is None
