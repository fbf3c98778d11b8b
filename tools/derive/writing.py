"""Writes tables as text: headings, and indented rows of columns that are separated by two or more spaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Row = tuple[str, ...]
# A heading ("sizes", "layers  model.layers × L") and its rows, in the order in which they are written.
Table = dict[str, list[Row]]

ALIGNED = 3  # columns; the others follow after two spaces
WIDEST_COLUMN = 48
LONGEST_LINE = 118


def text_of(tables: Sequence[Table], comment: str) -> str:
    """A whole file: a comment, then the tables."""
    lines = [f"# {comment}", *(line for table in tables for line in _lines(table))]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def wrapped(names: Iterable[str]) -> list[Row]:
    """Names in rows of one column, none longer than a line."""
    rows = list[Row]()
    line = ""
    for name in names:
        if line and len(line) + len(name) > LONGEST_LINE - 3:
            rows.append((line,))
            line = ""
        line = f"{line} {name}".strip()
    return [*rows, (line,)] if line else rows


def _lines(table: Table) -> Iterator[str]:
    for heading, rows in table.items():
        yield heading
        by_condition = dict[str, list[Row]]()
        for row in rows:
            condition = row[-1] if row[-1].startswith("if ") and not heading.startswith("attention") else ""
            by_condition.setdefault(condition, []).append(row[:-1] if condition else row)
        for condition, some in sorted(by_condition.items(), key=lambda item: item[0] != ""):
            if condition and len(some) > 1:
                yield f"  {condition}"
                yield from _aligned(some, "    ")
            else:
                yield from _aligned([(*row, condition) if condition else row for row in some], "  ")


def _aligned(rows: Sequence[Row], indent: str) -> Iterator[str]:
    widths = [0] * ALIGNED
    for row in rows:
        for column, cell in enumerate(row[:ALIGNED]):
            if len(cell) <= WIDEST_COLUMN:
                widths[column] = max(widths[column], len(cell))
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield indent + "  ".join([*cells, *row[ALIGNED:]])
