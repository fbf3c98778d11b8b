"""Sheets on which each token is a column: what they say of rows and columns is not what the others say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from app.classes.student_sheet import stored_marks
from app.figures.sheet_figures import draw_figures
from app.grading.grade import grade, with_kept_marks
from app.misconceptions.predictions import expectations
from app.sheets.formulas import write_formula
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.topics.requirements import TopicError
from tests.helpers.shipped import FIRST_OF_TOPIC, LIBRARY, UNLIKE_MODELS

# What is true of one orientation only. A line of the sheet is called a row, too.
DIRECTIONS = re.compile(
    r"\b(rows?|columns?|side by side|one below|one above|upper|lower|leftmost|rightmost|tall|wide|narrow)\b"
)
TRUE_OF_BOTH = (
    "in the rows below, i",  # the rows of the sheet
    "unless a row says otherwise",
    "The row says how many bits",
    "the row asks for",
    "four times as wide as the embedding",  # of a block, which has no sides
    "two thirds as wide",
    "the narrower ones",
)


def sentences(variant: Variant) -> Iterator[tuple[str, str]]:
    """Everything that the sheet, its drawings and its nudges say, each with where it stands."""
    text = variant.text
    yield from (("text", part) for part in (text.task, text.description, *text.assumptions, text.footnote or ""))
    yield from ((row.key, f"{row.name}: {row.note}") for row in variant.rows)
    yield from ((key, write_formula(variant, key)) for key in variant.table.askable)
    yield from ((str(blank), text.nudge(blank)) for blank in variant.problem.blanks)
    for key in dict.fromkeys(expected.misconception for expected in expectations(variant.problem)):
        yield from ((key, text.misconception(key, kind)) for kind in ("nudge", "hint", "explanation"))
    for figure in draw_figures(variant, variant.problem.answers):
        yield from ((figure.key, caption) for caption in (*figure.explanations, *figure.captions))


def test_what_is_true_of_one_orientation_is_said_in_one() -> None:
    said_on_both = set[tuple[str, str]]()
    for sheet in FIRST_OF_TOPIC.values():
        for model in UNLIKE_MODELS:
            if LIBRARY.refusal(sheet.key, model):
                continue
            variant = LIBRARY.variant(sheet.key, model)
            if variant.table.tokens_are_rows:
                continue
            as_rows, as_columns = (
                replace(variant, worksheet=replace(sheet, tokens_are=each)) for each in ("rows", "columns")
            )
            said_on_both |= set(sentences(as_rows)) & set(sentences(as_columns))
    apart = sorted((place, sentence) for place, text in said_on_both for sentence in re.split(r"(?<=[.?:]) ", text))
    of_one = [each for each in apart if DIRECTIONS.search(each[1])]
    assert [each for each in of_one if not any(phrase in each[1] for phrase in TRUE_OF_BOTH)] == []


@pytest.mark.parametrize("sheet", FIRST_OF_TOPIC.values(), ids=lambda sheet: sheet.topic)
def test_boxes_keep_their_names_and_stand_for_the_other_side(sheet: Worksheet) -> None:
    variant = LIBRARY.variant(sheet.key)
    if variant.table.has_more_sides:
        return
    as_rows, as_columns = (replace(variant, worksheet=replace(sheet, tokens_are=each)) for each in ("rows", "columns"))
    assert list(as_rows.blanks_by_name) == list(as_columns.blanks_by_name)
    for box, blank in as_columns.blanks_by_name.items():
        assert (as_columns.box(blank), as_rows.box(blank.transposed)) == (box, box)
        report = grade(as_columns, {box: as_columns.written_answer(blank)})
        given: Any = report.as_json(as_columns)["marks"]
        stored = stored_marks(as_columns, report).marks
        assert {name for name, mark in given.items() if mark["mark"] == "right"} == {box}
        assert {name for name, kind in stored.items() if kind == "right"} == {box}
        kept = with_kept_marks(as_columns, report, {box: "wrong"})
        assert {as_columns.box(blank): mark.kind for blank, mark in kept.marks.items()} == {box: "wrong"}


@pytest.mark.parametrize("topic", ["three-dimensions", "four-dimensions"])
def test_tensors_with_more_than_two_dimensions_are_not_mirrored(topic: str) -> None:
    sheet = replace(FIRST_OF_TOPIC[topic], key="mine", tokens_are="columns")
    library = Library({"mine": sheet}, LIBRARY.models, LIBRARY.wording)
    assert all(library.refusal("mine", model) for model in library.models)
    with pytest.raises(TopicError):
        library.variant("mine")
