"""The marks of papers that were typed in, written as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from app.grading.paper_lines import MarkedPaper
from app.sheets.worksheet import Variant


def results_csv(variant: Variant, papers: Sequence[MarkedPaper]) -> str:
    """What was typed and what it is worth, as CSV that a spreadsheet reads as text and numbers and never runs."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\r\n")
    boxes = [str(blank) for blank in variant.blanks]
    rows.writerow(["name", "sheet", *boxes, *(f"{box} mark" for box in boxes), "score", "out_of", "misconception"])
    for paper in papers:
        marks = [paper.report.marks[blank].kind for blank in variant.blanks]
        misconception = paper.report.diagnosis.key if paper.report.diagnosis else ""
        told = [paper.name, variant.code, *paper.texts, *marks]
        rows.writerow([*map(harmless, told), paper.report.score, paper.report.out_of, misconception])
    return written.getvalue()


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe before what would begin one."""
    return f"'{cell}" if cell.lstrip()[:1] in ("=", "+", "-", "@") or cell[:1] in ("\t", "\r") else cell
