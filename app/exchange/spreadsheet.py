"""CSV that a spreadsheet opens as it is meant: numbers as numbers, and no text as a formula.

>>> harmless("=1+1"), harmless("-12.5"), harmless(-3), harmless("- a list")
("'=1+1", '-12.5', -3, "'- a list")
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

Cell = str | int | float | bool | None
BOM = "\ufeff"  # without it, Excel takes UTF-8 for something older
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")


def harmless(cell: Cell) -> Cell:
    """The cell, with an apostrophe before a text that a spreadsheet would take for a formula."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def csv_lines(rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """The lines of a CSV file, every text in quotes, one after the other, so that any number of rows needs no room."""
    yield BOM
    for row in rows:
        yield _line(row, csv.QUOTE_NONNUMERIC)


def plain_csv(rows: Iterable[Sequence[Cell]]) -> str:
    """A CSV file for another program: without a mark at its beginning, and quotes where they are needed alone."""
    return "".join(_line(row, csv.QUOTE_MINIMAL) for row in rows)


def _line(row: Sequence[Cell], quoting: Literal[0, 2]) -> str:
    file = io.StringIO()
    cells = (_said(harmless(cell)) for cell in row)
    csv.writer(file, quoting=quoting, lineterminator="\r\n").writerow(cells)
    return file.getvalue()


def _said(cell: Cell) -> Cell:
    """Yes and no as words, whole numbers without a point, nothing as an empty cell."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return "" if cell is None else cell
