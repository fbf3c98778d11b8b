"""A class list as instructors have it: a CSV file or a column of names, in any script, read as names with numbers.

>>> read_roster("Name;Number\\nLee, Kim;17")
(('Kim Lee', '17'),)
>>> read_names("Kim Lee\\nعمر الخيام")
('Kim Lee', 'عمر الخيام')
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence

MOST_NAMES = 5_000
LARGEST_ROSTER = 1_000_000  # bytes
LONGEST = 80  # characters of a name, or of a number

Entry = tuple[str, str | None]

# What the columns of class lists are called, in the systems that make them.
_HEADERS: Mapping[str, frozenset[str]] = {
    "name": frozenset({"name", "full name", "student", "student name", "display name", "names", "sortable name"}),
    "first": frozenset({"first name", "firstname", "first", "given name", "forename"}),
    "last": frozenset({"last name", "lastname", "last", "surname", "family name"}),
    "key": frozenset({"number", "id", "id number", "student id", "student number", "sis user id", "sis id", "key",
                      "matriculation number", "username", "roster number"}),
}  # fmt: skip
_JOINERS = "\u200c\u200d"  # they shape letters in names of some scripts
_NUMBER = re.compile(r"(?=\S*\d)[^\s@]+")
_FAMILY_FIRST = re.compile(r'[^\s",@\d]+, [^",@\d]+')


class RosterError(ValueError):
    """A class list that cannot be used; one sentence that says what to change."""


def read_names(roster: bytes | str) -> tuple[str, ...]:
    """The names of a class list alone; raises RosterError."""
    return tuple(name for name, _ in read_roster(roster))


def read_roster(roster: bytes | str, most: int = MOST_NAMES) -> tuple[Entry, ...]:
    """The names of a class list in its order, each with a number if there is one; raises RosterError.

    With a header the columns are found by their titles. Without one a number is told by its look, an e-mail address is
    left out, and what remains of a row is the name.
    """
    if len(roster) > LARGEST_ROSTER:
        raise RosterError(f"A class list may be at most {LARGEST_ROSTER:,} bytes long: use it in parts.")
    rows = [row for row in _rows(roster if isinstance(roster, str) else _decoded(roster)) if any(row)]
    if not rows:
        raise RosterError("The class list is empty: one name a line is enough.")
    columns = _header(rows[0])
    entries = [_by_header(row, columns) if columns else _by_look(row) for row in rows[bool(columns) :]]
    named = tuple((name, key or None) for name, key in entries if name)
    if not named:
        raise RosterError("No names stand in the class list: one name a line is enough.")
    if len(named) > most:
        raise RosterError(f"The class list has {len(named):,} names; at most {most:,} can be used at once.")
    for text in (text for entry in named for text in entry if text and len(text) > LONGEST):
        raise RosterError(f"“{text[:30]}…” is {len(text):,} characters long; at most {LONGEST} fit on a line.")
    return named


def _decoded(roster: bytes) -> str:
    """The text of a file, in whatever of the usual encodings it was saved."""
    for encoding in ("utf-16",) if roster[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return roster.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise RosterError("The class list is no text that can be read: save it as CSV in UTF-8.")


def _rows(text: str) -> list[list[str]]:
    """The cells of each line; 'Lee, Kim' in every line is one cell, a family name before a first one."""
    lines = [line for line in text.removeprefix("\ufeff").replace("\0", " ").splitlines() if line.strip()]
    if _family_first(lines):
        return [[_clean(line)] for line in lines]
    whole = "\n".join(lines)
    mark = max("\t;,", key=whole.count)
    try:
        return [[_clean(cell) for cell in row] for row in csv.reader(io.StringIO(whole), delimiter=mark)]
    except csv.Error as error:
        raise RosterError(f"The class list cannot be read as CSV: {error}.") from None


def _family_first(lines: Sequence[str]) -> bool:
    titles = [_clean(cell) for cell in lines[0].split(",")] if lines else []
    return all(map(_FAMILY_FIRST.fullmatch, lines)) and not _header(titles)


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
    """Without a header: of several cells the first with a digit and no space is a number; one alone is a name."""
    if len(row) == 1:
        return _turned(row[0]), ""
    key = next((cell for cell in row if _NUMBER.fullmatch(cell)), "")
    return _turned(_clean(" ".join(cell for cell in row if cell != key and "@" not in cell))), key


def _turned(name: str) -> str:
    """'Lee, Kim' as 'Kim Lee'."""
    last, comma, first = name.partition(", ")
    return f"{first} {last}" if comma and last and first and "," not in first else name


def _clean(text: str) -> str:
    """One line of characters that can be shown, composed as most systems write them."""
    composed = unicodedata.normalize("NFC", text)
    return " ".join("".join(char if char.isprintable() or char in _JOINERS else " " for char in composed).split())
