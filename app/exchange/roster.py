"""Read a class list, a CSV file or a column of names in any script, as names with numbers.

>>> read_roster("Name;Number\\nLee, Kim;17")
(('Kim Lee', '17'),)
>>> read_names("Kim Lee\\nعمر الخيام")
('Kim Lee', 'عمر الخيام')
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from app.names import clean_line, told_apart
from app.translation import gettext as _

MAX_ROSTER_NAMES = 5_000
MAX_ROSTER_BYTES = 1_000_000
MAX_ENTRY_LENGTH = 80  # characters of a name, or of a number

RosterEntry = tuple[str, str | None]  # a name, and the student's number if there is one
_ColumnKind = Literal["name", "first", "last", "number"]

# The titles of the columns of class lists, in the systems that make them.
_TITLES: Mapping[_ColumnKind, frozenset[str]] = {
    "name": frozenset({"name", "full name", "student", "student name", "display name", "names", "sortable name"}),
    "first": frozenset({"first name", "firstname", "first", "given name", "forename"}),
    "last": frozenset({"last name", "lastname", "last", "surname", "family name"}),
    "number": frozenset({"number", "id", "id number", "student id", "student number", "sis user id", "sis id", "key",
                         "matriculation number", "username", "roster number"}),
}  # fmt: skip
_STUDENT_NUMBER = re.compile(r"(?=\S*\d)[^\s@]+")
_FAMILY_NAME_FIRST = re.compile(r'[^\s",@\d]+, [^",@\d]+')


class RosterError(ValueError):
    """A class list that cannot be used; one sentence that says what to change."""


def read_names(roster: bytes | str) -> tuple[str, ...]:
    """Return the names of a class list in its order, with the number where several are the same; raises RosterError."""
    return tuple(told_apart(read_roster(roster)))


def read_roster(roster: bytes | str, max_names: int = MAX_ROSTER_NAMES) -> tuple[RosterEntry, ...]:
    """Return the names of a class list in its order, each with the student's number or None.

    With a header the columns are found by their titles. Without one, the first cell of a row with a digit and no space
    is the number, e-mail addresses are left out, and the rest of the row is the name. "Lee, Kim" becomes "Kim Lee".
    Rows without a name are left out.
    Raises RosterError for a file that cannot be read, no names, more than `max_names`, and too long a name or number.
    """
    if len(roster) > MAX_ROSTER_BYTES:
        raise RosterError(
            _("The class list is larger than {limit:,} bytes. Split it and add the parts one by one.").format(
                limit=MAX_ROSTER_BYTES
            )
        )
    rows = [row for row in _cells(roster if isinstance(roster, str) else _decode(roster)) if any(row)]
    if not rows:
        raise RosterError(_("The class list is empty. Type at least one name, one per line."))
    columns = _header_columns(rows[0])
    entries = [_entry_by_header(row, columns) if columns else _entry_by_look(row) for row in rows[bool(columns) :]]
    named = tuple((name, number or None) for name, number in entries if name)
    if not named:
        raise RosterError(_("The class list has no names. Type one name per line."))
    if len(named) > max_names:
        raise RosterError(
            _("The class list has {count:,} names; at most {limit:,} can be added at once.").format(
                count=len(named), limit=max_names
            )
        )
    for text in (text for entry in named for text in entry if text and len(text) > MAX_ENTRY_LENGTH):
        raise RosterError(
            _("“{start}…” has {count:,} characters; a name or number can have at most {limit}.").format(
                start=text[:30], count=len(text), limit=MAX_ENTRY_LENGTH
            )
        )
    return named


def _decode(roster: bytes) -> str:
    """Return the text of a file: UTF-16 if it begins with the byte order mark, else UTF-8, else Windows-1252.

    Raises RosterError for bytes that are none of these.
    """
    for encoding in ("utf-16",) if roster[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return roster.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise RosterError(_("The class list is not a text file. Save it as CSV in UTF-8."))


def _cells(text: str) -> list[list[str]]:
    """Return the cleaned cells of each line that is not blank, parted by tab, semicolon or comma: the most frequent.

    Where every line reads "Lee, Kim", the comma belongs to the name and each line is one cell. Raises RosterError for
    text that is no CSV.
    """
    lines = [line for line in text.removeprefix("\ufeff").replace("\0", " ").splitlines() if line.strip()]
    if _family_name_first(lines):
        return [[clean_line(line)] for line in lines]
    joined = "\n".join(lines)
    delimiter = max("\t;,", key=joined.count)
    try:
        return [[clean_line(cell) for cell in row] for row in csv.reader(io.StringIO(joined), delimiter=delimiter)]
    except csv.Error as error:
        raise RosterError(_("The class list can’t be read as CSV: {reason}.").format(reason=error)) from None


def _family_name_first(lines: Sequence[str]) -> bool:
    """Tell whether every line reads "Lee, Kim", and the first is not a header such as "Name, Number"."""
    titles = [clean_line(cell) for cell in lines[0].split(",")] if lines else []
    return all(map(_FAMILY_NAME_FIRST.fullmatch, lines)) and not _header_columns(titles)


def _header_columns(row: Sequence[str]) -> dict[_ColumnKind, int]:
    """Return the index of each kind of column by the titles in a header, whatever their case, the first of each kind.

    {}, for a row that is no header, if none of its cells is a title for names.
    """
    columns = {
        kind: index
        for kind, titles in _TITLES.items()
        for index, cell in reversed(list(enumerate(row)))
        if cell.casefold() in titles
    }
    return columns if columns.keys() & {"name", "first", "last"} else {}


def _entry_by_header(row: Sequence[str], columns: Mapping[_ColumnKind, int]) -> tuple[str, str]:
    """Return name and number of a row from its `columns`, "" where it has none.

    Without a full name, first and last name are joined; "Lee, Kim" becomes "Kim Lee".
    """
    cells = {kind: row[index] if index < len(row) else "" for kind, index in columns.items()}
    name = cells.get("name") or f"{cells.get('first', '')} {cells.get('last', '')}"
    return _first_name_first(clean_line(name)), cells.get("number", "")


def _entry_by_look(row: Sequence[str]) -> tuple[str, str]:
    """Return name and number of a row without a header, each "" if there is none.

    The only cell of a row is always the name, whatever it looks like. Of several cells the first with a digit and no
    space is the number, those with @ are ignored, and the others are the name. "Lee, Kim" becomes "Kim Lee".
    """
    if len(row) == 1:
        return _first_name_first(row[0]), ""
    number = next((cell for cell in row if _STUDENT_NUMBER.fullmatch(cell)), "")
    return _first_name_first(clean_line(" ".join(cell for cell in row if cell != number and "@" not in cell))), number


def _first_name_first(name: str) -> str:
    """Return "Lee, Kim" as "Kim Lee"; a name with no comma, or with two, stays as it is."""
    last, comma, first = name.partition(", ")
    return f"{first} {last}" if comma and last and first and "," not in first else name
