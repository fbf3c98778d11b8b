"""CSV files that a spreadsheet opens as intended: numbers as numbers, and no text as a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

Cell = str | int | float | bool | None
BOM = "\ufeff"  # without it, Excel doesn't read the file as UTF-8
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
_INNER_FORMULA = re.compile(r"([;\r\n])(?=[\s\"]*[=+\-@＝＋－＠])(?![+-][0-9]+(?:[.,][0-9]+)?(?:[;\r\n]|$))")
_FORMULA_START = re.compile(r"[\t\r\n]|[\s\"]*[=+\-@＝＋－＠]")


def escape_formula(cell: Cell) -> Cell:
    """The cell, with an apostrophe before text that a spreadsheet would run as a formula.

    Example:
        escape_formula("=1+1")   # "'=1+1"
        escape_formula("＝1+1")  # "'＝1+1"
        escape_formula("-12.5")  # "-12.5"
        escape_formula("K;=1+1") # "K;'=1+1"
    """
    if not isinstance(cell, str):
        return cell
    starts_formula = _FORMULA_START.match(cell) and not _PLAIN_NUMBER.fullmatch(cell)
    return _INNER_FORMULA.sub(r"\1'", f"'{cell}" if starts_formula else cell)


def csv_lines(rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Yield a spreadsheet's CSV file line by line: a byte order mark, then each row with every text in quotes."""
    yield BOM
    for row in rows:
        yield _line(row, csv.QUOTE_NONNUMERIC)


def plain_csv(rows: Iterable[Sequence[Cell]]) -> str:
    """A CSV file for another program: no byte order mark, quotes only where needed."""
    return "".join(_line(row, csv.QUOTE_MINIMAL) for row in rows)


def _line(row: Sequence[Cell], quoting: Literal[0, 2]) -> str:
    file = io.StringIO()
    cells = (_cell_value(escape_formula(cell)) for cell in row)
    csv.writer(file, quoting=quoting, lineterminator="\r\n").writerow(cells)
    return file.getvalue()


def _cell_value(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return "" if cell is None else cell
