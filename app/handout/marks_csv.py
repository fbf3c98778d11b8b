"""Marks of typed-in papers as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from app.exchange.spreadsheet import Cell, plain_csv
from app.grading.paper import MarkedPaper
from app.sheets.variant import Variant


def marks_csv(variant: Variant, papers: Sequence[MarkedPaper]) -> str:
    """The marks as CSV: a header, then a row per paper, in order."""
    boxes = list(variant.blanks_by_name)
    rows: list[Sequence[Cell]] = [
        ("name", "sheet", *boxes, *(f"{box} mark" for box in boxes), "score", "out_of", "misconception")
    ]
    for paper in papers:
        report = paper.report
        marks = (report.marks[blank].kind for blank in variant.blanks)
        misconception = report.diagnosis.key if report.diagnosis else ""
        rows.append((paper.name, variant.code, *paper.texts, *marks, report.score, report.out_of, misconception))
    return plain_csv(rows)
