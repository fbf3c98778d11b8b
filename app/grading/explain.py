"""Explains a misconception once a sheet is done: in words, and in a figure beside the true shapes.

An explanation gives answers away, so callers must check that the sheet is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.algebra.expression import ONE, Expression
from app.figures.parts import Figure
from app.figures.sheet_figures import draw_side_by_side
from app.grading.grade import Report
from app.misconceptions.predictions import (
    Expectation,
    expectations,
    nearest_expectation,
    predicted_sheet,
    wrong_expression,
)
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.variant import Variant

MAX_ATTEMPTS_EXPLAINED = 20  # the latest attempts of a sheet that are searched for a misconception


@dataclass(frozen=True)
class Explanation:
    """A misconception explained; a message written by an author is Markdown."""

    misconception: str
    message: str
    figures: tuple[tuple[Figure, Figure], ...]


def explain_diagnosis(variant: Variant, report: Report) -> Explanation | None:
    """The text and figures that explain the report's diagnosed misconception, or None without one."""
    if report.diagnosis is None:
        return None
    values = {blank: mark.read_as for blank, mark in report.marks.items() if mark.read_as is not None}
    return _explanation(variant, report.diagnosis.key, values)


def explain_misconception(variant: Variant, misconception: str) -> Explanation:
    """The text that explains a misconception of the catalogue, with figures if it would change this sheet's answers."""
    if any(entry.misconception == misconception for entry in expectations(variant.problem)):
        return _explanation(variant, misconception, {})
    return Explanation(misconception, prose.misconception(variant, misconception, "explanation"), ())


def _explanation(variant: Variant, misconception: str, values: Mapping[Blank, int]) -> Explanation:
    mistaken = _mistaken(variant, misconception, values)
    pairs = draw_side_by_side(variant, mistaken, variant.problem.answers)
    return Explanation(
        misconception, prose.misconception(variant, misconception, "explanation"), tuple(map(_frame_alike, pairs))
    )


def mistaken_expression(variant: Variant, expected: Expectation, blank: Blank) -> Expression | None:
    """What a misconception makes of a blank, in the sheet's symbols, or None if they can't express it.

    Raises KeyError for a blank that the misconception gets right.
    """
    meaning = wrong_expression(variant.problem, expected, blank)
    if meaning is None or not (meaning.symbols or meaning == ONE):
        return None
    return meaning if meaning.symbols <= set(variant.symbols.in_order) else None


def _mistaken(variant: Variant, misconception: str, values: Mapping[Blank, int]) -> Mapping[Blank, int | Answer]:
    sheet = predicted_sheet(variant.problem, misconception, values)
    nearest = nearest_expectation(variant.problem, misconception, values)
    if not variant.worksheet.in_letters or nearest is None:
        return sheet
    written = {blank: mistaken_expression(variant, nearest, blank) for blank in nearest.wrong_answers}
    return {**sheet, **{blank: Answer(sheet[blank], meaning) for blank, meaning in written.items() if meaning}}


def _frame_alike(pair: tuple[Figure, Figure]) -> tuple[Figure, Figure]:
    width = max(figure.frame.width for figure in pair)
    first, second = (
        replace(each, frame=each.frame._replace(width=width), captions=(), explanations=()) for each in pair
    )
    return first, second
