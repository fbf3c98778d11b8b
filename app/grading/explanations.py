"""What is said once a sheet is done: the misconception that an earlier try showed, explained, and drawn beside the
truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.figures.draw import draw_side_by_side
from app.figures.figures import Figure
from app.figures.scale import ScaleName
from app.grading.grade import Report
from app.misconceptions.catalogue import believed, sentence
from app.sheets.worksheet import Variant


@dataclass(frozen=True)
class Explanation:
    """A misconception's key, its explanation, and the figures in which it shows: as it has them, and as they are."""

    misconception: str
    message: str
    figures: tuple[tuple[Figure, Figure], ...]


def explain_diagnosis(variant: Variant, report: Report, scale: ScaleName = "root") -> Explanation | None:
    """The explanation of a try's diagnosis, None where it had none. It tells answers: the sheet has to be done."""
    if report.diagnosis is None:
        return None
    typed = {blank: mark.read_as for blank, mark in report.marks.items()}
    values = {variant.in_table_orientation(blank): value for blank, value in typed.items() if value is not None}
    held = believed(variant.with_tokens_as_rows, values, report.diagnosis.key)
    mistaken = {variant.in_table_orientation(blank): value for blank, value in held.items()}
    message = sentence(variant, report.diagnosis.key, "explanation")
    return Explanation(report.diagnosis.key, message, _pairs(draw_side_by_side(variant, mistaken, variant.key, scale)))


def explain_misconception(variant: Variant, misconception: str, scale: ScaleName = "root") -> Explanation:
    """The explanation of a misconception that nobody need have shown; without figures where this sheet cannot show
    it.
    """
    message = sentence(variant, misconception, "explanation")
    if not any(e.misconception == misconception for e in variant.with_tokens_as_rows.expectations):
        return Explanation(misconception, message, ())
    held = believed(variant.with_tokens_as_rows, {}, misconception)
    mistaken = {variant.in_table_orientation(blank): value for blank, value in held.items()}
    return Explanation(misconception, message, _pairs(draw_side_by_side(variant, mistaken, variant.key, scale)))


def _pairs(drawn: tuple[tuple[Figure, Figure], ...]) -> tuple[tuple[Figure, Figure], ...]:
    """The same figures, each pair in frames of one width, with nothing below them but the gaps."""
    return tuple(
        (
            replace(left, width=max(left.width, right.width), captions=left.captions if left.has_mismatch else ()),
            replace(right, width=max(left.width, right.width), captions=()),
        )
        for left, right in drawn
    )
