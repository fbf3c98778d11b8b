"""A class list as text, pasted or out of a file, read as names with their numbers.

>>> read_roster("Name;Number\\nKim Lee;17")
(('Kim Lee', '17'),)
>>> read_roster("Kim Lee\\nLou Ray")
(('Kim Lee', None), ('Lou Ray', None))
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

MAX_ROWS = 2000
LONGEST = 100

Entry = tuple[str, str | None]

# What the columns of class lists are called, in the systems that make them.
_HEADERS: Mapping[str, frozenset[str]] = {
    "name": frozenset({"name", "full name", "student", "student name", "display name", "names"}),
    "first": frozenset({"first name", "firstname", "first", "given name", "forename"}),
    "last": frozenset({"last name", "lastname", "last", "surname", "family name"}),
    "key": frozenset({"number", "id", "id number", "student id", "student number", "sis user id", "sis id", "key",
                      "matriculation number", "username", "roster number"}),
}  # fmt: skip


class RosterError(ValueError):
    """A roster that cannot be used: "empty" or "long"."""


def decode(data: bytes) -> str:
    """The text of a file, in whatever of the usual encodings it was saved."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def read_roster(text: str) -> tuple[Entry, ...]:
    """Names, each with a number if there is one; with or without a header, set apart by comma, semicolon or tab.

    Raises RosterError.
    """
    rows = [row for row in _rows(text) if any(row)]
    columns = _header(rows[0]) if rows else {}
    if len(rows) > MAX_ROWS:
        raise RosterError("long")
    entries = [_by_header(row, columns) if columns else _by_look(row) for row in rows[bool(columns) :]]
    named = tuple((name, key or None) for name, key in entries if name)
    if not named:
        raise RosterError("empty")
    return named


def _rows(text: str) -> list[list[str]]:
    """The cells of each line. A lone comma in every line parts a family name from a first one, and no cells."""
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    mark = max("\t;,", key=lines.count)
    if mark not in lines:
        return [[_clean(line)] for line in lines.splitlines()]
    csv.field_size_limit(10_000_000)
    reader = csv.reader(io.StringIO(lines.replace("\0", "")), delimiter=mark)
    return [[_clean(cell) for cell in row] for row in reader]


def _header(row: Sequence[str]) -> dict[str, int]:
    """Which column holds what, if the first row says so; a row that names no name is no header."""
    found = {
        part: place
        for part, words in _HEADERS.items()
        for place, cell in reversed(list(enumerate(row)))
        if cell.casefold() in words
    }
    return found if found.keys() & {"name", "first", "last"} else {}


def _by_header(row: Sequence[str], columns: Mapping[str, int]) -> tuple[str, str]:
    cells = {part: row[place] if place < len(row) else "" for part, place in columns.items()}
    name = cells.get("name") or f"{cells.get('first', '')} {cells.get('last', '')}"
    return _turned(_clean(name)), cells.get("key", "")


def _by_look(row: Sequence[str]) -> tuple[str, str]:
    """Without a header: the first cell with a digit and no space is a number, an e-mail address is left out."""
    key = next((cell for cell in row if re.fullmatch(r"(?=\S*\d)[^\s@]+", cell)), "")
    return _turned(_clean(" ".join(cell for cell in row if cell != key and "@" not in cell))), key


def _turned(name: str) -> str:
    """'Lee, Kim' as 'Kim Lee'."""
    last, comma, first = name.partition(", ")
    return f"{first} {last}" if comma and last and first and "," not in first else name


def _clean(text: str) -> str:
    return "".join(char for char in " ".join(text.split()) if char.isprintable())[:LONGEST].strip()
