"""The grid into which answers from paper are typed, a row per student, as lines."""

from __future__ import annotations

from app.grading.paper import grid_line
from app.web.shared.forms import MAX_LINE, FormReader

GRID_ROWS = 6  # at least, on a page

GridRow = tuple[str, tuple[str, ...]]  # a name and its cells


def grid_rows(form: FormReader, columns: int) -> dict[str, GridRow]:
    """The rows of a sent grid that have an answer, by the lines that say the same."""
    return {grid_line(name, row): (name, row) for name, row in _rows(form, columns) if any(row)}


def rows_to_fill(form: FormReader, columns: int) -> list[GridRow]:
    """The rows of a sent grid that have only a name so far."""
    return [(name, row) for name, row in _rows(form, columns) if name.strip() and not any(row)]


def _rows(form: FormReader, columns: int) -> list[GridRow]:
    cells = form.all("cell", MAX_LINE)
    names = form.all("grid", MAX_LINE)
    return [(name, tuple(cells[place * columns : (place + 1) * columns])) for place, name in enumerate(names)]
