"""Answers on paper, typed back in: one line a student, marked as any other sheet, and written as CSV.

A line is `name: answer answer …`, in the order of the boxes; `-` stands for a box that was left empty. The name and
its colon may be missing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.grading.grade import Report, grade
from app.sheets.worksheet import Variant

from .options import HandoutError, one_line

MOST_LINES = 1_000
LONGEST_LINE = 4_000
EMPTY = ("-", "–", "—", "_")


@dataclass(frozen=True)
class Paper:
    """One student's sheet as it was typed in: the name, the answers box by box, and their marks."""

    name: str
    texts: tuple[str, ...]
    report: Report


def mark_papers(variant: Variant, typed: str) -> tuple[Paper, ...]:
    """Every line that is not empty, marked; raises HandoutError naming the line that cannot be used."""
    return tuple(mark_paper(variant, *parted(line), at) for at, line in typed_lines(typed))


def typed_lines(typed: str) -> tuple[tuple[int, str], ...]:
    """Every line that is not empty with its number, from 1; raises HandoutError where there are too many."""
    lines = typed.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = tuple((at, line) for at, line in enumerate(lines, start=1) if line.strip())
    if len(found) > MOST_LINES:
        raise HandoutError(f"At most {MOST_LINES:,} lines can be marked at once: do it in parts.")
    return found


def parted(line: str) -> tuple[str, str]:
    """What stands before the colon, which is nothing where there is none, and the answers.

    >>> parted("Ada Lovelace: 100 4096")
    ('Ada Lovelace', ' 100 4096')
    """
    before, colon, after = line.replace("：", ":").partition(":")
    return (before, after) if colon else ("", line)


def mark_paper(variant: Variant, name: str, answers: str, at: int) -> Paper:
    """The answers of one line, marked; raises HandoutError that names the line by its number."""
    if len(name) + len(answers) > LONGEST_LINE:
        raise HandoutError(f"Line {at} is longer than any sheet: one student stands on one line.")
    texts = tuple("" if text in EMPTY else text for text in answers.split())
    if len(texts) > len(variant.blanks):
        raise HandoutError(
            f"Line {at} has {len(texts)} answers, and the sheet has {len(variant.blanks)} boxes: "
            "write no spaces inside an answer, and a colon after the name."
        )
    filled = texts + ("",) * (len(variant.blanks) - len(texts))
    typed = dict(zip(map(str, variant.blanks), texts, strict=False))
    return Paper(one_line(name, 120), filled, grade(variant, typed))


def results_csv(variant: Variant, papers: Sequence[Paper]) -> str:
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


def order_of(variant: Variant) -> tuple[Mapping[str, str], ...]:
    """The boxes in the order in which they are typed: the row's letter or name, and the side."""
    return tuple({"row": row.letter or row.name, "axis": blank.field} for row in variant.rows for blank in row.blanks)
